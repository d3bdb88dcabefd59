"""What a ranking's evaluation gives is what the run itself reported, by the library's own definition."""

import boosting_runs
import numpy as np
import pytest
from boosting_runs import make_dataset

from rtrain.config.run_conf import RunConf
from rtrain.config.schema import RtrainConf
from rtrain.datasets.base import RawChunk
from rtrain.errors import ConfigError
from rtrain.evaluation import compared, metrics_of
from rtrain.testing.workers import make_job
from rtrain.trainers.loops.ranking_metrics import Ranking
from rtrain.trainers.registry import confs, load_trainer

QUERIES = 40
SIZES = np.random.default_rng(0).integers(1, 12, QUERIES)
GROUP = np.repeat(np.arange(QUERIES), SIZES)
X = np.random.default_rng(1).normal(size=(len(GROUP), 3)).astype("float32").round(1)
GRADES = np.clip(np.round(X[:, 0] + 1), 0, 3).astype("float32")
GRADES[np.isin(GROUP, (3, 7, 33, 36))] = 0  # nothing is relevant
OF_TEST = np.arange(len(GRADES)) >= len(GRADES) * 4 // 5
WEIGHTS = {
    "alike": {},
    "weighed": {"weight": np.repeat(np.random.default_rng(2).uniform(0.5, 3, QUERIES), SIZES).astype("float32")},
}
NDCG = ["ndcg", "ndcg@3", "ndcg-", "ndcg@2-", "ndcg@40"]
XGBOOST = {
    "usual": ("grades", {}),
    "exponential": ("grades", {"eval_metric": NDCG}),
    "linear": ("grades", {"eval_metric": NDCG, "ndcg_exp_gain": False}),
    "the objective's": ("grades", {"objective": "rank:pairwise", "lambdarank_num_pair_per_sample": 4}),
    "means of pairs": ("grades", {"lambdarank_pair_method": "mean", "objective": "rank:ndcg"}),
    "relevant or not": ("two", {"eval_metric": ["map", "map@3", "map@3-", "map-", "pre", "pre@2", "ndcg@4"]}),
    "by precision": ("two", {"objective": "rank:map"}),
}
LIGHTGBM = {
    "usual": ("grades", {}),
    "exponential": ("grades", {"metric": ["ndcg", "map"], "eval_at": [2, 4, 50]}),
    "linear": ("grades", {"label_gain": [0, 1, 2, 3], "ndcg_at": [2, 3]}),
    "gains as text": ("grades", {"label_gain": "0,5,6,7", "eval_at": "7"}),
    "relevant or not": ("two", {"metric": "map,ndcg"}),
    "draws": ("grades", {"objective": "rank_xendcg"}),
}
CASES = [("xgboost", *case) for case in XGBOOST.values()] + [("lightgbm", *case) for case in LIGHTGBM.values()]
IDS = [f"xgboost {name}" for name in XGBOOST] + [f"lightgbm {name}" for name in LIGHTGBM]


@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize(("trainer", "labels", "params"), CASES, ids=IDS)
def test_an_evaluation_gives_what_the_run_reported(trainer, labels, params, weights, tmp_path):
    y = GRADES if labels == "grades" else (GRADES > 1).astype("float32")
    whole = {"x": X, "y": y, "group": GROUP, **WEIGHTS[weights]}
    data = make_dataset(whole, np.arange(len(GROUP)), task="ranking")
    keys = {"params": {"max_depth": 2, **params}, "num_boost_round": 3}
    channel = boosting_runs.fit(trainer, tmp_path, data, **keys)
    rows = data.splits["test"].columns
    assert set(rows["group"]) & {33, 36}
    chunk = RawChunk(rows["x"], rows["y"], {}, rows["group"], None, rows.get("weight"))
    predictor = boosting_runs.load(trainer, tmp_path, data, **keys)
    found = metrics_of(data.info, [compared(predictor, data.info, chunk)])
    assert channel.metrics
    assert {name.removeprefix("test/") for name in channel.metrics} <= set(found)
    for name, value in channel.metrics.items():
        assert found[name.removeprefix("test/")] == pytest.approx(value, rel=1e-5), name


METRICS = [{"eval_metric": one} for one in ("map", ["ndcg", "map@3-"], "pre@2", "aucpr")]


@pytest.mark.parametrize("params", [{"objective": "rank:map"}, *METRICS], ids=str)
def test_what_xgboost_has_for_relevant_rows_only_is_refused_for_grades(params):
    by_map = "objective" in params
    for labels, refused in ((GRADES, True), (GRADES > 1, False), (np.where(OF_TEST, GRADES > 1, GRADES), by_map)):
        data = make_dataset({"x": X, "y": labels.astype("float32"), "group": GROUP}, np.arange(len(X)), task="ranking")
        job = make_job(RtrainConf(trainer=confs()["xgboost"](params=params), run=RunConf(name="test")), data, "xgboost")
        if refused:
            hint = "objective=rank:ndcg" if by_map else "eval_metric=ndcg"
            says = rf"trainer\.params.* only for grades 0 and 1, .*has the grade [23]\.\ntry: trainer\.params\.{hint}"
            with pytest.raises(ConfigError, match=says):
                load_trainer("xgboost").check(job)
        else:
            load_trainer("xgboost").check(job)


def test_a_grade_that_has_no_gain_is_named():
    rows = np.arange(3.0)
    with pytest.raises(ConfigError, match="grade 2, but the run has gains for grades up to 1"):
        Ranking(gains=(0, 1)).measure(rows, rows, np.zeros(3, int), np.ones(3))
