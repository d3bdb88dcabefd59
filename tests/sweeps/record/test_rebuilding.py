"""A sweep whose ``sweep.json`` is damaged, or of an older rtrain, goes on with the trials that are there."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tiny_sweeps import CONFIG, TINY, swept

from rtrain.cli.app import run as rtrain
from rtrain.sweeps.record.sweep_record import read_sweep

GRID = [*TINY, "trainer.params.eta=0.1,0.2,0.3", "trainer.num_boost_round=2"]
ZIPPED = [*TINY, "trainer.num_boost_round=2", "sweep.zip={trainer.params.eta:[0.1,0.2],run.seed:[1,2]}"]
SEARCHED = [
    *TINY,
    *("sweep=optuna", "sweep.num_trials=3", "trainer.params.eta=interval(0.1,0.5)", "trainer.num_boost_round=2"),
]


def results(folder):
    """What must be the same."""
    keys = ("number", "point", "name", "status", "values", "overrides", "step", "config_hash")
    return [{key: one[key] for key in keys} for one in read_sweep(folder)["trials"]]


def written(folder):
    """When each trial's newest checkpoint was written."""
    return {path: path.stat().st_mtime_ns for path in sorted(folder.glob("[0-9]*/checkpoints/*/checkpoint.json"))}


def half(text):
    return text[: len(text) // 2]


@pytest.mark.parametrize("harm", [half, lambda _: "", lambda _: "[1]", lambda text: text.replace('"trials"', '"t"')])
def test_no_trial_is_trained_again(tiny, capsys, harm):
    _, folder = swept(GRID)
    before, files = results(folder), written(folder)
    path = folder / "sweep.json"
    path.write_text(harm(path.read_text()))
    assert rtrain(["sweep", "show", str(folder)]) == 2
    assert f"rtrain resume {folder}" in capsys.readouterr().err
    assert rtrain(["resume", str(folder)]) == 0
    assert "rebuilt from the runs of 3 trials" in capsys.readouterr().err
    assert results(folder) == before
    assert written(folder) == files
    assert (folder / ".damaged-sweep.json").exists()


@pytest.mark.parametrize("words", [ZIPPED, SEARCHED], ids=["zip", "optuna"])
def test_trials_of_each_search_are_found_by_what_they_try(tiny, words):
    _, folder = swept(words)
    before, files = results(folder), written(folder)
    (folder / "sweep.json").write_text("{")
    assert rtrain(words) == 0
    assert results(folder) == before
    assert written(folder) == files


def test_what_lacks_is_trained_and_only_that(tiny):
    _, folder = swept(GRID)
    before, files = results(folder), written(folder)
    gone = folder / before[1]["name"]
    gone.rename(tiny / "gone")
    (folder / "sweep.json").write_text("{")
    assert rtrain(GRID) == 0
    assert results(folder) == before
    after = written(folder)
    assert {path for path in files if after[path] != files[path]} == {path for path in files if gone in path.parents}


def test_a_damaged_sweep_of_another_config_is_refused(tiny, capsys):
    _, folder = swept(GRID)
    (folder / "sweep.json").write_text("{")
    Path("tiny.yaml").write_text(CONFIG.replace("name: tiny", "name: tiny, seed: 3"))
    assert rtrain(GRID) == 2
    assert "another config" in capsys.readouterr().err
    assert (folder / "sweep.json").read_text() == "{"


def of_an_older_rtrain(folder, *keys):
    """Write the sweep as if the keys had not existed: neither in the configs of its runs, nor in their hashes."""
    import hashlib

    hashes = {}
    for path in folder.glob("[0-9]*/manifest.json"):  # and not by the link ``best``
        manifest = json.loads(path.read_text())
        for key in keys:
            *outer, last = key.split(".")
            part = manifest["config"]
            for name in outer:
                part = part[name]
            del part[last]
        run = {key: value for key, value in manifest["config"]["run"].items() if key != "resume_data"}
        hashed = json.dumps({**manifest["config"], "run": {**run, "resume": None}}, sort_keys=True)
        hashes[path.parent.name] = manifest["config_hash"] = hashlib.sha256(hashed.encode()).hexdigest()
        path.write_text(json.dumps(manifest))
    record = json.loads((folder / "sweep.json").read_text())
    for trial in record["trials"]:
        trial["config_hash"] = hashes[trial["name"]]
    (folder / "sweep.json").write_text(json.dumps(record))


@pytest.mark.parametrize(
    "keys",
    [["run.private"], ["run.storage"], ["run.failure.nan_loss", "trainer.num_threads"], ["vars"], ["cluster"]],
    ids=str,
)
def test_a_sweep_that_began_before_there_was_a_key_goes_on(tiny, keys):
    words = [word for word in GRID if not word.startswith("trainer.num_threads")]
    _, folder = swept(words)
    now, files = results(folder), written(folder)
    of_an_older_rtrain(folder, *keys)
    assert results(folder) != now
    more = [word.replace("0.1,0.2,0.3", "0.1,0.2,0.3,0.4") for word in words]
    assert rtrain(more) == 0
    assert results(folder)[:3] == now
    assert {path: time for path, time in written(folder).items() if path in files} == files
    assert len(results(folder)) == 4


def test_a_new_key_that_says_something_else_than_its_default_is_a_change(tiny, capsys):
    words = [word for word in GRID if not word.startswith("trainer.num_threads")]
    _, folder = swept(words)
    of_an_older_rtrain(folder, "trainer.num_threads")
    Path("tiny.yaml").write_text(CONFIG + "trainer: {num_threads: 1}\n")
    assert rtrain(words) == 2
    assert "another config" in capsys.readouterr().err
