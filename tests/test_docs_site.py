"""The docs as a site: ``make docs``."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import rtrain
from rtrain.config.reference.key_docs import key_docs
from rtrain.config.schema import RtrainConf
from rtrain.schemas import schemas

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The folder of the site; a warning, about a link that leads nowhere say, is an error."""
    folder = tmp_path_factory.mktemp("docs") / "site"
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, env={"NO_MKDOCS_2_WARNING": "1"})
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def test_every_page_is_built(site):
    pages = {page.relative_to(ROOT / "docs").with_suffix(".html") for page in (ROOT / "docs").rglob("*.md")}
    made = {Path(f"reference/{name}.html") for name in ("keys", "trainers", "datasets", "commands", "python")}
    built = {page.relative_to(site) for page in site.rglob("*.html")}
    assert built == pages | made | {Path("404.html")}


def test_the_reference_has_every_key_command_and_function(site):
    shown = {page.stem: page.read_text() for page in (site / "reference").glob("*.html")}
    for group, page in (("trainer", "trainers"), ("dataset", "datasets")):
        for conf in schemas().group(group).values():
            assert {key.name for key in key_docs(conf) if f"{group}.{key.name}<" not in shown[page]} == set()
    assert {key.name for key in key_docs(RtrainConf) if f"{key.name}<" not in shown["keys"]} == set()
    assert {name for name in ("rtrain fit", "rtrain runs compare") if f">{name}<" not in shown["commands"]} == set()
    assert {name for name in rtrain.__all__ if name[0] != "_" and f">rtrain.{name}<" not in shown["python"]} == set()


def test_a_page_loads_nothing_from_elsewhere(site):
    loaded = re.compile(r"<(?:script|link|img|iframe|source)\b[^>]*?\b(?:src|href)=[\"']?((?:https?:)?//[^\"'\s>]+)")
    for page in site.rglob("*.html"):
        assert not loaded.findall(page.read_text()), page.name
    for file in site.rglob("*.css"):
        assert not re.findall(r"url\([\"']?(?:https?:)?//[^)]+", file.read_text()), file.name


def test_the_search_needs_no_server(site):
    assert "var __index" in (site / "search" / "search_index.js").read_text()[:20]


def test_the_table_of_extras_has_them_all():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    page = (ROOT / "docs" / "install.md").read_text()
    rows = set(re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE))
    assert rows == {name for name, packages in extras.items() if packages}
    assert all(f"`{name}`" in page for name in extras)


@pytest.mark.parametrize("page", ["install.md", "contributing.md"])
def test_a_make_target_that_docs_name_is_there(page):
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert set(re.findall(r"make ([\w-]+)", (ROOT / "docs" / page).read_text())) <= targets


def test_a_file_of_the_code_that_docs_name_is_there():
    named = re.compile(r"(?<![\w/.-])((?:rtrain|tests)/[\w/]+\.(?:py|yaml))")
    for page in [*(ROOT / "docs").rglob("*.md"), ROOT / "README.md"]:
        assert {path for path in named.findall(page.read_text()) if not (ROOT / path).exists()} == set(), page.name


def test_a_name_that_docs_place_in_a_file_of_the_code_is_defined_there():
    placed = re.compile(r"`(\w+)`\s+in\s+`((?:rtrain|tests)/[\w/]+\.py)`")
    found = [pair for page in (ROOT / "docs").rglob("*.md") for pair in placed.findall(page.read_text())]
    assert len(found) > 2
    for name, path in found:
        defined = re.compile(rf"^\s*(?:(?:class|def) {name}\b|{name}(?:: [^=\n]+)? =)", re.MULTILINE)
        assert defined.search((ROOT / path).read_text()), f"{name} in {path}"


def test_the_messages_that_troubleshooting_lists_are_said():
    said = " ".join(file.read_text() for file in (ROOT / "rtrain").rglob("*.py"))
    said = re.sub(r"\"\s+f?\"", "", said)  # a message may take several lines
    messages = re.findall(r"^\| `([^`]+)` \|", (ROOT / "docs" / "troubleshooting.md").read_text(), re.MULTILINE)
    assert len(messages) > 5
    assert {message for message in messages if message.lower() not in said.lower()} == set()
