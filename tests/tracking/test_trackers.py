"""What ``run.loggers`` makes of a run: trackers have what it reports, and training never waits for them."""

import threading
import time

import pytest
from tracker_readers import of_csv, of_events, of_tensorboard

import rtrain
from rtrain.config.session import Session
from rtrain.errors import ConfigError
from rtrain.loggers.csv import Logger
from rtrain.schemas import schemas
from rtrain.tracking.position import FOLDER

QUICK = ("num_workers=0", "epochs=2")
SECRET = "hunter2-very-secret"


@pytest.fixture(autouse=True)
def _project(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("config", ["mlp", "xgboost", "sklearn"])
def test_a_run_is_in_each_tracker_that_it_names(config):
    quick = {"mlp": "epochs=2", "xgboost": "trainer.num_boost_round=3", "sklearn": "seed=1"}[config]
    run = rtrain.fit(config, ["num_workers=0", quick, "run.loggers=[csv,tensorboard]"])
    expected = of_events(run)
    assert expected
    assert of_csv(run.path / "metrics.csv") == expected
    found = of_tensorboard(run.path / "tensorboard")
    assert {name: pytest.approx(steps, rel=1e-6) for name, steps in found.items()} == expected


def test_a_resumed_run_goes_on_in_its_trackers():
    run = rtrain.fit("mlp", [*QUICK, "run.loggers=[csv,tensorboard]"])
    again = rtrain.resume(run.path, ["epochs=4"])
    expected = of_events(again)
    assert max(expected["val/loss"]) > max(of_events(run)["val/loss"]) / 2
    assert of_csv(run.path / "metrics.csv") == expected
    found = of_tensorboard(run.path / "tensorboard")
    assert {name: pytest.approx(steps, rel=1e-6) for name, steps in found.items()} == expected


def test_each_trial_of_a_sweep_has_trackers_of_its_own():
    folder = rtrain.sweep("mlp", [*QUICK, "lr=0.1,0.01", "run.loggers=csv"])
    tables = sorted(folder.glob("*/metrics.csv"))
    assert len([path for path in tables if not path.parent.is_symlink()]) == 2


def test_trackers_are_told_what_a_run_is_and_no_secret(monkeypatch):
    told = []
    plain = Logger.open

    def open_and_tell(self, run, delivered):
        told.append(run)
        return plain(self, run, delivered)

    monkeypatch.setattr(Logger, "open", open_and_tell)
    words = [f"+vars.api_key={SECRET}", f"+vars.url=https://me:{SECRET}@host/path", "+vars.nested={a: {b: [1, 2]}}"]
    fit = rtrain.fit("mlp", [*QUICK, *words, "run.loggers=csv", "run.tags=[quick,try 1]", "run.notes=for the record"])
    (run,) = told
    assert run.id == fit.path.name
    assert run.parameters["trainer.type"] == "torch"
    assert run.parameters["vars.nested.a.b"] == "[1,2]"
    assert (run.tags, run.notes) == (("quick", "try 1"), "for the record")
    assert run.facts["trainer"] == "torch"
    assert SECRET not in str(run)
    written = [path for path in fit.path.rglob("*") if path.is_file()]
    assert not [path for path in written if SECRET.encode() in path.read_bytes()]


def test_the_thread_that_trains_never_runs_what_a_tracker_does(monkeypatch):
    threads = {}
    for name in ("open", "log", "end", "close"):
        plain = getattr(Logger, name)

        def noted(self, *args, name=name, plain=plain):
            threads[name] = threading.current_thread().name
            return plain(self, *args)

        monkeypatch.setattr(Logger, name, noted)
    rtrain.fit("mlp", [*QUICK, "run.loggers=csv"])
    assert threads == dict.fromkeys(("open", "log", "end", "close"), "rtrain-csv")


def test_a_tracker_that_hangs_is_given_up_and_the_run_says_so(monkeypatch, capsys):
    release = threading.Event()
    monkeypatch.setattr(Logger, "log", lambda self, events: release.wait(60))
    run = rtrain.fit("mlp", [*QUICK, "run.loggers=csv", "run.loggers_timeout_seconds=0.2"])
    release.set()
    assert run.status == "succeeded"
    shown = capsys.readouterr()
    assert "csv LACKS the end of this run" in shown.out + shown.err + (run.path / "logs" / "driver.log").read_text()


@pytest.mark.parametrize(
    ("method", "error"),
    [
        *((one, KeyError("no")) for one in ("open", "log", "end", "close")),
        ("log", SystemExit(4)),
        ("end", SystemExit(4)),
    ],
    ids=repr,
)
def test_a_tracker_that_always_fails_is_given_up_however_often_it_is_opened(monkeypatch, method, error):
    monkeypatch.setattr("rtrain.process.retrying.ENDING_BACKOFF_SECONDS", 0.01)

    def fail(*_):
        raise error

    monkeypatch.setattr(Logger, method, fail)
    began = time.monotonic()
    run = rtrain.fit("mlp", [*QUICK, "run.loggers=csv", "run.loggers_timeout_seconds=0.5"])
    assert run.status == "succeeded"
    assert time.monotonic() - began < 60
    assert f"csv LACKS the end of this run ({type(error).__name__}" in (run.path / "logs" / "driver.log").read_text()


def test_what_a_tracker_lacks_is_delivered_when_the_run_goes_on(monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(Logger, "log", lambda self, events: (_ for _ in ()).throw(ConnectionError("away")))
        run = rtrain.fit("mlp", [*QUICK, "run.loggers=csv", "run.loggers_timeout_seconds=0.2"])
    assert of_csv(run.path / "metrics.csv") == {}
    rtrain.resume(run.path, ["epochs=3"])
    assert of_csv(run.path / "metrics.csv") == of_events(run)


@pytest.mark.parametrize(
    ("word", "names"),
    [
        ("run.loggers=csv", ["csv", "tensorboard"]),
        ("run.loggers=[csv, mlflow]", ["csv", "mlflow", "tensorboard"]),
        ("run.loggers.mlflow.experiment=mine", ["mlflow", "tensorboard"]),
        ("run.loggers={mlflow: {experiment: mine}}", ["mlflow", "tensorboard"]),
        ("run.loggers.tensorboard=null", []),
        ("run.loggers=null", []),
        ("run.loggers=[]", []),
    ],
)
def test_names_that_are_typed_come_beside_those_of_a_file(word, names, tmp_path):
    (tmp_path / "mine.yaml").write_text("defaults: [mlp]\nrun: {loggers: [tensorboard]}\n")
    with Session("mine.yaml", [word], schemas()) as session:
        assert sorted(session.check().conf.run.loggers or ()) == names


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("run.loggers=[mlfow]", "mlflow"),
        ("run.loggers.mlfow.experiment=mine", "mlflow"),
        ("run.loggers.mlflow.experimnt=mine", "run.loggers.mlflow.experiment"),
        ("run.loggers.wandb.mode=off", "offline"),
        ("run.loggers.csv=3", "run.loggers.csv"),
    ],
)
def test_a_wrong_name_or_key_is_refused_with_the_right_one(word, said, tmp_path):
    with pytest.raises(ConfigError) as caught:
        rtrain.fit("mlp", [*QUICK, word])
    assert said in f"{caught.value} {caught.value.hint}"
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_written_where_no_tracker_is_named():
    run = rtrain.fit("mlp", QUICK)
    assert not (run.path / FOLDER).exists()
