"""A manifest that was damaged, in each of its parts: every command that reads it says so, or does without the part."""

import json
import shutil
from pathlib import Path

import pytest

import rtrain
from rtrain.cli.app import run as command

MISSING = object()
DAMAGES = (MISSING, None, [], "text")
READ = ("trainer", "dataset", "run", "scaling")
"""Sections of a config that commands read from the manifest."""
COMMANDS = {
    "resume": ["resume", "RUN", "trainer.num_boost_round=4"],
    "reproduce": ["runs", "reproduce", "RUN"],
    "evaluate": ["evaluate", "RUN"],
    "predict": ["predict", "RUN", "-o", "out.csv", "--force"],
    "show": ["runs", "show", "RUN"],
    "ls": ["runs", "ls"],
    "compare": ["runs", "compare", "RUN", "whole"],
}


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    root = tmp_path_factory.mktemp("whole")
    words = ["num_workers=0", "trainer.num_boost_round=2", "dataset=sklearn", f"run.root_dir={root}"]
    return rtrain.fit("xgboost", words).path


def damaged(manifest, path, damage):
    """Return a manifest without what is at a path, or with something else there."""
    found = json.loads(json.dumps(manifest))
    *outer, last = path
    inside = found
    for name in outer:
        inside = inside[name]
    if damage is MISSING:
        del inside[last]
    else:
        inside[last] = damage
    return found


def outcome(words, whole, manifest, capsys):
    """Return the exit code of a command for a copy of a run with this manifest, and what it says."""
    run = Path("runs/xgboost/2026-01-01_00-00-00-abcd")
    shutil.rmtree("runs", ignore_errors=True)
    shutil.copytree(whole, run)
    (run / "manifest.json").write_text(json.dumps(manifest))
    try:
        code = command([str(run) if word == "RUN" else word for word in words])
    except Exception as error:
        return 1, f"Traceback: {error!r}"
    return code, "".join(capsys.readouterr())


def of_sections(manifest):
    yield from (("config", name) for name in READ)
    yield from (("checkpoints", -1, name) for name in ("step", "epoch"))


def of_all(manifest):
    yield from ((name,) for name in manifest)
    yield from (("config", name) for name in manifest["config"])
    yield from (("checkpoints", -1, name) for name in manifest["checkpoints"][-1])


@pytest.mark.parametrize("name", list(COMMANDS))
@pytest.mark.parametrize("paths", [of_sections, pytest.param(of_all, marks=pytest.mark.slow)])
@pytest.mark.filterwarnings("ignore")
def test_no_damage_of_a_manifest_ends_in_a_traceback(name, paths, whole, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    shutil.copytree(whole, "whole")
    manifest = json.loads((whole / "manifest.json").read_text())
    assert outcome(COMMANDS[name], whole, manifest, capsys)[0] == 0
    changes = [(path, damage) for path in paths(manifest) for damage in DAMAGES]
    for path, damage in [*changes, (("config",), {}), (("config",), {"run": {}}), (("config", "trainer"), {})]:
        code, said = outcome(COMMANDS[name], whole, damaged(manifest, path, damage), capsys)
        assert "Traceback" not in said, (path, damage, said)
        assert code == 0 or said, (path, damage, said)


def test_the_error_names_the_manifest_the_key_and_a_command(whole, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    manifest = json.loads((whole / "manifest.json").read_text())
    for trainer, said in (({}, "config.trainer.type is missing"), ([], "config.trainer is not a mapping")):
        shutil.copytree(whole, "run", dirs_exist_ok=True)
        Path("run/manifest.json").write_text(json.dumps(damaged(manifest, ("config", "trainer"), trainer)))
        assert command(["resume", "run"]) > 0
        error = capsys.readouterr().err
        assert "run/manifest.json" in error
        assert said in error
        assert "rtrain fit run/config.yaml" in " ".join(error.split())
