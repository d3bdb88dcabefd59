"""What a process leaves that crashes outside of Python, and what is said of it."""

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from made_runs import add_checkpoint, make_run, write_events

from rtrain.config.run_conf import FailureConf
from rtrain.engine.crash import read_crash
from rtrain.engine.failures import Retries, ending_of, told
from rtrain.runs.events import Event
from rtrain.runs.manifest import Manifest, utc_now
from rtrain.runs.records import WorkerFailure
from rtrain.training.recording import how_it_was_cut_off

CODE = """
import ctypes
import os
import sys
from pathlib import Path

from rtrain.engine.crash import crash_log
from rtrain.engine.run_worker import run_worker

class Plugin:
    def train_loop(self, conf):
        return lambda worker: forward(worker)

class Any:
    def __getattr__(self, name): return self
    def __call__(self, *args, **more): return self
    def __enter__(self): return self
    def __exit__(self, *args): return None

def forward(worker):
    if sys.argv[1] == "crash":
        ctypes.string_at(0)
    os.abort()

with crash_log(Path("run"), 3):
    if sys.argv[1] != "well":
        run_worker(Plugin(), Any())
"""


@pytest.fixture
def run_dir(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(CODE)
    (tmp_path / "run" / "logs").mkdir(parents=True)
    return tmp_path / "run"


def end(how):
    variables = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.run([sys.executable, "mine.py", how], env=variables, check=False, capture_output=True).returncode


def gone(rank):
    return WorkerFailure(rank=rank, type="ActorDiedError", message="", kind="worker died")


def test_a_worker_that_crashes_names_the_users_line_and_the_stack(run_dir):
    assert end("crash") == -signal.SIGSEGV
    crash = read_crash(run_dir, 3)
    ending = ending_of([], [gone(2), gone(3)], oom_kills=1, crashes={3: crash})
    assert (ending.kind, ending.rank, ending.type) == ("worker died", 3, "Segmentation fault")
    assert ending.message == "the process of worker 3 crashed in mine.py:22: Segmentation fault"
    lines = told(ending, run_dir).splitlines()
    assert lines[:3] == [
        "  --> mine.py:22 in forward",
        "  >   22 | ctypes.string_at(0)",
        "  --> mine.py:12 in <lambda>",
    ]
    assert "mine.py:3" not in "".join(lines)  # what called rtrain
    assert lines[-1] == "The stack of every thread is in run/logs/worker-3.crash.txt"


def test_the_same_crash_twice_without_progress_ends_the_run(run_dir):
    assert end("abort") == -signal.SIGABRT
    ending = ending_of([], [gone(3)], crashes={3: read_crash(run_dir, 3)})
    retries = Retries(FailureConf())
    assert retries.wait_after(ending, progress=False) is not None
    assert retries.wait_after(ending, progress=False) is None
    assert "the same error occurred again" in retries.refusal


def manifest_of(**facts):
    made = dict.fromkeys(("run_id", "run_name", "config_hash", "config", "project_root", "seed", "versions"))
    made |= dict.fromkeys(("command", "config_file", "overrides", "git", "host", "resources", "dataset"))
    return Manifest(**made, attempts=[{"num_workers": 4}], **facts)


@pytest.mark.parametrize("listed", [False, True])
@pytest.mark.parametrize("reported", [0, 10, 12])
def test_the_last_step_of_a_killed_run_is_that_of_its_last_report_or_checkpoint(tmp_path, reported, listed):
    run = make_run(tmp_path, losses=())
    write_events(run / "events.jsonl", [Event(step=reported, epoch=1, time=utc_now(), metrics={})])
    checkpoint = add_checkpoint(run, step=10)
    known = [{"name": checkpoint.name, "step": 10}] if listed else []
    if listed:
        shutil.rmtree(checkpoint)
    text = how_it_was_cut_off(run, manifest_of(checkpoints=known))
    assert f"after step {max(reported, 10)}: it was killed" in text


def test_who_resumes_a_run_hears_how_its_process_ended(run_dir):
    manifest = manifest_of(step=7)
    assert "after step 7: it was killed" in how_it_was_cut_off(run_dir, manifest)
    end("crash")
    text = how_it_was_cut_off(run_dir, manifest)
    assert text.startswith("the process that trained this run crashed in mine.py:22: Segmentation fault\n  --> mine.py")
    manifest.status = "failed"
    assert how_it_was_cut_off(run_dir, manifest) is None


def test_a_process_that_does_not_crash_leaves_no_file(run_dir):
    assert end("well") == 0
    assert list(Path("run/logs").iterdir()) == []
    assert read_crash(run_dir, 3) is None
