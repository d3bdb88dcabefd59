"""Tests of trainers that learn by the shared loop of epochs; those of jax and tensorflow inherit them."""

import shutil
import threading
from contextlib import contextmanager
from dataclasses import replace
from types import ModuleType
from typing import Any, ClassVar

import numpy as np
import pytest

from rtrain.config.run_conf import FailureConf
from rtrain.datasets.base import Dataset, ResidentSplit
from rtrain.errors import TrainingError
from rtrain.runs.checkpoints import latest_checkpoint
from rtrain.testing.ranks import RankProcesses
from rtrain.testing.small_data import small_dataset, small_text, streamed, with_infinite_row
from rtrain.testing.workers import RecordingChannel, newest
from rtrain.trainers.loops.early_stopping import EarlyStoppingConf
from rtrain.trainers.loops.epochs.loop import EpochLoop
from rtrain.trainers.registry import load_trainer
from rtrain.trainers.worker import Worker

EXACT = {"rtol": 0, "atol": 0}
SKIP = FailureConf(nan_loss="skip")


def assert_same(first, second, **tolerance):
    """Compare arrays by name."""
    assert first.keys() == second.keys()
    for name in first:
        np.testing.assert_allclose(first[name], second[name], err_msg=name, **tolerance)


@contextmanager
def held_back(num_steps):
    """Let the first checkpoint not be written before so many more steps were taken; yield the list of these steps."""
    taken, savers, may_write = [], [], threading.Event()
    snapshot, alive = EpochLoop.snapshot, Worker.alive

    def write_later(loop):
        write = snapshot(loop)
        savers.append(loop.worker.checkpoints.thread)

        def write_all(folder):
            assert may_write.wait(60), "training waits for the files"
            write(folder)

        return write_all

    def count(worker, step=None):
        alive(worker, step)
        if step is not None and worker.checkpoints.thread.is_busy and not may_write.is_set():
            taken.append(step)
            if len(taken) == num_steps:
                may_write.set()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(EpochLoop, "snapshot", write_later)
        patch.setattr(Worker, "alive", count)
        yield taken
        savers[-1].wait()


def assert_left_out(folder, runs, sent):
    """Check a training of two epochs in which one step of each has a loss that is no number."""
    noted = [record for record in sent.events if "train/skipped_batch" in record.metrics]
    assert [record.epoch for record in noted] == [0, 1]
    assert all(1 <= record.metrics["train/skipped_batch"] <= 3 for record in noted)
    by_step = [record.metrics["train/loss"] for record in sent.events if "train/loss" in record.metrics]
    assert len(by_step) == 4, "of three steps one has no loss"
    assert sent.metrics["train/epoch_loss"] == pytest.approx(sum(by_step[2:]) / 2)
    assert all(np.isfinite(values).all() for values in runs.weights(folder).values()), "weights are spoilt"


def fit_rank(rank, fit, folder, conf, dataset=None, stop_after=(None, None), **run):
    """Train as one of two ranks and return what this one sent."""
    channel = RecordingChannel(stop_after[rank])
    return fit(folder, conf, dataset, channel=channel, rank=rank, world_size=2, **run)


class Epochs:
    """What a framework's tests say of it."""

    runs: ClassVar[ModuleType]
    """``make_conf``, ``fit`` in this process, ``join`` to be one of two, ``weights``, and as constants
    models (``MLP``, ``DROPOUT``), optimizers (``SGD``, ``DIVERGING``), a metric of the framework's own (``METRIC``),
    and how near the weights of two ranks come to those of one (``CLOSE``)."""
    trainer: ClassVar[str]


