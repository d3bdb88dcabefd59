"""What lies on a GPU, and what has to stay in main memory; the same of devices that only pretend, without one."""

from dataclasses import replace

import pytest
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import DTensor, Replicate, Shard
from torch_runs import MLP, make_conf, make_worker, small_dataset

from rtrain.datasets.base import Batch, Dataset, EpochPlan, ResidentSplit
from rtrain.testing.small_data import streamed
from rtrain.trainers.torch.checkpoint import shards
from rtrain.trainers.torch.checkpoint.state import TrainState
from rtrain.trainers.torch.inputs import loader
from rtrain.trainers.torch.inputs.loader import TensorLoader
from rtrain.trainers.torch.loop import train, training
from rtrain.trainers.torch.ranks import TorchRanks

needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")
ADAM = {"_target_": "torch.optim.AdamW", "lr": 0.01}


@pytest.fixture
def four_ranks():
    """A process group of four ranks, of which the others exist on paper only."""
    from torch.testing._internal.distributed.fake_pg import FakeStore

    dist.init_process_group("fake", store=FakeStore(), rank=0, world_size=4)
    yield
    dist.destroy_process_group()


def test_the_copy_of_a_shard_stays_in_main_memory(four_ranks):
    """The mesh is one of GPUs; a tensor that took it over would be sent there."""
    mesh = DeviceMesh("cuda", torch.arange(4).reshape(2, 2), mesh_dim_names=("dp", "tp"), _init_backend=False)

    class OfGPUs(DTensor):
        device_mesh, placements, shape = mesh, (Shard(0), Replicate()), torch.Size([4, 3])

        def __new__(cls):
            return torch.Tensor._make_subclass(cls, torch.zeros(4, 3))

        def stride(self):
            return (3, 1)

    copy = shards._like(OfGPUs(), torch.ones(2, 3))
    assert (copy.device.type, copy.device_mesh.device_type) == ("cpu", "cpu")
    assert copy.device_mesh.mesh.tolist() == mesh.mesh.tolist()
    assert (copy.shape, copy.placements) == ((4, 3), (Shard(0), Replicate()))


@pytest.mark.parametrize("keys", [{"fused": True}, {"capturable": True}, {}], ids=["fused", "capturable", "usual"])
def test_numbers_of_steps_go_where_the_optimizer_counts_them(keys):
    parameter = nn.Parameter(torch.zeros(3, device="meta"))
    optimizer = torch.optim.AdamW([parameter], lr=0.01)
    optimizer.param_groups[0].update(keys)
    optimizer.state[parameter]["step"] = torch.tensor(7.0)
    shards._place_steps(optimizer)
    assert optimizer.state[parameter]["step"].device.type == ("meta" if keys else "cpu")


def test_weights_that_a_batch_lacks_lie_where_its_rows_do():
    data = small_dataset()
    info = replace(data.info, columns=("weight",))
    feed = TensorLoader(streamed(data.splits["train"].columns), info, TorchRanks(0, 1, torch.device("cpu")), False)
    feed._inputs.place = lambda values: torch.zeros(values.shape, device="meta")
    feed._inputs.ready = lambda x: x
    feed._with_weight = lambda step, weight: weight
    found = feed.step(Batch(data.splits["train"].columns["x"][:5], data.splits["train"].columns["y"][:5], 5))
    assert found.device.type == "meta"


def test_an_optimizer_is_read_into_main_memory_first(tmp_path, monkeypatch):
    asked, load = [], torch.load
    train(make_worker(tmp_path, make_conf(max_steps=1)))

    def note(*args, **keys):
        asked.append(keys["map_location"])
        return load(*args, **keys)

    monkeypatch.setattr(torch, "load", note)
    with training(make_worker(tmp_path, make_conf(max_steps=2))):
        assert asked == ["cpu"]  # by name: the device of the model is torch.device("cpu") here, and a GPU elsewhere


def on_gpu(folder, conf, dataset=None):
    worker = make_worker(folder, conf, dataset=dataset or small_dataset())
    worker.use_gpu = True
    return worker


@needs_gpu
@pytest.mark.parametrize("keys", [{}, {"fused": True}, {"capturable": True}])
@pytest.mark.parametrize("strategy", ["ddp", "fsdp"])
def test_a_run_on_a_gpu_resumes_with_every_adamw(tmp_path, keys, strategy):
    conf = {"optimizer": {**ADAM, **keys}, "strategy": strategy}
    train(on_gpu(tmp_path, make_conf(max_steps=3, **conf)))
    with training(on_gpu(tmp_path, make_conf(max_steps=6, **conf))) as loop:
        state: TrainState = loop.learner.state
        steps = [one["step"] for one in state.optimizer.state.values()]
        assert {step.device.type for step in steps} == {"cuda" if keys else "cpu"}
        loop.run()
        assert loop.progress.step == 6


@needs_gpu
@pytest.mark.parametrize("share", [0.0, loader.GPU_SHARE], ids=["in_main_memory", "on_the_gpu"])
@pytest.mark.parametrize("memory", ["resident", "streamed"])
def test_training_does_not_wait_for_rows_to_reach_a_gpu(monkeypatch, share, memory):
    monkeypatch.setattr(loader, "GPU_SHARE", share)
    data = small_dataset()
    split = data.splits["train"] if memory == "resident" else streamed(data.splits["train"].columns)
    feed = TensorLoader(split, data.info, TorchRanks(0, 1, torch.device("cuda", 0)), False)
    torch.cuda.set_sync_debug_mode("error")
    try:
        found = list(feed.steps(EpochPlan(rank=0, world_size=1, global_batch_size=7, seed=3)))
    finally:
        torch.cuda.set_sync_debug_mode("default")
    assert {step.x.device.type for step in found} == {"cuda"}


@needs_gpu
def test_a_sharded_checkpoint_takes_no_memory_of_the_gpu(tmp_path):
    wide = {**MLP, "hidden": [2048, 2048]}
    with training(on_gpu(tmp_path, make_conf(model=wide, optimizer=ADAM, strategy="fsdp", max_steps=2))) as loop:
        loop.run()
        torch.cuda.synchronize()
        before = torch.cuda.memory_allocated()
        torch.cuda.reset_peak_memory_stats()
        loop.learner.snapshot()
        assert torch.cuda.max_memory_allocated() - before < 1 << 20


@needs_gpu
def test_a_stream_without_weights_in_a_batch_trains_on_a_gpu(tmp_path):
    data = small_dataset()
    info = replace(data.info, columns=("weight",))
    splits = {name: streamed(split.columns) for name, split in data.splits.items() if isinstance(split, ResidentSplit)}
    train(on_gpu(tmp_path, make_conf(max_steps=2), Dataset(info, splits)))
