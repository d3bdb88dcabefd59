"""A run directory in which links, pipes or devices stand for files is refused by name, before anything is written."""

from __future__ import annotations

import json
import shutil
from contextlib import suppress
from pathlib import Path

import pytest
from strange import KINDS, guarded, put_strange

from rtrain.cli.app import run as command
from rtrain.config.files.yaml_file import read_yaml
from rtrain.errors import CheckpointError, ConfigError, RtrainError, StrangeFileError
from rtrain.runs.checkpoints import checkpoint_dir, read_record, write_checkpoint
from rtrain.runs.events import Event, read_events
from rtrain.runs.filesystem.lock import is_locked, locked
from rtrain.runs.filesystem.plain_files import (
    MAX_DEPTH,
    check_run_dir,
    is_plain_name,
    open_inside,
    parse_json,
    read_json,
)
from rtrain.runs.observer import SilentObserver
from rtrain.runs.recorder import Recorder
from rtrain.runs.records import LogRecord
from rtrain.runs.run import Run
from rtrain.runs.verify import verify_run
from rtrain.sweeps.record.folder import opened
from rtrain.testing.workers import make_manifest

FILES = (
    *(".lock", "manifest.json", "config.yaml", "events.jsonl", ".hydra", ".hydra/config.yaml", "logs"),
    *("logs/worker-0.log", "checkpoints", "checkpoints/epoch-0000-step-00000001"),
)
SAFE = [("logs/worker-0.log", "folder"), ("checkpoints/epoch-0000-step-00000001", "folder")]


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run directory beside a folder that is none of its business."""
    (tmp_path / "victim").mkdir()
    (tmp_path / "victim" / "secret.txt").write_text("three years\n{")
    folder = tmp_path / "run"
    facts = {"step": 1, "epoch": 0, "metrics": {}, "score": None}
    target = checkpoint_dir(folder, step=1, epoch=0)
    record = write_checkpoint(target, lambda path: (path / "weights").write_text("1") and None, facts)
    Recorder(folder, make_manifest(run_id="run", checkpoints=[record]), SilentObserver(), config="a: 1\n").close()
    (folder / ".hydra").mkdir()
    (folder / ".hydra" / "config.yaml").write_text("a: 1\n")
    (folder / "logs" / "worker-0.log").write_text("a line\n")
    with locked(folder):
        pass
    return folder


def is_unharmed(run: Path) -> bool:
    victim = run.parent / "victim"
    return (victim / "secret.txt").read_text() == "three years\n{" and len(list(victim.iterdir())) == 1


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("file", FILES)
def test_nothing_is_written_into_it_and_nothing_waits(run, file, kind):
    put_strange(run / file, kind, run.parent / "victim")
    with guarded():
        for act in (Run.load, verify_run, is_locked, lambda at: list(read_events(at / "events.jsonl"))):
            _told(act, run)
        if (file, kind) not in SAFE:
            with pytest.raises(StrangeFileError, match=Path(file).name):
                check_run_dir(run)
            assert command(["runs", "verify", str(run)]) != 0
            if kind in ("fifo", "link"):
                assert command(["fit", "mlp", "dataset=synthetic", "num_workers=0", f"run.resume={run}"]) == 2
        _told(_written, run)
    assert is_unharmed(run)


def _told(act, run):
    with suppress(RtrainError):
        act(run)


def _written(run: Path) -> None:
    with locked(run):
        recorder = Recorder(run, make_manifest(run_id="run"), SilentObserver(), config="a: 1\n")
        recorder.accept(LogRecord(rank=0, text="more\n"))
        recorder.accept(Event.at(0.0, step=2, epoch=0, metrics={"loss": 1.0}))
        recorder.close()


def test_a_whole_run_is_none_of_this(run):
    check_run_dir(run)
    assert verify_run(run) == []
    _written(run)


@pytest.mark.parametrize("kind", ["fifo", "zero", "link"])
@pytest.mark.parametrize("file", [".hydra", ".hydra/config.yaml", "logs", ".lock", "events.jsonl"])
def test_a_new_run_is_not_recorded_through_links_either(run, file, kind):
    (run / "manifest.json").unlink()
    put_strange(run / file, kind, run.parent / "victim")
    words = ["dataset=synthetic", "num_workers=0", f"hydra.run.dir={run}", "trainer.max_epochs=1"]
    with guarded():
        assert command(["fit", "mlp", *words]) == 2
    assert is_unharmed(run)
    assert not (run / "manifest.json").exists()


def test_the_way_to_a_run_may_go_by_links(run, tmp_path):
    (tmp_path / "link").symlink_to(run.parent)
    check_run_dir(tmp_path / "link" / "run")
    _written(tmp_path / "link" / "run")
    assert [event.step for event in Run.load(tmp_path / "link" / "run").events()] == [2]


@pytest.mark.parametrize("kind", ["fifo", "zero", "link"])
@pytest.mark.parametrize("file", ["sweep.json", "command.yaml", ".lock", "trial", "trial/.hydra", "trial/.lock"])
def test_a_sweep_is_refused_as_well(run, tmp_path, file, kind):
    sweep = tmp_path / "sweep"
    shutil.copytree(run, sweep / "trial")
    for name in ("sweep.json", "command.yaml", ".lock"):
        (sweep / name).write_text("{}")
    put_strange(sweep / file, kind, tmp_path / "victim")
    with guarded():
        assert command(["resume", str(sweep)]) == 2
        assert command(["sweep", "show", str(sweep)]) == 2
        with pytest.raises(StrangeFileError), opened(sweep):
            pass
    assert is_unharmed(run)


NESTED = ["[" * 100_000, '{"a":' * 50_000, "[" * 200 + "]" * 200]


@pytest.mark.parametrize("text", [*NESTED, "\udcff", "\0", "", "1e", "9" * 10_000])
@pytest.mark.parametrize("file", ["manifest.json", "checkpoint.json", "sweep.json"])
def test_json_that_makes_no_sense_is_a_clear_error(run, tmp_path, file, text):
    folder = checkpoint_dir(run, step=1, epoch=0) if file == "checkpoint.json" else run
    (folder / file).write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(ValueError, match=r".*"):
        read_json(folder, file)
    words = ["sweep", "show"] if file == "sweep.json" else ["runs", "verify"]
    assert command([*words, str(run)]) in (1, 2)
    if file == "sweep.json":
        assert command(["resume", str(run)]) == 2
    elif file == "checkpoint.json":
        with pytest.raises(CheckpointError):
            read_record(folder)


@pytest.mark.parametrize("evil", ["\x1b]0;evil\x07", "a\rb", "a\nb", "\x9b2J", "\u202e", "\udcff"])
def test_names_are_not_obeyed_by_the_terminal(run, evil, capsys):
    (checkpoint_dir(run, step=1, epoch=0) / evil).write_text("")
    assert command(["runs", "verify", str(run)]) == 0
    told = capsys.readouterr().out
    assert len(told.splitlines()) == 2
    assert told.replace("\n", "").isprintable()


def test_a_file_of_json_may_not_fill_the_memory(run, monkeypatch):
    monkeypatch.setattr("rtrain.runs.filesystem.plain_files.MAX_BYTES", 1000)
    (run / "manifest.json").write_text(json.dumps({"a": "x" * 2000}))
    with pytest.raises(RtrainError, match="larger than 1,000 bytes"):
        Run.load(run)


def test_json_is_read_as_deep_as_configs_go():
    assert parse_json("[" * (MAX_DEPTH - 1) + "]" * (MAX_DEPTH - 1))


@pytest.mark.parametrize("name", ["a", "a.b", "-", "a b", "ä", "..a", "a.."])
def test_a_plain_name(name):
    assert is_plain_name(name)
    assert is_plain_name(f"x/{name}", nested=True)


@pytest.mark.parametrize(
    "name", ["", ".", "..", "/", "/a", "a/", "a//b", "../a", "a/..", "a\\b", "a\0b", None, 3, ["a"]]
)
def test_a_name_that_leads_elsewhere(name):
    assert not is_plain_name(name)
    assert not is_plain_name(name, nested=True)


def test_a_config_that_is_a_pipe_is_refused(run):
    put_strange(run.parent / "pipe.yaml", "fifo", run)
    with guarded(), pytest.raises(ConfigError, match="a named pipe"):
        read_yaml(run.parent / "pipe.yaml")


@pytest.mark.parametrize("mode", ["rb", "r+b", "ab", "a+b"])
def test_a_folder_on_the_way_is_no_link(run, mode):
    (run / "logs" / "inner").symlink_to(run.parent / "victim")
    with pytest.raises(StrangeFileError, match="inner is a symbolic link"):
        open_inside(run, "logs/inner/secret.txt", mode)
    assert is_unharmed(run)
