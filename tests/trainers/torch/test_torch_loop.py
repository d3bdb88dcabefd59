"""The declared loop on one worker."""

import json
import math

import numpy as np
import pytest
import torch
import torchmetrics
from exactness import assert_same_contents
from torch_runs import (
    EXACT,
    MLP,
    MODELS,
    SGD,
    RecordingChannel,
    assert_same,
    fit,
    make_conf,
    make_worker,
    small_dataset,
    weights,
)

from rtrain.config.run_conf import FailureConf
from rtrain.config.targets.builder import Builder
from rtrain.datasets.base import Dataset, ResidentSplit, Split
from rtrain.errors import TargetError, TrainingError
from rtrain.runs.checkpoints import latest_checkpoint
from rtrain.testing.small_data import streamed, with_infinite_row
from rtrain.trainers.torch.build import build_metrics
from rtrain.trainers.torch.loop import train

DROPOUT = {**MLP, "dropout": 0.5}


def steady(channel):
    return [
        {name: value for name, value in record.metrics.items() if "per_second" not in name} for record in channel.events
    ]


def test_it_learns_and_reports(tmp_path):
    channel, _ = fit(tmp_path, make_conf(max_epochs=8), log_every_steps=2)
    assert channel.metrics["test/accuracy"] > 0.9
    assert {
        "train/loss",
        "train/epoch_loss",
        "train/lr",
        "train/rows_per_second",
        "test/loss",
    } <= channel.metrics.keys()
    steps = [record.step for record in channel.events]
    assert steps == sorted(steps)
    facts = channel.worker_facts[0]
    assert facts["num_rows"] == {"train": 150, "test": 37}
    assert facts["num_parameters"] == 64 * 16 + 16 + 16 * 3 + 3


def test_the_same_seed_gives_the_same_numbers(tmp_path):
    first, a = fit(tmp_path / "a", make_conf(model=DROPOUT), seed=3)
    second, b = fit(tmp_path / "b", make_conf(model=DROPOUT), seed=3)
    other, _ = fit(tmp_path / "c", make_conf(model=DROPOUT), seed=4)
    assert steady(first) == steady(second) != steady(other)
    assert_same(a, b, **EXACT)


def test_accumulated_halves_are_one_whole_batch(tmp_path):
    keys = {"scheduler": {"_target_": "torch.optim.lr_scheduler.CosineAnnealingLR", "T_max": "auto"}}
    _, whole = fit(tmp_path / "a", make_conf(batch_size=64, **keys))
    _, halves = fit(tmp_path / "b", make_conf(batch_size=32, accumulate_steps=2, **keys))
    assert_same(whole, halves)


@pytest.mark.parametrize("keys", [{"ema_decay": 0.9}, {"precision": "fp16"}, {"precision": "bf16"}, {"clip_norm": 1.0}])
@pytest.mark.parametrize("scheduler", ["cosine", "warmup"])
def test_resuming_inside_an_epoch_changes_nothing(tmp_path, keys, scheduler):
    schedules = {
        "cosine": {"_target_": "torch.optim.lr_scheduler.CosineAnnealingLR", "T_max": "auto"},
        "warmup": {"_target_": "rtrain.trainers.torch.schedules.warmup_cosine", "num_training_steps": "auto"},
    }
    conf = make_conf(model=DROPOUT, batch_size=16, max_epochs=3, scheduler=schedules[scheduler], **keys)
    whole, expected = fit(tmp_path / "a", conf)
    stopped, _ = fit(tmp_path / "b", conf, channel=RecordingChannel(stop_after=14))
    assert stopped.checkpoints[-1]["step"] == 14
    resumed, found = fit(tmp_path / "b", conf)
    assert_same(expected, found, **EXACT)
    if "ema_decay" in keys:
        assert_same(*(weights(tmp_path / run, "model_ema.safetensors") for run in "ab"), **EXACT)
    last, again = steady(whole)[-1], steady(resumed)[-1]
    assert last == pytest.approx(again, rel=1e-12)


def test_reports_after_a_resume_are_those_of_an_uninterrupted_run(tmp_path):
    conf = make_conf(model=DROPOUT, batch_size=16, max_epochs=2)
    whole, _ = fit(tmp_path / "a", conf, log_every_steps=4)
    stopped, _ = fit(tmp_path / "b", conf, channel=RecordingChannel(stop_after=6), log_every_steps=4)
    resumed, _ = fit(tmp_path / "b", conf, log_every_steps=4)
    assert len(steady(whole)) == len(steady(stopped) + steady(resumed)) == 7
    for expected, found in zip(steady(whole), steady(stopped) + steady(resumed), strict=True):
        assert found == pytest.approx(expected, rel=1e-12)


