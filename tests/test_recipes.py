"""The recipes: each is complete, finds its way from anywhere, and trains."""

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from xml.etree import ElementTree

import pytest
import yaml

from rtrain.cli.app import run
from rtrain.config.session import Session
from rtrain.recipes import find_recipe, recipes
from rtrain.schemas import schemas
from rtrain.trainers import registry
from rtrain.trainers.torch.config import STRATEGIES

RTRAIN = Path(sys.executable).with_name("rtrain")
RECIPES = {recipe.name: recipe for recipe in recipes()}
SECTIONS = ("expected", "time", "hardware")
"""What the README of a recipe tells."""


def chosen(recipe):
    with Session(str(recipe.path), (), schemas()) as session:
        return session.check()


@pytest.mark.parametrize("name", RECIPES)
def test_a_recipe_says_what_it_shows_and_what_to_expect(name):
    recipe = RECIPES[name]
    assert recipe.readme.startswith("# ")
    assert recipe.summary.endswith(".")
    assert len(recipe.summary) <= 160
    text = recipe.readme.lower()
    assert all(section in text for section in SECTIONS)
    assert f"rtrain fit recipes/{name}" in recipe.readme or f"rtrain recipes cp {name}" in recipe.readme


def smoke_block(name):
    return yaml.safe_load(RECIPES[name].config)["smoke"]


@pytest.mark.parametrize("name", RECIPES)
def test_a_smoke_block_has_bounds(name):
    block = smoke_block(name)
    assert any(word.startswith("num_workers=") for word in block["overrides"])
    assert block["expect"]


@pytest.mark.parametrize("name", RECIPES)
def test_a_copy_of_a_recipe_is_a_project_of_its_own(name, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert run(["recipes", "cp", name, "mine"]) == 0
    assert capsys.readouterr().out.endswith("next    rtrain fit mine\n")
    monkeypatch.setattr(sys, "path", list(sys.path))
    with Session("mine", (), schemas()) as session:
        composed = session.check()
    assert composed.conf.run.name == "mine"
    assert composed.project_root == tmp_path / "mine"


def test_every_trainer_and_every_strategy_has_a_recipe():
    found = [chosen(recipe).conf.trainer for recipe in RECIPES.values()]
    used = {type(conf).__module__.split(".")[-2] for conf in found}
    assert used == {name for name, package in registry.packages().items() if package.startswith("rtrain.")}
    assert {getattr(conf, "strategy", "none") for conf in found} - {"none"} == set(STRATEGIES)


def smoked(*, on_workers):
    """The recipes whose smoke blocks want workers of Ray, or those of which none does."""
    return [name for name in RECIPES if on_workers != ("num_workers=0" in smoke_block(name)["overrides"])]


def smoke_words(names):
    folders = [str(RECIPES[name].path) for name in names]
    return ["smoke", *folders, "--junit", "smoke.xml", "--max-seconds", "400"]  # a busy machine is no miss


def assert_tried(names, junit):
    cases = {case.get("name"): case for case in ElementTree.parse(junit).iter("testcase")}
    assert set(cases) == set(names)
    skipped = {name for name, case in cases.items() if case.find("skipped") is not None}
    by_hand = set() if find_spec("deepspeed") else {"char-gpt-deepspeed"}
    assert skipped == by_hand & set(names), "only DeepSpeed is built by hand"


@pytest.mark.timeout(1200)
def test_recipes_of_one_process_pass_their_smoke_blocks(tmp_path, monkeypatch, capsys):
    """In the process of the tests: most of the time would go by importing what other tests import there, too."""
    monkeypatch.chdir(tmp_path)
    names = smoked(on_workers=False)
    assert run(smoke_words(names)) == 0, capsys.readouterr().out
    assert_tried(names, tmp_path / "smoke.xml")


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_recipes_of_several_workers_pass_their_smoke_blocks(tmp_path):
    names = smoked(on_workers=True)
    done = subprocess.run([RTRAIN, *smoke_words(names)], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert_tried(names, tmp_path / "smoke.xml")


def test_recipes_are_listed_and_shown(capsys):
    assert run(["recipes", "ls"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == sorted(RECIPES)
    name = sorted(RECIPES)[0]
    assert run(["recipes", "show", name]) == 0
    out = capsys.readouterr().out
    assert RECIPES[name].readme in out
    assert RECIPES[name].config in out


def test_a_recipe_that_is_not_there_is_told_with_the_nearest_one(capsys):
    name = sorted(RECIPES)[0]
    assert run(["recipes", "show", name[:-1]]) == 2
    assert f"did you mean: {name}" in capsys.readouterr().err


def test_a_copy_never_overwrites(tmp_path, capsys):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("precious")
    name = find_recipe(sorted(RECIPES)[0]).name
    assert run(["recipes", "cp", name, str(tmp_path / "mine")]) == 2
    assert "already exists" in capsys.readouterr().err
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["notes.txt"]
