"""Two workers on a real Ray cluster: the slow and true part of the tests."""

import errno
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from processes import alive, descendants, signal_all

import rtrain
from rtrain.errors import NotEnoughResourcesError, RunDirError, TrainingError
from rtrain.runs.checkpoints import latest_checkpoint
from rtrain.runs.events import EventLog, read_events
from rtrain.runs.run import Run

RTRAIN = Path(sys.executable).with_name("rtrain")

LOOPS = '''
import ray.train
import torch
from torch import nn


def each_axis(config):
    """Each worker sees one axis only: alone it learns one weight, both together learn (2, -3)."""
    rank = ray.train.get_context().get_world_rank()
    x = torch.eye(2)[rank : rank + 1]
    y = torch.tensor([[2.0, -3.0][rank]])
    model = ray.train.torch.prepare_model(nn.Linear(2, 1, bias=False))
    optimizer = torch.optim.SGD(model.parameters(), lr=config["lr"])
    for _ in range(200):
        optimizer.zero_grad()
        (model(x).squeeze(1) - y).square().mean().backward()
        optimizer.step()
    first, second = model.module.weight.detach()[0].tolist()
    print("learned by rank", rank)
    shard = ray.train.get_dataset_shard("train")
    rows = torch.tensor(float(sum(len(batch["y"]) for batch in shard.iter_torch_batches(batch_size=100))))
    torch.distributed.all_reduce(rows)
    ray.train.report({"first": first, "second": second, "rows": rows.item()})
'''
ONE_FAILS = """
import time

import ray.train


def one_fails(config):
    for number in range(3):
        ray.train.report({"number": number})
    if ray.train.get_context().get_world_rank() == 1:
        raise ValueError("after three reports")
    time.sleep(60)
"""
READER = """
import os
import pathlib


def read():
    print(pathlib.Path("note").read_text(), os.environ["WORD"])
"""


@pytest.fixture
def project(tmp_path):
    """A user's project with loops of its own."""
    (tmp_path / "pyproject.toml").write_text("")
    (tmp_path / "my_loops.py").write_text(LOOPS)
    return tmp_path


def test_a_loop_of_ones_own_averages_gradients_over_workers_and_gets_each_row_once(project, capsys):
    (project / "loop.yaml").write_text(
        "defaults: [{dataset: digits}]\n"
        "trainer: {type: torch, train_loop: 'my_loops:each_axis', train_loop_config: {lr: 0.1}}\n"
    )
    run = rtrain.fit(str(project / "loop.yaml"), ["num_workers=2", f"run.root_dir={project}/runs"])
    assert run.status == "succeeded"
    assert run.metrics["first"] == pytest.approx(2, abs=1e-3)
    assert run.metrics["second"] == pytest.approx(-3, abs=1e-3)
    assert run.metrics["rows"] == run.manifest.dataset["num_rows"]["train"]
    assert "learned by rank 1" in (run.path / "logs" / "worker-1.log").read_text()
    assert capsys.readouterr().out == "learned by rank 0\n"
    assert sorted(run.manifest.workers) == ["0", "1"]


@pytest.mark.slow
def test_what_was_reported_before_another_worker_failed_is_kept(project):
    (project / "failing.py").write_text(ONE_FAILS)
    config = project / "failing.yaml"
    config.write_text("trainer: {type: torch, train_loop: 'failing:one_fails'}\nnum_workers: 2\n")
    with pytest.raises(TrainingError, match="after three reports") as raised:
        rtrain.fit(config, {"run.failure.max_failures": 0, "run.root_dir": str(project / "runs")})
    assert raised.value.run.frame()["number"].tolist() == [0, 1, 2]


