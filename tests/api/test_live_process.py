"""Calls from a process that lives on, as a notebook's: edited modules, threads, the stop button, wrong keywords."""

from __future__ import annotations

import importlib
import inspect
import os
import sys
import threading
import time
import warnings

import pandas as pd
import pytest

import rtrain
from rtrain.config.calls.call import OPTIONS
from rtrain.errors import ConfigError

NET = """
import os
import signal

import torch

SCALE = 1


class Net(torch.nn.Module):
    def __init__(self, width=10):
        super().__init__()
        self.layer, self.calls = torch.nn.Linear(64, 10), 0

    def forward(self, x):
        self.calls += 1
        if os.environ.get("STOPS") and self.training and self.calls > 4:
            for _ in os.environ["STOPS"]:
                os.kill(os.getpid(), signal.SIGINT)
        if os.environ.get("FAILS") and self.training and self.calls > 4:
            raise KeyError("of the user")
        return self.layer(x.flatten(1)) * SCALE
"""
QUICK = {"num_workers": 0, "epochs": 1, "dataset.limit": 100, "trainer.num_threads": 1}


@pytest.fixture
def project(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "live_net.py").write_text(NET)
    return tmp_path


def fit(**more):
    return rtrain.fit("mlp", QUICK, model={"_target_": "live_net.Net"}, **more)


def told(call):
    """Return the warnings about edited modules."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    return [str(one.message) for one in caught if "was edited" in str(one.message)]


def edit(path, text):
    path.write_text(text)
    os.utime(path, (time.time() + 5, time.time() + 5))


@pytest.mark.parametrize("verb", ["fit", "evaluate", "predict", "resume", "sweep"])
def test_each_call_tells_of_a_module_that_was_edited_since_it_was_imported(project, verb):
    assert told(fit) == []
    run = rtrain.runs()[0]
    calls = {
        "fit": fit,
        "evaluate": run.evaluate,
        "predict": run.predict,
        "resume": lambda: run.resume(epochs=2),
        "sweep": lambda: rtrain.sweep("mlp", QUICK, model={"_target_": "live_net.Net"}, lr=rtrain.choice(0.1, 0.2)),
    }
    edit(project / "live_net.py", NET.replace("SCALE = 1", "SCALE = 2"))
    (line,) = told(calls[verb])
    assert line.startswith("live_net.py was edited after live_net was imported")
    importlib.reload(sys.modules["live_net"])
    assert told(calls[verb]) == []


class Lazy:
    def __getattr__(self, name):
        raise ImportError(name)


@pytest.mark.parametrize("kind", [type(None), object, Lazy, int])
def test_strange_modules_are_left_alone(project, monkeypatch, kind):
    monkeypatch.setitem(sys.modules, "a_strange_module", kind())
    assert told(fit) == []


def test_runs_of_two_threads_are_trained_one_after_the_other(project):
    def loss(seed):
        return rtrain.fit("mlp", QUICK, seed=seed, model={"dropout": 0.5}).metrics["train/epoch_loss"]

    alone, found = {seed: loss(seed) for seed in (1, 2, 3)}, {}
    threads = [threading.Thread(target=lambda seed=seed: found.update({seed: loss(seed)})) for seed in alone]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert found == alone
    assert any("another thread of this process is training" in str(one.message) for one in caught)


@pytest.mark.parametrize("stops", ["1", "12"])
def test_ctrl_c_ends_a_loop_over_runs_also_where_it_comes_twice(project, monkeypatch, stops):
    monkeypatch.setenv("STOPS", stops)
    with pytest.raises(KeyboardInterrupt, match="the run was saved"):
        fit(epochs=9)
    assert rtrain.runs()[0].status == "interrupted"


@pytest.mark.parametrize("workers", [0, 1])
def test_the_cause_of_an_error_is_what_the_users_code_raised(project, monkeypatch, workers):
    monkeypatch.setenv("FAILS", "1")
    with pytest.raises(rtrain.TrainingError) as caught:
        fit(num_workers=workers, epochs=9)
    assert isinstance(caught.value.cause, KeyError)
    assert caught.value.cause.args == ("of the user",)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return rtrain.fit("mlp", QUICK, model={"hidden": [8]}, run={"root_dir": str(tmp_path_factory.mktemp("runs"))})


@pytest.mark.parametrize("function", ["fit", "sweep", "resume", "evaluate", "predict"])
def test_a_misspelled_option_is_told_from_a_key(run, function):
    first = "mlp" if function in ("fit", "sweep") else run
    for option in OPTIONS[function][1:]:
        if option in ("overrides", "output"):
            continue
        with pytest.raises(ConfigError) as caught:
            getattr(rtrain, function)(first, **{option[:-2] + option[-1]: True})
        assert f"did you mean: {option}=True" in str(caught.value)
    given = OPTIONS[function][0]
    with pytest.raises(ConfigError) as caught:
        getattr(rtrain, function)(first, **{f"{given}s": 5})
    assert f"did you mean: {given}=" not in str(caught.value)


@pytest.mark.parametrize("function", OPTIONS)
def test_the_options_of_a_function_are_its_parameters(function):
    assert set(OPTIONS[function]) == inspect.signature(getattr(rtrain, function)).parameters.keys() - {"short"}


def test_keywords_are_keys_in_each_function(run):
    assert run.resume(epochs=2).manifest.epoch == 2
    assert run.evaluate(num_workers=0) == run.evaluate()
    assert run.predict(num_workers=0, split="test") == run.predict(split="test")
    with pytest.raises(ConfigError, match="different splits"):
        run.evaluate(dataset={"limit": 50}, split="test")


@pytest.mark.parametrize("key", ["dataset.path", "dataset", "vars.table"])
def test_a_table_is_no_value_of_a_config(key):
    with pytest.raises(ConfigError, match=r"pandas.*DataFrame") as caught:
        rtrain.fit("mlp", {key: pd.DataFrame({"a": [1], "label": [0]})})
    assert "to_parquet" in str(caught.value)


@pytest.mark.parametrize(
    ("overrides", "short"),
    [
        ({}, {"model": {"_target_": "live_net.Net", "width": rtrain.choice(1, 2)}}),
        ({"model": {"_target_": "live_net.Net"}, "model.width": rtrain.choice(1, 2)}, {}),
    ],
)
def test_an_argument_of_a_class_of_ones_own_varies(project, overrides, short):
    found = rtrain.sweep("mlp", QUICK | overrides, **short)
    assert [trial.status for trial in found.trials] == ["succeeded"] * 2
    runs = [rtrain.Run.load(trial.path) for trial in found.trials]
    assert [one.manifest.config["trainer"]["model"]["width"] for one in runs] == [1, 2]


def test_a_sweep_is_not_resumed_as_a_run(project):
    sweep = rtrain.sweep("mlp", QUICK, lr=rtrain.choice(0.1, 0.2))
    with pytest.raises(ConfigError, match="is a sweep") as caught:
        rtrain.resume(sweep)
    assert "the rtrain.sweep call" in str(caught.value)
