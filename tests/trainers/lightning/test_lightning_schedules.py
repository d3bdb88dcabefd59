"""A schedule that watches a metric is updated once in an epoch, also if that was cut and resumed."""

import itertools

import pytest
import torch
from exactness import assert_same_contents
from lightning_runs import dataset, make_conf

from rtrain.config.targets.builder import Builder
from rtrain.models.lightning import Classifier
from rtrain.testing.workers import RecordingChannel, make_worker
from rtrain.trainers.lightning.loop import train

HERE = __name__
STEPS = 5
"""Of an epoch."""


class Watching(Classifier):
    """Its rate follows a metric at the end of epochs, as Lightning's documentation has it."""

    def __init__(self, in_features, num_classes, monitor="val_loss", frequency=1):
        super().__init__(in_features, num_classes, hidden=())
        self.watched = {"monitor": monitor, "frequency": frequency}

    def training_step(self, batch, batch_idx):
        loss = super().training_step(batch, batch_idx)
        self.log("train_loss", loss, on_step=False, on_epoch=True)
        return loss

    def configure_optimizers(self):
        optimizer = torch.optim.SGD(self.parameters(), lr=1.0)
        plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.5, patience=0, threshold=0.5)
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": plateau, **self.watched}}


def go(folder, args=None, *, stop_after=None, limits=None, **watched):
    channel = RecordingChannel(stop_after=stop_after)
    module = {"_target_": f"{HERE}.Watching", "in_features": 6, "num_classes": 3, **watched}
    conf = make_conf(module=module, max_epochs=4, trainer_args=args or {}, **(limits or {}))
    worker = make_worker(folder, conf, dataset(), channel=channel)
    worker.builder = Builder((f"{HERE}.*",))
    train(worker)
    return channel


def reported(*parts):
    return [
        (one.step, one.metrics["val/loss"])
        for one in itertools.chain(*(part.events for part in parts))
        if "val/loss" in one.metrics
    ]


@pytest.mark.parametrize(
    ("args", "frequency"), [({}, 1), ({"val_check_interval": 2}, 1), ({"check_val_every_n_epoch": 2}, 2)]
)
def test_a_resumed_run_ends_as_one_without_a_break(tmp_path, args, frequency):
    """Cut by a limit on steps, and by a signal, inside of an epoch, at its end, and at an evaluation inside of it."""
    whole = reported(go(tmp_path / "whole", args, frequency=frequency))
    for cut in (STEPS, STEPS + 2, 2 * STEPS - 1, 2 * STEPS):
        for name, how in {"limit": {"limits": {"max_steps": cut}}, "signal": {"stop_after": cut - 1}}.items():
            folder = tmp_path / f"{name} {cut}"
            first = go(folder, args, frequency=frequency, **how)
            assert reported(first, go(folder, args, frequency=frequency)) == whole, (name, cut)
            assert_same_contents(tmp_path / "whole", folder, ("model", "lightning.ckpt/lr_schedulers"))


def test_limits_on_steps_before_and_after_the_break_change_nothing(tmp_path):
    whole = reported(go(tmp_path / "whole", limits={"max_steps": 17}))
    for cut in (STEPS, STEPS + 2):
        first = go(tmp_path / str(cut), limits={"max_steps": cut})
        assert reported(first, go(tmp_path / str(cut), limits={"max_steps": 17})) == whole, cut
        assert_same_contents(tmp_path / "whole", tmp_path / str(cut), ("model", "lightning.ckpt/lr_schedulers"))


@pytest.mark.parametrize(("cut", "is_told"), [(STEPS, False), (STEPS + 2, True)])
def test_a_schedule_that_sees_the_rest_of_an_epoch_only_is_told(tmp_path, cut, is_told):
    go(tmp_path, stop_after=cut - 1, monitor="train_loss")
    told = [one for one in go(tmp_path, monitor="train_loss").notices if "mean over its rest" in one]
    assert [("train_loss" in one) for one in told] == [True] * is_told