@pytest.mark.slow
def test_a_cluster_of_someone_else_is_joined_and_left_running(tmp_path):
    import ray

    ray.init("local", num_cpus=2, include_dashboard=False, log_to_driver=False, object_store_memory=100_000_000)
    try:
        with pytest.raises(NotEnoughResourcesError, match=r"requests 3 workers .* enough for 2"):
            rtrain.fit("mlp", ["num_workers=3", f"run.root_dir={tmp_path}"])
        assert list(tmp_path.iterdir()) == []
        run = rtrain.fit("mlp", ["num_workers=1", "trainer.max_epochs=1", f"run.root_dir={tmp_path}"])
        assert run.status == "succeeded"
        assert run.manifest.resources["own_cluster"] is False
        assert ray.is_initialized()
        _take_all_cpus()
        overrides = ["num_workers=1", "scaling.start_timeout_seconds=1", f"run.root_dir={tmp_path}"]
        with pytest.raises(TrainingError, match="the 1 workers did not start within 1 seconds"):
            rtrain.fit("mlp", overrides)
    finally:
        ray.shutdown()


JOIN = """
import sys
from pathlib import Path

import rtrain
from ray.cluster_utils import Cluster

project = Path(sys.argv[1])
made = Cluster(initialize_head=True, head_node_args={"num_cpus": 2, "object_store_memory": 100_000_000})
try:
    env = f"{{working_dir: {project}/sent, env_vars: {{WORD: of mine}}}}"
    words = [f"cluster.address={made.address}", f"+cluster.runtime_env={env}", f"run.root_dir={project}/runs"]
    run = rtrain.fit(str(project / "loop.yaml"), [*words, "num_workers=1"])
finally:
    made.shutdown()
print((run.path / "logs" / "worker-0.log").read_text())
"""


