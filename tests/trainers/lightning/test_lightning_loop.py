"""Lightning trains on our rows, resumes exactly, and tells what it does."""

import json
from dataclasses import replace

import lightning.pytorch as pl
import numpy as np
import pytest
import torch
from exactness import assert_exact, assert_same_contents, contents
from lightning_runs import MODULE, arrays, dataset, fit, make_conf
from safetensors.torch import load_file

import rtrain
from rtrain.config.run_conf import FailureConf
from rtrain.config.targets.builder import Builder
from rtrain.errors import TrainingError
from rtrain.models.lightning import Classifier
from rtrain.runs.checkpoints import latest_checkpoint
from rtrain.testing.small_data import with_infinite_row
from rtrain.testing.workers import RecordingChannel, make_worker, newest
from rtrain.trainers.lightning.inputs import EvalBatches, TrainBatches
from rtrain.trainers.lightning.loop import train
from rtrain.trainers.lightning.predictor import load_predictor
from rtrain.trainers.lightning.services import Services
from rtrain.trainers.loops.early_stopping import EarlyStoppingConf
from rtrain.trainers.torch.ranks import TorchRanks

HERE = __name__


def weights(folder):
    return load_file(latest_checkpoint(folder) / "model.safetensors")


@pytest.mark.parametrize("stop_after", [4, 5, 7])
def test_a_stopped_run_resumes_to_the_same_weights(tmp_path, stop_after):
    """Inside of an epoch, at its last step, and inside of the next one."""
    conf, data = make_conf(), dataset()
    whole = fit(tmp_path / "a", conf, data)
    stopped = fit(tmp_path / "b", conf, data, stop_after=stop_after - 1)
    assert stopped.checkpoints[-1]["step"] == stop_after
    resumed = fit(tmp_path / "b", conf, data)
    one, two = weights(tmp_path / "a"), weights(tmp_path / "b")
    assert all(torch.equal(one[name], two[name]) for name in one)
    assert resumed.events[-1].step == whole.events[-1].step == 15
    assert resumed.metrics["val/loss"] == whole.metrics["val/loss"]


@pytest.mark.parametrize("max_steps", [7, 8, 9])
def test_batches_of_several_steps_end_at_a_limit_and_resume_inside_of_their_epoch(tmp_path, max_steps):
    """By hand, 5 batches of two steps are an epoch: a limit of 7 or 9 steps is passed in the middle of one."""
    module = {"_target_": "lightning_runs.ByHand", "in_features": "auto", "num_classes": "auto"}
    conf, data = make_conf(module=module), dataset()
    whole = fit(tmp_path / "a", conf, data)
    first = fit(tmp_path / "b", replace(conf, max_steps=max_steps), data)
    assert [one["step"] for one in first.checkpoints] == [max_steps + max_steps % 2]
    resumed = fit(tmp_path / "b", conf, data)
    one, two = weights(tmp_path / "a"), weights(tmp_path / "b")
    assert all(torch.equal(one[name], two[name]) for name in one)
    assert resumed.events[-1].step == whole.events[-1].step == 30


def test_what_is_due_after_some_steps_comes_after_the_batch_that_reaches_them(tmp_path):
    module = {"_target_": "lightning_runs.ByHand", "in_features": "auto", "num_classes": "auto"}
    conf = make_conf(module=module, max_epochs=1)
    channel = fit(tmp_path, conf, dataset(), log_every_steps=3, checkpoint={"every_steps": 5})
    assert [one.step for one in channel.events if "train/loss" in one.metrics] == [4, 6, 10]
    assert [one["step"] for one in channel.checkpoints] == [6, 10]


def test_a_datamodule_trains_without_a_dataset(tmp_path):
    module = {"_target_": "rtrain.models.lightning.Classifier", "in_features": 6, "num_classes": 3}
    conf = make_conf(module=module, datamodule={"_target_": "lightning_runs.Data"})
    from rtrain.testing.workers import make_worker
    from rtrain.trainers.lightning.loop import train

    channel = RecordingChannel()
    worker = make_worker(tmp_path, conf, None, channel=channel)
    worker.builder = Builder(("lightning_runs.*",))
    train(worker)
    assert channel.worker_facts[-1]["num_rows"] == {"train": 75, "val": 23}
    assert channel.metrics["val/accuracy"] > 0.7


