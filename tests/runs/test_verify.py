"""What is wrong with a run directory is found, file by file."""

import json
from pathlib import Path

import pytest
from checkpointed_runs import write_checkpointed_run

from rtrain.cli.app import run as rtrain
from rtrain.errors import CheckpointError
from rtrain.runs.checkpoints import checkpoint_dir, missing_base, write_checkpoint
from rtrain.runs.events import Event
from rtrain.runs.observer import SilentObserver
from rtrain.runs.recorder import Recorder
from rtrain.runs.verify import check_whole, newest_whole, set_aside, verify_run
from rtrain.testing.workers import make_manifest


@pytest.fixture
def run_dir(tmp_path):
    """A run with two checkpoints, as it should be."""
    write_checkpointed_run(tmp_path)
    (tmp_path / "events.jsonl").write_text('{"step":1,"epoch":0,"time":"2026-01-01T00:00:00+00:00","metrics":{}}\n')
    return tmp_path


@pytest.fixture
def recorded(tmp_path):
    """A run whose record is whole, with reports of three steps; two of the last one."""
    recorder = Recorder(tmp_path, make_manifest(), SilentObserver(), config="trainer: {}\n")
    for step in (1, 2, 3, 3):
        recorder.accept(Event.at(0.0, step=step, epoch=0, metrics={"loss": 1.0}))
    recorder.close()
    return tmp_path


@pytest.mark.parametrize("cut", [b"", b"line", b"all"])
def test_events_that_are_cut_at_the_end_of_a_line_are_found(recorded, cut):
    assert problems(recorded) == []
    path = recorded / "events.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes({b"": b"", b"line": lines[0], b"all": b"".join(lines[:2])}[cut])
    assert problems(recorded) == [("damaged", "events.jsonl")]
    path.unlink()
    assert problems(recorded) == [("missing", "events.jsonl")]


def test_steps_that_are_done_again_are_not_missing(recorded):
    with (recorded / "events.jsonl").open("a") as file:
        file.write('{"from_step":1,"time":"2026-01-01T00:00:00+00:00"}\n')
    assert problems(recorded) == []


@pytest.mark.parametrize("content", ["", "trainer:", "trainer: {}\n# mine\n", "\udcff", None])
def test_a_config_that_is_cut_changed_or_gone_is_found(recorded, content):
    path = recorded / "config.yaml"
    path.unlink() if content is None else path.write_bytes(content.encode("utf-8", "surrogateescape"))
    assert problems(recorded) == [("missing" if content is None else "damaged", "config.yaml")]


def newest(run_dir):
    return checkpoint_dir(run_dir, step=2, epoch=0)


def problems(run_dir):
    return [(finding.problem, finding.path.name) for finding in verify_run(run_dir)]


def test_a_run_as_it_was_written_has_no_findings(run_dir):
    assert problems(run_dir) == []
    assert newest_whole(run_dir) == (newest(run_dir), [])
    assert rtrain(["runs", "verify", str(run_dir)]) == 0


def test_a_flipped_bit_is_found_though_the_size_is_right(run_dir, capsys):
    (newest(run_dir) / "model").write_bytes(b"weightz")
    assert problems(run_dir) == [("damaged", "model")]
    assert rtrain(["runs", "verify", str(run_dir)]) == 1
    assert "its content has changed" in capsys.readouterr().out


def test_missing_torn_and_extra_files_are_told_apart(run_dir):
    (newest(run_dir) / "model").unlink()
    (checkpoint_dir(run_dir, step=1, epoch=0) / "model").write_bytes(b"we")
    (newest(run_dir) / "notes.txt").write_text("mine")
    (run_dir / "checkpoints" / ".epoch-0000-step-00000003-ab.tmp").mkdir()
    with (run_dir / "events.jsonl").open("a") as file:
        file.write('{"step":')
    assert sorted(problems(run_dir)) == [
        ("damaged", "events.jsonl"),
        ("damaged", "model"),
        ("extra", "notes.txt"),
        ("missing", "model"),
        ("unfinished", ".epoch-0000-step-00000003-ab.tmp"),
    ]


def test_a_checkpoint_that_the_manifest_lists_has_to_be_there(run_dir):
    newest(run_dir).rename(run_dir / "elsewhere")
    assert problems(run_dir) == [("missing", newest(run_dir).name)]


def test_a_record_without_its_braces_is_unreadable_and_no_checkpoint_to_go_on_from(run_dir):
    (newest(run_dir) / "checkpoint.json").write_text('{"step": 2')
    assert problems(run_dir) == [("unreadable", newest(run_dir).name)]
    assert newest_whole(run_dir)[0] == checkpoint_dir(run_dir, step=1, epoch=0)


def test_a_record_that_lists_files_elsewhere_is_not_followed(run_dir):
    secret = run_dir / "secret"
    secret.write_text("weights")
    for name in ("../../secret", str(secret)):
        record = json.loads((newest(run_dir) / "checkpoint.json").read_text())
        record["files"] = {name: {"size_bytes": 7, "sha256": ""}}
        (newest(run_dir) / "checkpoint.json").write_text(json.dumps(record))
        with pytest.raises(CheckpointError, match="outside its folder"):
            check_whole(newest(run_dir))


def test_a_damaged_one_is_set_aside_each_time_under_another_name(run_dir):
    first = set_aside(newest(run_dir))
    newest(run_dir).mkdir()
    assert first.exists()
    assert set_aside(newest(run_dir)).name != first.name
    assert [problem for problem, _ in problems(run_dir)] == ["damaged", "damaged", "missing"]


@pytest.mark.parametrize("kept", ["folder", "pretrained", None])
def test_a_base_of_adapters_that_is_gone_is_named(tmp_path, monkeypatch, capsys, kept):
    names = {"folder": str(tmp_path / "base"), "pretrained": "near"}
    write = lambda folder: (folder / "base.json").write_text(json.dumps(names))  # noqa: E731
    state = {"step": 1, "epoch": 0, "metrics": {}, "score": None}
    record = write_checkpoint(checkpoint_dir(tmp_path, step=1, epoch=0), write, state)
    make_manifest(checkpoints=[record]).write(tmp_path)
    (tmp_path / "events.jsonl").write_text("")
    monkeypatch.chdir(tmp_path)
    if kept is not None:
        Path(names[kept]).mkdir()
    assert problems(tmp_path) == ([] if kept else [("elsewhere", "base")])
    assert rtrain(["runs", "verify", str(tmp_path)]) == 0, "it is no file of the run"
    assert ("trainer.model.pretrained=NEW_PLACE" in capsys.readouterr().out) == (kept is None)


@pytest.mark.parametrize(
    "content", [{}, {"folder": None}, {"folder": 3}, {"folder": "a\0b"}, [], {"pretrained": "bert"}]
)
def test_a_base_without_a_folder_is_not_looked_for(tmp_path, content):
    (tmp_path / "base.json").write_text(json.dumps(content))
    assert missing_base(tmp_path) is None
