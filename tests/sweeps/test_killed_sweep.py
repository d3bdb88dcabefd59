"""A sweep that is killed, interrupted, or loses a process goes on, and finds what it would have found."""

import json
import os
import pkgutil
import random
import signal
import subprocess
import sys
import time
from contextlib import nullcontext
from pathlib import Path

import pytest
from processes import alive, named, until
from sweep_results import num_events, only_sweep
from tiny_sweeps import CONFIG, TINY, swept

from rtrain.cli.app import run as rtrain
from rtrain.process.interrupts import REASONS
from rtrain.runs.filesystem.lock import locked
from rtrain.runs.manifest import read_manifest
from rtrain.runs.run import Run
from rtrain.runs.status import Status
from rtrain.runs.verify import verify_run
from rtrain.sweeps.record import catching_up
from rtrain.sweeps.record.sweep_record import read_sweep

RTRAIN = str(Path(sys.executable).with_name("rtrain"))
WORDS = [
    *("fit", "mlp", "--multirun", "trainer.num_threads=1", "dataset.limit=400", "run.seed=1,2", "lr=0.01,0.003"),
    *("trainer.max_epochs=12", "sweep.metric=val/loss", "run.checkpoint.every_steps=10"),
]
IN_TURN = [*WORDS, "num_workers=0"]
TWO = [*TINY, "trainer.params.eta=0.1,0.2", "trainer.num_boost_round=2"]


def facts(folder):
    """What must be the same, whatever happened on the way."""
    return {one["name"]: (one["status"], one["values"], one["step"]) for one in read_sweep(folder)["trials"]}


def check_whole(folder, whole):
    """The same trials came to the same ends, and the same one is the best."""
    assert facts(folder) == facts(whole)
    assert (folder / "best").resolve().name == (whole / "best").resolve().name
    # What a killed process was writing stays under its hidden name; nothing that counts is torn.
    found = [finding.problem for path in folder.glob("*/manifest.json") for finding in verify_run(path.parent)]
    assert set(found) <= {"unfinished"}


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The sweep that nothing happened to."""
    root = tmp_path_factory.mktemp("whole")
    assert rtrain([*IN_TURN, f"run.root_dir={root}"]) == 0
    return only_sweep(root)


@pytest.mark.usefixtures("tiny")
@pytest.mark.parametrize("moment", ["record", "between"])
def test_a_signal_at_the_end_of_a_trial_ends_the_sweep(monkeypatch, moment):
    """``record``: while the trial's record is written; ``between``: before the next trial starts."""

    def then_ctrl_c(function):
        def called(*args):
            result = function(*args)
            signal.raise_signal(signal.SIGINT)
            return result

        return called

    place = {
        "record": "rtrain.sweeps.trial_runner.ForwardingObserver.ended",
        "between": "rtrain.sweeps.executors.in_process.train_trial",
    }[moment]
    monkeypatch.setattr(place, then_ctrl_c(pkgutil.resolve_name(place)))
    data, _ = swept(TWO, code=130)
    assert [one["status"] for one in data["trials"]] == ["succeeded", "planned"]
    assert data["status"] == "interrupted"


@pytest.mark.usefixtures("tiny")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGUSR1])
def test_a_second_signal_ends_the_sweep_with_the_status_of_the_first_and_a_line_for_each_trial(
    monkeypatch, capsys, number
):
    """The signals come while no trial in this process takes them, as those of a sweep on Ray."""

    def signalled(*_):
        signal.raise_signal(number)
        signal.raise_signal(number)

    monkeypatch.setattr("rtrain.process.interrupts.REPEAT_SECONDS", 0.0)
    monkeypatch.setattr("rtrain.sweeps.executors.in_process.train_trial", signalled)
    status = REASONS[number]
    data, _ = swept(TWO, code=status.exit_code)
    assert data["status"] == status
    assert [one["status"] for one in data["trials"]] == ["interrupted", "planned"]
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[1] for line in lines if line.startswith(data["trials"][0]["name"])] == ["interrupted"]