def test_a_prediction_agrees_with_the_evaluation(tmp_path):
    conf, data = make_conf(), dataset()
    channel = fit(tmp_path, conf, data)
    found = load_predictor(newest(tmp_path, conf, data)).predict(arrays(23, 1)[0])
    assert found.sum(1) == pytest.approx(1)
    assert (found.argmax(1) == arrays(23, 1)[1]).mean() == pytest.approx(channel.metrics["val/accuracy"])


def test_early_stopping_ends_the_run(tmp_path):
    module = {**make_conf().module, "lr": 0.0}
    conf = make_conf(module=module, max_epochs=50, early_stopping=EarlyStoppingConf(patience=2))
    assert fit(tmp_path, conf, dataset()).checkpoints[-1]["epoch"] == 3


def test_a_run_that_stopped_early_says_what_to_change_and_trains_nothing(tmp_path):
    conf = make_conf(early_stopping=EarlyStoppingConf(patience=1, min_delta=9.0))
    first, again = (fit(tmp_path, conf, dataset()) for _ in range(2))
    assert again.events == again.checkpoints == []
    assert again.end_reasons == first.end_reasons
    assert ["nothing is left to train: early stopping" in one for one in again.notices] == [True]
    conf.early_stopping = None
    assert fit(tmp_path, conf, dataset()).checkpoints[-1]["epoch"] == 3


class Logging(Classifier):
    """Logs the loss of training."""

    def training_step(self, batch, batch_idx):
        loss = super().training_step(batch, batch_idx)
        self.log("train_loss", loss, on_step=False, on_epoch=True)
        return loss


class Unvalidated(Logging):
    """The same, without validation."""

    validation_step = pl.LightningModule.validation_step


@pytest.mark.parametrize(("name", "split"), [("Logging", "none"), ("Unvalidated", "auto")])
def test_early_stopping_without_validation_goes_by_the_epochs(tmp_path, name, split):
    keys = {"module": {**MODULE, "_target_": f"{HERE}.{name}"}, "evaluate_split": split}
    early = EarlyStoppingConf(monitor="train/epoch_loss", patience=2, min_delta=9.0)
    sent = fit(tmp_path / "a", make_conf(max_epochs=50, early_stopping=early, **keys), dataset())
    assert sent.checkpoints[-1]["epoch"] == 3
    assert sent.checkpoints[-1]["score"]["monitor"] == "train/epoch_loss"
    typo = EarlyStoppingConf(monitor="train/epoch_los", mode="min")
    with pytest.raises(TrainingError, match=r"the module logs no train/epoch_los, only train/epoch_loss") as raised:
        fit(tmp_path / "b", make_conf(early_stopping=typo, **keys), dataset())
    assert "train/epoch_loss" in raised.value.hint
    assert latest_checkpoint(tmp_path / "b") is None


@pytest.mark.parametrize(("accumulate", "interval", "works"), [(2, 3, False), (2, 2, True), (2, 4, True), (1, 3, True)])
def test_an_evaluation_between_two_optimizer_steps_is_refused(tmp_path, accumulate, interval, works):
    conf = make_conf(trainer_args={"accumulate_grad_batches": accumulate, "val_check_interval": interval})
    if works:
        assert fit(tmp_path, conf, dataset()).checkpoints[-1]["epoch"] == 3
        return
    with pytest.raises(TrainingError, match=r"val_check_interval: .* between two optimizer steps"):
        fit(tmp_path, conf, dataset())


class Slowing(Classifier):
    """Its rate follows the validation, inside of epochs."""

    def configure_optimizers(self):
        optimizer = torch.optim.SGD(self.parameters(), lr=1.0)
        plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.5, patience=0, threshold=0.5)
        return {
            "optimizer": optimizer,
            "lr_scheduler": {"scheduler": plateau, "monitor": "val_loss", "interval": "step", "frequency": 2},
        }