def test_an_older_checkpoint_that_keeps_its_place_beside_the_optimizer_resumes(tmp_path):
    conf = make_conf(model=DROPOUT, batch_size=16)
    whole, expected = fit(tmp_path / "a", conf)
    fit(tmp_path / "b", conf, channel=RecordingChannel(stop_after=3))
    folder = latest_checkpoint(tmp_path / "b")
    progress = json.loads((folder / "progress.json").read_text())
    (folder / "progress.json").unlink()
    del progress["ended"]
    older = {"metrics": progress.pop("metrics"), "progress": progress}
    torch.save(torch.load(folder / "training.pt", weights_only=True) | older, folder / "training.pt")
    resumed, found = fit(tmp_path / "b", conf)
    assert_same(expected, found, **EXACT)
    assert steady(whole)[-1] == steady(resumed)[-1]


def test_steps_of_another_size_find_their_place_in_the_epoch(tmp_path):
    fit(tmp_path, make_conf(batch_size=16), channel=RecordingChannel(stop_after=3))
    channel, _ = fit(tmp_path, make_conf(batch_size=8))
    # 150 rows: 3 steps of 16, then 102 rows in 13 steps of 8.
    assert next(record["step"] for record in channel.checkpoints) == 3 + 13


@pytest.mark.parametrize("optimizer", ["SGD", "Adam", "AdamW"])
def test_every_optimizer_resumes(tmp_path, optimizer):
    node = {"_target_": f"torch.optim.{optimizer}", "lr": 0.01}
    conf = make_conf(optimizer=node, max_epochs=2)
    _, expected = fit(tmp_path / "a", conf)
    fit(tmp_path / "b", conf, channel=RecordingChannel(stop_after=2))
    assert_same(expected, fit(tmp_path / "b", conf)[1], **EXACT)


def test_a_finished_run_has_nothing_to_resume(tmp_path):
    conf = make_conf()
    _, before = fit(tmp_path, conf)
    channel, after = fit(tmp_path, conf)
    assert channel.events == []
    assert_same(before, after, **EXACT)


PLATEAU = {"_target_": "torch.optim.lr_scheduler.ReduceLROnPlateau", "patience": 0, "threshold": 10.0}


@pytest.mark.parametrize(
    "keys",
    [{}, {"scheduler": PLATEAU, "eval_every_epochs": 2, "ema_decay": 0.9}, {"early_stopping": True}],
    ids=str,
)
def test_a_longer_limit_continues_a_finished_run_as_if_it_had_been_as_long_from_the_beginning(tmp_path, keys):
    if "early_stopping" in keys:
        keys = {"early_stopping": _early(patience=2, min_delta=100.0), "eval_every_epochs": 2}
    for end in ({"max_epochs": 1}, {"max_steps": 5}, {"max_epochs": 3}, {"max_epochs": 8}):
        fit(tmp_path / "a", make_conf(**keys, **end))
    fit(tmp_path / "b", make_conf(**keys, max_epochs=8))
    assert_same_contents(tmp_path / "a", tmp_path / "b")


@pytest.mark.parametrize("keys", [{"max_steps": 5}, {"max_steps": 3, "max_epochs": 9}])
def test_max_steps_ends_the_run_with_an_evaluation(tmp_path, keys):
    channel, _ = fit(tmp_path, make_conf(**keys))
    assert channel.checkpoints[-1]["step"] == keys["max_steps"]
    assert channel.events[-1].step == keys["max_steps"]
    assert "test/accuracy" in channel.events[-1].metrics


def test_max_seconds_ends_the_run(tmp_path):
    channel, _ = fit(tmp_path, make_conf(max_seconds=0.3))
    assert channel.checkpoints[-1]["step"] > 3
    assert "test/accuracy" in channel.events[-1].metrics


def test_a_signal_saves_without_evaluating(tmp_path):
    channel, _ = fit(tmp_path, make_conf(max_epochs=50), channel=RecordingChannel(stop_after=1, reason="preempted"))
    assert [record["step"] for record in channel.checkpoints] == [1]
    assert channel.events == []


