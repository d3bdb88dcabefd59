"""Metrics are recorded under the split of the loop that logs them, and each value decides once."""

import lightning.pytorch as pl
import pytest
import torch
import torchmetrics
from lightning_runs import Data, arrays, dataset, make_conf
from torch.utils.data import DataLoader, SubsetRandomSampler, TensorDataset

from rtrain.config.run_conf import BoundsConf, StopConf
from rtrain.config.targets.builder import Builder
from rtrain.errors import TrainingError
from rtrain.models.lightning import Classifier
from rtrain.testing.workers import RecordingChannel, make_worker
from rtrain.trainers.lightning.loop import train
from rtrain.trainers.lightning.metrics.logged import metric_name, names_here
from rtrain.trainers.loops.early_stopping import EarlyStoppingConf

HERE = __name__
BOTH = {"on_step": True, "on_epoch": True}
EPOCH = {"on_step": False, "on_epoch": True}


class Logging(Classifier):
    """Logs 1, 2, ... from step to step in training, and the number of the epoch, from 0, in validation.

    Args:
        in_training: Keywords of ``self.log`` by name.
        in_validation: The same; with ``every``, it is logged at the end of so many epochs.
    """

    def __init__(self, in_training=None, in_validation=None):
        super().__init__(6, 3, hidden=())
        self.in_training, self.in_validation = in_training or {}, in_validation or {}

    def training_step(self, batch, batch_idx):
        for name, how in self.in_training.items():
            self.log(name, self.global_step + 1.0, **how)
        return super().training_step(batch, batch_idx)

    def validation_step(self, batch, batch_idx, dataloader_idx=0):
        for name, how in self.in_validation.items():
            every = how.get("every", 1)
            if self.current_epoch % every == every - 1:
                self.log(name, float(self.current_epoch), **{key: one for key, one in how.items() if key != "every"})


class Counting(Logging):
    """The loss of each batch is its number in the epoch, from 1, and 10 more on the next epoch."""

    def training_step(self, batch, batch_idx):
        return super().training_step(batch, batch_idx) * 0 + 10 * self.current_epoch + batch_idx + 1


class OwnBatches(Data):
    """Batches that rtrain leaves alone: nobody knows how many rows they have."""

    def train_dataloader(self):
        rows = TensorDataset(*map(torch.tensor, arrays(75, 0)))
        return DataLoader(rows, batch_size=16, sampler=SubsetRandomSampler(range(75)))


COUNTING = {"_target_": f"{HERE}.Counting"}
MEANS = {
    1: [1, 2, 3, 4, 5],
    2: [1.5, 3.5, 5],
    3: [2, (4 * 16 + 5 * 11) / 27],
}
"""By accumulate_grad_batches: the mean loss of each step of an epoch of four batches of 16 rows and one of 11."""


@pytest.mark.parametrize("parts", MEANS)
def test_the_loss_of_a_step_is_the_mean_over_the_rows_of_its_batches(tmp_path, parts):
    keys = {"module": COUNTING, "max_epochs": 2, "trainer_args": {"accumulate_grad_batches": parts}}
    sent = fit(tmp_path, run={"log_every_steps": 1}, **keys)
    losses = [record.metrics["train/loss"] for record in sent.events if "train/loss" in record.metrics]
    assert losses == pytest.approx([*MEANS[parts], *(10 + mean for mean in MEANS[parts])])


def test_batches_whose_rows_are_not_known_count_alike(tmp_path):
    keys = {"datamodule": {"_target_": f"{HERE}.OwnBatches"}, "global_batch_size": None, "max_epochs": 1}
    keys |= {"module": COUNTING, "trainer_args": {"accumulate_grad_batches": 3}}
    assert fit(tmp_path, run={"log_every_steps": 2}, **keys).metrics["train/loss"] == pytest.approx(4.5)


