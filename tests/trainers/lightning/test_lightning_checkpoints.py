"""Lightning's checkpoints can be read back, and metrics belong to the epoch that they were measured in."""

import functools

import lightning.pytorch as pl
import pytest
import torch
from lightning_runs import dataset, make_conf
from torch import nn
from torch.nn import functional

from rtrain.config.targets.builder import Builder
from rtrain.errors import CheckpointError
from rtrain.models.lightning import Classifier
from rtrain.runs.checkpoints import latest_checkpoint, read_record
from rtrain.testing.workers import RecordingChannel, make_worker
from rtrain.trainers.lightning.checkpoint.stored import check_readable, without_objects
from rtrain.trainers.lightning.loop import train

HERE = __name__


class Template(pl.LightningModule):
    """As the most used template for Hydra has it: a network and an unfinished optimizer are hyperparameters."""

    def __init__(self, net, optimizer, lr=0.1, sizes=(1, 2)):
        super().__init__()
        self.save_hyperparameters(logger=False)
        self.net = net

    def forward(self, x):
        return self.net(x)

    def training_step(self, batch, batch_idx):
        loss = functional.cross_entropy(self(batch[0]), batch[1])
        self.log("train/loss", loss, on_step=False, on_epoch=True)
        self.log("train/acc", (self(batch[0]).argmax(1) == batch[1]).float().mean(), on_step=True, on_epoch=True)
        return loss

    def validation_step(self, batch, batch_idx):
        self.log("val/loss", functional.cross_entropy(self(batch[0]), batch[1]))

    def configure_optimizers(self):
        return self.hparams.optimizer(params=self.parameters())


class Remembering(pl.Callback):
    """A callback whose state is no plain data."""

    def state_dict(self):
        return {"kept": {"net": nn.Linear(1, 1), "count": 3}}


class Storing(Classifier):
    """A module that puts an object into its checkpoint itself."""

    def on_save_checkpoint(self, checkpoint):
        checkpoint["mine"] = [1, functools.partial(print)]


TEMPLATE = {
    "_target_": f"{HERE}.Template",
    "net": {"_target_": "torch.nn.Linear", "in_features": 6, "out_features": 3},
    "optimizer": {"_target_": "torch.optim.SGD", "_partial_": True, "lr": 0.1},
}


def fit(folder, conf, **keys):
    channel = RecordingChannel(keys.pop("stop_after", None))
    worker = make_worker(folder, conf, dataset(), channel=channel, **keys)
    worker.builder = Builder((f"{HERE}.*",))
    train(worker)
    return channel


def test_hyperparameters_that_are_objects_are_left_out_and_the_run_resumes(tmp_path):
    whole = fit(tmp_path / "a", make_conf(module=TEMPLATE))
    stopped = fit(tmp_path / "b", make_conf(module=TEMPLATE), stop_after=6)
    assert [("net" in one, "optimizer" in one) for one in stopped.notices] == [(True, True)]
    assert fit(tmp_path / "b", make_conf(module=TEMPLATE)).metrics["val/loss"] == whole.metrics["val/loss"]
    stored = torch.load(latest_checkpoint(tmp_path / "b") / "lightning.ckpt", weights_only=True)
    assert stored["hyper_parameters"] == {"lr": 0.1, "sizes": (1, 2)}
    again = Template.load_from_checkpoint(
        latest_checkpoint(tmp_path / "b") / "lightning.ckpt", net=nn.Linear(6, 3), optimizer=None, weights_only=True
    )
    assert again.hparams.lr == 0.1


@pytest.mark.parametrize(
    ("keys", "place"),
    [
        ({"trainer_args": {"callbacks": [{"_target_": f"{HERE}.Remembering"}]}}, "kept.net"),
        ({"module": {"_target_": f"{HERE}.Storing", "in_features": 6, "num_classes": 3}}, "mine.1"),
    ],
)
def test_what_no_run_could_resume_from_is_refused_when_it_is_first_saved(tmp_path, keys, place):
    with pytest.raises(CheckpointError) as error:
        fit(tmp_path, make_conf(**keys))
    assert place in error.value.message
    assert "on_save_checkpoint" in error.value.hint
    assert latest_checkpoint(tmp_path) is None


@pytest.mark.parametrize(
    "kept",
    [1, 2.5, "text", None, True, [1, (2,)], {"a": {"b": [None]}}, torch.ones(2), torch.float16, {1, 2}],
)
def test_plain_hyperparameters_stay(kept):
    found, left_out = without_objects(
        {"hyper_parameters": {"kept": kept, "net": nn.Linear(1, 1), "deep": {"f": print}}}
    )
    check_readable(found)
    assert str(found["hyper_parameters"]) == str({"kept": kept, "deep": {}})
    assert left_out == ["net", "deep.f"]


def test_metrics_of_an_epoch_are_in_its_event_and_under_names_that_no_step_has(tmp_path):
    sent = fit(tmp_path, make_conf(module=TEMPLATE), log_every_steps=1)
    ended = [record for record in sent.events if "val/loss" in record.metrics]
    assert [record.epoch for record in ended] == [1, 2, 3]
    assert all({"train/epoch_loss", "train/epoch_acc", "val/loss"} == record.metrics.keys() for record in ended)
    steps = [record for record in sent.events if "train/loss" in record.metrics]
    assert [record.step for record in steps] == list(range(1, 16))
    sizes = [16, 16, 16, 16, 11]
    for epoch, record in enumerate(ended):
        losses = [one.metrics["train/loss"] for one in steps[epoch * 5 : epoch * 5 + 5]]
        mean = sum(loss * size for loss, size in zip(losses, sizes, strict=True)) / 75
        assert record.metrics["train/epoch_loss"] == pytest.approx(mean, rel=1e-5)


def test_a_checkpoint_that_is_written_before_its_evaluation_gets_its_score(tmp_path):
    args = {"val_check_interval": 2}
    conf, cadence = make_conf(trainer_args=args, max_epochs=1), {"every_steps": 2, "every_epochs": None, "keep": 9}
    sent = fit(tmp_path, conf, checkpoint=cadence)
    scores = {record["step"]: record["score"] for record in sent.checkpoints}
    assert None not in (scores[2], scores[4])
    assert read_record(tmp_path / "checkpoints" / "epoch-0000-step-00000002")["score"] == scores[2]