def test_early_stopping_counts_evaluations(tmp_path):
    early = {"monitor": "test/loss", "patience": 2, "min_delta": 100.0}
    channel, _ = fit(tmp_path, make_conf(max_epochs=50, early_stopping=_early(**early)))
    assert channel.events[-1].epoch == 3
    again, _ = fit(tmp_path, make_conf(max_epochs=50, early_stopping=_early(**early)))
    assert again.events == []


def _early(**keys):
    from rtrain.trainers.loops.early_stopping import EarlyStoppingConf

    return EarlyStoppingConf(**keys)


def test_checkpoints_and_evaluations_by_step(tmp_path):
    conf = make_conf(max_epochs=2, batch_size=50, eval_every_steps=2, eval_every_epochs=None)
    channel, _ = fit(tmp_path, conf, checkpoint={"every_epochs": None, "every_steps": 2})
    assert [record["step"] for record in channel.checkpoints] == [2, 4, 6]
    evaluated = [record.step for record in channel.events if "test/loss" in record.metrics]
    assert evaluated == [2, 4, 6]


def test_each_checkpoint_that_was_evaluated_has_its_score(tmp_path):
    conf = make_conf(max_epochs=2, batch_size=50, eval_every_steps=4, eval_every_epochs=None)
    channel, _ = fit(tmp_path, conf, checkpoint={"every_epochs": None, "every_steps": 2})
    scores = {record["step"]: record["score"] for record in channel.checkpoints}
    accuracy = {record.step: record.metrics.get("test/accuracy") for record in channel.events}
    assert scores[2] is None
    assert scores[4] == {"monitor": "test/accuracy", "mode": "max", "value": accuracy[4]}


@pytest.mark.parametrize("interval", ["step", "epoch"])
def test_the_schedule_ends_at_zero(tmp_path, interval):
    node = {
        "_target_": "torch.optim.lr_scheduler.LinearLR",
        "start_factor": 1.0,
        "end_factor": 0.0,
        "total_iters": "auto",
    }
    conf = make_conf(max_epochs=4, batch_size=50, scheduler=node, scheduler_interval=interval)
    channel, _ = fit(tmp_path, conf, log_every_steps=1)
    rates = [record.metrics["train/lr"] for record in channel.events if "train/lr" in record.metrics]
    expected = [0.1 * (1 - step / 12) for step in range(1, 13)] if interval == "step" else [0.1, 0.1, 0.1, 0.1]
    assert rates[:4] == pytest.approx([*expected[:3], expected[2]])
    stored = torch.load(latest_checkpoint(tmp_path) / "training.pt", weights_only=True)
    assert stored["optimizer"]["param_groups"][0]["lr"] == pytest.approx(0)


def test_a_plateau_lowers_the_rate(tmp_path):
    node = {"_target_": "torch.optim.lr_scheduler.ReduceLROnPlateau", "mode": "max", "patience": 0, "threshold": 10.0}
    channel, _ = fit(tmp_path, make_conf(max_epochs=4, scheduler=node))
    assert channel.metrics["train/lr"] < 0.1


def test_evaluation_uses_the_moving_average(tmp_path):
    channel, _ = fit(tmp_path, make_conf(max_epochs=1, ema_decay=0.999999, optimizer={**SGD, "lr": 1.0}))
    plain, averaged = weights(tmp_path), weights(tmp_path, "model_ema.safetensors")
    assert any(not torch.equal(plain[name], averaged[name]) for name in plain)
    assert channel.metrics["test/accuracy"] < 0.95


@pytest.mark.parametrize("dtype", ["float32", "uint8"])
def test_a_small_resnet_learns_images(tmp_path, dtype):
    model = {"_target_": f"{MODELS}.ResNet", "in_channels": "auto", "num_classes": "auto", "layers": [1, 1], "width": 8}
    conf = make_conf(model=model, max_epochs=6, channels_last=True)
    channel, _ = fit(tmp_path, conf, dataset=small_dataset(dtype=dtype))
    assert channel.metrics["test/accuracy"] > 0.6


def test_a_regression_reports_its_errors(tmp_path):
    conf = make_conf(max_epochs=30, optimizer={"_target_": "torch.optim.Adam", "lr": 0.01})
    channel, _ = fit(tmp_path, conf, dataset=small_dataset(task="regression", shape=(5,)))
    assert channel.metrics["test/loss"] == pytest.approx(channel.metrics["test/mse"])
    assert channel.metrics["test/mae"] < 0.8
    assert channel.checkpoints[-1]["score"]["monitor"] == "test/loss"


