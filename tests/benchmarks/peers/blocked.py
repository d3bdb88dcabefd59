"""How long training waits for a checkpoint of 500 MB, written beside it and written while it waits: one line each."""

import statistics
import sys
import tempfile
import time
from pathlib import Path

import torch

from rtrain.testing.workers import make_worker
from rtrain.trainers.torch.state import TrainState

NUM_PARAMETERS = 125_000_000 // 3
"""Of 4 bytes each; Adam keeps two more numbers for each."""


def make_state():
    model = torch.nn.Sequential(*(torch.nn.Linear(2500, 2500, bias=False) for _ in range(NUM_PARAMETERS // 2500**2)))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-6)
    state = TrainState(model, optimizer, None, torch.amp.GradScaler("cpu", enabled=False), None)
    step(state)
    return state


def step(state):
    state.model(torch.randn(4, 2500)).square().mean().backward()
    state.optimizer.step()
    state.optimizer.zero_grad()


def blocked(state, upload, times):
    """Return the seconds of each save, and of each step while nothing is written and while something is."""
    seconds, quiet, busy = [], [], []
    with tempfile.TemporaryDirectory() as folder:
        worker = make_worker(folder, None, None, checkpoint={"upload": upload})
        for number in range(times):
            began = time.perf_counter()
            worker.save_checkpoint(state.snapshot, step=number, epoch=0, metrics={})
            seconds.append(time.perf_counter() - began)
            while worker.saver.is_busy:
                busy.append(timed_step(state))
            worker.saver.wait()
            quiet += [timed_step(state) for _ in range(3)]
            for path in Path(folder).glob("checkpoints/*/*"):
                path.unlink()
    return seconds, quiet, busy


def timed_step(state):
    began = time.perf_counter()
    step(state)
    return time.perf_counter() - began


if __name__ == "__main__":
    times = int(sys.argv[1])
    state = make_state()
    blocking, quiet, _ = blocked(state, "sync", times)
    beside, _, busy = blocked(state, "async", times)
    middle = statistics.median
    wait, first, later = middle(blocking), beside[0], middle(beside[1:])
    print(f"500 MB checkpoint, training waits: {later:.3f} s async / {wait:.3f} s sync = {later / wait:.3f}   goal 0.1")
    slower = middle(busy) / middle(quiet)
    print(f"  the first one, which finds its memory: {first:.3f} s; while one is written, a step takes {slower:.2f}x")
