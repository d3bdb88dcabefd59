"""A config may have any name that a file or a folder may have: its runs get a valid one."""

from __future__ import annotations

import re

import pytest
from small_project import SCHEMAS, write

from rtrain.config.files.locations import find_primary
from rtrain.config.session import Session
from rtrain.config.value_types.names import MAX_NAME, NAME

STRANGE = {
    "my houses": "my-houses",
    "Häuser 2024": "Hauser-2024",
    "Ha\u0308user": "Hauser",
    "Straße": "Strasse",
    "Ærø": "AEro",
    "houses (1)": "houses-1",
    "-dash": "dash",
    ".hidden": "hidden",
    "a=[b],$c": "a-b-c",
    "${oc.env:HOME}": "oc.env-HOME",
    "%s {0}": "s-0",
    'it\'s "it"': "it-s-it",
    "a\\b\nc": "a-b-c",
    "日本": "config",
    "дом 2": "2",
    "---": "config",
    "x" * 200: "x" * MAX_NAME,
}
VALID = ("a", "My_run-2.1", "0", "a-", "a._-", "null", "1e5", "x" * MAX_NAME)


@pytest.mark.parametrize(("name", "expected"), [*STRANGE.items(), *zip(VALID, VALID, strict=True)])
@pytest.mark.parametrize("place", ["configs/{}.yaml", "configs/{}/config.yaml"])
def test_runs_are_named_after_any_file_and_any_folder(project, place, name, expected):
    assert re.fullmatch(NAME, expected)
    path = place.format(name)
    write(path, (project / "configs/digits.yaml").read_text())
    with Session(path, [], SCHEMAS) as session:
        composed = session.check()
    assert composed.conf.run.name == expected
    assert composed.run_dir.parent == project / "runs" / expected


def test_a_sweep_of_a_strangely_named_config_has_a_folder(project):
    write("configs/ein Häuschen.yaml", (project / "configs/digits.yaml").read_text())
    with Session("ein Häuschen", ["seed=1,2"], SCHEMAS) as session:
        assert session.trials().folder.name.startswith("ein-Hauschen-sweep-")


def test_a_config_with_a_strange_name_is_found_in_configs_by_its_name(project):
    write("configs/my houses.yaml", "{}")
    assert find_primary("my houses").job_name == "my-houses"
