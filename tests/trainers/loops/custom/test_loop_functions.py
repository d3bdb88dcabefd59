"""Functions in any form that Python has can be loops, and none of them sees the command's own arguments."""

import re

import pytest

import rtrain
from rtrain.cli.app import run as command
from rtrain.errors import ConfigError

FUNCTIONS = """
import argparse
import functools
import sys

import ray.train

ARGUMENTS = argparse.ArgumentParser().parse_args()


def scaled(config, scale=1):
    ray.train.report({"value": config["value"] * scale, "arguments": len(sys.argv) - 1})


partial = functools.partial(scaled, scale=2)
bound = functools.partial(scaled, {"value": 10}, scale=3)


class Loop:
    def __call__(self, config):
        scaled(config, 4)

    def method(self, config):
        scaled(config, 5)

    @staticmethod
    def static(config):
        scaled(config, 6)

    @classmethod
    def of_class(cls, config):
        scaled(config, 7)


loop = Loop()


def closure_over(scale):
    def inner(config):
        scaled(config, scale)

    return inner


closure = closure_over(8)
unnamed = lambda config: scaled(config, 9)


def with_default(config={"value": 100}):
    scaled(config)


def by_name(*, config):
    scaled(config)


def of_two(config, other):
    scaled(config, other)


def without_config(value: int, *, scale=1):
    scaled({"value": value}, scale)


def config_last(scale, config):
    scaled(config, scale)


def of_any(config, **more):
    scaled(config, more["scale"])
"""
SCALES = {
    "scaled": 1,
    "partial": 2,
    "bound": 30,
    "loop": 4,
    "loop.method": 5,
    "Loop.static": 6,
    "Loop.of_class": 7,
    "closure": 8,
    "unnamed": 9,
    "with_default": 100,
}


def write_config(folder, name, arguments="{}", more=""):
    keys = f"train_loop: 'loop_functions:{name}', train_loop_config: {{value: 1}}, arguments: {arguments}"
    (folder / "loop.yaml").write_text(f"trainer: {{type: torch, {keys}}}\n{more}")


@pytest.fixture
def fit(tmp_path, monkeypatch):
    (tmp_path / "pyproject.toml").write_text("")
    (tmp_path / "loop_functions.py").write_text(FUNCTIONS)
    monkeypatch.setattr("sys.argv", ["rtrain", "fit", "loop.yaml", "num_workers=0"])

    def fit(name, arguments="{}"):
        write_config(tmp_path, name, arguments)
        return rtrain.fit(str(tmp_path / "loop.yaml"), ["num_workers=0", f"run.root_dir={tmp_path / 'runs'}"])

    return fit


@pytest.mark.parametrize("name", SCALES)
def test_it_is_called_with_the_config_if_it_needs_one(fit, name):
    assert fit(name).manifest.metrics == {"value": SCALES[name], "arguments": 0}


@pytest.mark.parametrize(
    ("name", "arguments"), [("bound", "{}"), ("with_default", "{}"), ("without_config", "{value: 2}")]
)
@pytest.mark.parametrize(
    ("words", "more"),
    [
        (["trainer.train_loop_config.value=2"], ""),
        (["trainer.train_loop_config={value: 2}"], ""),
        (["+trainer.train_loop_config.other=2"], ""),
        (["trainer.train_loop_config.value=2,3", "--multirun"], ""),
        (["trainer.train_loop_config.value=interval(1,3)", "sweep=random", "sweep.num_trials=2", "--multirun"], ""),
        (["--multirun"], "sweep: {params: {trainer.train_loop_config.value: '2,3'}}"),
    ],
)
def test_what_sets_a_config_that_it_does_not_take_is_refused(
    fit, tmp_path, monkeypatch, capsys, name, arguments, words, more
):
    monkeypatch.chdir(tmp_path)
    write_config(tmp_path, name, arguments, more)
    for verb in ("check", "fit"):
        assert command([verb, "loop.yaml", "num_workers=0", *words]) == 2
        said = " ".join(capsys.readouterr().err.split())
        assert f"error: trainer.train_loop_config.{'other' if 'other' in words[0] else 'value'}: has no effect" in said
        assert "def " in said
    assert not [one.name for one in tmp_path.iterdir() if one.is_dir() and one.name in ("runs", "multirun")]
    assert command(["fit", "loop.yaml", "num_workers=0"]) == 0  # a file may be for several loops
    assert "trainer.train_loop_config has no effect" in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize(("name", "problem"), [("by_name", "needs config by name"), ("of_two", "needs 2 arguments")])
def test_what_it_would_not_get_is_told_before_it_is_called(fit, name, problem):
    with pytest.raises(ConfigError, match=problem):
        fit(name)