def test_decisions_by_the_loss_of_a_step_go_by_the_mean_over_its_batches(tmp_path):
    best = {"checkpoint": {"best": {"monitor": "train/loss", "mode": "min"}}, "log_every_steps": 1}
    keys = {"module": COUNTING, "max_epochs": 4, "trainer_args": {"accumulate_grad_batches": 2}}
    assert scores(fit(tmp_path / "a", run=best, **keys)) == [(3 * epoch, 10 * epoch - 5) for epoch in (1, 2, 3, 4)]
    stop = StopConf(bounds={"train/loss": BoundsConf(max=20.0)})
    sent = fit(tmp_path / "b", run={"stop": stop, "log_every_steps": 1}, **keys)
    assert sent.checkpoints[-1]["epoch"] == 3, "25 in the end"
    early = EarlyStoppingConf(monitor="train/loss", patience=1, min_delta=-7.0, mode="min")
    sent = fit(tmp_path / "c", run={"log_every_steps": 1}, early_stopping=early, **keys)
    assert sent.checkpoints[-1]["epoch"] == 2, "10 worse"


class TwoLoaders(Data):
    """Two loaders for validation."""

    def val_dataloader(self):
        return [super(TwoLoaders, self).val_dataloader() for _ in range(2)]


def fit(folder, in_training=None, in_validation=None, stop_after=None, run=None, **keys):
    channel = RecordingChannel(stop_after)
    node = {"_target_": f"{HERE}.Logging", "in_training": in_training, "in_validation": in_validation}
    data = None if "datamodule" in keys else dataset()
    worker = make_worker(folder, make_conf(**{"module": node, **keys}), data, channel=channel, **(run or {}))
    worker.builder = Builder((f"{HERE}.*", "lightning_runs.*"))
    train(worker)
    return channel


def ends_of_epochs(sent):
    """Return what is recorded at the end of each epoch of five steps."""
    return [record.metrics for record in sent.events if record.step == 5 * record.epoch and record.epoch]


def scores(sent):
    return [(record["step"], record["score"] and record["score"]["value"]) for record in sent.checkpoints]


def notices(sent, start):
    return [record for record in sent.notices if record.startswith(start)]


@pytest.mark.parametrize(
    ("name", "in_training", "in_validation"),
    [
        ("val_loss", "test/loss", "test/loss"),
        ("valid/acc_epoch", "test/acc_epoch", "test/acc_epoch"),
        ("val/per_step", "test/per_step", "test/per_step"),
        ("Val_Acc", "test/Acc", "test/Acc"),
        ("train_loss_epoch", "train/epoch_loss", "train/epoch_loss"),
        ("loss", "train/loss", "test/loss"),
        ("loss/dataloader_idx_1", "train/loss/dataloader_idx_1", "test/loss/dataloader_idx_1"),
        ("val_loss/dataloader_idx_1", "test/loss/dataloader_idx_1", "test/loss/dataloader_idx_1"),
        ("lr/group1", "lr/group1", "lr/group1"),
        ("lr/group1/dataloader_idx_0", "lr/group1/dataloader_idx_0", "lr/group1/dataloader_idx_0"),
    ],
)
def test_names_of_metrics_tell_their_split_or_have_that_of_the_loop(name, in_training, in_validation):
    assert metric_name(name, "test", "train") == in_training
    assert metric_name(name, "test", "test") == in_validation


@pytest.mark.parametrize(
    ("name", "first"), [("acc", "val/acc"), ("train_acc_step", "train/acc_step"), ("loss_epoch", "val/loss_epoch")]
)
def test_a_name_of_lightning_is_looked_for_with_and_without_its_ending(name, first):
    found = names_here(name, "val")
    assert found[0] == first
    assert metric_name(name.removesuffix("_step").removesuffix("_epoch"), "val", "train") in found


