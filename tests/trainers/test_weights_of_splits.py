"""Weights of rows count wherever a split has some, in a run as in ``evaluate``, whichever of the splits have them."""

import pytest

import rtrain
from rtrain.errors import ConfigError

SOURCE = """
import numpy as np


def rows(weighted):
    draw = np.random.default_rng(0)
    splits = {}
    for split, count in (("train", 120), ("val", 60)):
        x = draw.normal(size=(count, 4)).astype("float32")
        y = (x[:, 0] + draw.normal(size=count) > 0).astype("int64")
        weight = draw.uniform(0, 3, count).astype("float32")
        splits[split] = {"x": x, "y": y} | ({"weight": weight} if split in weighted else {})
    return splits
"""
CONFIGS = {
    "torch": "mlp",
    "jax": {
        "defaults": [{"trainer": "jax"}],
        "trainer": {
            "model": {"_target_": "rtrain.models.jax.MLP", "num_classes": "auto"},
            "optimizer": {"_target_": "optax.adam", "learning_rate": 0.01},
        },
    },
    "tensorflow": {
        "defaults": [{"trainer": "tensorflow"}],
        "trainer": {
            "model": {"_target_": "rtrain.models.keras.mlp", "input_shape": "auto", "num_classes": "auto"},
            "optimizer": {"_target_": "keras.optimizers.Adam"},
        },
    },
    "sklearn": "sklearn",
    "xgboost": "xgboost",
    "lightgbm": "lightgbm",
}


@pytest.fixture
def fit(tmp_path, monkeypatch):
    (tmp_path / "pyproject.toml").write_text("")
    (tmp_path / "weighted_source.py").write_text(SOURCE)
    monkeypatch.chdir(tmp_path)

    def fit(trainer, weighted):
        dataset = {"type": "python", "function": "weighted_source:rows", "arguments": {"weighted": weighted}}
        short = {"num_boost_round": 3} if trainer in ("xgboost", "lightgbm") else {}
        short = {"max_epochs": 1} if trainer in ("torch", "jax", "tensorflow") else short
        return rtrain.fit(CONFIGS[trainer], num_workers=0, dataset=dataset, trainer=short)

    return fit


@pytest.mark.parametrize("weighted", [("train",), ("val",), ("train", "val")], ids=" ".join)
@pytest.mark.parametrize("trainer", CONFIGS)
def test_a_run_and_its_evaluation_weigh_the_rows_alike(fit, trainer, weighted):
    run = fit(trainer, list(weighted))
    evaluated = run.evaluate(split="val")
    for name in ("loss", "accuracy"):
        assert run.metrics[f"val/{name}"] == pytest.approx(evaluated[name], rel=1e-5)
    assert run.metrics["val/loss"] != pytest.approx(fit(trainer, []).metrics["val/loss"], rel=1e-5)


@pytest.mark.parametrize("weighted", [("train",), ("val",)], ids=" ".join)
@pytest.mark.parametrize(
    ("trainer", "words"),
    [("lightning", []), ("sklearn", ["trainer.estimator={_target_: sklearn.neighbors.KNeighborsClassifier}"])],
)
def test_a_trainer_that_cannot_weigh_rows_refuses_the_weights_of_any_split(fit, trainer, words, weighted):
    dataset = f"{{type: python, function: 'weighted_source:rows', arguments: {{weighted: [{weighted[0]}]}}}}"
    with pytest.raises(ConfigError, match="weight"):
        rtrain.fit(trainer, ["num_workers=0", f"dataset={dataset}", *words])


@pytest.mark.parametrize("weighted", ["train", "val", "both"])
@pytest.mark.parametrize("trainer", ["xgboost", "lightgbm"])
def test_queries_of_a_split_may_have_weights(tmp_path, monkeypatch, trainer, weighted):
    source = SOURCE.replace('{"x": x, "y": y}', '{"x": x, "y": y, "group": np.arange(count) // 6}')
    source = source.replace("draw.uniform(0, 3, count)", "np.repeat(draw.uniform(1, 3, count // 6), 6)")
    (tmp_path / "pyproject.toml").write_text("")
    (tmp_path / "ranking_source.py").write_text(source)
    monkeypatch.chdir(tmp_path)
    splits = ["train", "val"] if weighted == "both" else [weighted]
    dataset = {
        "type": "python",
        "function": "ranking_source:rows",
        "arguments": {"weighted": splits},
        "task": "ranking",
    }
    run = rtrain.fit(trainer, num_workers=0, dataset=dataset, trainer={"num_boost_round": 3})
    assert run.status == "succeeded"