@pytest.mark.parametrize("stops", [(2,), (7,), (1, 3, 3)])
def test_evaluations_inside_of_epochs_count_once_whatever_interrupts_the_run(tmp_path, stops):
    module = {**MODULE, "_target_": f"{HERE}.Slowing"}
    early = EarlyStoppingConf(patience=5, min_delta=0.1)
    conf = make_conf(module=module, trainer_args={"val_check_interval": 2}, early_stopping=early)
    assert_exact(tmp_path, lambda folder, channel: train_in(folder, conf, channel), stops)
    whole, parts = (json.loads((latest_checkpoint(tmp_path / one) / "progress.json").read_text()) for one in RUNS)
    for name in ("step", "best", "early_best", "bad_evaluations", "evaluated_step"):
        assert parts[name] == whole[name], name


def train_in(folder, conf, channel):
    worker = make_worker(folder, conf, dataset(), channel=channel)
    worker.builder = Builder((f"{HERE}.*",))
    train(worker)


SKIPPED = "train/skipped_batch"
RUNS = ("whole", "parts")
DIVERGING = {**MODULE, "lr": 1e30}


def test_a_loss_that_is_no_number_names_its_step_and_leaves_no_checkpoint(tmp_path):
    told = r"the training loss of step [23] \(batch [23] of epoch 1\) is not a finite number"
    with pytest.raises(TrainingError, match=told):
        fit(tmp_path, make_conf(module=DIVERGING), dataset(), checkpoint={"every_steps": 4})
    assert latest_checkpoint(tmp_path) is None


def test_it_may_end_the_run_instead_with_the_checkpoint_before(tmp_path):
    stop, every = FailureConf(nan_loss="stop"), {"every_steps": 1}
    sent = fit(tmp_path, make_conf(module=DIVERGING), dataset(), failure=stop, checkpoint=every)
    (end,) = sent.end_reasons
    assert "is not a finite number" in end
    assert [record["step"] for record in sent.checkpoints] == [1]


@pytest.mark.parametrize(("name", "parts"), [("Normed", 1), ("Normed", 2), ("ByHand", 1)])
def test_its_step_may_be_left_out_and_noted(tmp_path, name, parts):
    module = {"_target_": f"lightning_runs.{name}", "in_features": 6, "num_classes": 3}
    conf = make_conf(module=module, max_epochs=2, trainer_args={"accumulate_grad_batches": parts})
    skip = {"failure": FailureConf(nan_loss="skip"), "log_every_steps": 1}
    sent = fit(tmp_path, conf, with_infinite_row(dataset()), **skip)
    noted = [record for record in sent.events if SKIPPED in record.metrics]
    times = 2 if name == "ByHand" else 1
    assert [record.epoch for record in noted] == [0] * times + [1] * times
    assert all(1 <= record.metrics[SKIPPED] <= 5 for record in noted)
    found = contents(latest_checkpoint(tmp_path))
    spoilt = [name for name, one in found.items() if isinstance(one, np.ndarray) and not np.isfinite(one).all()]
    assert not spoilt, "weights, batch statistics or the optimizer"
    assert all(np.isfinite(one) for record in sent.events for one in record.metrics.values())


def test_leaving_steps_out_changes_nothing_where_all_are_good(tmp_path):
    fit(tmp_path / "a", make_conf(), dataset())
    fit(tmp_path / "b", make_conf(), dataset(), failure=FailureConf(nan_loss="skip"))
    assert_same_contents(tmp_path / "a", tmp_path / "b", only=("model.safetensors",))


SPOILT = """
from rtrain.models.lightning import Classifier


class Spoilt(Classifier):
    def training_step(self, batch, batch_idx):
        loss = super().training_step(batch, batch_idx)
        return loss * float("nan") if batch_idx == 1 and self.global_rank == 1 else loss
"""


