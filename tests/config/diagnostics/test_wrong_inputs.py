"""Every wrong input is refused with one screen that says what, where and how to go on; nothing is written."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from small_project import SCHEMAS, refused
from wrong import CASES, HEAD, write

from rtrain.config.session import Session
from rtrain.errors import ConfigError

GOLDEN = Path(__file__).parents[2] / "golden" / "config"
MOST_LINES = 24
MOST_COLUMNS = 160


def tree(root: Path) -> set[Path]:
    return {path for path in root.rglob("*") if "__pycache__" not in path.parts}


def screen(words: tuple[str, ...]) -> str:
    if "--package" not in words:
        return refused(*words)
    with pytest.raises(ConfigError) as caught, Session(words[0], (), SCHEMAS) as session:
        session.show_cfg("job", words[2])
    return str(caught.value)


@pytest.mark.parametrize("name", CASES)
def test_a_wrong_input_is_explained_on_one_screen(name, project):
    case = CASES[name]
    case.prepare()
    before = tree(project)
    text = f"error: {screen(case.words)}\n".replace(str(project), "PROJECT")
    golden = GOLDEN / f"{name}.txt"
    if os.environ.get("RTRAIN_UPDATE_GOLDEN"):
        golden.parent.mkdir(parents=True, exist_ok=True)
        golden.write_text(text)
    assert text == golden.read_text()
    assert len(text.splitlines()) <= MOST_LINES
    assert max(map(len, text.splitlines())) <= MOST_COLUMNS
    assert tree(project) == before


def test_each_golden_file_belongs_to_a_case():
    assert {path.stem for path in GOLDEN.glob("*.txt")} == set(CASES)


def test_an_unreadable_file_is_named(project, monkeypatch):
    path = write("configs/secret.yaml", HEAD)
    # Taking the right away would not do: root may read everything.
    monkeypatch.setattr("rtrain.config.files.locations.os.access", lambda path, mode: False)
    assert refused(path) == f"{path} can't be read: permission denied.\n  try: chmod +r {path}"


@pytest.mark.parametrize("name", CASES)
def test_no_jargon(name):
    text = (GOLDEN / f"{name}.txt").read_text()
    for word in (
        "full_key",
        "object_type",
        "reference_type",
        "DictConfig",
        "ListConfig",
        "OmegaConf",
        "pydantic",
        "Traceback",
    ):
        assert word not in text
