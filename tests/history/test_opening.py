"""Runs and sweeps in a store are looked at as those in folders are."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from made_runs import NOON, make_run, make_sweep

from rtrain.cli.app import run
from rtrain.history.opening import opened, watched
from rtrain.history.running.watching import watch
from rtrain.runs.events import Event, event_line
from rtrain.storage.events_copy import EventsCopy
from rtrain.storage.folders import open_folder
from rtrain.storage.run_copy import SMALL_FILES
from rtrain.storage.small_files import SmallFiles


@pytest.fixture
def store(tmp_path):
    return tmp_path / "elsewhere" / "store"


@pytest.fixture
def runs(store, project, monkeypatch):
    """Runs of each kind, which the store has as well, by folder below both."""
    monkeypatch.setenv("COLUMNS", "120")
    error = {"type": "ZeroDivisionError", "message": "division by zero"}
    for root in (project / "runs", store):
        folders = [
            make_run(root, "mlp", "0a1b", config={"run": {"tags": ["paper"]}}),
            make_run(root, "mlp", "0a1c", minutes=5, losses=(0.3,), status="failed", error=error),
            make_run(root, "mlp", "0a1d", minutes=9, losses=(), status="interrupted"),
            make_sweep(root),
        ]
        for folder in folders[:2]:
            (folder / "logs").mkdir()
            (folder / "logs" / "driver.log").write_text(f"log of {folder.name}\n")
        (folders[0] / "labels.json").write_text('{"tags": ["seen"], "removed": [], "note": "good"}')
    return [folder.relative_to(store) for folder in folders]


def said(capsys, *words):
    code = run(["runs", *words])
    return code, capsys.readouterr().out


def spaced(text):
    return re.sub(r"\s+", " ", text)


@pytest.mark.parametrize("place", range(4))
def test_what_is_shown_of_a_copy_is_what_is_shown_of_the_run(place, runs, store, capsys):
    url, folder = f"file://{store / runs[place]}", f"runs/{runs[place]}"
    code, shown = said(capsys, "show", url)
    of_run = spaced(said(capsys, "show", folder)[1]).partition(" next ")[0].replace(folder, url)
    assert (code, spaced(shown).partition(" next ")[0].strip()) == (0, of_run.strip())


@pytest.mark.parametrize(("place", "command"), [(0, "runs fetch"), (1, "resume"), (2, "resume")])
def test_the_next_command_takes_the_url(place, command, runs, store, capsys):
    url = f"file://{store / runs[place]}"
    assert f"next rtrain {command} {url} " in spaced(said(capsys, "show", url)[1])


def test_copies_are_compared_with_runs_and_with_each_other(runs, store, capsys):
    here, there = f"runs/{runs[0]}", [f"file://{store / one}" for one in runs[:2]]
    by_folders = spaced(said(capsys, "compare", here, f"runs/{runs[1]}")[1])
    for words in ((here, there[1]), there):
        code, compared = said(capsys, "compare", *words)
        assert code == 0
        assert spaced(compared).replace(f"file://{store}", "runs") == by_folders
    assert said(capsys, "compare", there[0], there[0])[0] == 2


@pytest.mark.parametrize("more", [(), ("-n", "1"), ("-f",)])
def test_the_log_of_a_copy_is_printed(more, runs, store, capsys):
    assert said(capsys, "logs", f"file://{store / runs[0]}", *more) == (0, f"log of {runs[0].name}\n")


@pytest.mark.parametrize("verb", ["logs", "reproduce"])
def test_of_a_sweep_in_a_store_a_trial_is_named(verb, runs, store, capsys):
    assert run(["runs", verb, f"file://{store / runs[3]}"]) == 2
    assert "each of its trials is a run" in capsys.readouterr().err


@pytest.mark.parametrize("verb", ["show", "logs", "attach", "reproduce"])
def test_a_url_without_a_run_is_an_error_that_names_it(verb, runs, store, capsys):
    assert run(["runs", verb, f"file://{store}/mlp/none"]) == 2
    assert f"file://{store}/mlp/none does not exist" in capsys.readouterr().err


def test_a_copy_without_a_log_says_so_by_its_url(runs, store, capsys):
    url = f"file://{store / runs[2]}"
    assert run(["runs", "logs", url]) == 2
    assert f"{url}/logs has no driver.log" in capsys.readouterr().err


def test_nothing_of_a_copy_stays_here(runs, store, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    with opened(f"file://{store / runs[0]}") as row:
        assert (row.path / "manifest.json").is_file()
        assert row.get("tags") == ["paper", "seen"]
    assert list((tmp_path / "temporary").iterdir()) == []


class Growing:
    """A run that another machine trains: each wait is followed by its next copy."""

    def __init__(self, source, store):
        self.path, self.store = source, store
        folder = open_folder(f"file://{store}")
        self.events, self.small = EventsCopy(folder, source / "events.jsonl"), SmallFiles(source, folder, SMALL_FILES)
        self.left = [20, 30, None, 40]
        self.send(datetime.now(UTC))

    def send(self, copied_at, **over):
        self.small.update()
        self.events.update()
        manifest = json.loads((self.path / "manifest.json").read_text())
        manifest["storage"] = {"url": "", "complete": bool(over), "copied_at": copied_at.isoformat()}
        (self.store / "manifest.json").write_text(json.dumps({**manifest, **over}))

    def wait(self, seconds):
        if self.left:
            if (step := self.left.pop(0)) is not None:
                line = Event(step=step, epoch=step, time=f"{NOON.isoformat()}{step}", metrics={"val/loss": 1.0})
                with (self.path / "events.jsonl").open("a") as file:
                    file.write(event_line(line))
            self.send(datetime.now(UTC))
        else:
            self.events.join()
            self.send(datetime.now(UTC), status="succeeded")


class Watcher(list):
    def started(self, run_dir, manifest):
        self.append("started")

    def event(self, event):
        self.append(event.step)

    def ended(self, run_dir, manifest):
        self.append(manifest.status)


@pytest.fixture
def growing(store, tmp_path, monkeypatch):
    monkeypatch.setattr("rtrain.storage.events_copy.PART_BYTES", 100)  # each line or two become a part
    source = make_run(tmp_path / "source", losses=(0.5,), status="running", resources={"num_workers": 0})
    store.mkdir(parents=True)
    return Growing(source, store)


def test_a_run_of_another_machine_is_watched_until_it_is_over(growing, store):
    watcher = Watcher()
    with watched(f"file://{store}") as found:
        assert watch(found, watcher, growing.wait)
    assert watcher == ["started", 10, 20, 30, 40, "succeeded"]


def test_parts_that_are_joined_while_they_are_read_lose_nothing(growing, store, monkeypatch):
    watcher = Watcher()
    with watched(f"file://{store}") as found:
        sizes = found._stored.sizes

        def sizes_before_the_join():
            listed = sizes()
            if not growing.left:
                growing.events.join()
            return listed

        monkeypatch.setattr(found._stored, "sizes", sizes_before_the_join)
        assert watch(found, watcher, growing.wait)
    assert watcher == ["started", 10, 20, 30, 40, "succeeded"]


def test_a_run_that_falls_silent_is_no_longer_watched(growing, store, capsys):
    growing.send(datetime.now(UTC) - timedelta(minutes=9))
    assert run(["runs", "attach", f"file://{store}"]) == 1
    assert "ended without an error message after step 10" in capsys.readouterr().err


def exported(capsys, *words):
    code, told = said(capsys, "export", *words, "-o", "events.csv", "--force")
    assert code == 0, told
    return told, Path("events.csv").read_text()


@pytest.mark.parametrize("place", range(4))
def test_the_events_of_a_copy_are_exported_as_those_of_the_run(place, runs, store, project, capsys):
    there, here = (exported(capsys, name) for name in (f"file://{store / runs[place]}/", f"runs/{runs[place]}"))
    assert there == (here[0], here[1].replace(str(project / "runs"), f"file://{store}"))


def test_what_is_exported_of_copies_can_be_chosen(runs, store, capsys):
    urls = [f"file://{store / one}" for one in (runs[3], runs[0])]
    told, table = exported(capsys, *urls, "-w", "lr == 0.01 or paper in tags")
    assert told == "5 events of 2 runs -> events.csv\n"
    assert {line.split(",")[0] for line in table.splitlines()[1:]} == {"330826/1", "0a1b"}


def test_a_run_of_a_store_is_no_sweep(runs, store, capsys):
    url = f"file://{store / runs[0]}"
    assert run(["sweep", "show", url]) == 2
    assert f"{url} is not a sweep" in capsys.readouterr().err
