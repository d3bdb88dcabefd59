"""Completion of overrides."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from small_project import SCHEMAS, write

from rtrain.config.reference.completion import complete
from rtrain.config.reference.key_index import key_index
from rtrain.schemas import schemas


@pytest.fixture(scope="module")
def index():
    return json.loads(json.dumps(key_index(SCHEMAS)))


@pytest.fixture(scope="module")
def real():
    return json.loads(json.dumps(key_index(schemas())))


@pytest.mark.parametrize(
    ("incomplete", "expected"),
    [
        ("scal", ["scaling.", "scaling="]),
        ("scaling.num", ["scaling.num_workers="]),
        ("num", ["num_workers="]),
        ("optimizer=", ["optimizer=adamw", "optimizer=sgd"]),
        ("optimizer=a", ["optimizer=adamw"]),
        ("optimizer=sgd,a", ["optimizer=sgd,adamw"]),
        ("optimizer.", ["optimizer._target_=", "optimizer.lr=", "optimizer.momentum="]),
        ("model.", ["model._target_=", "model.width="]),
        ("trainer.optimizer.mom", ["trainer.optimizer.momentum="]),
        ("dataset=", ["dataset=csv", "dataset=digits"]),
        ("trainer=", ["trainer=bigger", "trainer=mine", "trainer=torch", "trainer=xgboost"]),
        ("trainer.max", ["trainer.max_epochs="]),
        ("trainer.stop.", ["trainer.stop.metric=", "trainer.stop.options.", "trainer.stop.patience="]),
        ("trainer.stop_", ["trainer.stop_early."]),
        ("trainer.type=", ["trainer.type=torch", "trainer.type=xgboost"]),
        ("trainer.precision=", ["trainer.precision=bf16", "trainer.precision=fp32"]),
        ("use_gpu=", ["use_gpu=false", "use_gpu=true"]),
        ("run.checkpoint.upload=", ["run.checkpoint.upload=async", "run.checkpoint.upload=sync"]),
        ("++run.checkpoint.upload=a", ["++run.checkpoint.upload=async"]),
        ("run.checkpoint.best.ke", ["run.checkpoint.best.keep="]),
        ("sweep.par", ["sweep.params."]),
        ("run.root_dir=conf", ["run.root_dir=configs/"]),
        ("+exp", ["+experiment="]),
        ("~sca", ["~scaling", "~scaling."]),
        ("~lr", ["~lr"]),
        ("~optimizer.l", ["~optimizer.lr"]),
        ("zzz", []),
        ("trainer.zzz.", []),
        ("scaling.num_workers.", []),
    ],
)
def test_completes_the_word_at_the_cursor(incomplete, expected, index, project):
    assert complete(["digits"], incomplete, index) == expected


def test_earlier_words_count(index, project):
    assert "trainer.num_rounds=" in complete(["inline", "trainer=xgboost"], "trainer.", index)
    assert "trainer.num_rounds=" in complete(["inline", "trainer.type=xgboost"], "trainer.", index)
    assert "trainer.max_epochs=" in complete(["inline", "trainer=mine"], "trainer.", index)
    assert complete(["digits", "optimizer=adamw"], "optimizer.l", index) == ["optimizer.lr="]
    assert complete(["inline", "dataset=csv"], "dataset.se", index) == ["dataset.separator="]


def test_included_configs_count(index, project):
    write("configs/more.yaml", "defaults: [digits, {override dataset: csv}]\n")
    write("configs/round.yaml", "defaults: [round, more]\n")
    for config in ("more", "round"):
        assert complete([config], "dataset.", index) == ["dataset.path=", "dataset.separator=", "dataset.type="]
        assert complete([config], "model.w", index) == ["model.width="]


def test_files_that_include_each_other_many_times_are_read_once(index, project):
    for number in range(30):
        others = ", ".join(f"layer{one}" for one in range(30) if one != number)
        write(f"configs/layer{number}.yaml", f"defaults: [{others}]\n")
        write(f"configs/trainer/layer{number}.yaml", f"defaults: [{others}]\n")
    write("configs/top.yaml", "defaults: [layer0, {trainer: layer0}]\ntrainer: {type: torch}\n")
    assert complete(["top"], "trainer.max", index) == ["trainer.max_epochs="]


def test_keys_of_any_plugin_where_none_is_chosen(index, project):
    write("open.yaml", "vars: {width: 3}\n")
    found = complete(["open.yaml"], "trainer.", index)
    assert {"trainer.max_epochs=", "trainer.num_rounds="} <= set(found)
    assert complete(["open.yaml"], "vars.", index) == ["vars.width="]


@pytest.mark.parametrize("text", ["trainer: {type: ", "- a\n", "", "trainer: 3\ndefaults: {a: b}", "\xff"])
def test_a_broken_word_or_config_doesnt_disturb(text, index, project):
    write("broken.yaml", text)
    assert complete(["broken.yaml", "nothing=1", "=", "a.b.c"], "scaling.num", index) == ["scaling.num_workers="]


def test_no_config(index, project):
    assert complete(["nothing"], "scal", index) == []
    assert complete([], "scal", index) == []


def test_parameters_of_a_library_are_asked_for_where_they_stand(index, project):
    asked = []
    names = {"xgboost": ["eta", "max_depth"]}
    find = lambda trainer: (asked.append(trainer), names[trainer])[1]  # noqa: E731
    words = ["inline", "trainer=xgboost"]
    assert complete(words, "trainer.num", index, find) == ["trainer.num_rounds="]
    assert asked == []
    assert complete(words, "trainer.params.m", index, find) == ["trainer.params.max_depth="]
    assert asked == ["xgboost"]


@pytest.mark.parametrize(
    ("words", "incomplete", "expected"),
    [
        (["resnet"], "trainer.precision=", {"trainer.precision=bf16"}),
        (["resnet"], "sweep=", {"sweep=grid", "sweep=optuna"}),
        (["resnet", "sweep=optuna"], "sweep.samp", {"sweep.sampler="}),
        (["resnet"], "sweep.scheduler=", {"sweep.scheduler=asha"}),
        (["resnet"], "sweep/scheduler=a", {"sweep/scheduler=asha"}),
        (["resnet"], "run.loggers.", {"run.loggers.mlflow."}),
        (["resnet"], "run.loggers.mlflow.ex", {"run.loggers.mlflow.experiment="}),
        (["resnet"], "run.loggers=", {"run.loggers=csv"}),
        (["resnet"], "dataset.split.", {"dataset.split.val="}),
        (["resnet"], "scheduler=", {"scheduler=cosine"}),
        (["xgboost"], "trainer.early_stopping.", {"trainer.early_stopping.patience="}),
    ],
)
def test_completes_what_is_built_in(words, incomplete, expected, real, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert expected <= set(complete(words, incomplete, real))


def test_a_tab_composes_nothing():
    code = "import sys, rtrain.cli.completing.quick, rtrain.config.reference.completion, rtrain.history.references\n"
    code += "print({'hydra', 'omegaconf', 'pydantic', 'typer', 'pandas'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
