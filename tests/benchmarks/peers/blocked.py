"""How long training waits for a checkpoint of 500 MB, written beside it and written while it waits: one line each."""

import os
import shutil
import statistics
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

import torch
from torch import distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

from rtrain.testing.ranks import RankProcesses
from rtrain.testing.workers import make_worker
from rtrain.trainers.torch import shards
from rtrain.trainers.torch.saving import SavingGroup
from rtrain.trainers.torch.state import TrainState

NUM_PARAMETERS = 125_000_000 // 3
"""Of 4 bytes each; Adam keeps two more numbers for each."""


def make_model():
    return torch.nn.Sequential(*(torch.nn.Linear(2500, 2500, bias=False) for _ in range(NUM_PARAMETERS // 2500**2)))


def make_state(model):
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-6)
    state = TrainState(model, optimizer, None, torch.amp.GradScaler("cpu", enabled=False), None)
    step(state)
    return state


def step(state):
    state.model(torch.randn(4, 2500)).square().mean().backward()
    state.optimizer.step()
    state.optimizer.zero_grad()


def blocked(state, worker, snapshot, times):
    """Return the seconds of each save, and of each step while nothing is written and while something is."""
    seconds, quiet, busy = [], [], []
    for number in range(times):
        began = time.perf_counter()
        worker.save_checkpoint(snapshot, step=number, epoch=0, metrics={})
        seconds.append(time.perf_counter() - began)
        # Ranks that write together take as many steps as each other.
        while worker.savers is None and worker.saver.is_busy:
            busy.append(timed_step(state))
        worker.saver.wait()
        quiet.append(timed_step(state))
        if worker.rank == 0:
            shutil.rmtree(worker.run_dir / "checkpoints")
    return seconds, quiet, busy


def timed_step(state):
    began = time.perf_counter()
    step(state)
    return time.perf_counter() - began


def whole(folder, times):
    """One rank writes all; print what it waits."""
    state, found = make_state(make_model()), {}
    for upload in ("sync", "async"):
        worker = make_worker(folder, None, None, checkpoint={"upload": upload})
        found[upload], quiet, busy = blocked(state, worker, state.snapshot, times)
    tell("500 MB checkpoint, training waits:", found)
    first, slower = found["async"][0], statistics.median(busy) / statistics.median(quiet)
    print(f"  the first one, which finds its memory: {first:.3f} s; while one is written, a step takes {slower:.2f}x")


def sharded(rank, folder, times):
    """Two ranks of fsdp write half each; return what this one waits."""
    model, found, savers = make_model(), {}, SavingGroup()
    for part in (*model, model):
        fully_shard(part, mesh=init_device_mesh("cpu", (2,)))
    state = make_state(model)
    for upload in ("sync", "async"):
        worker = make_worker(folder, None, None, rank=rank, world_size=2, checkpoint={"upload": upload})
        worker.savers = savers
        found[upload], _, _ = blocked(state, worker, partial(shards.snapshot, state, savers.group), times)
    return found


def join(rank, addresses):
    torch.set_num_threads(1)
    os.environ["LOCAL_RANK"] = str(rank)
    dist.init_process_group("gloo", init_method=f"tcp://{addresses[0]}", rank=rank, world_size=len(addresses))


def tell(what, found):
    wait, later = statistics.median(found["sync"]), statistics.median(found["async"][1:])
    print(f"{what} {later:.3f} s async / {wait:.3f} s sync = {later / wait:.3f}   goal 0.1")


if __name__ == "__main__":
    times = int(sys.argv[1])
    with tempfile.TemporaryDirectory() as folder:
        whole(Path(folder) / "whole", times)
        two = RankProcesses(join)
        tell("  two ranks of fsdp write half each:", two.run(sharded, Path(folder) / "sharded", times)[0])
        two.close()
