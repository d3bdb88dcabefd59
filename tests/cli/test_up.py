"""``rtrain up``: what runs there ends as it would have here, and nothing of it is left."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
from contextlib import contextmanager
from hashlib import sha256
from importlib import import_module
from pathlib import Path

import pytest
from processes import alive, descendants, until

from rtrain.cli.warm import facts
from rtrain.cli.warm.imported import Imported
from rtrain.cli.warm.messages import send
from rtrain.runs.run import Run

RTRAIN = Path(sys.executable).with_name("rtrain")
SPEED = {"train/rows_per_second": 0}
MLP = ["fit", "mlp", "num_workers=1", "trainer.max_epochs=2"]
ENDLESS = [*MLP, "trainer.max_epochs=100000"]


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """One that is ready, for all tests: where it listens, and its process."""
    with ready(tmp_path_factory.mktemp("up") / "s") as found:
        yield found


@contextmanager
def ready(place, *words):
    code, out, err = rtrain(place, "up", *words)
    assert (code, err) == (0, "")
    try:
        yield place, int(re.search(r"process (\d+)", out)[1])
    finally:
        assert rtrain(place, "down")[0] == 0


def rtrain(place, *words, folder=None, **variables):
    done = subprocess.run(
        [RTRAIN, *words],
        cwd=folder or Path(place).parent,
        env=environment(place, **variables),
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


def environment(place, **variables):
    return {**os.environ, facts.PLACE: str(place), "PYTEST_CURRENT_TEST": "", **variables}


def trains(start, place, folder, **keys):
    """Start a run that does not end, and return its client when it trains."""
    client = start(
        [RTRAIN, *ENDLESS, f"run.root_dir={folder}"],
        env=environment(place),
        cwd=place.parent,
        stdout=subprocess.PIPE,
        text=True,
        **keys,
    )
    assert any("epoch 1/" in line for line in client.stdout)
    return client


def run_in(folder):
    [run] = (Run.load(path.parent) for path in folder.glob("*/*/manifest.json"))
    return run


def weights(run):
    return {
        str(path.relative_to(run.path)): sha256(path.read_bytes()).hexdigest()
        for path in run.path.rglob("*.safetensors")
    }


NET = """
from pathlib import Path
from torch import nn

class Net(nn.Sequential):
    def __init__(self):
        width = int(Path("width.txt").read_text())
        super().__init__(nn.Flatten(), nn.Linear(64, width), nn.ReLU(), nn.Linear(width, 10))
"""
"""Finds a file next to the config, in the worker too."""
LOOP = """
import tempfile
import ray.train
import torch
from safetensors.torch import save_file

def train():
    net = torch.nn.Linear(4, 2)
    with tempfile.TemporaryDirectory() as folder:
        save_file(net.state_dict(), f"{folder}/model.safetensors")
        ray.train.report({"weight": float(net.weight.sum())}, checkpoint=ray.train.Checkpoint(folder))
"""
PROJECT = {
    "pyproject.toml": "",
    "width.txt": "24",
    "own_net.py": NET,
    "own.yaml": """
defaults: [{trainer: torch}, {optimizer: adamw}, {dataset: digits}]
trainer: {model: {_target_: own_net.Net}, max_epochs: 2}
""",
    "own_loop.py": LOOP,
    "loop.yaml": "trainer: {type: torch, train_loop: 'own_loop:train'}",
}


DATA = """
import numpy
from sklearn.datasets import load_digits

def load():
    print("drawn", numpy.random.rand())
    return load_digits(as_frame=True).frame.rename(columns={"target": "y"})