@pytest.mark.parametrize("how", [{}, EPOCH, BOTH, {**BOTH, "prog_bar": True, "sync_dist": True}], ids=str)
@pytest.mark.parametrize("name", ["loss", "acc"])
def test_a_name_that_both_loops_log_is_recorded_for_both(tmp_path, name, how):
    sent = fit(tmp_path, {name: how}, {name: how}, max_epochs=2, run={"log_every_steps": 1})
    ended = ends_of_epochs(sent)
    assert [one[f"val/{name}"] for one in ended if f"val/{name}" in one] == [0.0, 1.0]
    steps = [record for record in sent.events if "train/loss" in record.metrics]
    assert [record.step for record in steps] == list(range(1, 11))
    own = [record.metrics["train/loss"] in range(11) for record in steps]
    assert own == [name == "loss" and how.get("on_step", True)] * 10, "what the module logs, or the loss of the step"
    recorded = {one for record in sent.events for one in record.metrics}
    assert not any(one.endswith(("_step", "_epoch")) for one in recorded)
    on_step, on_epoch = how.get("on_step", True), how.get("on_epoch", False)
    in_training = {f"train/{name}"} if on_step else set()
    in_training |= {f"train/epoch_{name}" if on_step or name == "loss" else f"train/{name}"} if on_epoch else set()
    assert recorded == {f"val/{name}", "train/loss"} | in_training
    if name == "loss":
        assert [value for _, value in scores(sent)] == [0.0, 1.0]


def test_several_loaders_are_told_apart(tmp_path):
    keys = {"datamodule": {"_target_": f"{HERE}.TwoLoaders"}, "global_batch_size": None, "max_epochs": 2}
    best = {"checkpoint": {"best": {"monitor": "val/loss/dataloader_idx_1", "mode": "max"}}}
    sent = fit(tmp_path / "a", None, {"loss": {}, "val_acc": BOTH, "a/b": {}}, run=best, **keys)
    names = {f"{one}/dataloader_idx_{number}" for one in ("val/loss", "val/acc", "a/b") for number in (0, 1)}
    assert [one.keys() - {"train/loss"} for one in ends_of_epochs(sent) if len(one) > 1] == [names] * 2
    assert scores(sent) == [(5, 0.0), (10, 1.0)]
    with pytest.raises(TrainingError) as error:
        fit(tmp_path / "b", None, {"loss": {}}, run={"checkpoint": {"best": {"monitor": "val/loss"}}}, **keys)
    assert "val/loss/dataloader_idx_0" in error.value.hint


class NoValidation(Data):
    """Rows for training alone."""

    val_dataloader = pl.LightningDataModule.val_dataloader


class Unvalidated(Logging):
    """Has no validation_step."""

    validation_step = pl.LightningModule.validation_step


USERS_OWN = {"datamodule": {"_target_": f"{HERE}.NoValidation"}, "global_batch_size": None}
VALIDATED = {"datamodule": {"_target_": "lightning_runs.Data"}, "global_batch_size": None}
UNVALIDATED = {"module": {"_target_": f"{HERE}.Unvalidated", "in_training": {"loss": EPOCH}}}
NO_BATCHES = {"trainer_args": {"limit_val_batches": 0}}


@pytest.mark.parametrize(
    "keys",
    [
        pytest.param({"evaluate_split": "none"}, id="no split"),
        pytest.param(USERS_OWN, id="no loader"),
        pytest.param(UNVALIDATED, id="no step"),
        pytest.param({**VALIDATED, **UNVALIDATED}, id="no step for a loader"),
        pytest.param(NO_BATCHES, id="no batches"),
        pytest.param({**VALIDATED, **NO_BATCHES}, id="no batches of a loader"),
    ],
)
def test_metrics_of_epochs_decide_without_validation(tmp_path, keys, recwarn):
    sent = fit(tmp_path / "a", {"loss": EPOCH}, {"loss": {}}, max_epochs=1, **keys)
    assert sent.checkpoints[-1]["score"]["monitor"] == "train/epoch_loss"
    best = {"checkpoint": {"best": {"monitor": "val/loss"}}}
    sent = fit(tmp_path / "b", {"loss": EPOCH}, {"loss": {}}, max_epochs=1, run=best, **keys)
    assert len(notices(sent, "run.checkpoint.best.monitor: so far the module logs no val/loss")) == 1
    assert not [one for one in recwarn if "across ranks is zero" in str(one.message)]


