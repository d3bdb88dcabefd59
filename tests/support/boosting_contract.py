"""Tests of boosted trees, whatever the library: those of xgboost and lightgbm inherit them."""

import re
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import pytest
from boosting_runs import LOADERS, fit, load, make_dataset, ranking_dataset, real_dataset

import rtrain
from rtrain.config.run_conf import RunConf
from rtrain.config.schema import RtrainConf
from rtrain.config.targets.builder import Builder
from rtrain.errors import ConfigError, TrainingError
from rtrain.runs.checkpoints import latest_checkpoint
from rtrain.testing.workers import RecordingChannel, make_job
from rtrain.trainers.loops.early_stopping import EarlyStoppingConf
from rtrain.trainers.registry import confs, load_trainer

SHAPE = (10, 2)


def no_metric(predictions):
    return "nothing", 0.0


def xgboost_worst(predictions, matrix):
    """A metric of XGBoost's kind whose name is not the function's."""
    return "largest_error", float(np.abs(predictions - matrix.get_label()).max())


def lightgbm_worst(predictions, data):
    """The same of LightGBM's kind."""
    return *xgboost_worst(predictions, data), False


rounds_left = []


def xgboost_rounds_left(predictions, matrix):
    return "rounds_left", float(rounds_left.pop(0))


def lightgbm_rounds_left(predictions, data):
    return *xgboost_rounds_left(predictions, data), False


def scores_of(channel):
    """What the checkpoints are judged by."""
    return [record["score"] for record in channel.checkpoints]


