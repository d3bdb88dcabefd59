"""``rtrain runs sync``: runs that are over reach a tracker that they did not name."""

import pytest
from tracker_readers import of_csv, of_events, of_tensorboard

import rtrain
from rtrain.cli.app import run as command
from rtrain.errors import ConfigError, RunInUseError
from rtrain.runs.filesystem.lock import locked
from rtrain.runs.run import Run
from rtrain.sync import sync

QUICK = ("num_workers=0", "epochs=2")


@pytest.fixture(autouse=True)
def _project(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def test_a_finished_run_is_sent_once_and_extended_later():
    run, notices = rtrain.fit("mlp", QUICK), []
    for words in ((), ("epochs=3",)):
        run = rtrain.resume(run.path, words) if words else run
        assert list(sync(run.path, "csv", {"file_name": "all.csv"}, notices.append)) == [run.path]
        assert list(sync(run.path, "tensorboard", {}, notices.append)) == [run.path]
        expected = of_events(run)
        assert of_csv(run.path / "all.csv") == expected
        found = of_tensorboard(run.path / "tensorboard")
        assert {name: pytest.approx(steps, rel=1e-6) for name, steps in found.items()} == expected
    assert notices == []


def test_the_trials_of_a_sweep_are_sent():
    folder = rtrain.sweep("mlp", [*QUICK, "lr=0.1,0.01"])
    assert command(["runs", "sync", str(folder), "--to", "csv"]) == 0
    sent = [path.parent for path in folder.glob("*/metrics.csv") if not path.parent.is_symlink()]
    assert len(sent) == 2
    for place in sent:
        assert of_csv(place / "metrics.csv") == of_events(Run.load(place))


def test_the_keys_of_the_run_hold_unless_others_are_typed():
    run = rtrain.fit("mlp", [*QUICK, "run.loggers.csv.file_name=mine.csv"])
    (run.path / "mine.csv").unlink()
    assert command(["runs", "sync", str(run.path), "--to", "csv"]) == 0
    assert of_csv(run.path / "mine.csv") == of_events(run)


def test_a_run_of_another_account_is_named(monkeypatch, capsys):
    run = rtrain.fit("mlp", QUICK)

    def refused(run_dir):
        raise PermissionError(13, "Permission denied", ".lock")

    monkeypatch.setattr("rtrain.sync.locked", refused)
    assert command(["runs", "sync", "last", "--to", "csv"]) == 1
    assert str(run.path.relative_to(run.path.parents[2])) in capsys.readouterr().err


def test_a_run_that_goes_on_is_left_to_its_own_process():
    run = rtrain.fit("mlp", QUICK)
    with locked(run.path), pytest.raises(RunInUseError):
        list(sync(run.path, "csv", {}, print))


@pytest.mark.parametrize(
    ("to", "keys", "said"),
    [("cvs", {}, "csv"), ("csv", {"filename": "a.csv"}, "file_name"), ("csv", {"file_name": "a.txt"}, "csv")],
)
def test_a_wrong_logger_or_key_is_refused_and_nothing_written(to, keys, said):
    run = rtrain.fit("mlp", QUICK)
    before = sorted(run.path.rglob("*"))
    with pytest.raises(ConfigError) as caught:
        list(sync(run.path, to, keys, print))
    assert said in str(caught.value)
    assert sorted(run.path.rglob("*")) == before
