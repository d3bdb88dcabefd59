"""A section's type that a file sets, while a defaults list has chosen another one: the error leads to that list."""

from __future__ import annotations

from pathlib import Path

import pytest

from rtrain.config.session import Session
from rtrain.datasets.registry import confs
from rtrain.errors import ConfigError
from rtrain.schemas import schemas
from rtrain.trainers.registry import packages

OTHERS = [("trainer", "torch", name) for name in sorted(packages()) if name != "torch"]
OTHERS += [("dataset", "digits", name) for name in sorted(confs()) if name != "digits"]
OWN = "- dataset: digits\n  - trainer: torch\n  - optimizer: sgd\n  - model: mlp"


@pytest.fixture
def refused(tmp_path, monkeypatch):
    """Return a function that writes a config and returns why it is refused."""
    monkeypatch.chdir(tmp_path)

    def refused(text):
        Path("over.yaml").write_text(text)
        with pytest.raises(ConfigError) as raised, Session("over.yaml", ["num_workers=0"], schemas()) as session:
            session.check()
        return f"{raised.value.message}\n{raised.value.hint}"

    return refused


@pytest.mark.parametrize(("listed", "override"), [("- mlp", "override "), (OWN, "")], ids=["inherited", "own"])
@pytest.mark.parametrize(("section", "chosen", "other"), OTHERS, ids=[name for _, _, name in OTHERS])
def test_the_line_of_the_type_and_the_entry_to_write_are_shown(refused, listed, override, section, chosen, other):
    said = refused(f"defaults:\n  {listed}\n{section}:\n  type: {other}\n")
    assert f"{section}.type is {other}, but the defaults list chooses '{section}: {chosen}'" in said
    assert "--> over.yaml:" in said
    assert f"|   type: {other}\n" in said
    assert said.endswith(f"in the defaults list, - {override}{section}: {other}, and remove the type")


@pytest.mark.parametrize(
    "text", ["dataset: 3", "dataset: [1]", "trainer: torch", "dataset: {type: {}}", "trainer: {a: 1}"]
)
def test_other_mistakes_in_a_section_are_not_taken_for_types(refused, text):
    assert "the defaults list chooses" not in refused(f"defaults: [mlp]\n{text}\n")
