"""Each page of the docs can be followed: its files, code and commands work, in their order."""

from __future__ import annotations

import shutil
import tomllib
from pathlib import Path

import pytest
from assumed_by_docs import ASSUMED, NOT_RUN, Assumed, write_files
from blocks_of_docs import BLOCKS, PAGES, ROOT
from following_docs import Follower, write

from rtrain import plugins
from rtrain.datasets import registry as datasets
from rtrain.loggers.registry import LOGGERS
from rtrain.schedulers.registry import SCHEDULERS
from rtrain.searches.registry import SEARCHES
from rtrain.trainers import registry as trainers

HERE = Path(__file__).parent


@pytest.fixture
def project(page, tmp_path, monkeypatch):
    """A project with what a page assumes, as the current folder."""
    monkeypatch.chdir(tmp_path)
    write("pyproject.toml", "")
    own = HERE / "projects" / Path(page).stem
    for folder in (HERE / "project", *([own] if own.is_dir() else [])):
        shutil.copytree(folder, ".", dirs_exist_ok=True)
    shutil.copytree(ROOT / "configs", "configs")
    Path("docs").symlink_to(ROOT / "docs")
    if page.startswith("recipes/"):
        Path("recipes").symlink_to(ROOT / "recipes")
    else:
        shutil.copytree(ROOT / "recipes" / "tabular-xgboost", "recipes/tabular-xgboost")
    write_files()


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """Packages of examples are installed, as their pyproject.toml says, until the test is over."""
    about = tmp_path / "installed" / "examples-1.0.dist-info"
    lines = []
    for example in (ROOT / "docs" / "examples").glob("*/pyproject.toml"):
        monkeypatch.syspath_prepend(example.parent)
        for group, points in tomllib.loads(example.read_text())["project"]["entry-points"].items():
            lines += [f"[{group}]", *(f"{name} = {module}" for name, module in points.items())]
    write(about / "entry_points.txt", "\n".join(lines))
    monkeypatch.syspath_prepend(about.parent)
    forget_plugins()
    yield
    monkeypatch.undo()
    forget_plugins()


def forget_plugins():
    for kept in (plugins._entry_points, trainers.packages, datasets.modules):
        kept.cache_clear()
    for kind in (LOGGERS, SCHEDULERS, SEARCHES):
        vars(kind).pop("modules", None)


@pytest.mark.usefixtures("project", "installed")
@pytest.mark.parametrize("page", [page for page in PAGES if BLOCKS[page]])
def test_a_page_can_be_followed(page):
    assumed = ASSUMED.get(page, Assumed())
    follower = Follower(page, assumed)
    due = [block for block in BLOCKS[page] if block.name not in NOT_RUN.get(page, {})]
    wrong = [found for block in due if (found := follower.follow(block))]
    assert not wrong, "\n".join(wrong)