@pytest.mark.slow
def test_two_workers_leave_out_a_step_that_is_no_number_on_one_of_them(tmp_path):
    (tmp_path / "pyproject.toml").write_text("")
    (tmp_path / "spoilt.py").write_text(SPOILT)
    (tmp_path / "spoilt.yaml").write_text("defaults: [lightning]\ntrainer: {module: {_target_: spoilt.Spoilt}}\n")
    words = ["num_workers=2", "trainer.max_epochs=2", "run.failure.nan_loss=skip", f"run.root_dir={tmp_path}/runs"]
    run = rtrain.fit(str(tmp_path / "spoilt.yaml"), words)
    noted = [(event.epoch, event.metrics[SKIPPED]) for event in run.events() if SKIPPED in event.metrics]
    assert noted == [(0, 2), (1, 2)]
    assert all(torch.isfinite(one).all() for one in weights(run.path).values())
    assert run.metrics["val/accuracy"] > 0.8


def test_an_evaluation_belongs_to_the_epoch_that_it_closes(tmp_path):
    found = fit(tmp_path, make_conf(), dataset()).events
    assert [one.epoch for one in found if "val/loss" in one.metrics] == [1, 2, 3]


@pytest.mark.parametrize(("num_rows", "size"), [(75, 2), (33, 2), (17, 3), (16, 1)])
def test_ranks_share_rows_without_one_lost_or_doubled(num_rows, size):
    ranks = [TorchRanks(rank, size, torch.device("cpu")) for rank in range(size)]
    parts = [EvalBatches(num_rows, 8, one) for one in ranks]
    assert sorted(row for part in parts for batch in part for row in batch) == list(range(num_rows))
    assert len({len(part) for part in parts}) == 1
    assert all(batch for part in parts for batch in part)
    steps = [TrainBatches(num_rows, 16, one, seed=0, shuffle=True, drop=False) for one in ranks]
    assert sum(one.num_own_rows() for one in steps) == num_rows
    for step, batches in enumerate(zip(*steps, strict=True)):
        counted = [row for batch, one in zip(batches, steps, strict=True) if one.share(step) for row in batch]
        assert len(set(counted)) == len(counted) == min(16, num_rows - 16 * step)


def test_callbacks_and_loggers_of_ones_own_work(tmp_path):
    callback = {"_target_": "lightning.pytorch.callbacks.LearningRateMonitor"}
    logger = {"_target_": "lightning.pytorch.loggers.CSVLogger", "save_dir": str(tmp_path / "logs")}
    fit(tmp_path, make_conf(trainer_args={"callbacks": [callback], "logger": [logger]}), dataset())
    (table,) = (tmp_path / "logs").rglob("metrics.csv")
    assert {"lr-Adam", "val_loss"} <= set(table.read_text().splitlines()[0].split(","))


@pytest.mark.parametrize("sizes", [(16, 10), (10, 16), (7, 75)])
def test_each_row_comes_once_if_the_steps_of_a_resumed_epoch_have_another_size(tmp_path, monkeypatch, sizes):
    taken = []
    before = Services.on_train_batch_start

    def noting(self, trainer, pl_module, batch, batch_idx):
        taken.append((trainer.current_epoch, batch[0][:, 0].tolist()))
        before(self, trainer, pl_module, batch, batch_idx)

    monkeypatch.setattr(Services, "on_train_batch_start", noting)
    for size, stop in zip(sizes, (3, None), strict=True):
        channel = fit(tmp_path, make_conf(max_epochs=2, global_batch_size=size), dataset(), stop_after=stop)
    x = sorted(arrays(75, 0)[0][:, 0].tolist())
    for epoch in range(2):
        assert sorted(row for number, rows in taken if number == epoch for row in rows) == x
    assert [one.epoch for one in channel.events if "val/loss" in one.metrics] == [1, 2]


@pytest.mark.parametrize("num_workers", [0, 1])
def test_random_transforms_of_the_users_rows_resume_to_the_same_weights(tmp_path, num_workers):
    def go(folder, channel):
        node = {"_target_": "lightning_runs.NoisyData", "num_workers": num_workers}
        keys = {"module": {**MODULE, "in_features": 6, "num_classes": 3}, "datamodule": node}
        worker = make_worker(folder, make_conf(global_batch_size=None, **keys), None, channel=channel)
        worker.builder = Builder(("lightning_runs",))
        train(worker)

    assert_exact(tmp_path, go, [4, 3], only=("lightning.ckpt/state_dict", "lightning.ckpt/optimizer_states", "model"))