@pytest.mark.usefixtures("tiny")
@pytest.mark.parametrize("is_alive", [False, True])
def test_the_run_of_a_process_that_a_second_signal_killed_ends_as_the_sweep(monkeypatch, is_alive):
    data, folder = swept(TWO)
    first, second = [folder / one["name"] for one in data["trials"]]
    manifest = read_manifest(first)
    manifest.status, manifest.exit_reason = Status.RUNNING, None
    manifest.write(first)
    before = read_manifest(second)
    monkeypatch.setattr(catching_up, "LAST_SECONDS", 0.1)
    with locked(first) if is_alive else nullcontext():
        for run_dir in (first, second, folder / "never-began"):
            catching_up.end_cut_off([run_dir], Status.PREEMPTED, "stopped by SIGTERM")
    ended = read_manifest(first)
    assert ended.status == (Status.RUNNING if is_alive else Status.PREEMPTED)
    assert ended.exit_reason == (None if is_alive else "stopped by SIGTERM")
    assert read_manifest(second) == before


@pytest.mark.slow
def test_ctrl_c_twice_leaves_no_run_of_a_sweep_on_ray_running(tmp_path):
    words = [*WORDS, "num_workers=1", "trainer.max_epochs=500000", "sweep.name=one"]
    sweeping = Sweeping(tmp_path / "runs", words)
    sweeping.until(lambda: sum(path.stat().st_size > 0 for path in tmp_path.glob("runs/*/*/events.jsonl")) == 2)
    os.killpg(sweeping.process.pid, signal.SIGINT)
    time.sleep(0.25)
    os.killpg(sweeping.process.pid, signal.SIGINT)
    assert sweeping.process.wait() == 130, sweeping.text()
    found = [Run.load(path.parent).manifest for path in tmp_path.glob("runs/*/*/manifest.json")]
    assert {(one.status, one.exit_reason) for one in found} == {("interrupted", "stopped by Ctrl-C")}


class Sweeping:
    """``rtrain fit --multirun`` in a process of its own."""

    def __init__(self, root, words):
        self.root, self.log = root, root.with_suffix(".log")
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                [RTRAIN, *words, f"run.root_dir={root}"], stdout=log, stderr=log, start_new_session=True
            )

    def until(self, condition):
        deadline = time.monotonic() + 120
        while not condition():
            assert time.monotonic() < deadline, self.text()
            assert self.process.poll() is None, self.text()
            time.sleep(0.02)

    def num_events(self):
        return sum(map(num_events, self.root.glob("*")))

    def text(self):
        return self.log.read_text()


@pytest.mark.parametrize("seed", range(int(os.environ.get("RTRAIN_TEST_FAULTS", "1"))))
def test_a_sweep_that_is_killed_goes_on_with_the_same_command(whole, tmp_path, seed):
    rng = random.Random(seed)
    events = num_events(whole)
    sweeping = Sweeping(tmp_path / "runs", IN_TURN)
    number = rng.randint(1, events * 2 // 3)  # later ones may come when all is over
    sweeping.until(lambda: sweeping.num_events() >= number)
    sweeping.process.send_signal(signal.SIGKILL)
    sweeping.process.wait()
    assert read_sweep(only_sweep(tmp_path / "runs"))["status"] == "running"
    assert rtrain([*IN_TURN, f"run.root_dir={tmp_path / 'runs'}"]) == 0
    check_whole(only_sweep(tmp_path / "runs"), whole)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(int(os.environ.get("RTRAIN_TEST_FAULTS", "1"))))