class BoostingTests:
    """What the two libraries share."""

    trainer: ClassVar[str]
    error: ClassVar[str]
    """The library's usual metric of a regression."""
    stump: ClassVar[dict[str, Any]]
    """``params`` of trees with one split, by the names of categories too."""
    absolute: ClassVar[dict[str, Any]]
    """``params`` that minimise and report the absolute error, under a name that reports don't use."""
    drawing: ClassVar[dict[str, Any]]
    """``params`` that draw rows and columns at random."""
    starting_again: ClassVar[dict[str, Any]]
    """``params`` with which a resumed run begins again."""
    poisson: ClassVar[str]
    """An objective of regressions that is not the usual one."""
    no_metric: ClassVar[dict[str, Any]]
    """``params`` that report no metric of the library's."""

    def fit(self, folder, dataset, **keys):
        """Train in this process and return what was sent."""
        return fit(self.trainer, folder, dataset, **keys)

    def trees(self, folder):
        """Return what tells all trees of the newest checkpoint."""
        raise NotImplementedError

    def predict(self, folder, dataset, **keys):
        """Return what the newest checkpoint of a training with ``keys`` predicts for the test split."""
        return load(self.trainer, folder, dataset, **keys).predict(dataset.splits["test"].columns["x"])

    def test_a_request_to_stop_ends_training_with_a_checkpoint(self, tmp_path):
        channel = self.fit(tmp_path, real_dataset("iris"), channel=RecordingChannel(stop_after=4), num_boost_round=50)
        assert [record["step"] for record in channel.checkpoints] == [4]

    def test_checkpoints_come_every_so_many_rounds_and_at_the_end(self, tmp_path):
        channel = self.fit(tmp_path, real_dataset("iris"), num_boost_round=10, checkpoint={"every_steps": 4})
        assert [record["step"] for record in channel.checkpoints] == [4, 8, 10]

    def test_early_stopping_predicts_with_the_best_round(self, tmp_path):
        dataset, metric = real_dataset("diabetes"), f"test/{self.error}"
        keys = {
            "params": {"learning_rate": 0.5},
            "num_boost_round": 200,
            "early_stopping": EarlyStoppingConf(patience=5),
        }
        channel = self.fit(tmp_path, dataset, **keys)
        scores = [record.metrics[metric] for record in channel.events]
        best = int(np.argmin(scores))
        assert len(scores) == best + 1 + 5
        assert channel.checkpoints[-1]["metrics"][metric] == scores[best]
        found, y = self.predict(tmp_path, dataset, **keys), dataset.splits["test"].columns["y"]
        assert np.square(found - y).mean() == pytest.approx(channel.events[best].metrics["test/mse"], rel=1e-4)

    def test_early_stopping_goes_by_the_metric_that_the_library_reports_whatever_its_name_in_the_config(self, tmp_path):
        dataset = real_dataset("diabetes")
        keys = {"params": self.absolute, "num_boost_round": 200, "early_stopping": EarlyStoppingConf(patience=5)}
        scores = [one.metrics["test/mae"] for one in self.fit(tmp_path / "a", dataset, **keys).events]
        assert len(scores) == int(np.argmin(scores)) + 1 + 5 < 200
        own = {"metric_functions": [f"{__name__}:{self.trainer}_worst"], "params": self.no_metric}
        own |= {
            "num_boost_round": 200,
            "early_stopping": EarlyStoppingConf(patience=5),
            "checkpoint": {"best": {"mode": "min"}},
        }
        channel = self.fit(tmp_path / "b", dataset, allow=(__name__,), **own)
        scores = [one.metrics["test/largest_error"] for one in channel.events]
        assert len(scores) == int(np.argmin(scores)) + 1 + 5 < 200

    @pytest.mark.parametrize("name", LOADERS)
    def test_a_metric_of_ones_own_decides_beside_the_usual_objective(self, tmp_path, name):
        keys = {"metric_functions": [f"{__name__}:{self.trainer}_rounds_left"], "num_boost_round": 9}
        keys |= {"early_stopping": EarlyStoppingConf(patience=3), "checkpoint": {"best": {"mode": "min"}}}
        rounds_left[:] = [5, 4, 3, 9, 9, 9, 9, 9, 9]
        channel = self.fit(tmp_path, real_dataset(name), allow=(__name__,), **keys)
        assert [record["monitor"] for record in scores_of(channel)] == ["test/rounds_left"]
        assert len(channel.events) == 3 + 3
        if self.trainer == "lightgbm":
            assert set(channel.metrics) == {"test/rounds_left"}

    @pytest.mark.parametrize("stops", [(), (2, 3)], ids=["at once", "interrupted"])
    def test_trees_that_are_built_on_those_of_another_run_are_those_of_a_longer_one(self, tmp_path, stops):
        dataset, keys = real_dataset("diabetes"), {"params": self.drawing}
        self.fit(tmp_path / "first", dataset, **keys, num_boost_round=6)
        more = {**keys, "num_boost_round": 8, "init_from": str(latest_checkpoint(tmp_path / "first"))}
        for stop in stops:
            self.fit(tmp_path / "second", dataset, **more, channel=RecordingChannel(stop_after=stop))
        second = self.fit(tmp_path / "second", dataset, **more)
        whole = self.fit(tmp_path / "whole", dataset, **keys, num_boost_round=14)
        assert second.metrics == whole.metrics
        assert self.trees(tmp_path / "second") == self.trees(tmp_path / "whole")
        facts = second.model_facts[-1]
        assert (facts["rounds_before"], facts["num_rounds"]) == (6, 8)

    def test_what_begins_again_begins_with_the_trees_of_another_run_again(self, tmp_path):
        dataset, keys = real_dataset("diabetes"), {"params": self.starting_again, "num_boost_round": 5}
        self.fit(tmp_path / "first", dataset, **keys)
        more = {**keys, "init_from": str(latest_checkpoint(tmp_path / "first"))}
        self.fit(tmp_path / "whole", dataset, **more)
        self.fit(tmp_path / "parts", dataset, **more, channel=RecordingChannel(stop_after=2))
        self.fit(tmp_path / "parts", dataset, **more)
        assert self.trees(tmp_path / "parts") == self.trees(tmp_path / "whole")

    def test_a_run_builds_on_the_trees_that_another_one_predicts_with(self, tmp_path):
        words = ["num_workers=0", "dataset=sklearn", "dataset.name=diabetes", f"run.root_dir={tmp_path}"]
        words += ["trainer.params={learning_rate: 0.5}", "trainer.early_stopping={patience: 3}"]
        first = rtrain.fit(self.trainer, words)
        best = first.manifest.model["best_round"]
        assert best < first.manifest.model["num_rounds"]
        slow = ["trainer.params={learning_rate: 0.02}", "trainer.num_boost_round=30"]
        second = rtrain.fit(self.trainer, [*words, *slow, f"run.init_from={first.path}"])
        assert second.manifest.model["rounds_before"] == best
        assert second.manifest.parent_run == str(first.best_checkpoint)
        errors = [[event.metrics["test/mse"] for event in run.events()] for run in (first, second)]
        assert errors[1][0] == pytest.approx(min(errors[0]), rel=0.02)
        assert rtrain.evaluate(second.path)["mse"] == pytest.approx(min(errors[1]), rel=1e-4)

    @pytest.mark.parametrize(
        ("words", "message"),
        [
            (
                ["dataset.name=linnerud", "dataset.target=Weight"],
                r"trained on other data: input_shape was \(10,\), but is \(3,\)",
            ),
            (["+trainer.params.objective={poisson}"], "its trees are for the objective .*, not .*poisson"),
        ],
        ids=["features", "objective"],
    )
    def test_trees_that_do_not_fit_are_refused_before_anything_starts(self, tmp_path, words, message):
        usual = ["num_workers=0", "dataset=sklearn", "dataset.name=diabetes", f"run.root_dir={tmp_path}"]
        first = rtrain.fit(self.trainer, [*usual, "trainer.num_boost_round=2"])
        words = [word.format(poisson=self.poisson) for word in words]
        with pytest.raises(ConfigError, match=message):
            rtrain.fit(self.trainer, [*usual, *words, f"run.init_from={first.path}"])

    def test_a_metric_to_monitor_that_is_not_there_is_an_error(self, tmp_path):
        with pytest.raises(TrainingError, match=r"run\.checkpoint\.best\.monitor: this run reports no test/nothing"):
            self.fit(
                tmp_path, real_dataset("iris"), num_boost_round=5, checkpoint={"best": {"monitor": "test/nothing"}}
            )

    @pytest.mark.parametrize(
        ("word", "said"),
        [
            ("run.checkpoint.best.monitor=validation_0-logloss", "run.checkpoint.best.monitor: this run reports no"),
            ("trainer.early_stopping.monitor=validation_0-logloss", "early_stopping.monitor: this run reports no"),
            ("run.stop.bounds={val/nothing: {min: 0.1}}", "run.stop.bounds: this run reports no val/nothing"),
            ("run.stop.target={val/f1: 0.9}", "run.stop.target: this run reports no val/f1"),
            ("run.checkpoint.best.mode=max", "run.checkpoint.best.mode=max: a smaller val/"),
            ("trainer.early_stopping.mode=max", "trainer.early_stopping.mode=max: a smaller val/"),
        ],
    )
    def test_what_rounds_cannot_be_judged_by_is_refused_before_anything_starts(self, tmp_path, word, said):
        with pytest.raises(ConfigError, match=re.escape(said)):
            rtrain.fit(self.trainer, ["num_workers=0", f"run.root_dir={tmp_path}", word])
        assert not list(tmp_path.iterdir())

    def test_constraints_name_features_or_number_them(self, tmp_path):
        rng = np.random.default_rng(0)
        x = rng.normal(size=(600, 3)).astype("float32")
        columns = {"x": x, "y": (x[:, 0] + 3 * (x[:, 1] > 0) * (x[:, 2] > 0)).astype("float32")}
        dataset = make_dataset(columns, np.arange(600), feature_names=("own price", "b", "c"))

        def error(name, params):
            return self.fit(tmp_path / name, dataset, params=params, num_boost_round=40).metrics["test/mse"]

        falling = error("names", {"monotone_constraints": {"own price": -1}})
        assert falling == error("numbers", {"monotone_constraints": [-1, 0, 0]}) > 1.4 * error("none", {})
        apart = error("apart", {"interaction_constraints": [["own price"], ["b"], ["c"]]})
        assert apart == error("apart by number", {"interaction_constraints": [[0], [1], [2]]})
        assert apart > 1.5 * error("together", {"interaction_constraints": [["own price"], ["b", "c"]]})

    @pytest.mark.parametrize(
        ("keys", "message"),
        [
            ({"params": {"monotone_constraints": {"widht": 1}}}, "no feature 'widht'.\ndid you mean: width"),
            ({"params": {"monotone_constraints": [1]}}, "has 1 numbers, but real has 2 features"),
            ({"params": {"monotone_constraints": {"color": 1}}}, "'color' is categorical"),
            ({"params": {"interaction_constraints": [[0, 7]]}}, "no feature 7"),
            ({"params": {"interaction_constraints": ["width"]}}, "list of lists"),
            ({"params": {"eta": 0.1, "learning_rate": 0.2}}, "eta and learning_rate are the same parameter"),
            ({"objective_function": f"{__name__}:SHAPE"}, "SHAPE is a tuple, not a function"),
            ({"metric_functions": [f"{__name__}:no_metric"]}, "no_metric can't be called with 2 arguments: too many"),
        ],
        ids=str,
    )
    def test_params_and_functions_that_do_not_fit_are_named_before_anything_starts(self, keys, message):
        facts = {"feature_names": ("width", "color"), "categories": {"color": ("red", "green")}}
        rows = {"x": np.zeros(SHAPE, "float32"), "y": np.zeros(10, "float32")}
        conf = RtrainConf(trainer=confs()[self.trainer](**keys), run=RunConf(name="test"))
        job = make_job(conf, make_dataset(rows, np.arange(10), **facts), self.trainer)
        job = replace(job, builder=Builder((__name__,)))
        with pytest.raises(ConfigError, match=message):
            load_trainer(self.trainer).check(job)

    @pytest.mark.parametrize("name", ["breast_cancer", "iris"])
    def test_predictions_are_probabilities_that_give_the_reported_metrics(self, tmp_path, name):
        dataset = real_dataset(name)
        channel, y = self.fit(tmp_path, dataset, num_boost_round=10), dataset.splits["test"].columns["y"]
        found = self.predict(tmp_path, dataset)
        assert found.sum(axis=1) == pytest.approx(np.ones(len(found)), abs=1e-5)
        assert (found.argmax(axis=1) == y).mean() == pytest.approx(channel.metrics["test/accuracy"])
        assert -np.log(found[np.arange(len(y)), y]).mean() == pytest.approx(channel.metrics["test/loss"], rel=1e-4)

    def test_a_ranking_learns_its_queries(self, tmp_path):
        channel = self.fit(tmp_path, ranking_dataset(), num_boost_round=20)
        assert channel.metrics["test/ndcg@5"] > 0.9
        assert channel.worker_facts[0]["num_rows"] == {"train": 480, "test": 120}

    def test_weights_and_base_margins_count(self, tmp_path):
        whole = real_dataset("breast_cancer").splits["train"].columns
        y, num_rows = whole["y"], len(whole["y"])

        def metrics(name, num_rounds=3, **more):
            dataset = make_dataset({**whole, **more}, np.arange(num_rows), classes=("a", "b"))
            return self.fit(tmp_path / name, dataset, num_boost_round=num_rounds).metrics

        plain = metrics("plain")
        assert metrics("ones", weight=np.ones(num_rows, "float32")) == plain
        assert metrics("heavy", weight=np.where(y == 1, 50, 1).astype("float32")) != plain
        assert metrics("margin", 1, base_margin=np.where(y == 1, 9, -9).astype("float32"))["test/loss"] < 0.01

    @pytest.mark.parametrize("name", ["breast_cancer", "diabetes", "iris"])
    def test_predictions_start_from_the_scores_that_rows_bring(self, tmp_path, name):
        rng = np.random.default_rng(0)
        shape = (150, 3) if name == "iris" else (len(LOADERS[name]().target),)
        dataset = real_dataset(name, base_margin=rng.normal(size=shape).astype("float32"))
        metrics = self.fit(tmp_path, dataset, num_boost_round=5).metrics
        rows = dataset.splits["test"].columns
        found, y = load(self.trainer, tmp_path, dataset).predict_from(rows["x"], rows["base_margin"]), rows["y"]
        if name == "diabetes":
            assert np.square(found - y).mean() == pytest.approx(metrics["test/mse"], rel=1e-4)
            return
        assert found.sum(axis=1) == pytest.approx(np.ones(len(found)), abs=1e-5)
        assert -np.log(found[np.arange(len(y)), y]).mean() == pytest.approx(metrics["test/loss"], rel=1e-4)

    def test_categories_split_by_their_names_and_missing_values_are_fine(self, tmp_path):
        rng = np.random.default_rng(0)
        codes = rng.integers(0, 6, 600)
        x = np.stack([codes, rng.normal(size=600)], axis=1).astype("float32")
        x[rng.random(600) < 0.05, 0] = np.nan
        columns = {"x": x, "y": np.isin(codes, (1, 4)).astype("int64")}
        facts = {"feature_names": ("color", "size"), "categories": {"color": tuple("abcdef")}}
        dataset = make_dataset(columns, np.arange(600), classes=("no", "yes"), **facts)
        channel = self.fit(tmp_path, dataset, params=self.stump, num_boost_round=20)
        assert channel.metrics["test/accuracy"] > 0.9
        assert next(iter(channel.model_facts[-1]["feature_importance"]["gain"])) == "color"
