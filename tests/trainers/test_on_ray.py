"""Two workers on a real Ray cluster: the slow and true part of the tests."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import rtrain
from rtrain.errors import NotEnoughResourcesError, TrainingError
from rtrain.runs.events import read_events
from rtrain.runs.run import Run

RTRAIN = Path(sys.executable).with_name("rtrain")

LOOPS = '''
import pathlib
import tempfile

import ray.train
import torch
from torch import nn


def axes(config):
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
    ray.train.report({"first": first, "second": second})


def data():
    shard = ray.train.get_dataset_shard("train")
    rows = torch.tensor(float(sum(len(batch["y"]) for batch in shard.iter_torch_batches(batch_size=100))))
    torch.distributed.all_reduce(rows)
    ray.train.report({"rows": rows.item()})


def fails_once(config):
    start = 0
    if ray.train.get_checkpoint():
        with ray.train.get_checkpoint().as_directory() as folder:
            start = int((pathlib.Path(folder) / "done").read_text())
    for number in range(start, 4):
        mark = pathlib.Path(config["mark"])
        first = ray.train.get_context().get_world_rank() == 0
        if first and number == 2 and not mark.exists():
            mark.touch()
            raise RuntimeError("once is enough")
        with tempfile.TemporaryDirectory() as folder:
            (pathlib.Path(folder) / "done").write_text(str(number + 1))
            checkpoint = ray.train.Checkpoint.from_directory(folder) if first else None
            ray.train.report({"number": number, "start": start}, checkpoint=checkpoint)


def fails_on_one_rank():
    ray.train.report({"loss": 1.0})
    if ray.train.get_context().get_world_rank() == 1:
        raise ValueError("rank one has had enough")
    ray.train.report({"loss": 0.5})
'''


@pytest.fixture
def project(tmp_path):
    """A user's project with loops of its own."""
    (tmp_path / "pyproject.toml").write_text("")
    (tmp_path / "my_loops.py").write_text(LOOPS)
    return tmp_path


def fit_loop(project, loop, *overrides, more=""):
    config = f"{{lr: 0.1, mark: {project}/mark}}"
    text = f"trainer: {{type: torch, train_loop: 'my_loops:{loop}', train_loop_config: {config}}}\n{more}"
    (project / "loop.yaml").write_text(text)
    return rtrain.fit(str(project / "loop.yaml"), ["num_workers=2", f"run.root_dir={project}/runs", *overrides])


def test_gradients_are_averaged_over_workers(project):
    run = fit_loop(project, "axes")
    assert run.status == "succeeded"
    assert run.metrics["first"] == pytest.approx(2, abs=1e-3)
    assert run.metrics["second"] == pytest.approx(-3, abs=1e-3)
    assert "learned by rank 1" in (run.path / "logs" / "worker-1.log").read_text()
    assert sorted(run.manifest.workers) == ["0", "1"]


def test_a_loop_of_ones_own_gets_each_row_once(project):
    run = fit_loop(project, "data", more="defaults: [{dataset: digits}]\n")
    assert run.metrics["rows"] == run.manifest.dataset["num_rows"]["train"]


def test_a_failure_that_is_allowed_goes_on_from_the_checkpoint(project):
    run = fit_loop(project, "fails_once", "run.failure.max_failures=1")
    assert run.status == "succeeded"
    assert [event.step for event in run.events()] == [1, 2, 3, 4]
    assert [event.metrics["start"] for event in run.events()] == [0, 0, 2, 2]
    assert [attempt["from_checkpoint"] for attempt in run.manifest.attempts] == [None, "report-000002"]


def test_the_true_error_comes_first_with_its_rank(project):
    with pytest.raises(
        TrainingError, match=r"^ValueError on worker 1( \(worker 0 failed after it\))?: rank one has had enough"
    ):
        fit_loop(project, "fails_on_one_rank")
    (path,) = (project / "runs" / "loop").iterdir()
    manifest = Run.load(path).manifest
    assert manifest.status == "failed"
    assert manifest.error["rank"] == 1
    assert "rank one has had enough" in manifest.error["traceback"]
    assert "my_loops.py" in (path / "logs" / "worker-1.log").read_text()


def test_a_cluster_of_someone_else_is_joined_and_left_running(tmp_path):
    import ray

    ray.init("local", num_cpus=2, include_dashboard=False, log_to_driver=False, object_store_memory=100_000_000)
    try:
        with pytest.raises(NotEnoughResourcesError, match=r"asks for 3 workers .* room for 2"):
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


def _take_all_cpus():
    import ray

    @ray.remote(num_cpus=2)
    class Hog:
        def there(self):
            return True

    hog = Hog.options(lifetime="detached", name="hog").remote()
    assert ray.get(hog.there.remote())


@pytest.mark.parametrize(
    ("signum", "status", "code"), [(signal.SIGINT, "interrupted", 130), (signal.SIGTERM, "preempted", 143)]
)
def test_a_signal_stops_saves_and_marks_the_run(tmp_path, signum, status, code):
    command = [RTRAIN, "fit", "mlp", "num_workers=2", "trainer.max_epochs=100000", "run.root_dir=runs"]
    process = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        _wait_for_events(tmp_path, process)
        process.send_signal(signum)
        output, _ = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == code, output
    (path,) = (tmp_path / "runs" / "mlp").iterdir()
    run = Run.load(path)
    assert run.status == status
    newest = run.manifest.checkpoints[-1]
    assert newest["step"] >= max(event.step for event in run.events())
    assert (path / "checkpoints" / newest["name"] / "model.safetensors").exists()
    assert f"result      {status}" in output


def _wait_for_events(folder, process):
    deadline = time.monotonic() + 90
    while time.monotonic() < deadline and process.poll() is None:
        if any(list(read_events(path)) for path in folder.glob("runs/*/*/events.jsonl")):
            return
        time.sleep(0.2)
    pytest.fail(f"no events: {process.communicate(timeout=30)[0]}")


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
    words += ["trainer.num_threads=1", "trainer.max_epochs=2"]
    # Each epoch fails unless it has seen as many rows as there are.
    half = rtrain.fit("mlp", [*words, "num_workers=2", "trainer.max_steps=35"])
    there = half.manifest.dataset["num_rows"]["train"]
    shares = [worker["num_rows"]["train"] for worker in half.manifest.workers.values()]
    assert sum(shares) == there
    assert abs(shares[0] - shares[1]) <= 1
    ended = rtrain.resume(half.path, ["num_workers=1", "trainer.max_steps=null"])
    assert next(reversed(list(ended.events()))).step == 2 * -(-there // 64)
    half = rtrain.fit("mlp", [*words, "num_workers=2", "trainer.max_steps=35"])
    again = rtrain.resume(half.path, ["trainer.max_steps=null"])
    whole = rtrain.fit("mlp", [*words, "num_workers=2"])
    found, expected = (load_file(run.checkpoints[-1] / "model.safetensors") for run in (again, whole))
    assert {name: value.tobytes() for name, value in found.items()} == {
        name: value.tobytes() for name, value in expected.items()
    }
