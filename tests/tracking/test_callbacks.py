"""``run.callbacks``: what is called, in which order, and what an exception in one does."""

import inspect
import json
import threading
from dataclasses import replace
from pathlib import Path

import pytest
from tracker_readers import of_events

import rtrain
from rtrain.callbacks import check_callback
from rtrain.errors import ConfigError, TrainingError
from rtrain.loggers.base import LoggedRun, Outcome
from rtrain.process.interrupts import StopRequest
from rtrain.runs.events import Event, EventLog, events_file
from rtrain.runs.manifest import Manifest
from rtrain.runs.run import Run
from rtrain.tracking import callbacks
from rtrain.tracking.callbacks import CallbackThread

QUICK = ("num_workers=0", "epochs=2")
CONFIGS = {"mlp": "epochs=2", "xgboost": "trainer.num_boost_round=3", "sklearn": "seed=1"}
WATCH = """
import builtins
import json

import rtrain


class Watch(rtrain.Callback):
    def __init__(self, path="calls.jsonl", fails_in=None, on_error="fail", error="RuntimeError"):
        self.path, self.fails_in, self.on_error = path, fails_in, on_error
        self.error = getattr(builtins, error)

    def note(self, name, what):
        with open(self.path, "a") as file:
            print(json.dumps([name, what]), file=file)
        if name == self.fails_in:
            raise self.error(f"{name} went wrong")

    def started(self, run):
        self.note("started", run.id)

    def event(self, event):
        self.note("event", [event.step, sorted(event.metrics)])

    def evaluated(self, event):
        self.note("evaluated", event.step)

    def checkpoint(self, checkpoint):
        self.note("checkpoint", [checkpoint.name, checkpoint.step])

    def ended(self, outcome):
        self.note("ended", outcome.status)


class Other:
    pass


class Checkpoints(rtrain.Callback):
    def checkpoints(self, checkpoint): ...


class OnEvaluate(rtrain.Callback):
    def on_evaluate(self, event): ...


class OnStart(rtrain.Callback):
    def on_start(self, run): ...


class Finish(rtrain.Callback):
    def finish(self, outcome): ...


class NoEvent(rtrain.Callback):
    def event(self): ...
"""
RAISED = ["RuntimeError", "SystemExit", "KeyboardInterrupt"]
WORD = "run.callbacks=[{_target_: watch.Watch}]"