class EpochsOnOneRank(Epochs):
    """Training in this process."""

    bigrams: ClassVar[dict[str, Any]]
    """A model that predicts a token from the one before."""

    def predict(self, folder, conf, data):
        """Return what the newest checkpoint predicts for the test split."""
        predictor = load_trainer(self.trainer).load_predictor(newest(folder, conf, data), "cpu")
        return predictor.predict(data.splits["test"].columns["x"])

    def test_a_regression_learns_and_predicts_values(self, tmp_path):
        conf, data = self.runs.make_conf(max_epochs=30), small_dataset("regression", shape=(5,))
        metrics = self.runs.fit(tmp_path, conf, data).metrics
        y, found = data.splits["test"].columns["y"], self.predict(tmp_path, conf, data)
        assert found.shape == (37,)
        assert np.square(found - y).mean() == pytest.approx(metrics["test/mse"], rel=1e-4)
        assert metrics["test/mse"] == pytest.approx(metrics["test/loss"])
        assert metrics["test/mse"] < y.var() / 2

    def test_a_language_is_modelled_at_each_place(self, tmp_path):
        data, conf = small_text(), self.runs.make_conf(model=self.bigrams, max_epochs=60)
        metrics = self.runs.fit(tmp_path, conf, data).metrics
        assert metrics["test/accuracy"] == 1
        assert metrics["test/perplexity"] == pytest.approx(np.exp(metrics["test/loss"]))
        found = self.predict(tmp_path, conf, data)
        assert found.shape == (15, 6, 5)
        assert (found.argmax(-1) == data.splits["test"].columns["y"]).all()

    @pytest.mark.parametrize("parts", [2, 3])
    def test_accumulated_parts_are_one_whole_batch_and_resume_between_steps(self, parts, tmp_path):
        data = copied_and_weighted(small_dataset())["weighted"]
        whole = self.runs.make_conf(global_batch_size=16 * parts, optimizer=self.runs.SGD)
        conf = self.runs.make_conf(global_batch_size=16, accumulate_steps=parts, optimizer=self.runs.SGD)
        expected = self.runs.fit(tmp_path / "whole", whole, data)
        found = self.runs.fit(tmp_path / "parts", conf, data)
        assert found.checkpoints[-1]["step"] == expected.checkpoints[-1]["step"] == 3 * -(-150 // (16 * parts))
        assert_same(*(self.runs.weights(tmp_path / name) for name in ("whole", "parts")), rtol=1e-4, atol=1e-6)
        assert found.metrics["train/epoch_loss"] == pytest.approx(expected.metrics["train/epoch_loss"], rel=1e-5)
        self.runs.fit(tmp_path / "resumed", conf, data, channel=RecordingChannel(stop_after=5))
        self.runs.fit(tmp_path / "resumed", conf, data)
        assert_same(*(self.runs.weights(tmp_path / name) for name in ("parts", "resumed")), rtol=1e-6, atol=1e-7)

    def test_rows_of_no_weight_are_as_if_they_were_not_there(self, tmp_path):
        data = small_dataset()
        columns, half = data.splits["train"].columns, np.arange(150) % 2 == 0
        weighted = {**columns, "weight": half.astype("float32") * 2, "y": np.where(half, columns["y"], 0)}
        found = []
        for name, rows in (("a", weighted), ("b", {key: values[half] for key, values in columns.items()})):
            split = ResidentSplit(rows)
            conf = self.runs.make_conf(global_batch_size=150, optimizer=self.runs.SGD)
            one = Dataset(data.info, {"train": split, "test": split})
            found.append(self.runs.fit(tmp_path / name, conf, one).metrics)
        assert_same(self.runs.weights(tmp_path / "a"), self.runs.weights(tmp_path / "b"), rtol=1e-4, atol=1e-6)
        for name in ("test/loss", "test/accuracy", "train/epoch_loss"):
            assert found[0][name] == pytest.approx(found[1][name], rel=1e-5)

    @pytest.mark.parametrize("parts", [1, 3])
    def test_losses_of_several_steps_are_means_by_weight(self, tmp_path, parts):
        still = {key: 1e-30 if key == "learning_rate" else value for key, value in self.runs.SGD.items()}
        conf = self.runs.make_conf(optimizer=still, shuffle=False, global_batch_size=16, accumulate_steps=parts)
        data = unequally_weighted(small_dataset())
        assert_means_by_weight(self.runs.fit(tmp_path, conf, data, log_every_steps=1))

    def test_a_weight_of_two_is_a_row_twice_and_the_scale_of_weights_is_nothing(self, tmp_path):
        conf, found = self.runs.make_conf(global_batch_size=1000, optimizer=self.runs.SGD), {}
        for name, data in copied_and_weighted(small_dataset()).items():
            found[name] = self.runs.fit(tmp_path / name, conf, data).metrics
        assert_same_weighing(found, lambda name: self.runs.weights(tmp_path / name))

    def test_steps_evaluations_and_early_stopping(self, tmp_path):
        conf = self.runs.make_conf(max_epochs=None, max_steps=7, eval_every_steps=3, eval_every_epochs=None)
        channel = self.runs.fit(tmp_path / "a", conf, checkpoint={"every_epochs": None, "every_steps": 4})
        saved = {record["step"] for record in channel.checkpoints}
        assert saved - {6} == {3, 4, 7}, "the first evaluation is the best one so far"
        evaluated = [record.step for record in channel.events if "test/loss" in record.metrics]
        assert evaluated == [3, 6, 7]
        early = EarlyStoppingConf(monitor="test/loss", patience=2, min_delta=100.0)
        stopped = self.runs.fit(tmp_path / "b", self.runs.make_conf(max_epochs=50, early_stopping=early))
        assert stopped.checkpoints[-1]["epoch"] == 3

    def test_training_goes_on_while_what_was_there_is_written(self, tmp_path):
        conf, runs = self.runs.make_conf(model=self.runs.DROPOUT, max_epochs=1), (tmp_path / "sync", tmp_path / "async")
        cadence = {"every_epochs": None, "every_steps": 2}
        self.runs.fit(runs[0], conf, checkpoint={**cadence, "upload": "sync"})
        with held_back(2) as taken:
            self.runs.fit(runs[1], conf, checkpoint={**cadence, "upload": "async"})
        assert taken == [3, 4]
        for step in (5, 4, 2):
            assert [latest_checkpoint(run).name[-1] for run in runs] == [f"{step}"] * 2
            assert_same(*(self.runs.weights(run) for run in runs), **EXACT)
            for run in runs:
                shutil.rmtree(latest_checkpoint(run))

    def test_a_stream_is_trained_in_its_own_order(self, tmp_path):
        conf = self.runs.make_conf(shuffle=False)
        resident = self.runs.fit(tmp_path / "a", conf)
        stream = self.runs.fit(tmp_path / "b", conf, small_dataset(split=streamed))
        assert stream.metrics["test/loss"] == pytest.approx(resident.metrics["test/loss"], rel=1e-6)
        assert stream.worker_facts[-1]["num_rows"] == {"train": 150, "test": 37}

    def test_a_loss_that_is_no_number_names_its_step(self, tmp_path):
        told = r"the training loss of step \d \(batch \d of epoch \d\) is not a finite number"
        with pytest.raises(TrainingError, match=told):
            self.runs.fit(tmp_path, self.runs.make_conf(optimizer=self.runs.DIVERGING), log_every_steps=1)

    def test_it_may_end_the_run_instead_with_the_checkpoint_before(self, tmp_path):
        conf, stop = self.runs.make_conf(optimizer=self.runs.DIVERGING), FailureConf(nan_loss="stop")
        channel = self.runs.fit(tmp_path, conf, log_every_steps=1, failure=stop)
        (end,) = channel.end_reasons
        assert "is not a finite number" in end
        assert channel.checkpoints == []

    def test_it_may_be_left_out_and_noted(self, tmp_path):
        model = {**self.runs.MLP, "hidden": []}  # a ReLU of TensorFlow makes zeros of what is no number
        conf = self.runs.make_conf(model=model, global_batch_size=50, max_epochs=2)
        data = with_infinite_row(small_dataset())
        sent = self.runs.fit(tmp_path, conf, data, failure=SKIP, log_every_steps=1)
        assert_left_out(tmp_path, self.runs, sent)

    def test_leaving_steps_out_changes_nothing_where_all_are_good(self, tmp_path):
        conf = self.runs.make_conf(model=self.runs.DROPOUT)
        self.runs.fit(tmp_path / "a", conf)
        self.runs.fit(tmp_path / "b", conf, failure=SKIP)
        assert_same(self.runs.weights(tmp_path / "a"), self.runs.weights(tmp_path / "b"), **EXACT)


class EpochsOnTwoRanks(Epochs):
    """Training in two processes."""

    @pytest.fixture(scope="class")
    @classmethod
    def ranks(cls):
        """Two ranks of one world."""
        two = RankProcesses(cls.runs.join)
        yield two
        two.close()

    def assert_same_training(self, folder, ranks, conf, data):
        """Train on one rank and on two, and return what the two sent."""
        one = self.runs.fit(folder / "one", conf, data)
        two = ranks.run(fit_rank, self.runs.fit, folder / "two", conf, data)
        assert_same(self.runs.weights(folder / "one"), self.runs.weights(folder / "two"), **self.runs.CLOSE)
        assert two[1].events == []
        for name in {"train/epoch_loss"} | {name for name in one.metrics if name.startswith("test/")}:
            assert two[0].metrics[name] == pytest.approx(one.metrics[name], rel=1e-4), name
        return two

    def test_two_ranks_train_what_one_trains(self, tmp_path, ranks):
        conf = self.runs.make_conf(metrics={"own": self.runs.METRIC})
        two = self.assert_same_training(tmp_path, ranks, conf, small_dataset())
        assert "test/own" in two[0].metrics
        assert sums_of_rows(two) == {"train": 150, "test": 37}

    @pytest.mark.parametrize("keys", [{}, {"global_batch_size": 16, "accumulate_steps": 2}])
    def test_a_step_with_fewer_rows_than_ranks_leaves_one_rank_without(self, tmp_path, ranks, keys):
        self.assert_same_training(tmp_path, ranks, self.runs.make_conf(**keys), small_dataset(num_rows=(33, 1)))

    def test_two_ranks_weigh_rows_as_one_does(self, tmp_path, ranks):
        for name, data in copied_and_weighted(small_dataset(num_rows=(33, 5))).items():
            conf = self.runs.make_conf(global_batch_size=1000, optimizer=self.runs.SGD, eval_batch_size=2)
            self.assert_same_training(tmp_path / name, ranks, conf, data)

    def test_two_ranks_resume_to_the_same_numbers(self, tmp_path, ranks):
        conf = self.runs.make_conf(model=self.runs.DROPOUT)
        ranks.run(fit_rank, self.runs.fit, tmp_path / "a", conf)
        stopped = ranks.run(fit_rank, self.runs.fit, tmp_path / "b", conf, stop_after=(None, 1))
        assert stopped[0].checkpoints[-1]["step"] < 15, "the wish of one rank stops both"
        ranks.run(fit_rank, self.runs.fit, tmp_path / "b", conf)
        assert_same(self.runs.weights(tmp_path / "a"), self.runs.weights(tmp_path / "b"), **EXACT)

    def test_two_ranks_leave_out_a_step_that_is_no_number_on_one_of_them(self, tmp_path, ranks):
        model = {**self.runs.MLP, "hidden": []}  # a ReLU of TensorFlow makes zeros of what is no number
        conf = self.runs.make_conf(model=model, global_batch_size=50, max_epochs=2)
        data = with_infinite_row(small_dataset())
        keys = {"failure": SKIP, "log_every_steps": 1}
        sent = ranks.run(fit_rank, self.runs.fit, tmp_path, conf, data, **keys)
        assert_left_out(tmp_path, self.runs, sent[0])

    def test_a_checkpoint_of_two_ranks_is_resumed_by_one(self, tmp_path, ranks):
        ranks.run(fit_rank, self.runs.fit, tmp_path / "b", self.runs.make_conf(max_epochs=1))
        for folder in (tmp_path / "b", tmp_path / "one"):
            self.runs.fit(folder, self.runs.make_conf(max_epochs=2))
        assert_same(self.runs.weights(tmp_path / "b"), self.runs.weights(tmp_path / "one"), **self.runs.CLOSE)

    def test_two_ranks_share_a_stream(self, tmp_path, ranks):
        data = small_dataset(split=streamed)
        two = ranks.run(fit_rank, self.runs.fit, tmp_path, self.runs.make_conf(max_epochs=2), data)
        assert [rows["train"] for rows in own_rows(two)] == [75, 75]
        assert [rows["test"] for rows in own_rows(two)] == [18, 19]
        assert np.isfinite(two[0].metrics["test/loss"])


def copied_and_weighted(data):
    """Return rows of which every other one counts twice: by copies, by weights, and by weights of other scales."""
    found = {}
    for name, scale in {"copied": 0, "weighted": 1, "large": 1000, "small": 1e-3}.items():
        splits = {}
        for split, part in data.splits.items():
            count = np.arange(part.num_rows) % 2 + 1
            if scale:
                splits[split] = ResidentSplit({**part.columns, "weight": (count * scale).astype("float32")})
            else:
                splits[split] = ResidentSplit({key: np.repeat(one, count, axis=0) for key, one in part.columns.items()})
        counts = {split: part.num_rows for split, part in splits.items()}
        info = replace(data.info, num_rows=counts, columns=("weight",) if scale else ())
        found[name] = Dataset(info, splits)
    return found


def assert_same_weighing(metrics, weights_of):
    """Compare the metrics of trainings by name, and their weights, with those of the first one."""
    first, *others = metrics
    names = [name for name in metrics[first] if name.startswith(("test/", "val/"))] + ["train/epoch_loss"]
    for other in others:
        assert_same(weights_of(first), weights_of(other), rtol=2e-5, atol=1e-6)
        for name in names:
            assert metrics[other][name] == pytest.approx(metrics[first][name], rel=1e-5), (other, name)


def unequally_weighted(data):
    """Return a dataset whose train rows are evaluated, too: many of no weight first, then of many weights."""
    name = next(split for split in data.splits if split != "train")
    columns = data.splits["train"].columns
    place = np.arange(len(columns["y"]))
    weight = np.where(place < len(place) // 3, 0, place % 7 + 0.5).astype("float32")
    split = ResidentSplit({**columns, "weight": weight})
    counts = dict.fromkeys(("train", name), split.num_rows)
    return Dataset(replace(data.info, num_rows=counts, columns=("weight",)), {"train": split, name: split})


def assert_means_by_weight(channel, rel=1e-5):
    """Compare the losses of steps that learn nothing with the loss of the same rows, evaluated; log every step."""
    (evaluated,) = {one for one in channel.metrics if one in ("test/loss", "val/loss")}
    losses = [one.metrics["train/loss"] for one in channel.events if "train/loss" in one.metrics]
    assert len(losses) > 1
    assert all(losses), "a step whose rows have no weight has no loss"
    assert channel.metrics["train/epoch_loss"] == pytest.approx(channel.metrics[evaluated], rel=rel)


def own_rows(channels):
    return [channel.worker_facts[-1]["num_rows"] for channel in channels]


def sums_of_rows(channels):
    first, second = own_rows(channels)
    return {name: first[name] + second[name] for name in first}