def test_a_sweep_on_ray_that_is_killed_goes_on_with_the_same_command(whole, tmp_path, seed):
    rng = random.Random(seed)
    sweeping = Sweeping(tmp_path / "runs", WORDS)
    number = rng.randint(1, num_events(whole) * 2 // 3)
    sweeping.until(lambda: sweeping.num_events() >= number)
    sweeping.process.send_signal(signal.SIGKILL)
    sweeping.process.wait()
    assert rtrain([*WORDS, f"run.root_dir={tmp_path / 'runs'}"]) == 0  # at once: processes of Ray's still end
    check_whole(only_sweep(tmp_path / "runs"), whole)


def test_ctrl_c_ends_the_sweep_and_resume_goes_on_with_it(whole, tmp_path):
    sweeping = Sweeping(tmp_path / "runs", IN_TURN)
    sweeping.until(lambda: len(list(tmp_path.glob("runs/*/*/events.jsonl"))) == 2 and sweeping.num_events() > 30)
    sweeping.process.send_signal(signal.SIGINT)
    assert sweeping.process.wait() == 130, sweeping.text()
    folder = only_sweep(tmp_path / "runs")
    data = read_sweep(folder)
    assert data["status"] == "interrupted"
    assert [one["status"] for one in data["trials"]][1:] == ["interrupted", "planned", "planned"]
    assert Run.load(folder / data["trials"][1]["name"]).status == "interrupted"
    assert rtrain(["resume", str(folder)]) == 0
    assert facts(folder) == facts(whole)


def test_a_config_that_has_changed_since_is_refused(tiny, capsys):
    assert rtrain(TWO) == 0
    Path("tiny.yaml").write_text(CONFIG.replace("name: tiny", "name: tiny, seed: 3"))
    capsys.readouterr()
    assert rtrain(TWO) == 2
    assert "another config" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("first", "second"),
    [("a/tiny.yaml", "b/tiny.yaml"), ("my tiny.yaml", "my-tiny.yaml"), ("a/config.yaml", "b/a.yaml")],
)
@pytest.mark.parametrize("varied", ["trainer.params.eta=0.1,0.2", "trainer.params.max_depth=2,3"])
def test_two_configs_whose_runs_have_one_name_are_told_apart(tiny, capsys, first, second, varied):
    text = CONFIG.replace("run: {name: tiny}", "trainer: {num_boost_round: 2}")
    for name, seed in ((first, 0), (second, 3)):
        Path(name).parent.mkdir(exist_ok=True)
        Path(name).write_text(f"{text}run: {{seed: {seed}}}\n")
    options = [*TINY[2:], "sweep.name=both"] if "depth" in varied else list(TINY[2:])
    assert rtrain(["fit", first, *options, "trainer.params.eta=0.1,0.2"]) == 0
    folder = only_sweep(tiny / "runs").relative_to(tiny)
    capsys.readouterr()
    assert rtrain(["fit", second, *options, varied]) == 2
    told = capsys.readouterr().err
    assert f"{folder} contains the sweep of {first}; this one is of {second}." in told
    assert "run.name=NAME" in told
    assert rtrain(["fit", second, *options, varied, "run.name=another", "sweep.name=null"]) == 0


def test_somebody_elses_sweep_is_not_gone_on_with(tiny, capsys):
    _, folder = swept(TWO)
    command = folder / "command.yaml"
    command.write_text(command.read_text().replace("0.1,0.2", "0.1,0.2,0.3"))
    assert rtrain(["resume", str(folder)]) == 2
    assert "--trust" in capsys.readouterr().err
    assert rtrain(["resume", str(folder), "--trust"]) == 0
    assert len(json.loads((folder / "sweep.json").read_text())["trials"]) == 3


@pytest.mark.slow
@pytest.mark.parametrize("scheduler", ["pbt", "pb2", "hyperband"])
@pytest.mark.parametrize("seed", range(int(os.environ.get("RTRAIN_TEST_FAULTS", "2"))))
def test_trials_that_wait_for_each_other_are_decided_on_as_without_a_kill(tmp_path, scheduler, seed):
    words = [
        *("fit", "mlp", "--multirun", "num_workers=0", "trainer.num_threads=1", "dataset.limit=300"),
        *("lr=tag(log,interval(1e-6,1e-1))", "sweep=random", "sweep.num_trials=5", "trainer.max_epochs=9"),
        *(f"sweep/scheduler={scheduler}", "sweep.metric=val/loss"),
        *(["sweep.scheduler.interval=2"] if scheduler.startswith("pb") else []),
    ]
    assert rtrain([*words, f"run.root_dir={tmp_path / 'whole'}"]) == 0
    whole, rng = only_sweep(tmp_path / "whole"), random.Random(seed)
    events = num_events(whole)
    for number in sorted(rng.sample(range(1, events - 10), 2)):
        sweeping = Sweeping(tmp_path / "runs", words)
        sweeping.until(lambda sweeping=sweeping, number=number: sweeping.num_events() >= number)
        sweeping.process.send_signal(signal.SIGKILL)
        sweeping.process.wait()
    assert rtrain([*words, f"run.root_dir={tmp_path / 'runs'}"]) == 0
    folder = only_sweep(tmp_path / "runs")
    assert facts(folder) == facts(whole)
    lineages = [
        [[(entry["source"], entry["changes"], entry["step"]) for entry in one["lineage"]] for one in data["trials"]]
        for data in (read_sweep(folder), read_sweep(whole))
    ]
    assert lineages[0] == lineages[1]


