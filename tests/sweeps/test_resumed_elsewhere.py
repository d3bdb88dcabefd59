"""A sweep is resumed from any folder, and stays where it is."""

import json
from pathlib import Path

import pytest
import yaml
from tiny_sweeps import TINY, swept

from rtrain.cli.app import run as rtrain
from rtrain.runs.manifest import read_manifest
from rtrain.sweeps.record.sweep_record import read_sweep

WORDS = [*TINY, "trainer.params.eta=0.1,0.2", "trainer.num_boost_round=2"]


def test_a_sweep_is_resumed_from_another_folder(tiny, tmp_path_factory, monkeypatch, capsys):
    data, folder = swept(WORDS)
    data["trials"][0]["status"] = "failed"
    (folder / "sweep.json").write_text(json.dumps(data))
    folder, elsewhere = folder.absolute(), tmp_path_factory.mktemp("elsewhere")
    monkeypatch.chdir(elsewhere)
    capsys.readouterr()
    assert rtrain(["resume", str(folder), "trainer.params.eta=0.1,0.2,0.3"]) == 0
    said = capsys.readouterr()
    assert "root_dir" not in said.out + said.err
    assert not list(elsewhere.iterdir())
    trials = read_sweep(folder)["trials"]
    assert [one["status"] for one in trials] == ["succeeded"] * 3
    for trial in trials:
        manifest = read_manifest(folder / trial["name"])
        assert manifest.config["run"]["root_dir"] == "runs"
        assert all(not one["changed"] for one in manifest.resumes)
    assert yaml.safe_load((folder / "command.yaml").read_text())["project_root"] == str(tiny)


@pytest.mark.usefixtures("tiny")
@pytest.mark.parametrize("word", ["run.root_dir=elsewhere", "sweep.name=another", "hydra.sweep.dir=elsewhere/sweep"])
def test_a_sweep_that_is_resumed_stays_where_it_is(word, capsys):
    _, folder = swept(WORDS)
    capsys.readouterr()
    assert rtrain(["resume", str(folder), word]) == 2
    said = capsys.readouterr().err
    assert f"{word.partition('=')[0]} can't be changed: the sweep stays in {folder}." in said
    assert "Leave it out" in said
    assert [one.name for one in Path().iterdir() if one.is_dir()] == ["runs"]
    assert rtrain(["resume", str(folder), f"sweep.name={folder.name}"]) == 0
