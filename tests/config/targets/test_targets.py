"""Importing, checking and building what a ``_target_`` names."""

from __future__ import annotations

import subprocess
import sys
from functools import partial

import pytest
from small_project import write

from rtrain.config.targets.allow_list import use_project_root
from rtrain.config.targets.builder import Builder
from rtrain.errors import ConfigError

ALLOW = ("own_parts.*", "fractions")
PARTS = """\
import functools, os, subprocess
from subprocess import run

class Net:
    def __init__(self, width, depth=2, *, inner=None):
        self.width, self.depth, self.inner = width, depth, inner

def make(*args, **kwargs):
    return args, kwargs

def refuse(width):
    raise ValueError("too wide")

half = functools.partial(Net, 4)
runner = functools.partial(run, "ls")
"""


@pytest.fixture
def parts(project):
    write("own_parts.py", PARTS)
    use_project_root(project)


def error_of(function, *args, **kwargs):
    with pytest.raises(ConfigError) as caught:
        function(*args, **kwargs)
    return str(caught.value)


def test_project_modules_are_allowed_and_importable(parts):
    assert Builder().locate("own_parts.Net", "trainer.model._target_").__name__ == "Net"
    assert Builder().locate("own_parts:Net", "trainer.model._target_").__name__ == "Net"


def test_the_project_root_is_put_in_front_once(project):
    use_project_root(project)
    use_project_root(str(project))
    assert sys.path[0] == str(project)
    assert sys.path.count(str(project)) == 1


def test_an_installed_package_inside_the_project_is_not_the_projects(parts, project, monkeypatch):
    write(".venv/lib/site-packages/own_evil.py", "x = 1\n")
    monkeypatch.syspath_prepend(str(project / ".venv/lib/site-packages"))
    assert "is not allowed" in error_of(Builder().locate, "own_evil.x", "a._target_")


@pytest.mark.parametrize("path", ["os.system", "subprocess.run", "builtins.eval", "shutil.rmtree", "pip.main"])
def test_other_modules_are_refused_before_they_are_imported(path, parts):
    assert f"trainer.model._target_: {path} is not allowed" in error_of(
        Builder().locate, path, "trainer.model._target_"
    )


@pytest.mark.parametrize("path", ["own_parts.os.system", "own_parts.run", "own_parts.subprocess", "own_parts.runner"])
def test_a_walk_through_an_allowed_module_is_refused(path, parts):
    assert "which is not allowed" in error_of(Builder().locate, path, "model._target_")


@pytest.mark.parametrize("path", ["", "Net", "own_parts.", ".Net", "own_parts.Net.__init__", "own_parts Net", "a-b.c"])
def test_what_is_no_dotted_path_is_refused(path, parts):
    assert "is not a dotted path" in error_of(Builder().locate, path, "model._target_")


def test_the_allow_list_allows(parts):
    assert Builder(ALLOW).locate("fractions.Fraction", "a._target_").__name__ == "Fraction"


def test_a_wrong_name_gets_a_suggestion(parts):
    text = error_of(Builder().locate, "own_parts.Nett", "trainer.model._target_")
    assert text == (
        "trainer.model._target_: own_parts.Nett does not exist: own_parts has no 'Nett'.\n  did you mean: own_parts.Net"
    )


@pytest.mark.parametrize(("path", "meant"), [("own_parts:Nett", "own_parts:Net"), ("own_parts:subproces", None)])
def test_a_function_is_suggested_as_it_is_written_and_no_import_of_its_module(parts, path, meant):
    text = error_of(Builder().locate, path, "trainer.train_loop")
    assert text.partition("did you mean: ")[2] == (meant or "")


def test_a_missing_module_is_named(parts):
    text = error_of(Builder(("own_nothing",)).locate, "own_nothing.Net", "a._target_")
    assert text.startswith("a._target_: there is no module 'own_nothing'.\n  put own_nothing.py into")


def test_an_import_error_inside_a_users_module_names_its_line(parts, project):
    write("own_broken.py", "import math\nimport not_installed_here\n")
    text = error_of(Builder().locate, "own_broken.Net", "model._target_")
    assert "importing own_broken failed: ModuleNotFoundError: No module named 'not_installed_here'" in text
    assert "  --> own_broken.py:2 in <module>\n  >    2 | import not_installed_here" in text


@pytest.mark.usefixtures("parts", "project")
def test_a_syntax_error_inside_a_users_module_shows_its_line():
    write("own_syntax.py", "x = 1\ndef f(:\n")
    text = error_of(Builder().locate, "own_syntax.f", "model._target_")
    assert "SyntaxError: invalid syntax" in text
    assert "--> own_syntax.py:2:7\n  >    2 | def f(:\n         |       ^" in text


