"""Machines that are lost, taken away and added while a run trains: several raylets on this machine."""

import threading
import time

import pytest
from growing_cluster import add_node, growing_cluster

import rtrain
from rtrain.runs.run import Run

MODEL = """
import pathlib
import time

from torch import nn

HURRY = pathlib.Path(__file__).with_name("hurry")


class Slow(nn.Module):
    # Each step takes its time until somebody is in a hurry.
    def __init__(self, seconds):
        super().__init__()
        self.net, self.seconds = nn.Linear(64, 10), seconds

    def forward(self, x):
        time.sleep(self.seconds if self.training and not HURRY.exists() else 0)
        return self.net(x.flatten(1))
"""
CONFIG = """
defaults:
  - dataset: digits
  - trainer: torch
trainer:
  model: {{_target_: slow.Slow, seconds: 0.05}}
  optimizer: {{_target_: torch.optim.SGD, lr: 0.1}}
  global_batch_size: 120
  max_epochs: {epochs}
run: {{root_dir: {folder}/runs, checkpoint: {{every_epochs: null, every_steps: {every}}}}}
scaling: {{start_timeout_seconds: 60, resize_seconds: 2}}
"""
STEPS_PER_EPOCH = 11
"""Of 1,258 rows of digits."""
EPOCHS = 200
"""So many that training is under way when a machine comes, however long that takes."""


@pytest.fixture(autouse=True)
def no_leaks():
    """Ray is started and stopped by the fixture below."""


@pytest.fixture
def cluster():
    with growing_cluster() as made:
        yield made


class Fit:
    """A run in a thread of its own: nodes are only added from the main one."""

    def __init__(self, folder, *overrides, epochs=40, every=1000):
        (folder / "pyproject.toml").write_text("")
        (folder / "slow.py").write_text(MODEL)
        (folder / "slow.yaml").write_text(CONFIG.format(folder=folder, epochs=epochs, every=every))
        self._folder, self._words, self._error = folder, overrides, None
        self._thread = threading.Thread(target=self._fit)
        self._thread.start()

    def _fit(self):
        try:
            rtrain.fit(str(self._folder / "slow.yaml"), self._words)
        except Exception as error:
            self._error = error

    @property
    def run(self):
        (path,) = self._folder.glob("runs/slow/*")
        return Run.load(path)

    def wait_for(self, what, seconds=120):
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline and self._thread.is_alive():
            if list(self._folder.glob("runs/slow/*/manifest.json")) and what(self.run.manifest):
                return
            time.sleep(0.2)
        pytest.fail(f"it never came: {self._error}; {self.run.manifest.attempts}")

    def hurry(self):
        (self._folder / "hurry").touch()

    def end(self):
        self._thread.join(timeout=240)
        assert not self._thread.is_alive()
        if self._error is not None:
            raise self._error
        return self.run


def whys(run):
    return [one.get("ended_because", {}).get("kind") for one in run.manifest.attempts]


def check_epochs(run, epochs):
    """Each epoch has ended once in what the run is made of, and had every row: the loop itself fails otherwise."""
    ended = [event.epoch for event in run.events() if "train/epoch_loss" in event.metrics]
    assert sorted(set(ended)) == list(range(1, epochs + 1))
    assert run.manifest.step == epochs * STEPS_PER_EPOCH


@pytest.mark.slow
def test_a_machine_that_is_lost_and_one_that_comes_leave_every_epoch_whole(tmp_path, cluster):
    node = add_node(cluster)
    fit = Fit(tmp_path, "num_workers=[1,2]", epochs=EPOCHS, every=5)
    fit.wait_for(lambda manifest: len(manifest.checkpoints) > 1)
    cluster.remove_node(node, allow_graceful=False)
    fit.wait_for(lambda manifest: len(manifest.attempts) == 2 and manifest.step > 60)
    add_node(cluster)
    fit.wait_for(lambda manifest: len(manifest.attempts) == 3)
    fit.hurry()
    run = fit.end()
    assert [attempt["num_workers"] for attempt in run.manifest.attempts] == [2, 1, 2]
    assert whys(run) == ["node lost", "resized", None]
    check_epochs(run, EPOCHS)


@pytest.mark.slow
def test_a_machine_that_will_be_taken_away_is_left_after_a_checkpoint(tmp_path, cluster):
    from ray._raylet import GcsClient
    from ray.core.generated import autoscaler_pb2

    node = add_node(cluster)
    fit = Fit(tmp_path, "num_workers=[1,2]", "run.failure.max_failures=0")
    fit.wait_for(lambda manifest: manifest.step > 20)
    reason = autoscaler_pb2.DrainNodeReason.Value("DRAIN_NODE_REASON_PREEMPTION")
    deadline = int((time.time() + 60) * 1000)
    drained, why = GcsClient(address=cluster.address).drain_node(node.node_id, reason, "spot", deadline)
    assert drained, why
    fit.wait_for(lambda manifest: len(manifest.attempts) == 2)
    run = fit.end()
    assert whys(run) == ["preempted", None]
    assert run.manifest.attempts[1]["num_workers"] == 1
    assert run.manifest.attempts[1]["from_checkpoint"] is not None
    check_epochs(run, 40)


@pytest.mark.slow
def test_too_few_machines_are_waited_for_and_then_told(tmp_path, cluster):
    node = add_node(cluster)
    fit = Fit(tmp_path, "num_workers=2", "run.failure.wait_seconds=5", "scaling.start_timeout_seconds=5", every=5)
    fit.wait_for(lambda manifest: len(manifest.checkpoints) > 1)
    cluster.remove_node(node, allow_graceful=False)
    with pytest.raises(rtrain.errors.TrainingError, match="resources for 2 workers did not return within 5 seconds"):
        fit.end()
    assert fit.run.status == "failed"