@pytest.mark.slow
def test_a_folder_and_variables_are_sent_to_a_cluster_that_is_joined(project):
    """In a process of its own: the one of the tests has Ray's token, and keeps it."""
    (project / "sent").mkdir()
    (project / "sent" / "note").write_text("a note")
    for folder in (project, project / "sent"):  # the folder that is sent is the one that the workers import from
        (folder / "sent_loops.py").write_text(READER)
    (project / "loop.yaml").write_text("trainer: {type: torch, train_loop: 'sent_loops:read'}\n")
    others = {**os.environ, "RAY_AUTH_MODE": "disabled"}  # as of a cluster that somebody else has started without
    done = subprocess.run(
        [sys.executable, "-c", JOIN, str(project)], env=others, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "a note of mine" in done.stdout


def _take_all_cpus():
    import ray

    @ray.remote(num_cpus=2)
    class Hog:
        def there(self):
            return True

    hog = Hog.options(lifetime="detached", name="hog").remote()
    assert ray.get(hog.there.remote())


@pytest.mark.parametrize(
    ("signum", "reached", "status", "code"),
    [
        pytest.param(signal.SIGINT, "driver", "interrupted", 130, marks=pytest.mark.slow),
        pytest.param(signal.SIGTERM, "group", "preempted", 143, marks=pytest.mark.slow),
        pytest.param(signal.SIGHUP, "group", "preempted", 143, marks=pytest.mark.slow),
        pytest.param(signal.SIGUSR1, "all", "preempted", 143, marks=pytest.mark.slow),
        (signal.SIGTERM, "all", "preempted", 143),
    ],
)
def test_a_signal_stops_saves_and_marks_the_run(start, tmp_path, signum, reached, status, code):
    command = [RTRAIN, "fit", "mlp", "num_workers=2", "trainer.max_epochs=100000", "run.root_dir=runs"]
    command += ["run.checkpoint.every_epochs=null", "run.checkpoint.every_seconds=null"]
    output = tmp_path / "output"
    with output.open("w") as file:
        process = start(command, cwd=tmp_path, stdout=file, stderr=file, start_new_session=True)
    _wait_for_events(tmp_path, process, output)
    below = descendants(process.pid)
    assert len(below) > 6, "Ray's processes were not found"
    if reached == "group":  # timeout, a shell
        os.killpg(process.pid, signum)
    else:  # systemd, Slurm
        signal_all([process.pid] if reached == "driver" else [process.pid, *below], signum)
    assert process.wait(timeout=60) == code, output.read_text()
    assert alive(below) == []
    (path,) = (tmp_path / "runs" / "mlp").iterdir()
    run = Run.load(path)
    assert run.status == status
    newest = run.manifest.checkpoints[-1]
    assert newest["step"] >= max(event.step for event in run.events())
    assert (path / "checkpoints" / newest["name"] / "model.safetensors").exists()
    assert f"result      {status}" in output.read_text()


@pytest.mark.slow
@pytest.mark.parametrize("seconds", [4, 7, 10, 15, 20])
def test_a_second_ctrl_c_ends_the_run_wherever_it_is(start, tmp_path, seconds):
    command = [RTRAIN, "fit", "mlp", "num_workers=2", "trainer.max_epochs=100000", "run.root_dir=runs"]
    output = tmp_path / "output"
    with output.open("w") as file:
        process = start(command, cwd=tmp_path, stdout=file, stderr=file, start_new_session=True)
    time.sleep(seconds)
    below = descendants(process.pid)
    for _ in range(2):
        os.kill(process.pid, signal.SIGINT)
        time.sleep(0.3)
    assert process.wait(timeout=60) == 130, output.read_text()
    assert "core worker" not in output.read_text(), "Ray was called after its end"
    deadline = time.monotonic() + 20
    while alive(below) and time.monotonic() < deadline:
        time.sleep(0.2)
    assert alive(below) == []


@pytest.mark.slow
def test_a_disk_that_is_full_while_workers_report_ends_the_run_with_that_cause(tmp_path, monkeypatch):
    appended = []

    def append(self, event):
        appended.append(event)
        if len(appended) > 3:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        written(self, event)

    written = EventLog.append
    monkeypatch.setattr(EventLog, "append", append)
    words = ["num_workers=1", "trainer.max_epochs=100000", f"run.root_dir={tmp_path}"]
    with pytest.raises(RunDirError, match=os.strerror(errno.ENOSPC)):
        rtrain.fit("mlp", words)
    (path,) = (tmp_path / "mlp").iterdir()
    run = Run.load(path)
    assert run.status == "failed"
    assert run.manifest.error["type"] == "RunDirError"
    assert latest_checkpoint(path) is not None, "the workers were not asked to save and end"


def _wait_for_events(folder, process, output):
    deadline = time.monotonic() + 90
    while time.monotonic() < deadline and process.poll() is None:
        if any(list(read_events(path)) for path in folder.glob("runs/*/*/events.jsonl")):
            return
        time.sleep(0.2)
    pytest.fail(f"no events: {output.read_text()}")


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_two_workers_share_a_stream_that_one_takes_over_and_two_take_up_again(tmp_path):
    import numpy as np
    import pyarrow as pa
    from pyarrow import parquet
    from safetensors.numpy import load_file

    x = np.random.default_rng(0).normal(size=(2003, 4)).astype("float32")
    columns = {f"f{number}": x[:, number] for number in range(4)}
    parquet.write_table(pa.table({**columns, "y": (x[:, 0] > 0).astype(int)}), tmp_path / "rows.parquet", 300)
    words = ["dataset=parquet", f"dataset.path={tmp_path}/rows.parquet", "dataset.label=y", "dataset.memory=stream"]
    words += [f"run.root_dir={tmp_path}/runs", "trainer.batch_size=null", "trainer.global_batch_size=64"]
    words += ["trainer.num_threads=1"]
    whole_length = ["trainer.max_steps=null", "trainer.max_epochs=2"]
    # Each epoch fails unless it has seen as many rows as there are.
    half = rtrain.fit("mlp", [*words, "num_workers=2", "trainer.max_steps=35"])
    there = half.manifest.dataset["num_rows"]["train"]
    shares = [worker["num_rows"]["train"] for worker in half.manifest.workers.values()]
    assert sum(shares) == there
    assert abs(shares[0] - shares[1]) <= 1
    ended = rtrain.resume(half.path, ["num_workers=1", *whole_length])
    assert next(reversed(list(ended.events()))).step == 2 * -(-there // 64)
    half = rtrain.fit("mlp", [*words, "num_workers=2", "trainer.max_steps=35"])
    again = rtrain.resume(half.path, whole_length)
    whole = rtrain.fit("mlp", [*words, "num_workers=2", "trainer.max_epochs=2"])
    found, expected = (load_file(run.checkpoints[-1] / "model.safetensors") for run in (again, whole))
    assert {name: value.tobytes() for name, value in found.items()} == {
        name: value.tobytes() for name, value in expected.items()
    }
