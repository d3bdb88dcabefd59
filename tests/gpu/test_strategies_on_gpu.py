"""Strategies of the torch trainer on one GPU: a world of one rank, which talks by NCCL.

A strategy that does nothing in a world of one is refused there. FSDP gathers weights into one file, and Accelerate
has options; tensor parallelism is tried below the commands.
"""

import numpy as np
import pytest
from gpu_runs import DEVICE, IN_PROCESS_AND_ON_A_WORKER, PROBE, devices, fit, resume, words

import rtrain

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(180)]
GPT = (
    *("mlp", "model=gpt", "model.num_layers=2", "model.num_heads=2", "model.width=32", "optimizer.lr=0.003"),
    *("dataset=text", "dataset.path=${package_dir:pydoc_data}/topics.py", "dataset.tokenizer=characters"),
    *("dataset.block_size=32", "dataset.split={val: 0.1}", "dataset.limit=2000", "trainer.batch_size=32"),
    *("trainer.max_epochs=null", "trainer.max_steps=60", "trainer.eval_every_epochs=null", PROBE),
    *("trainer.eval_every_steps=30", "run.checkpoint.every_steps=30"),
)
FSDP = ("trainer.strategy=fsdp", "trainer.strategy_options.consolidate=true")
ACCELERATE = (
    "trainer.strategy=accelerate",
    "trainer.strategy_options.accelerate={step_scheduler_with_optimizer: false}",
)
OF_TOKENS = {"vocab_size": 7, "block_size": 8, "num_layers": 2, "num_heads": 2, "width": 16}


@pytest.fixture(scope="module")
def on_cpu(project):
    return fit(project, *GPT, device="cpu")


@IN_PROCESS_AND_ON_A_WORKER
@pytest.mark.parametrize("strategy", [(), FSDP, ACCELERATE], ids=["ddp", "fsdp", "accelerate"])
def test_a_strategy_on_one_gpu_learns_what_a_cpu_does(project, on_cpu, strategy, num_workers):
    run = fit(project, *GPT, *strategy, num_workers=num_workers)
    assert [entry["model"] for entry in devices(run)] == [DEVICE]
    assert run.metrics["val/loss"] == pytest.approx(on_cpu.metrics["val/loss"], rel=0.01)


def test_a_sharded_run_is_resumed_and_predicts(project, on_cpu):
    begun = fit(project, *GPT, *FSDP, "trainer.max_steps=30")
    run = resume(begun, "trainer.max_steps=60")
    assert run.metrics["val/loss"] == pytest.approx(on_cpu.metrics["val/loss"], rel=0.01)
    there, here = (rtrain.evaluate(run.path, [word], split="val") for word in (words(0)[1], "use_gpu=false"))
    assert there["loss"] == pytest.approx(here["loss"], rel=0.001)


def test_bfloat16_of_fsdp_learns_about_the_same(project, on_cpu):
    run = fit(project, *GPT, "trainer.strategy=fsdp", "trainer.strategy_options.param_dtype=bf16")
    assert run.metrics["val/loss"] == pytest.approx(on_cpu.metrics["val/loss"], rel=0.05)


@pytest.mark.parametrize("strategy", ["tp", "fsdp"])
def test_a_world_of_one_splits_its_layers_and_learns_the_same(tmp_path, strategy):
    split, whole = (losses(tmp_path / name, name, device) for name, device in ((strategy, DEVICE), ("ddp", "cpu")))
    assert split == pytest.approx(whole, rel=1e-3)


def losses(folder, strategy, device):
    """Train a small GPT for two epochs, each from a checkpoint of the one before; return its losses."""
    from rtrain.testing.workers import RecordingChannel, make_worker
    from rtrain.trainers.torch.config import Conf
    from rtrain.trainers.torch.loop import train

    found = []
    for num_epochs in (1, 2):
        conf = Conf(
            model={"_target_": "rtrain.models.torch.GPT", **OF_TOKENS},
            optimizer={"_target_": "torch.optim.AdamW", "lr": 0.01},
            batch_size=16,
            max_epochs=num_epochs,
            strategy=strategy,
        )
        channel = RecordingChannel()
        worker = make_worker(folder, conf, counted_tokens(), channel=channel)
        worker.use_gpu = device == "cuda"
        train(worker)
        assert channel.worker_facts[0]["device"].startswith(device)
        found.append(channel.metrics["val/loss"])
    return found


def counted_tokens():
    """Sequences of 8 tokens that count on by 1 or 2."""
    from rtrain.testing.small_data import in_memory

    rng, columns = np.random.default_rng(0), {}
    for name, count in {"train": 60, "val": 14}.items():
        start, stride = rng.integers(0, 7, (count, 1)), rng.integers(1, 3, (count, 1))
        tokens = (start + stride * np.arange(9)) % 7
        columns[name] = {"x": tokens[:, :-1], "y": tokens[:, 1:]}
    return in_memory(columns, "language-modeling", dtype="int64", num_classes=7)