def test_torchmetrics_are_reported(tmp_path):
    node = {"_target_": "torchmetrics.classification.MulticlassF1Score", "num_classes": "auto"}
    channel, _ = fit(tmp_path, make_conf(max_epochs=4, metrics={"f1": node}))
    assert channel.metrics["test/f1"] == pytest.approx(channel.metrics["test/accuracy"], abs=0.1)


def test_a_metric_of_several_numbers_is_refused(tmp_path):
    node = {"_target_": "torchmetrics.classification.MulticlassF1Score", "num_classes": "auto", "average": None}
    with pytest.raises(TrainingError, match="returns 3 numbers") as refused:
        fit(tmp_path, make_conf(metrics={"f1": node}))
    assert "trainer.metrics.f1.average=macro" in refused.value.hint
    node = {"_target_": "torchmetrics.classification.MulticlassConfusionMatrix", "num_classes": "auto"}
    with pytest.raises(TrainingError, match="returns 9 numbers") as refused:
        fit(tmp_path / "other", make_conf(metrics={"cm": node}))
    assert "average" not in refused.value.hint


BINARY = sorted(name for name in dir(torchmetrics.classification) if name.startswith("Binary"))


@pytest.mark.parametrize("name", BINARY)
def test_a_metric_of_one_probability_is_refused_with_the_one_of_classes(name):
    conf = make_conf(metrics={"m": {"_target_": f"torchmetrics.classification.{name}"}})
    with pytest.raises(TargetError, match="one probability for each row") as refused:
        build_metrics(conf, small_dataset().info, Builder())
    other = f"Multiclass{name.removeprefix('Binary')}"
    assert (other in (refused.value.hint or "")) == hasattr(torchmetrics.classification, other)


def test_a_metric_that_gives_no_number_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr("torchmetrics.MeanSquaredError.compute", lambda metric: {"mean": 1.0})
    dataset = small_dataset(task="regression", shape=(5,))
    with pytest.raises(TrainingError, match=r"trainer\.metrics\.mse returns a dict, not a number"):
        fit(tmp_path, make_conf(metrics={"mse": {"_target_": "torchmetrics.MeanSquaredError"}}), dataset=dataset)


def test_a_loss_that_explodes_names_its_step(tmp_path):
    dataset = small_dataset(task="regression", shape=(5,))
    with pytest.raises(
        TrainingError, match=r"loss of step \d+ \(batch \d+ of epoch \d+\) is not a finite number"
    ) as raised:
        fit(tmp_path, make_conf(max_epochs=500, evaluate_split="none", optimizer={**SGD, "lr": 1e6}), dataset=dataset)
    assert "clip_norm" in str(raised.value)


def test_weights_that_are_no_numbers_fail_the_evaluation(tmp_path):
    with pytest.raises(TrainingError, match="test/loss is not a number at step 1"):
        fit(tmp_path, make_conf(max_steps=1, optimizer={**SGD, "lr": float("nan")}))
    assert latest_checkpoint(tmp_path) is None


def test_a_model_with_too_few_outputs_is_refused(tmp_path):
    with pytest.raises(TrainingError, match="3 classes"):
        fit(tmp_path, make_conf(model={**MLP, "num_classes": 2}))


def test_too_many_outputs_for_a_regression_are_refused(tmp_path):
    dataset = small_dataset(task="regression", shape=(5,))
    with pytest.raises(TrainingError, match="targets of shape"):
        fit(tmp_path, make_conf(model={**MLP, "num_classes": 2}), dataset=dataset)


def test_a_model_that_returns_no_tensor_is_refused(tmp_path):
    lstm = {"_target_": "torch.nn.LSTM", "input_size": 5, "hidden_size": 3}
    with pytest.raises(TrainingError, match="returns a tuple"):
        fit(tmp_path, make_conf(model=lstm), dataset=small_dataset(shape=(5,)))


def test_no_split_to_evaluate_is_fine(tmp_path):
    whole = small_dataset()
    info = whole.info.__class__(**{**vars(whole.info), "num_rows": {"train": 150}})
    only_train = Dataset(info, {"train": whole.splits["train"]})
    channel, _ = fit(tmp_path, make_conf(), dataset=only_train)
    assert channel.checkpoints[-1]["score"]["monitor"] == "train/epoch_loss"
    assert not math.isnan(channel.metrics["train/epoch_loss"])


