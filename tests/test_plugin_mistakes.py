"""Mistakes in the plugins of other packages are errors that name them: nothing is lost in silence."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from rtrain.config.session import Session
from rtrain.datasets.base import RawChunk
from rtrain.datasets.conf import RowsConf
from rtrain.datasets.in_memory import Content, resident_dataset
from rtrain.datasets.splitting.shares import split_parts
from rtrain.errors import ConfigError, DatasetError, PredictionError, TrainingError
from rtrain.prediction.scoring import scores_of
from rtrain.runs.observer import SilentObserver
from rtrain.schedulers.base import Pause, Scheduler, Stop
from rtrain.schemas import schemas
from rtrain.searches.base import Search
from rtrain.sweeps.planning import Planner
from rtrain.sweeps.scheduling import _decided
from rtrain.testing.small_data import small_dataset
from rtrain.testing.workers import make_worker
from rtrain.trainers.torch.plugin import Plugin
from rtrain.training.preparation import check_job, load_dataset

X, Y = np.zeros((20, 3), "float32"), np.arange(20) % 2


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"train": {"x": X, "y": Y[:-1]}}, "x has 20, y has 19"),
        ({"train": {"x": X, "y": Y, "weight": np.ones(21)}}, "weight has 21"),
        ({"train": {"x": X, "y": Y}, "holdout": {"x": X, "y": Y}}, "a split 'holdout'"),
    ],
)
def test_a_source_whose_rows_do_not_fit_together(parts, message):
    with pytest.raises(DatasetError, match=message):
        split_parts(parts, RowsConf(), stratify=True)


@pytest.mark.parametrize(
    ("columns", "names", "message"),
    [
        ({"x": X, "y": Y}, ("a", "b"), "names 2 features, and its rows have 3"),
        ({"x": X, "y": Y, "wieght": np.ones(20)}, (), "a column 'wieght'"),
        ({"x": X, "y": Y, "weight": np.linspace(-1, 1, 20)}, (), r"a row of the split 'train' weighs -1\.0"),
        ({"x": X, "y": Y, "weight": np.where(Y, np.nan, 1)}, (), "a row of the split 'train' weighs nan"),
    ],
)
def test_a_source_whose_rows_do_not_fit_its_words(columns, names, message):
    content = Content(
        name="mine", task="classification", class_names=("a", "b"), feature_names=names, memory_reason="small"
    )
    with pytest.raises(DatasetError, match=message):
        resident_dataset({"train": columns}, content, RowsConf())


@pytest.mark.parametrize("found", [None, {}, ("x", "y")])
def test_a_source_that_returns_no_dataset(found, monkeypatch):
    monkeypatch.setattr("rtrain.datasets.sources.digits.Digits.load", lambda self, conf: found)
    with (
        Session("mlp", ["num_workers=0"], schemas()) as session,
        pytest.raises(ConfigError, match=f"the source digits: load returned a {type(found).__name__}"),
    ):
        load_dataset(session.check(), SilentObserver(), None)


class OwnPlugin(Plugin):
    """A trainer of another package; ``told`` is what its ``notices`` return or raise."""

    told: object = None

    def notices(self, job):
        if isinstance(self.told, Exception):
            raise self.told
        return self.told


@pytest.mark.parametrize("told", [None, 5, KeyError("x")], ids=repr)
def test_a_trainer_whose_notices_are_none(told, monkeypatch):
    monkeypatch.setattr(OwnPlugin, "told", told)
    monkeypatch.setattr("rtrain.trainers.registry.load_trainer", lambda *_: OwnPlugin())
    with Session("mlp", ["num_workers=0", "dataset.limit=20"], schemas()) as session:
        composed = session.check()
        dataset = load_dataset(composed, SilentObserver(), None)
        with pytest.raises(ConfigError, match=r"the plugin 'torch' failed: (Type|Key)Error"):
            check_job(composed, dataset, SilentObserver())


@pytest.mark.parametrize(("step", "epoch"), [(1.5, 1), (1, 0.5), ("2", 1), (None, 1)])
def test_a_loop_that_reports_no_whole_steps(step, epoch, tmp_path):
    worker = make_worker(tmp_path, small_dataset(), None)
    with pytest.raises(TrainingError, match="must be a whole number, not"):
        worker.report({"loss": 1.0}, step=step, epoch=epoch)
    with pytest.raises(TrainingError, match="must be a whole number, not"):
        worker.save_checkpoint(lambda: None, step=step, epoch=epoch, metrics={})
    worker.report({"loss": 1.0}, step=np.int64(2), epoch=np.int32(1))


@pytest.mark.parametrize("given", [np.zeros((19, 3)), np.zeros((21, 3)), np.zeros((0, 3)), None, [[0.0] * 3] * 20])
def test_a_model_that_predicts_other_rows(given):
    info = small_dataset().info
    model = SimpleNamespace(predict=lambda x: given)
    with pytest.raises(PredictionError, match="for 20 rows"):
        scores_of(model, info, RawChunk(np.zeros((20, 1, 4, 4), "float32"), None, {}))


class OwnSearch(Search):
    """Proposes what it is told to."""

    adaptive = True
    proposed: object = None

    @property
    def num_trials(self):
        return 3

    def propose(self, number):
        if isinstance(self.proposed, Exception):
            raise self.proposed
        return self.proposed


@pytest.mark.parametrize(
    ("proposed", "message"),
    [
        (("0.1", "3"), r"the search \S+ proposes 2 values for 1 parameters"),
        ((), "proposes 0 values"),
        (7, "proposes 7: a point is a tuple, not a int"),
        ("0.1", "proposes .0.1.: a point is a tuple, not a str"),
        ({"lr": "0.1"}, "a point is a tuple, not a dict"),
        (range(1), "a point is a tuple, not a range"),
        ((0.1,), "proposes 0.1 for trainer.optimizer.lr, not a text"),
        ([np.float64(0.1)], r"proposes np.float64\(0.1\) for trainer.optimizer.lr, not a text"),
        ((None,), "proposes None for trainer.optimizer.lr"),
        (("0.1,0.2",), "proposes several values for trainer.optimizer.lr: 0.1,0.2"),
        (("choice(0.1,0.2)",), "proposes several values for trainer.optimizer.lr"),
        (ValueError("no"), "failed: ValueError: no"),
    ],
    ids=repr,
)
def test_a_search_that_proposes_no_point(proposed, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(OwnSearch, "proposed", proposed)
    with Session("mlp", ["num_workers=0", "lr=0.1,0.2"], schemas()) as session:
        trials = session.trials()
        record = SimpleNamespace(trials=[], axes_before=[])
        planner = Planner(trials, OwnSearch(trials.conf, trials.axes, []), record)
        with pytest.raises(ConfigError, match=message):
            planner.next()


class OwnScheduler(Scheduler):
    """Decides what it is told to."""

    def __init__(self, decision):
        self.decision = decision

    def hear(self, trial, length, value):
        if isinstance(self.decision, Exception):
            raise self.decision
        return self.decision


class Pausing(OwnScheduler):
    pauses = True


@pytest.mark.parametrize("decision", ["stop", True, Pause(), KeyError("x")], ids=repr)
def test_a_scheduler_that_decides_nothing_that_it_can(decision):
    with pytest.raises(ConfigError, match="test_plugin_mistakes"):
        _decided(OwnScheduler(decision), 0, 1, 0.5)


@pytest.mark.parametrize("kind", [OwnScheduler, Pausing])
@pytest.mark.parametrize("decision", [None, Stop("own: late"), Pause()], ids=repr)
def test_what_a_scheduler_decides_is_passed_on(kind, decision):
    if kind.pauses or not isinstance(decision, Pause):
        assert _decided(kind(decision), 0, 1, 0.5) == decision