def test_a_module_that_raises_names_its_line(parts, project):
    write("own_raises.py", "\n\nraise RuntimeError('no GPU here')\n")
    text = error_of(Builder().locate, "own_raises.f", "model._target_")
    assert "importing own_raises failed: RuntimeError: no GPU here" in text
    assert "  --> own_raises.py:3 in <module>\n  >    3 | raise RuntimeError" in text


def test_build_is_recursive():
    node = {"_target_": "own_parts.Net", "width": 3, "inner": [{"_target_": "own_parts.Net", "width": 1}, {"a": 1}]}
    net = _build(node)
    assert (net.width, net.inner[0].width, net.inner[1]) == (3, 1, {"a": 1})


@pytest.fixture(autouse=True)
def _use_parts(parts):
    return None


def _build(node, *args, **kwargs):
    return Builder().build(node, "trainer.model", *args, **kwargs)


def test_kwargs_win_and_arguments_come_first():
    assert _build({"_target_": "own_parts.make", "a": 1, "b": 2}, 7, b=3) == ((7,), {"a": 1, "b": 3})
    assert _build({"_target_": "own_parts.make", "_args_": [1, 2]}) == ((1, 2), {})
    assert _build({"_target_": "own_parts.make", "_args_": [1, 2]}, 9) == ((9,), {})


def test_partial_and_not_recursive():
    half = _build({"_target_": "own_parts.Net", "_partial_": True, "depth": 5})
    assert half(1).depth == 5
    node = {"_target_": "own_parts.make", "_recursive_": False, "a": {"_target_": "own_parts.Net"}, "_convert_": "all"}
    assert _build(node) == ((), {"a": {"_target_": "own_parts.Net"}})


def test_a_constructor_that_refuses_is_named():
    text = error_of(_build, {"_target_": "own_parts.refuse", "width": 3})
    assert text.startswith("trainer.model: own_parts.refuse failed: ValueError: too wide\n  --> ")


def test_build_agrees_with_hydra():
    from hydra.utils import instantiate

    node = {"_target_": "collections.OrderedDict", "a": {"_target_": "fractions.Fraction", "_args_": [1, 2]}, "b": [1]}
    assert Builder(("collections", "fractions")).build(node, "x") == instantiate(node)


def test_an_unknown_argument_gets_a_suggestion():
    text = error_of(Builder().check_node, {"_target_": "own_parts.Net", "widht": 1}, "trainer.model")
    assert text == "trainer.model.widht: own_parts.Net has no argument 'widht'\n  did you mean: width".replace(
        "'widht'\n", "'widht'.\n"
    )


def test_a_missing_argument_is_named_unless_it_is_provided():
    node = {"_target_": "own_parts.Net"}
    assert error_of(Builder().check_node, node, "m") == "m: own_parts.Net needs width.\n  try: +m.width=..."
    Builder().check_node(node, "m", provided=["width"])
    Builder().check_node(node, "m", num_args=1)
    Builder().check_node({**node, "_partial_": True}, "m")
    Builder().check_node({**node, "_args_": [1]}, "m")


def test_too_many_arguments():
    found = error_of(partial(Builder().check_node, num_args=3), {"_target_": "own_parts.Net"}, "m")
    assert "takes 2 positional arguments, not 3" in found


def test_nested_targets_are_checked_too():
    node = {"_target_": "own_parts.make", "a": [{"_target_": "own_parts.Net", "wide": 1}]}
    assert error_of(Builder().check_node, node, "m").startswith("m.a.0.wide: own_parts.Net has no argument 'wide'")


def test_names_are_checked_without_importing(project):
    write("own_loud.py", "raise SystemExit('imported')\n")
    Builder().check_names({"model": {"_target_": "own_loud.Net"}}, "trainer", [project])
    assert "own_loud" not in sys.modules


def test_a_misspelt_target_is_found_and_an_argument_called_target_is_none(project):
    node = {"model": {"_target_": "models.Net", "target": 1, "args": 2, "convert_": 3}}
    with pytest.raises(ConfigError, match="there is no key 'convert_' here"):
        Builder().check_names(node, "trainer", [project])
    del node["model"]["convert_"]
    Builder().check_names(node, "trainer", [project])


def test_targets_needs_no_hydra():
    heavy = "{'hydra', 'omegaconf', 'torch', 'pydantic'} & set(sys.modules)"
    code = f"import sys, rtrain.config.targets.builder; print({heavy})"
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "set()"