def test_read_only_rows_train_without_a_warning(tmp_path, recwarn):
    dataset = small_dataset(dtype="uint8")
    for split in dataset.splits.values():
        assert isinstance(split, ResidentSplit)
        for values in split.columns.values():
            values.setflags(write=False)
    before = dataset.splits["train"].columns["x"].copy()
    fit(tmp_path, make_conf(), dataset=dataset)
    assert not [warning for warning in recwarn if "writable" in str(warning.message)]
    assert np.array_equal(before, dataset.splits["train"].columns["x"])


class TwiceSplit(Split):
    """Gives its first batch once more at the end."""

    def __init__(self, columns):
        self._inner = ResidentSplit(columns)
        self.num_rows = self._inner.num_rows

    def batches(self, plan):
        all_batches = list(self._inner.batches(plan))
        return iter([*all_batches, all_batches[0]])

    def own_rows(self, rank, world_size):
        return self._inner.own_rows(rank, world_size)


def test_rows_that_come_twice_fail_the_epoch(tmp_path):
    whole = small_dataset()
    twice = Dataset(whole.info, {**whole.splits, "train": TwiceSplit(whole.splits["train"].columns)})
    with pytest.raises(TrainingError, match="epoch 0 had 214 rows, but the train split has 150"):
        fit(tmp_path, make_conf(), dataset=twice)


def test_a_stream_is_described_trained_and_resumed_like_rows_in_memory(tmp_path):
    whole = small_dataset()
    dataset = Dataset(whole.info, {**whole.splits, "train": streamed(whole.splits["train"].columns)})
    conf = make_conf(model=DROPOUT, batch_size=16, max_epochs=3)
    channel, expected = fit(tmp_path / "a", conf, dataset=dataset)
    assert channel.worker_facts[0]["num_rows"] == {"train": 150, "test": 37}
    for stop in (3, 9, 4):
        fit(tmp_path / "b", conf, dataset=dataset, channel=RecordingChannel(stop_after=stop))
    assert_same(expected, fit(tmp_path / "b", conf, dataset=dataset)[1], **EXACT)


NORMED = {
    "_target_": "torch.nn.Sequential",
    "_args_": [
        {"_target_": "torch.nn.Flatten"},
        {"_target_": "torch.nn.BatchNorm1d", "num_features": 64},
        {"_target_": "torch.nn.Linear", "in_features": 64, "out_features": 3},
    ],
}


def test_a_step_whose_loss_is_no_number_is_left_out_and_noted(tmp_path):
    skip = {"failure": FailureConf(nan_loss="skip")}
    conf = make_conf(model=NORMED, max_epochs=3, batch_size=50)
    channel, found = fit(tmp_path, conf, dataset=with_infinite_row(small_dataset()), **skip)
    noted = [record for record in channel.events if "train/skipped_batch" in record.metrics]
    assert len(noted) == 3, "one batch of each epoch has the row"
    assert [record.epoch for record in noted] == [0, 1, 2]
    assert all(1 <= record.metrics["train/skipped_batch"] <= 3 for record in noted)
    assert all(torch.isfinite(tensor).all() for tensor in found.values()), "weights or batch statistics are spoilt"
    assert math.isfinite(channel.metrics["train/epoch_loss"])


def test_losses_are_means_over_the_rows_that_were_not_left_out(tmp_path):
    conf = make_conf(max_epochs=1, batch_size=50)
    skip = {"failure": FailureConf(nan_loss="skip"), "log_every_steps": 1}
    channel, _ = fit(tmp_path, conf, dataset=with_infinite_row(small_dataset()), **skip)
    by_step = [record.metrics["train/loss"] for record in channel.events if "train/loss" in record.metrics]
    assert len(by_step) == 2, "of three steps one has no loss"
    assert channel.metrics["train/epoch_loss"] == pytest.approx(sum(by_step) / 2)


def test_leaving_steps_out_changes_nothing_where_all_are_good(tmp_path):
    _, plain = fit(tmp_path / "a", make_conf(model=NORMED))
    _, careful = fit(tmp_path / "b", make_conf(model=NORMED), failure=FailureConf(nan_loss="skip"))
    assert_same(plain, careful, rtol=0, atol=0)


def test_every_step_is_a_sign_of_life_however_quick_it_is(tmp_path):
    worker, steps = make_worker(tmp_path, make_conf(max_steps=3)), []
    worker.life.sign = steps.append
    train(worker)
    assert {1, 2, 3} <= set(steps)