@pytest.mark.parametrize(
    ("name", "arguments", "value"),
    [
        ("scaled", "{scale: 11}", 11),
        ("of_two", "{other: 12}", 12),
        ("config_last", "{scale: 18}", 18),
        ("partial", "{scale: 13}", 13),
        ("without_config", "{value: 2, scale: 7}", 14),
        ("by_name", "{config: {value: 15}}", 15),
        ("loop.method", "{}", 5),
        ("of_any", "{scale: 16}", 16),
    ],
)
def test_other_arguments_are_given_by_name(fit, name, arguments, value):
    assert fit(name, arguments).manifest.metrics["value"] == value


@pytest.mark.parametrize(
    ("name", "arguments", "problem"),
    [
        ("scaled", "{scael: 2}", "did you mean: scale"),
        ("scaled", "{scale: two, other: 1}", "has no argument 'other'"),
        ("without_config", "{value: two}", r"trainer\.arguments\.value: must be a whole number"),
        ("of_two", "{}", "trainer.arguments={other: ...}"),
    ],
)
def test_arguments_are_checked_against_the_signature_before_anything_starts(fit, tmp_path, name, arguments, problem):
    with pytest.raises(ConfigError) as caught:
        fit(name, arguments)
    assert re.search(problem, f"{caught.value.message} {caught.value.hint}")
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize("named", ["work/my_loop.ipynb", "work.my_loop"])
def test_a_notebook_is_refused_with_the_command_that_makes_a_module_of_it(fit, tmp_path, named):
    (tmp_path / "work").mkdir()
    (tmp_path / "work/my_loop.ipynb").write_text('{"cells": []}')
    (tmp_path / "loop.yaml").write_text(f"trainer: {{type: torch, train_loop: '{named}:train'}}\n")
    with pytest.raises(ConfigError, match="is a notebook") as caught:
        rtrain.fit(str(tmp_path / "loop.yaml"), ["num_workers=0"])
    assert "jupyter nbconvert --to script work/my_loop.ipynb" in caught.value.hint
    assert "trainer.train_loop=work.my_loop:train" in caught.value.hint


SUSPENDED = """
import functools


def generator(config):
    yield 1


async def coroutine(config):
    pass


async def both(config):
    yield 1


class Loop:
    def __call__(self, config):
        yield 1


bound = functools.partial(generator, config={})
loop = Loop()
"""


@pytest.mark.parametrize("name", ["generator", "coroutine", "both", "bound", "loop"])
def test_a_function_that_a_call_does_not_run_is_refused(tmp_path, monkeypatch, name):
    (tmp_path / "pyproject.toml").write_text("")
    (tmp_path / "suspended_loops.py").write_text(SUSPENDED)
    (tmp_path / "loop.yaml").write_text(f"trainer: {{type: torch, train_loop: 'suspended_loops:{name}'}}\n")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match="calling it does not train"):
        rtrain.fit("loop.yaml", ["num_workers=0"])
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize(
    ("written", "typed"),
    [("train_function: 'loops:train'", ""), ("max_steps: 2", "trainer.train_function=loops:train")],
)
def test_of_a_loop_and_jaxs_function_with_a_worker_only_one_trains(tmp_path, written, typed):
    (tmp_path / "loop.yaml").write_text(f"trainer: {{type: jax, train_loop: 'loops:train', {written}}}\n")
    with pytest.raises(ConfigError, match=r"has no effect: trainer\.train_(loop|function) does the training"):
        rtrain.fit(tmp_path / "loop.yaml", [word for word in [typed] if word])


def test_a_function_of_a_notebooks_cell_is_refused_with_the_way_out(tmp_path):
    (tmp_path / "loop.yaml").write_text("trainer: {type: torch, train_loop: '__main__:train'}\n")
    with pytest.raises(ConfigError, match="workers must import") as caught:
        rtrain.fit(str(tmp_path / "loop.yaml"), ["num_workers=0"])
    assert "trainer.train_loop=my_module:train" in caught.value.hint


def test_a_sweep_from_python_may_vary_keys_that_the_config_lacks(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pyproject.toml").write_text("")
    (tmp_path / "loop_functions.py").write_text(FUNCTIONS)
    (tmp_path / "loop.yaml").write_text("trainer: {type: torch, train_loop: 'loop_functions:scaled'}\nnum_workers: 0\n")
    key = "trainer.train_loop_config"
    for varied in ({f"{key}.value": rtrain.choice(1, 2)}, {key: rtrain.choice({"value": 1}, {"value": 2})}):
        found = rtrain.sweep("loop.yaml", {**varied, "sweep.metric": "value", "sweep.mode": "max"})
        assert sorted(one.run.metrics["value"] for one in found.trials) == [1, 2]