@pytest.mark.parametrize("num_jobs", [1, 2])
@pytest.mark.parametrize("number", [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.slow)])
def test_a_stop_reaches_the_trials_of_a_launcher_and_no_other_trial_starts(tmp_path, num_jobs, number):
    """With one job, trials are trained in the process of the sweep; with two, in others, which Ctrl-C reaches too."""
    words = [*IN_TURN, "hydra/launcher=joblib", f"hydra.launcher.n_jobs={num_jobs}", "trainer.max_epochs=500"]
    sweeping = Sweeping(tmp_path / "runs", words)
    sweeping.until(lambda: sum(path.stat().st_size > 0 for path in tmp_path.glob("runs/*/*/events.jsonl")) >= num_jobs)
    os.killpg(sweeping.process.pid, number) if number is signal.SIGINT else sweeping.process.send_signal(number)
    expected = {signal.SIGTERM: "preempted", signal.SIGINT: "interrupted"}[number]
    assert sweeping.process.wait() == Status(expected).exit_code, sweeping.text()
    data = read_sweep(only_sweep(tmp_path / "runs"))
    assert data["status"] == expected
    assert [one["status"] for one in data["trials"]] == ["interrupted"] * num_jobs + ["planned"] * (4 - num_jobs)
    for one in data["trials"][:num_jobs]:
        run = Run.load(only_sweep(tmp_path / "runs") / one["name"])
        assert (run.status, one["num_starts"]) == (expected, 1)
        assert run.checkpoints
        assert one["seconds"] == run.manifest.timings_seconds["total"]


@pytest.mark.parametrize("seconds", [0.1, pytest.param(0.25, marks=pytest.mark.slow)])
def test_ctrl_c_twice_ends_the_trials_of_a_launcher_and_prints_no_traceback(tmp_path, seconds):
    words = [*IN_TURN, "hydra/launcher=joblib", "hydra.launcher.n_jobs=2", "trainer.max_epochs=500"]
    sweeping = Sweeping(tmp_path / "runs", words)
    sweeping.until(lambda: sum(path.stat().st_size > 0 for path in tmp_path.glob("runs/*/*/events.jsonl")) == 2)
    os.killpg(sweeping.process.pid, signal.SIGINT)
    time.sleep(seconds)
    os.killpg(sweeping.process.pid, signal.SIGINT)
    assert sweeping.process.wait() == 130, sweeping.text()
    assert "Traceback" not in sweeping.text()
    trials = read_sweep(only_sweep(tmp_path / "runs"))["trials"]
    assert [one["status"] for one in trials] == ["interrupted", "interrupted", "planned", "planned"]
    assert [(one["seconds"], one["num_starts"]) for one in trials[2:]] == [(0, 0)] * 2


def test_trials_of_a_launcher_end_when_the_process_of_their_sweep_is_killed(tmp_path):
    words = [*IN_TURN, "hydra/launcher=joblib", "hydra.launcher.n_jobs=2", "trainer.max_epochs=500"]
    sweeping = Sweeping(tmp_path / "runs", words)
    sweeping.until(lambda: sum(path.stat().st_size > 0 for path in tmp_path.glob("runs/*/*/events.jsonl")) == 2)
    processes = named(sweeping.process.pid, "loky")
    assert len(processes) >= 2
    sweeping.process.kill()
    sweeping.process.wait()
    assert until(lambda: not alive(processes)), sweeping.text()
    folder = only_sweep(tmp_path / "runs")
    runs = [Run.load(path.parent) for path in sorted(folder.glob("*/manifest.json"))]
    assert [run.status for run in runs] == ["interrupted"] * 2, "no other trial starts"
    assert all(run.checkpoints for run in runs)
    assert {run.manifest.exit_reason for run in runs} == {"the process of the sweep was killed"}


@pytest.mark.parametrize("form", ["fit", "resume"])
@pytest.mark.parametrize("killed", [False, True])
def test_a_sweep_is_refused_while_another_process_trains_one_of_its_trials(tiny, capsys, monkeypatch, form, killed):
    data, folder = swept(TWO)
    done, unfinished = data["trials"]
    data["status"] = "running" if killed else "interrupted"
    unfinished["status"] = "running" if killed else "interrupted"
    (folder / "sweep.json").write_text(before := json.dumps(data))
    monkeypatch.setattr("rtrain.sweeps.record.catching_up.PATIENCE_SECONDS", 0.3)
    again = TWO if form == "fit" else ["resume", str(folder)]
    capsys.readouterr()
    with locked(folder / unfinished["name"]):
        assert rtrain(again) == 2
    said = capsys.readouterr()
    assert f"{unfinished['name']} is in use by process {os.getpid()} on " in said.err
    assert f"rtrain runs stop {folder / unfinished['name']}" in said.err
    assert "waiting for process" in said.out + said.err
    assert (folder / "sweep.json").read_text() == before
    with locked(folder / done["name"]):  # synced to a tracker, say: it is not trained again
        assert rtrain(again) == 0
