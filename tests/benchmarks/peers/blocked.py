"""How long training waits for a checkpoint, written in the background and written while it waits, in seconds as JSON.

Usage: blocked.py TIMES MEGABYTES.
"""

import json
import os
import shutil
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
from rtrain.trainers.torch.checkpoint import shards
from rtrain.trainers.torch.checkpoint.process_group import CheckpointProcessGroup
from rtrain.trainers.torch.checkpoint.state import TrainState

BYTES_PER_PARAMETER = 12
"""Adam keeps two more numbers of 4 bytes for each."""


def make_model(num_megabytes):
    width = min(2500, int((num_megabytes * 1e6 / BYTES_PER_PARAMETER) ** 0.5))
    num_layers = int(num_megabytes * 1e6 / BYTES_PER_PARAMETER) // width**2
    return torch.nn.Sequential(*(torch.nn.Linear(width, width, bias=False) for _ in range(num_layers)))


def make_state(model):
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-6)
    state = TrainState(model, optimizer, None, torch.amp.GradScaler("cpu", enabled=False), None)
    step(state)
    return state


def step(state):
    state.model(torch.randn(4, state.model[0].in_features)).square().mean().backward()
    state.optimizer.step()
    state.optimizer.zero_grad()


def blocked(state, worker, snapshot, times):
    """Return the seconds of each save, without those of the first one, which finds its memory."""
    seconds = []
    for number in range(times):
        began = time.perf_counter()
        worker.save_checkpoint(snapshot, step=number, epoch=0, metrics={})
        seconds.append(time.perf_counter() - began)
        # Ranks that write together take as many steps as each other.
        while worker.checkpoints.group is None and worker.checkpoints.thread.is_busy:
            step(state)
        worker.checkpoints.thread.wait()
        step(state)
        if worker.rank == 0:
            shutil.rmtree(worker.run_dir / "checkpoints")
    return seconds[1:]


def whole(folder, times, num_megabytes):
    """One rank writes all; return what it waits."""
    state, found = make_state(make_model(num_megabytes)), {}
    for upload in ("sync", "async"):
        worker = make_worker(folder, None, None, checkpoint={"upload": upload})
        found[upload] = blocked(state, worker, state.snapshot, times)
    return found


def sharded(rank, folder, times, num_megabytes):
    """Two ranks of fsdp write half each; return what this one waits."""
    model, found, savers = make_model(num_megabytes), {}, CheckpointProcessGroup()
    for part in (*model, model):
        fully_shard(part, mesh=init_device_mesh("cpu", (2,)))
    state = make_state(model)
    for upload in ("sync", "async"):
        worker = make_worker(folder, None, None, rank=rank, world_size=2, checkpoint={"upload": upload})
        worker.checkpoints.group = savers
        found[upload] = blocked(state, worker, partial(shards.snapshot, state, savers.group), times)
    return found


def join(rank, addresses):
    torch.set_num_threads(1)
    os.environ["LOCAL_RANK"] = str(rank)
    dist.init_process_group("gloo", init_method=f"tcp://{addresses[0]}", rank=rank, world_size=len(addresses))


if __name__ == "__main__":
    times, num_megabytes = int(sys.argv[1]), int(sys.argv[2])
    with tempfile.TemporaryDirectory() as folder:
        two = RankProcesses(join)
        found = {
            "one rank": whole(Path(folder) / "whole", times, num_megabytes),
            "two ranks of fsdp": two.run(sharded, Path(folder) / "sharded", times, num_megabytes)[0],
        }
        two.close()
    print(json.dumps({name: [one["async"], one["sync"]] for name, one in found.items()}))