@pytest.mark.parametrize(("keys", "name"), [({}, "val/loss"), ({"evaluate_split": "none"}, "train/epoch_loss")])
def test_a_run_without_the_metric_that_decides_by_default_says_so(tmp_path, keys, name):
    sent = fit(tmp_path, None, {"acc": {}}, max_epochs=1, **keys)
    assert scores(sent) == [(5, None)]
    (told,) = notices(sent, "run.checkpoint.best.monitor: ")
    assert f"the run recorded no {name}, only " in told
    assert "latest checkpoint counts as the best" in told


def test_what_callbacks_add_is_recorded_with_an_evaluation(tmp_path):
    callback = {"_target_": "lightning.pytorch.callbacks.LearningRateMonitor"}
    logger = {"_target_": "lightning.pytorch.loggers.CSVLogger", "save_dir": str(tmp_path)}
    args = {"callbacks": [callback], "logger": [logger]}
    sent = fit(tmp_path, None, {"loss": {}}, max_epochs=1, trainer_args=args)
    assert ends_of_epochs(sent)[0] == {"train/lr-Adam": pytest.approx(1e-3), "val/loss": 0.0}


@pytest.mark.parametrize("args", [{}, {"val_check_interval": 2}, {"check_val_every_n_epoch": 2}], ids=str)
def test_metrics_of_training_decide_at_the_end_of_each_epoch(tmp_path, args):
    best = {"checkpoint": {"best": {"monitor": "train/epoch_loss", "mode": "max"}}}
    early = EarlyStoppingConf(monitor="train/epoch_loss", patience=2, min_delta=99.0, mode="max")
    sent = fit(tmp_path, {"loss": EPOCH}, {"loss": {}}, run=best, trainer_args=args, early_stopping=early, max_epochs=9)
    assert [(step, pytest.approx(value, abs=0.3)) for step, value in scores(sent)] == [(5, 3), (10, 8), (15, 13)]


@pytest.mark.parametrize("name", ["train/loss", "train/accuracy", "own/accuracy"])
def test_metrics_of_steps_decide_at_the_end_of_epochs_too(tmp_path, name):
    """They are known there, even if no step was reported."""
    best, keys = {"checkpoint": {"best": {"monitor": name, "mode": "max"}}}, {"max_epochs": 4}
    keys |= {"in_training": {"accuracy": BOTH, "own/accuracy": {}}, "trainer_args": {"val_check_interval": 2}}
    sent = fit(tmp_path, in_validation={"loss": {}}, run=best, **keys)
    assert notices(sent, "run") == []
    assert next(step for step, value in scores(sent) if value is not None) == 10, "the first step that was reported"
    every = fit(tmp_path / "b", in_validation={"loss": {}}, run={**best, "log_every_steps": 1}, **keys)
    assert {step % 5 for step, _ in scores(every)} == {0}


def test_a_name_of_the_modules_own_is_known_from_the_sanity_check(tmp_path):
    best, args = {"checkpoint": {"best": {"monitor": "a/f1", "mode": "max"}}}, {"check_val_every_n_epoch": 2}
    sent = fit(tmp_path, None, {"a/f1": {}}, run=best, trainer_args=args, max_epochs=2)
    assert notices(sent, "run") == []
    assert scores(sent) == [(5, None), (10, 1.0)]


LATER = {"loss": {}, "f1": {"every": 2}}