"""


@pytest.mark.parametrize("config", ["own.yaml", pytest.param("loop.yaml", marks=pytest.mark.slow)])
def test_a_run_there_equals_one_here_to_the_last_bit_and_leaves_no_process(server, tmp_path, config):
    place, _ = server
    for name, text in PROJECT.items():
        (place.parent / name).write_text(text)
    for name in ("here", "there"):
        where = place if name == "there" else "off"
        words = ["fit", config, "num_workers=1", f"run.root_dir={tmp_path / name}"]
        code, out, err = rtrain(where, *words, folder=place.parent)
        assert (code, err) == (0, ""), out
    here, there = run_in(tmp_path / "here"), run_in(tmp_path / "there")
    assert there.manifest.host["pid"] != here.manifest.host["pid"]
    assert there.metrics | SPEED == here.metrics | SPEED
    assert weights(there) == weights(here) != {}
    seat, worker = there.manifest.host["pid"], there.manifest.workers["0"]["pid"]
    assert until(lambda: not alive([seat, worker]))
    ready_again = rtrain(place, "up")[1]
    assert re.fullmatch(r"ready: torch, 1 worker\nprocess \d+, unused for \d+ s; runs so far: [1-9]\n", ready_again)


@pytest.mark.parametrize(
    ("number", "code", "status"),
    [
        (signal.SIGINT, 130, "interrupted"),
        pytest.param(signal.SIGTERM, 143, "preempted", marks=pytest.mark.slow),
    ],
)
def test_a_signal_reaches_the_run(start, server, tmp_path, number, code, status):
    client = trains(start, server[0], tmp_path)
    client.send_signal(number)
    assert client.wait(60) == code
    assert run_in(tmp_path).status == status


@pytest.mark.parametrize(("number", "is_heard"), [(signal.SIGINT, True), (signal.SIGHUP, False)])
def test_signals_that_the_client_was_started_without_do_what_they_do_here(start, server, tmp_path, number, is_heard):
    client = trains(start, server[0], tmp_path, preexec_fn=lambda: signal.signal(number, signal.SIG_IGN))
    client.send_signal(number)
    if not is_heard:
        with pytest.raises(subprocess.TimeoutExpired):
            client.wait(2)
        client.send_signal(signal.SIGINT)
    assert client.wait(60) == 130
    assert run_in(tmp_path).status == "interrupted"


def test_a_run_is_alone_there_and_ends_with_its_client(start, server, tmp_path):
    place, pid = server
    client = trains(start, place, tmp_path)
    code, _, err = rtrain(place, "fit", "nothing")
    assert code == 2
    assert "note: what `rtrain up` keeps ready is not used: another run uses it\n" in err
    code, _, err = rtrain(place, "up", "--workers", "2")
    assert (code, f"error: a run uses what process {pid} keeps ready." in err) == (1, True)
    client.kill()
    client.wait()
    assert until(lambda: run_in(tmp_path).status == "preempted")
    assert until(lambda: "in use" not in rtrain(place, "up", "--status")[1])


def test_commands_of_another_environment_run_here_and_say_why(server, tmp_path):
    place, _ = server
    code, _, err = rtrain(place, "fit", "nothing", WORD="x", TERM="dumb")
    assert code == 2
    assert "keeps ready is not used: another value of WORD; `rtrain up` renews it\n" in err
    assert "is not used: not the same folder; " in rtrain(place, "fit", "nothing", folder=tmp_path)[2]
    assert "\nnot for commands from here: another value of WORD\n" in rtrain(place, "up", "--status", WORD="x")[1]


def test_a_client_that_gives_up_starts_no_run(server):
    place, pid = server
    os.kill(pid, signal.SIGSTOP)
    with socket.socket(socket.AF_UNIX) as gone:
        gone.connect(str(place))
        question = {"question": "run", "facts": facts.facts(), "words": MLP, "program": "rtrain", "path": sys.path}
        question["facts"].update(variables=environment(place), folder=facts.identity(place.parent))
        send(gone, question)
    os.kill(pid, signal.SIGCONT)
    said = rtrain(place, "up", "--status")[1]
    assert ("in use" in said, f"process {pid}" in said) == (False, True)


def test_only_this_account_reaches_it(server):
    assert server[0].stat().st_mode & 0o077 == 0


def test_it_ends_when_no_command_comes(tmp_path):
    with ready(tmp_path / "s", "--trainer", "xgboost", "--idle-minutes", "0.02") as (place, pid):
        left = [pid, *descendants(pid)]
        assert until(lambda: not alive(left), 60)
        assert rtrain(place, "up", "--status")[1] == "rtrain up keeps nothing ready\n"


@pytest.mark.slow
def test_two_workers_get_ready_and_train_the_same(tmp_path):
    with ready(tmp_path / "s", "--workers", "2") as (place, _):
        assert rtrain(place, "up", "--status")[1].startswith("ready: torch, 2 workers\n")
        for name in ("here", "there"):
            where = place if name == "there" else "off"
            words = [*MLP, "num_workers=2", f"run.root_dir={tmp_path / name}"]
            code, out, err = rtrain(where, *words, folder=place.parent)
            assert (code, err) == (0, ""), out
    assert weights(run_in(tmp_path / "here")) == weights(run_in(tmp_path / "there")) != {}


@pytest.mark.slow
def test_runs_draw_other_random_numbers_and_a_resumed_one_goes_on(tmp_path):
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "own_data.py").write_text(DATA)
    words = ["fit", "mlp", "num_workers=1", "trainer.max_epochs=1", "dataset=python", "dataset.function=own_data:load"]
    with ready(tmp_path / "s") as (place, _):
        drawn = [re.search("drawn .*", "".join(rtrain(place, *words)[1:]))[0] for _ in range(2)]
        assert len(set(drawn)) == 2
        code, out, err = rtrain(place, "resume", "last", "trainer.max_epochs=2")
        assert (code, "is not used" in err) == (0, False), out
        assert "runs so far: 3" in rtrain(place, "up", "--status")[1]


@pytest.mark.slow
def test_a_private_run_has_a_cluster_that_is_private(tmp_path):
    with ready(tmp_path / "s") as (place, _):
        code, _, err = rtrain(place, *MLP, "run.private=true", "run.root_dir=runs")
    assert (code, err) == (
        0,
        "note: the cluster of `rtrain up` is not used: this run needs other workers, or another cluster\n",
    )
    assert {path.stat().st_mode & 0o077 for path in (tmp_path / "runs").rglob("*")} == {0}


@pytest.mark.slow
def test_one_that_is_stuck_is_named(tmp_path):
    with ready(tmp_path / "s") as (place, pid):
        os.kill(pid, signal.SIGSTOP)
        assert (
            "it does not answer (timed out); `rtrain down` clears it away, or says how" in rtrain(place, "fit", "x")[2]
        )
        code, _, err = rtrain(place, "down")
        assert (code, f"End it: kill -9 $(cat {place}.lock)" in err) == (1, True)
        assert Path(f"{place}.lock").read_text() == str(pid)
        os.kill(pid, signal.SIGCONT)


@pytest.mark.slow
@pytest.mark.parametrize("runs", [False, True])
def test_nothing_outlives_one_that_was_killed(start, tmp_path, runs):
    with ready(tmp_path / "s") as (place, pid):
        client = trains(start, place, tmp_path) if runs else None
        left = [pid, *descendants(pid)]
        os.kill(pid, signal.SIGKILL)
        assert until(lambda: not alive(left), 60)
        if client is not None:
            assert client.wait(60) == 1
            assert run_in(tmp_path).status == "preempted"


def test_one_that_is_dead_is_passed_over_with_a_note(tmp_path):
    place = tmp_path / "s"
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(place))
    assert "it does not answer" in rtrain(place, "fit", "nothing", folder=tmp_path)[2]
    assert rtrain(place, "up", "--status")[1] == "rtrain up keeps nothing ready\n"
    assert rtrain(place, "down")[1] == "rtrain up keeps nothing ready\n"
    assert "note" not in rtrain(place, "fit", "nothing")[2]


@pytest.mark.parametrize(
    ("words", "place", "expected"),
    [
        (["--trainer", "tensorflow"], "s", "rtrain up can't keep workers of tensorflow ready."),
        (["--trainer", "torhc"], "s", "did you mean: torch"),
        ([], "missing/s", "rtrain up can't write"),
        ([], "off", "rtrain up has no place for its socket: RTRAIN_UP is off."),
        ([], "s" * 120, "is too long for a socket"),
        ([], "notes.txt", "exists, and is not a socket"),
    ],
)
def test_what_cannot_be_kept_ready_is_an_error(tmp_path, words, place, expected):
    (tmp_path / "notes.txt").write_text("mine")
    where = place if place == "off" else tmp_path / place
    code, _, err = rtrain(where, "up", *words, folder=tmp_path)
    assert (code, expected in err) == (2, True), err
    assert rtrain(where, "down", folder=tmp_path)[:2] == (0, "rtrain up keeps nothing ready\n")
    assert (tmp_path / "notes.txt").read_text() == "mine"


@pytest.mark.parametrize("name", [*facts.facts()])
def test_each_fact_counts(name):
    there = json.loads(json.dumps(facts.facts()))
    assert facts.difference(facts.facts(), there) is None
    assert facts.difference(facts.facts(), there | {name: {"NEW": "x"}}) is not None
    assert facts.difference(facts.facts(), {key: value for key, value in there.items() if key != name}) is not None


def test_another_folder_of_the_same_name_is_another_one(tmp_path):
    (tmp_path / "project").mkdir()
    before = facts.identity(tmp_path / "project")
    assert facts.identity(tmp_path / "project") == before
    (tmp_path / "project").rename(tmp_path / "old")
    (tmp_path / "project").mkdir()
    assert facts.identity(tmp_path / "project") != before


def test_files_that_were_imported_and_changed_since_are_noticed(tmp_path, monkeypatch):
    (tmp_path / "of_this_test.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(sys.modules, "of_this_test", import_module("of_this_test"))
    imported = Imported()
    assert not imported.has_changed()
    os.utime(tmp_path / "of_this_test.py", (1, 1))
    assert imported.has_changed()


def test_packages_that_were_installed_since_are_noticed_but_not_what_python_compiles(tmp_path, monkeypatch):
    folder = tmp_path / "site-packages"
    (folder / "one-1.0.dist-info").mkdir(parents=True)
    monkeypatch.syspath_prepend(folder)
    imported = Imported()
    (folder / "__pycache__").mkdir()
    assert not imported.has_changed()
    (folder / "one-1.0.dist-info").rename(folder / "one-1.1.dist-info")
    assert imported.has_changed()
