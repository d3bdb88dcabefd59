"""URLs at which no run is: a trial by its number, a folder of runs, what is inside of a run."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime

import pytest
from made_runs import make_run, make_sweep

from rtrain.cli.app import run
from rtrain.errors import ConfigError
from rtrain.storage.fetching import stored_run

VERBS = (["show"], ["path"], ["attach"], ["logs"], ["tag"], ["export", "-o", "events.csv"])


@pytest.fixture
def store(tmp_path):
    store = tmp_path / "store"
    folder = make_run(store, "mlp", "0a1b")
    (folder / "checkpoints" / "one").mkdir(parents=True, exist_ok=True)
    (folder / "checkpoints" / "one" / "model.pt").write_text("")
    make_sweep(store, "resnet", "330826")
    return store


def test_a_trial_is_named_by_its_number(store):
    sweep = f"file://{store}/resnet-sweep-330826"
    assert stored_run(f"{sweep}/1").run_id == "001-4d4a7ab1"
    assert stored_run(f"{sweep}/0/").run_id == "000-4d4a7ab0"
    with pytest.raises(ConfigError, match=f"{re.escape(sweep)}/7 is inside a run or sweep"):
        stored_run(f"{sweep}/7")


@pytest.mark.parametrize("verb", VERBS, ids=lambda words: words[0])
@pytest.mark.parametrize("place", ["", "/", "/mlp"])
def test_a_folder_of_runs_is_listed(place, verb, store, capsys):
    word, *rest = verb
    assert run(["runs", word, f"file://{store}{place}", *rest]) == 2
    assert f"is not a run.\n  try: rtrain runs ls file://{store}{place.rstrip('/')}" in capsys.readouterr().err.replace(
        "\ntry", "\n  try"
    )


@pytest.mark.parametrize("verb", VERBS, ids=lambda words: words[0])
@pytest.mark.parametrize("inside", ["manifest.json", "checkpoints", "checkpoints/one", "checkpoints/one/model.pt"])
def test_what_is_inside_of_a_run_names_it(inside, verb, store, capsys):
    word, *rest = verb
    (home,) = (store / "mlp").iterdir()
    assert run(["runs", word, f"file://{home}/{inside}", *rest]) == 2
    assert f"did you mean: file://{home}\n" in capsys.readouterr().err


def test_where_nothing_is_the_url_is_named(store, capsys):
    assert run(["runs", "show", f"file://{store}/mlp/none"]) == 2
    assert "does not exist" in capsys.readouterr().err
    run(["runs", "ls", f"file://{store}/nosuch"])
    assert f"no runs below file://{store}/nosuch." in capsys.readouterr().err


@pytest.mark.parametrize("verb", ["tag", "note"])
def test_a_copy_that_is_in_use_is_not_labelled(verb, store, capsys):
    now = datetime.now(UTC).isoformat()
    home = make_run(store, "mlp", "0a1c", status="running", storage={"complete": False, "copied_at": now})
    assert run(["runs", verb, f"file://{home}", "good"]) == 2
    assert "Label the run directory, or the copy when the run has ended." in capsys.readouterr().err
    assert not (home / "labels.json").exists()


@pytest.mark.parametrize(("copied_at", "status"), [("2026-11-01T12:00:00+00:00", "killed"), (None, "running")])
def test_a_copy_that_is_no_longer_written_is_that_of_a_killed_run(copied_at, status, store, capsys):
    copied_at = copied_at or datetime.now(UTC).isoformat()
    make_run(store, "net", "0a1d", status="running", storage={"complete": False, "copied_at": copied_at})
    assert run(["runs", "ls", f"file://{store}/net", "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert row["status"] == status