def test_patience_waits_for_an_evaluation_that_logs_the_metric(tmp_path):
    early = EarlyStoppingConf(monitor="val/f1", patience=1, mode="min")
    whole = fit(tmp_path / "a", None, LATER, early_stopping=early, max_epochs=9)
    assert scores(whole) == [(5, None), (10, 1.0), (15, None), (20, 3.0)]
    assert len(notices(whole, "trainer.early_stopping.monitor: so far")) == 1
    first = fit(tmp_path / "b", None, LATER, early_stopping=early, max_epochs=9, stop_after=12)
    assert scores(first) + scores(fit(tmp_path / "b", None, LATER, early_stopping=early, max_epochs=9)) == [
        *scores(whole)[:2],
        (13, None),
        *scores(whole)[2:],
    ]


WATCHED = {
    "run.checkpoint.best.monitor": {"checkpoint": {"best": {"monitor": "val/f1"}}},
    "trainer.early_stopping.monitor": {},
    "run.stop.target": {"stop": StopConf(target={"val/f1": 0.9})},
    "run.stop.bounds": {"stop": StopConf(bounds={"val/f1": BoundsConf(min=0.9)})},
}


@pytest.mark.parametrize("key", WATCHED)
@pytest.mark.parametrize("sanity", [{}, {"num_sanity_val_steps": 0}], ids=str)
@pytest.mark.parametrize(("logged", "is_near"), [("fl", True), ("accuracy", False)])
def test_a_metric_that_is_not_logged_is_a_typo_or_may_come_later(tmp_path, key, sanity, logged, is_near):
    early = EarlyStoppingConf(monitor="val/f1") if key.startswith("trainer") else None
    keys = {"early_stopping": early, "trainer_args": sanity, "max_epochs": 2, "run": WATCHED[key]}
    if is_near and not sanity:
        with pytest.raises(TrainingError, match=rf"{key}: the module logs no val/f1, only val/{logged}") as error:
            fit(tmp_path, None, {logged: {}}, **keys)
        assert f"val/{logged}" in error.value.hint
        assert "num_sanity_val_steps=0" in error.value.hint
        assert list((tmp_path / "checkpoints").iterdir()) == []
        return
    sent = fit(tmp_path, None, {logged: {}}, **keys)
    assert sent.checkpoints[-1]["epoch"] == 2
    assert len(notices(sent, f"{key}: so far the module logs no val/f1")) == 1
    (told,) = notices(sent, f"{key}: the run recorded no val/f1")
    assert ("latest checkpoint counts as the best" in told) == ("monitor" in key)


@pytest.mark.parametrize("sanity", [{}, {"num_sanity_val_steps": 0}], ids=str)
def test_a_name_that_can_never_be_recorded_is_refused(tmp_path, sanity):
    best = {"checkpoint": {"best": {"monitor": "val_loss"}}}
    with pytest.raises(TrainingError) as error:
        fit(tmp_path, None, {"loss": {}}, run=best, trainer_args=sanity)
    assert error.value.hint == "did you mean: val/loss"


@pytest.mark.parametrize(("monitor", "near"), [("test/f1", "val/f1"), ("val/f", "val/f1"), ("f1", "val/f1")])
def test_a_name_that_is_nearly_right_is_refused_before_the_first_step(tmp_path, monitor, near):
    best = {"checkpoint": {"best": {"monitor": monitor, "mode": "max"}}}
    with pytest.raises(TrainingError) as error:
        fit(tmp_path, None, {"f1": {}}, run=best)
    assert f"did you mean: {near}" in error.value.hint


class Many(Logging):
    """Logs a number for each class."""

    def __init__(self):
        super().__init__()
        self.recall = torchmetrics.Recall("multiclass", num_classes=3, average=None)

    def validation_step(self, batch, batch_idx):
        self.recall(self(batch[0]), batch[1])
        self.log("recall", self.recall)


def test_a_metric_of_several_numbers_is_refused_by_name(tmp_path):
    with pytest.raises(TrainingError, match="the module logs recall with 3 values"):
        fit(tmp_path, module={"_target_": f"{HERE}.Many"})
