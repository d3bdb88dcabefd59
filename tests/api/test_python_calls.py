"""``rtrain.fit`` and ``rtrain.sweep``: each form of their arguments asks for the same, and errors speak of Python."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from omegaconf import OmegaConf

import rtrain
from rtrain.api import training
from rtrain.errors import ConfigError

SAME = {
    "text": ("mlp", "epochs=3"),
    "texts": ("mlp", ["trainer.max_epochs=3"]),
    "mapping": ("mlp", {"epochs": 3}),
    "nested mapping": ("mlp", {"trainer": {"max_epochs": 3}}),
    "DictConfig": ("mlp", OmegaConf.create({"trainer": {"max_epochs": 3}})),
    "mapping as config": ({"defaults": ["/mlp"], "epochs": 3, "run": {"name": "mlp"}},),
    "mapping and text": ({"defaults": ["/mlp"], "run": {"name": "mlp"}}, "epochs=3"),
    "DictConfig as config": (OmegaConf.create({"defaults": ["/mlp"], "epochs": 3, "run": {"name": "mlp"}}),),
}


class ComposedError(Exception):
    """Ends a call once its config is composed."""


@pytest.fixture
def composed(monkeypatch, tmp_path):
    """What a call composes, which then trains nothing."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    monkeypatch.setattr(tempfile, "tempdir", None)
    (tmp_path / "tmp").mkdir()

    def stop(session, observer, **_):
        error = ComposedError()
        error.found = session.check()
        raise error

    monkeypatch.setattr(training, "fit_session", stop)

    def compose(*args, **short):
        with pytest.raises(ComposedError) as caught:
            rtrain.fit(*args, **short)
        return caught.value.found

    yield compose
    assert not list((tmp_path / "tmp").iterdir()), "a file stays"


@pytest.mark.parametrize("form", SAME)
def test_each_form_of_overrides_asks_for_the_same(form, composed):
    assert composed(*SAME[form]).config_hash == composed("mlp", epochs=3).config_hash


def test_config_and_overrides_may_be_keywords(composed):
    assert composed(config="mlp", overrides=["epochs=3"]).config_hash == composed("mlp", epochs=3).config_hash


def test_keywords_win_over_overrides_and_mappings_are_merged(composed):
    conf = composed(
        "mlp", {"epochs": 2, "model": {"hidden": [8]}}, epochs=3, run={"notes": "it's, a \\d: 1e5", "tags": ["a b"]}
    )
    assert conf.conf.trainer.max_epochs == 3
    assert conf.resolved["trainer"]["model"]["hidden"] == [8]
    assert conf.resolved["trainer"]["model"]["_target_"]
    assert (conf.conf.run.notes, conf.conf.run.tags) == ("it's, a \\d: 1e5", ["a b"])


def test_the_type_of_a_section_chooses_the_plugin(composed, tmp_path):
    (tmp_path / "t.csv").write_text("a,y\n1,0\n2,1\n")
    data = {"type": "csv", "path": "t.csv", "label": "y"}
    assert composed("xgboost", dataset=data).resolved["dataset"]["type"] == "csv"