@pytest.fixture(autouse=True)
def _project(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(callbacks, "POLL_SECONDS", 0.01)
    Path("watch.py").write_text(WATCH)


def calls(name=None, path="calls.jsonl"):
    found = [json.loads(line) for line in Path(path).read_text().splitlines()]
    return found if name is None else [what for one, what in found if one == name]


@pytest.mark.parametrize("config", list(CONFIGS))
def test_a_callback_is_called_for_everything_that_the_run_directory_holds(config):
    run = rtrain.fit(config, ["num_workers=0", CONFIGS[config], WORD])
    expected = of_events(run)
    told = [(name, step) for step, names in calls("event") for name in names]
    assert sorted(told) == sorted((name, step) for name, steps in expected.items() for step in steps)
    evaluated = {step for name, steps in expected.items() if name.startswith(("val/", "test/")) for step in steps}
    assert calls("evaluated") == sorted(evaluated)
    saved = [name for name, _ in calls("checkpoint")]
    assert saved
    assert {path.name for path in run.checkpoints} <= set(saved)
    assert (calls()[0], calls()[-1]) == (["started", run.path.name], ["ended", "succeeded"])


def test_a_resumed_run_calls_for_what_is_new():
    run = rtrain.fit("mlp", [*QUICK, WORD])
    before = max(step for step, _ in calls("event"))
    Path("calls.jsonl").unlink()
    rtrain.resume(run.path, ["epochs=3"])
    steps = [step for step, _ in calls("event")]
    assert min(steps) > before
    assert set(steps) == {event.step for event in run.events() if event.step > before}
    assert calls("ended") == ["succeeded"]


def test_steps_that_a_killed_run_does_again_are_not_told_again(manifest, tmp_path):
    def reports(*steps, again=None):
        log = EventLog(events_file(tmp_path))
        if again is not None:
            log.go_back(again)
        for step in steps:
            log.append(Event.at(0.0, step=step, epoch=1, metrics={"loss": 1.0}))
        log.close()

    callback = Recording()
    for steps, again in (((1, 2, 3), None), ((2, 3, 4), 1)):  # the first process is killed at step 3, saved at step 1
        thread = thread_of(callback, manifest, tmp_path)
        reports(*steps, again=again)
        thread.drain(60, lambda: False)
    assert [event.step for event in callback.told] == [1, 2, 3, 4]


@pytest.mark.parametrize("had_callbacks", [True, False])
def test_a_run_killed_before_its_callbacks_were_called_has_them_called_for_all_of_it(manifest, tmp_path, had_callbacks):
    release = threading.Event()
    hanging = thread_of(Recording(release), manifest, tmp_path) if had_callbacks else None  # until it is killed
    log = EventLog(events_file(tmp_path))
    for step in (1, 2):
        log.append(Event.at(0.0, step=step, epoch=1, metrics={"loss": 1.0}))
    log.close()
    manifest.checkpoints.append({"name": "step-2", "step": 2})
    callback = Recording()
    for _ in range(2):  # the second resumption has nothing new
        thread_of(callback, manifest, tmp_path).drain(60, lambda: False)
    assert [one.step for one in callback.told] == ([1, 2, 2] if had_callbacks else [])
    release.set()
    if hanging is not None:
        hanging.drain(60, lambda: False)


@pytest.mark.parametrize("error", RAISED)
@pytest.mark.parametrize("method", ["started", "event", "evaluated", "checkpoint"])
def test_an_exception_ends_the_run_with_its_place(method, error, capfd):
    word = f"run.callbacks=[{{_target_: watch.Watch, fails_in: {method}, error: {error}}}]"
    with pytest.raises(TrainingError) as caught:
        rtrain.fit("mlp", ["num_workers=0", word])
    assert f"{method} went wrong" in caught.value.message
    assert "watch.py" in caught.value.hint
    run = Run.load(caught.value.run_dir)
    assert (run.status, run.manifest.error["type"]) == ("failed", "TrainingError")
    assert calls("ended") == ["failed"]
    assert "Traceback" not in capfd.readouterr().err
    assert "Traceback" in (run.path / "logs" / "driver.log").read_text()


@pytest.mark.parametrize("error", RAISED)
@pytest.mark.parametrize("method", ["event", "ended"])
def test_an_exception_that_may_happen_is_one_notice(method, error):
    word = f"run.callbacks=[{{_target_: watch.Watch, fails_in: {method}, on_error: warn, error: {error}}}]"
    run = rtrain.fit("mlp", [*QUICK, word])
    assert run.status == "succeeded"
    log = (run.path / "logs" / "driver.log").read_text()
    assert log.count(f"{method} went wrong; training continues") == (method == "event")
    assert f"{method} went wrong" in log
    assert calls("ended") == ["succeeded"]


def test_the_run_of_an_exception_in_training_is_told_as_failed():
    Path("loops.py").write_text("def loop():\n    raise ValueError('no')\n")
    Path("loop.yaml").write_text("trainer: {type: torch, train_loop: 'loops:loop'}\n")
    with pytest.raises(TrainingError):
        rtrain.fit("loop.yaml", ["num_workers=0", WORD])
    assert [name for name, _ in calls()] == ["started", "ended"]
    assert calls("ended") == ["failed"]


def test_each_trial_has_its_own_callbacks():
    rtrain.sweep("mlp", [*QUICK, "lr=0.1,0.01", WORD])
    assert len(set(calls("started"))) == 2
    assert calls("ended") == ["succeeded", "succeeded"]


@pytest.mark.parametrize(
    ("node", "said"),
    [
        ("{_target_: watch.Other}", "rtrain.Callback"),
        ("{_target_: watch.Wach}", "Watch"),
        ("{_target_: watch.Watch, pth: a}", "path"),
        ("{_target_: subprocess.Popen, args: [ls]}", "allow"),
        ("watch.Watch", "_target_"),
        ("{_target_: watch.Watch, on_error: wran}", "fail, warn"),
        ("{_target_: watch.Checkpoints}", "did you mean: checkpoint"),
        ("{_target_: watch.OnEvaluate}", "did you mean: evaluated"),
        ("{_target_: watch.OnStart}", "did you mean: started"),
        ("{_target_: watch.Finish}", "did you mean: ended"),
        ("{_target_: watch.NoEvent}", "def event(self, event):"),
    ],
)
def test_what_is_no_callback_is_refused_before_anything_is_written(node, said, tmp_path):
    with pytest.raises(ConfigError) as caught:
        rtrain.fit("mlp", [*QUICK, f"run.callbacks=[{node}]"])
    assert said in f"{caught.value.message} {caught.value.hint}"
    assert {path.name for path in tmp_path.iterdir()} <= {"watch.py", "__pycache__"}


def plain(self, *arguments): ...
def generator(self, *arguments):
    yield


async def coroutine(self, *arguments): ...
async def generator_of_coroutines(self, *arguments):
    yield


@pytest.mark.parametrize("contract", [rtrain.Callback, rtrain.WorkerCallback])
@pytest.mark.parametrize("function", [generator, coroutine, generator_of_coroutines])
def test_a_method_of_which_a_call_runs_no_line_is_refused(contract, function):
    methods = [name for name, one in vars(contract).items() if inspect.isfunction(one)]
    assert len(methods) > 4
    for name in methods:
        node = {"_target_": "own.Own"}
        check_callback("key.0", node, type("Own", (contract,), {name: plain, "_own": function}), contract, "fail")
        with pytest.raises(ConfigError, match=rf"key\.0: the method {name} of own\.Own .*: calling it does nothing"):
            check_callback("key.0", node, type("Own", (contract,), {name: function}), contract, "fail")


class Recording(rtrain.Callback):
    """Keeps what it is told, or hangs."""

    def __init__(self, hangs=None):
        self.told, self._hangs = [], hangs

    def attempt_failed(self, attempt):
        self.told.append(attempt)

    def event(self, event):
        self.told.append(event)

    def checkpoint(self, checkpoint):
        self.told.append(checkpoint)

    def started(self, run):
        if self._hangs is not None:
            self._hangs.wait(60)


@pytest.fixture
def manifest():
    named = {"run_id": "a", "run_name": "a", "config_file": None, "config_hash": "", "config": {}, "seed": 0}
    return Manifest(**named, command=[], overrides=[], versions={}, git=None, host={})


def thread_of(callback, manifest, folder, notices=None):
    run = LoggedRun(id="a", name="a", folder=folder, started_at="2026-01-01T00:00:00+00:00")
    thread = CallbackThread([callback], run, manifest, StopRequest(), ([] if notices is None else notices).append)
    thread.start()
    return thread


OUTCOME = Outcome(status="succeeded", reason=None, ended_at="2026-01-01T00:00:00+00:00")


def test_attempts_that_fail_are_told_once_each(manifest, tmp_path):
    why = {"kind": "worker died", "message": "killed", "rank": 1, "type": None}
    manifest.attempts.append({"ended_because": why})  # before this process
    callback = Recording()
    thread = thread_of(callback, manifest, tmp_path)
    manifest.attempts += [{"ended_because": {**why, "rank": 0}}, {"num_workers": 2}]
    thread.drain(60, lambda: False)
    thread.finish(OUTCOME, 60, lambda: False)
    assert [(one.number, one.kind, one.rank) for one in callback.told] == [(2, "worker died", 0)]


def test_a_callback_that_hangs_is_not_waited_for(manifest, tmp_path):
    release, notices = threading.Event(), []
    thread = thread_of(Recording(release), manifest, tmp_path, notices)
    thread.drain(0.1, lambda: False)
    thread.finish(replace(OUTCOME, status="interrupted"), 0.1, lambda: False)
    release.set()
    assert len(notices) == 1
    assert "0.1 seconds" in notices[0]