@pytest.mark.parametrize(
    ("short", "at", "expected"),
    [
        ({"vars": {"a": {"b": 1}}}, "vars", {"a": {"b": 1}}),
        (
            {"trainer": {"train_loop_config": {"a": [1], "b": {"c": None}}}},
            "trainer.train_loop_config",
            {"a": [1], "b": {"c": None}},
        ),
        ({"run": {"stop": {"target": {"val/accuracy": 0.5}}}}, "run.stop.target", {"val/accuracy": 0.5}),
        ({"run": {"loggers": {"csv": {}}}}, "run.loggers", {"csv": {}}),
        ({"run": {"checkpoint": {"every_steps": 7}}}, "run.checkpoint.every_steps", 7),
        (
            {"scaling": {"resources_per_worker": {"CPU": 2}}, "num_workers": 1},
            "scaling.resources_per_worker",
            {"CPU": 2},
        ),
        (
            {"optimizer": {"_target_": "torch.optim.SGD", "lr": 1}},
            "trainer.optimizer",
            {"_target_": "torch.optim.SGD", "lr": 1},
        ),
        ({"trainer": {"early_stopping": {"patience": 2}}}, "trainer.early_stopping.patience", 2),
        ({"trainer": {"scheduler": None, "optimizer": "adamw"}}, "trainer.optimizer._target_", "torch.optim.AdamW"),
        (
            {"metrics": {"own": {"_target_": "torchmetrics.MeanMetric"}}},
            "trainer.metrics.own._target_",
            "torchmetrics.MeanMetric",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_nested_mappings_reach_each_section(short, at, expected, composed):
    if "train_loop" in at:
        short["trainer"]["train_loop"] = "loops:train"
    found = composed("mlp", **{"num_workers": 0, **short}).resolved
    for name in at.split("."):
        found = found[name]
    assert found == expected


@pytest.mark.parametrize(
    "given",
    [
        {"path": {"train": "a.csv", "test": "b.csv"}},
        {"path": "a.csv", "split": {"by_column": {"column": "fold", "val": [3], "test": [4, 5]}}},
        {"path": "a.csv", "normalize": {"mean": [0.5], "std": [2.0]}},
        {"path": "a.csv", "normalize": False},
    ],
    ids=lambda given: ",".join(given),
)
def test_a_mapping_may_stand_where_a_value_may(given, composed):
    keys = {"type": "csv", "label": "l", **given}
    for call in ({"dataset": keys}, {"overrides": {"dataset": keys}}):
        found = composed("mlp", **call).resolved["dataset"]
        for name, value in given.items():
            held = {one: found[name][one] for one in value} if name == "split" else found[name]
            assert held == value


def test_a_mapping_belongs_to_the_current_folder(composed, tmp_path):
    (tmp_path / "configs" / "dataset").mkdir(parents=True)
    (tmp_path / "configs" / "dataset" / "mine.yaml").write_text("type: sklearn\nname: wine\n")
    found = composed({"defaults": ["/mlp"]}, dataset="mine")
    assert found.conf.dataset.name == "wine"
    assert found.project_root == tmp_path
    assert found.config_path is None
    assert found.conf.run.name == "config"


def test_what_a_mapping_sets_was_typed_by_the_user(composed):
    place = {"cluster": {"runtime_env": {"env_vars": {"PATH": "/x"}}}, "defaults": ["/mlp"]}
    assert composed(place).conf.cluster.runtime_env["env_vars"] == {"PATH": "/x"}


def test_references_of_a_config_stay_references(composed, monkeypatch):
    monkeypatch.setenv("NOTE_OF_TEST", "secret text")
    found = composed(OmegaConf.create({"defaults": ["/mlp"], "run": {"notes": "${oc.env:NOTE_OF_TEST}"}}))
    assert found.conf.run.notes == "secret text"
    assert "secret text" not in found.yaml


WRONG = {
    "text": (("mlp", "optimizer.lrr=0.1"), {}, '"optimizer.lrr=0.1"'),
    "mapping": (("mlp", {"optimizer.lrr": 0.1}), {}, '"optimizer.lrr": 0.1'),
    "keyword": (("mlp",), {"epochz": 3}, "epochz=3"),
    "value": (("mlp",), {"lr": "fast", "num_workers": 0}, 'lr="fast"'),
    "config": (({"defaults": ["/mlp"], "trainer": {"max_epoch": 3}},), {}, "max_epoch: 3"),
    "file": (("./nothere.yaml",), {"epochs": 3}, "nothere.yaml"),
}


@pytest.mark.parametrize("case", WRONG)
def test_an_error_shows_the_argument_and_no_command(case, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    args, short, shown = WRONG[case]
    with pytest.raises(ConfigError) as caught:
        rtrain.fit(*args, **short)
    assert shown in caught.value.message
    assert "rtrain fit" not in str(caught.value)
    assert tempfile.gettempdir() not in str(caught.value).replace(str(tmp_path), "")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("config", [3, None, ["mlp"], len, OmegaConf.create(["mlp"])], ids=str)
def test_what_is_no_config_is_refused(config):
    with pytest.raises(ConfigError):
        rtrain.fit(config)


@pytest.mark.parametrize("value", [[0.1, 0.01], "0.1,0.01"], ids=str)
def test_a_sweep_over_one_value_says_how_to_give_several(value, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError) as caught:
        rtrain.sweep("mlp", lr=value)
    assert "rtrain.choice" in caught.value.hint
    assert "--multirun" not in str(caught.value)


def test_a_choice_is_for_sweeps(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError) as caught:
        rtrain.fit("mlp", lr=rtrain.choice(0.1, 0.01))
    assert 'rtrain.sweep("mlp", lr=rtrain.choice(0.1, 0.01))' in caught.value.hint


@pytest.mark.parametrize("target", ["__main__.Net", "__main__:Net", "__main__.Nets.Small"])
def test_what_a_notebook_defines_has_to_be_put_into_a_file(target, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError) as caught:
        rtrain.fit("mlp", model={"_target_": target})
    assert "notebook" in caught.value.message
    module, _, name = caught.value.hint.rpartition(" ")[2].replace(":", ".").partition(".")
    assert f"{module}.py" in caught.value.hint
    assert name == target[9:]
    assert not any(Path().iterdir())


def test_a_run_that_is_missing_is_named():
    for call in (rtrain.resume, rtrain.evaluate, rtrain.predict):
        with pytest.raises(rtrain.RtrainError) as caught:
            call("nothere")
        assert "nothere" in str(caught.value)
