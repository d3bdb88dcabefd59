"""Every strategy trains what one process trains."""

import json
import math
import os
from importlib.util import find_spec

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from torch_runs import (
    EXACT,
    GPT,
    RecordingChannel,
    assert_same,
    fit,
    fit_rank,
    join,
    make_conf,
    make_worker,
    metrics_of,
    small_dataset,
    token_dataset,
    weights,
)

from rtrain.config.targets.builder import Builder
from rtrain.errors import CheckpointError
from rtrain.runs.checkpoints import latest_checkpoint, read_record
from rtrain.runs.filesystem.files import sha256_of
from rtrain.runs.records import CheckpointRecord, WorkerRecord
from rtrain.testing.damage import replace_file
from rtrain.testing.ranks import RankProcesses
from rtrain.testing.workers import newest
from rtrain.trainers.torch.checkpoint.shards import consolidate
from rtrain.trainers.torch.config import StrategyConf
from rtrain.trainers.torch.loop import train, training
from rtrain.trainers.torch.predictor import load_predictor

PLAN = {"layers.0": "colwise", "layers.2": "rowwise"}
COSINE = {"_target_": "torch.optim.lr_scheduler.CosineAnnealingLR", "T_max": "auto"}
CLIPPED = {"clip_norm": 0.05}
"""Smaller than the gradients are."""


def whole(folder, tmp_path):
    """The weights of the newest checkpoint, put together."""
    out = tmp_path / f"{folder.name}.safetensors"
    consolidate(latest_checkpoint(folder), out)
    return load_file(out)


@pytest.mark.parametrize("strategy", ["fsdp", "tp"])
@pytest.mark.parametrize(
    "keys",
    [CLIPPED, {"accumulate_steps": 3, "strategy_options": {"activation_checkpointing": 1}}, {"clip_value": 0.001}],
    ids=lambda keys: next(iter(keys)),
)
def test_two_workers_train_a_gpt_like_one_process(world, tmp_path, strategy, keys):
    # 33 rows in steps of 16: the last step has one row, so that a rank of fsdp gets none. 7 tokens: uneven parts.
    dataset = token_dataset(num_train=33)
    options = StrategyConf(**keys.get("strategy_options", {}))
    keys = {**keys, "model": GPT, "global_batch_size": 16, "strategy_options": options}
    one, expected = fit(tmp_path / "one", make_conf(**keys), dataset=dataset)
    conf = make_conf(strategy=strategy, **keys)
    records, others = world.run(fit_rank, str(tmp_path / "two"), conf, dataset=dataset)
    assert_same(expected, whole(tmp_path / "two", tmp_path), rtol=1e-3, atol=1e-5)
    alone = {name: value for name, value in one.metrics.items() if "per_second" not in name}
    assert metrics_of(records) == pytest.approx(alone, rel=1e-4)
    rows = [one.facts["num_rows"] for part in (records, others) for one in part if isinstance(one, WorkerRecord)]
    assert sum(count["train"] for count in rows[-1:] + rows[:1]) == 33


@pytest.mark.parametrize("strategy", ["fsdp", "tp"])
def test_gradients_are_clipped_by_the_norm_of_all_parts(world, tmp_path, strategy):
    conf = make_conf(model=GPT, strategy=strategy, clip_norm=1e-3)
    norms = world.run(_norms, str(tmp_path), conf, dataset=token_dataset())
    assert norms == pytest.approx([1e-3, 1e-3], rel=1e-2)


def _norms(rank, folder, conf, **keys):
    """The norm of the clipped gradients, each put together first."""
    with training(make_worker(folder, conf, rank=rank, world_size=2, **keys)) as loop:
        learner, step = loop.learner, next(iter(loop.train_loader.steps(loop._next_pass())))
        learner.optimizer_step._backward(step)
        learner.strategy.clip(list(learner.state.model.parameters()))
        gradients = [parameter.grad for parameter in learner.state.model.parameters()]
        squares = [getattr(grad, "full_tensor", lambda g=grad: g)().square().sum().item() for grad in gradients]
        return math.sqrt(sum(squares))


@pytest.mark.parametrize("strategy", ["fsdp", "tp"])
@pytest.mark.parametrize("optimizer", ["SGD", "AdamW"])
def test_resuming_from_shards_changes_nothing(world, tmp_path, strategy, optimizer):
    momentum = {"momentum": 0.9} if optimizer == "SGD" else {}
    conf = make_conf(
        model={**GPT, "dropout": 0.1},
        strategy=strategy,
        optimizer={"_target_": f"torch.optim.{optimizer}", "lr": 0.01, **momentum},
        scheduler=COSINE,
        global_batch_size=16,
    )
    dataset = token_dataset()
    first, _ = world.run(fit_rank, str(tmp_path / "a"), conf, dataset=dataset)
    world.run(fit_rank, str(tmp_path / "b"), conf, dataset=dataset, stop_after={0: 1})
    assert (
        read_record(latest_checkpoint(tmp_path / "b"))["step"] < read_record(latest_checkpoint(tmp_path / "a"))["step"]
    )
    second, _ = world.run(fit_rank, str(tmp_path / "b"), conf, dataset=dataset)
    assert_same(whole(tmp_path / "a", tmp_path), whole(tmp_path / "b", tmp_path), **EXACT)
    assert metrics_of(first) == pytest.approx(metrics_of(second), rel=1e-12)


def two_groups(parameters, lr):
    """An optimizer of a user's: the first half of the parameters learns slowly."""
    parameters = list(parameters)
    half = len(parameters) // 2
    return torch.optim.SGD([{"params": parameters[:half], "lr": lr / 10}, {"params": parameters[half:]}], lr, 0.9)


def _fit_own(rank, folder, conf, world_size=2, stop_after=None):
    worker = make_worker(
        folder, conf, dataset=token_dataset(), channel=RecordingChannel(stop_after), rank=rank, world_size=world_size
    )
    worker.builder = Builder((f"{__name__}.*",))
    train(worker)


@pytest.mark.parametrize("strategy", ["ddp", "accelerate", "fsdp", "tp"])
def test_an_optimizer_of_the_users_gets_the_parameters_whatever_the_strategy(world, tmp_path, strategy):
    keys = {
        "model": GPT,
        "optimizer": {"_target_": f"{__name__}.two_groups", "lr": 0.05},
        "scheduler": COSINE,
        "global_batch_size": 16,
    }
    _fit_own(0, tmp_path / "one", make_conf(**keys), world_size=1)
    expected = weights(tmp_path / "one")
    conf = make_conf(**keys, strategy=strategy)
    world.run(_fit_own, str(tmp_path / "two"), conf)
    world.run(_fit_own, str(tmp_path / "parts"), conf, stop_after=2)
    world.run(_fit_own, str(tmp_path / "parts"), conf)
    put_together = weights if strategy in ("ddp", "accelerate") else lambda folder: whole(folder, tmp_path)
    found, again = (put_together(tmp_path / name) for name in ("two", "parts"))
    assert_same(expected, found, rtol=1e-3, atol=1e-5)
    assert_same(found, again, **EXACT)


@pytest.mark.parametrize("strategy", ["fsdp", "tp"])
def test_another_number_of_workers_takes_the_shards_over(world, tmp_path, strategy):
    dataset = token_dataset()
    conf = make_conf(model=GPT, strategy=strategy, global_batch_size=16)
    _, expected = fit(tmp_path / "one", make_conf(model=GPT, global_batch_size=16), dataset=dataset)
    world.run(fit_rank, str(tmp_path / "down"), conf, dataset=dataset, stop_after={0: 1})
    _fit_alone(tmp_path / "down", conf, dataset)
    assert_same(expected, whole(tmp_path / "down", tmp_path), rtol=1e-3, atol=1e-5)
    _fit_alone(tmp_path / "up", conf, dataset, stop_after=3)
    world.run(fit_rank, str(tmp_path / "up"), conf, dataset=dataset)
    assert_same(expected, whole(tmp_path / "up", tmp_path), rtol=1e-3, atol=1e-5)


def _fit_alone(folder, conf, dataset, stop_after=None):
    from rtrain.trainers.torch.loop import train

    channel = RecordingChannel(stop_after)
    train(make_worker(folder, conf, dataset=dataset, channel=channel))
    assert channel.checkpoints
    assert not torch.distributed.is_initialized()


@pytest.mark.parametrize("strategy", ["fsdp", "tp"])
def test_a_sharded_checkpoint_predicts_alone(world, tmp_path, strategy):
    dataset = token_dataset()
    conf = make_conf(model=GPT, strategy=strategy)
    records, _ = world.run(fit_rank, str(tmp_path), conf, dataset=dataset)
    rows = dataset.splits["val"].columns
    found = load_predictor(newest(tmp_path, conf, dataset)).predict(rows["x"])
    right = np.take_along_axis(found, rows["y"][..., None], axis=2)
    assert -np.log(right).mean() == pytest.approx(metrics_of(records)["val/loss"], rel=1e-5)


def test_every_rank_writes_its_part_of_one_checkpoint(world, tmp_path):
    # 3 outputs for 2 workers, a model without a list of blocks, whole weights beside the shards.
    options = StrategyConf(consolidate=True, blocks=["layers.0"])
    conf = make_conf(strategy="fsdp", strategy_options=options)
    killed = tmp_path / "checkpoints" / ".epoch-0002-step-00000004.tmp"
    killed.mkdir(parents=True)
    (killed / "left").touch()
    records, others = world.run(fit_rank, str(tmp_path), conf)
    folder = latest_checkpoint(tmp_path)
    assert folder.name == "epoch-0002-step-00000004"
    record = read_record(folder)
    names = sorted(record["files"])
    assert [name for name in names if name.startswith("shards/")] == [
        f"shards/shard-0000{rank}-model-00001-of-00001.safetensors" for rank in (1, 2)
    ]
    rest = {name for name in names if not name.startswith("shards/")}
    assert rest == {"about.json", "events.jsonl", "model.safetensors", "progress.json", "training.pt"}, (
        "something is missing, or left by a killed run"
    )
    for name, facts in record["files"].items():
        assert sha256_of(folder / name) == facts["sha256"]
    listed = [one.entry for one in records if isinstance(one, CheckpointRecord)][-1]
    assert {key: listed[key] for key in record} == record
    assert not [one for one in others if isinstance(one, CheckpointRecord)]
    assert not list(folder.parent.glob(".*")), "a temporary folder is left"
    assert json.loads((folder / "about.json").read_text())["info"]["name"] == "small"
    predictor = load_predictor(newest(tmp_path, conf, small_dataset()))
    rows = small_dataset().splits["test"].columns
    assert (predictor.predict(rows["x"]).argmax(1) == rows["y"]).mean() == metrics_of(records)["test/accuracy"]


def test_a_rank_without_a_part_of_a_weight_saves_and_resumes(world, tmp_path):
    dataset = small_dataset(task="regression", shape=(5,))  # one output: its bias lies on one rank only
    adam = {"_target_": "torch.optim.Adam", "lr": 0.01}
    conf = make_conf(strategy="fsdp", optimizer=adam, batch_size=16)
    world.run(fit_rank, str(tmp_path / "a"), conf, dataset=dataset)
    world.run(fit_rank, str(tmp_path / "b"), conf, dataset=dataset, stop_after={0: 1})
    world.run(fit_rank, str(tmp_path / "b"), conf, dataset=dataset)
    assert_same(whole(tmp_path / "a", tmp_path), whole(tmp_path / "b", tmp_path), **EXACT)


def test_any_layers_can_be_split_by_a_plan_of_the_config(world, tmp_path):
    conf = make_conf(batch_size=64)
    split = make_conf(batch_size=64, strategy="tp", strategy_options=StrategyConf(tp_plan=PLAN))
    one, expected = fit(tmp_path / "one", conf)
    records, _ = world.run(fit_rank, str(tmp_path / "two"), split)
    assert_same(expected, whole(tmp_path / "two", tmp_path), rtol=1e-4, atol=1e-6)
    assert metrics_of(records)["test/accuracy"] == one.metrics["test/accuracy"]


def test_weights_are_gathered_and_gradients_exchanged_in_a_smaller_type(world, tmp_path):
    options = StrategyConf(param_dtype="bf16", reduce_dtype="bf16", reshard_after_forward=False)
    one, _ = fit(tmp_path / "one", make_conf(model=GPT), dataset=token_dataset())
    conf = make_conf(model=GPT, batch_size=32, strategy="fsdp", strategy_options=options)
    records, _ = world.run(fit_rank, str(tmp_path / "two"), conf, dataset=token_dataset())
    found = metrics_of(records)["val/loss"]
    assert found != one.metrics["val/loss"]
    assert found == pytest.approx(one.metrics["val/loss"], rel=0.02)
    assert {weight.dtype for weight in whole(tmp_path / "two", tmp_path).values()} == {torch.float32}


def test_a_block_can_compute_its_activations_twice(tmp_path):
    options = StrategyConf(activation_checkpointing=2)
    _, expected = fit(tmp_path / "a", make_conf(model={**GPT, "dropout": 0.2}), dataset=token_dataset())
    conf = make_conf(model={**GPT, "dropout": 0.2}, strategy_options=options)
    calls = []
    with training(make_worker(tmp_path / "b", conf, dataset=token_dataset())) as loop:
        for number, block in enumerate(loop.learner.state.model.blocks):
            block.attention_norm.register_forward_hook(lambda *_, number=number: calls.append(number))
        loop.learner.train_step(next(iter(loop.train_loader.steps(loop._next_pass()))), 0)
    assert calls == [0, 1, 1]
    _, found = fit(tmp_path / "c", conf, dataset=token_dataset())
    assert_same(expected, found, **EXACT)


@pytest.mark.slow
def test_two_pairs_of_workers_share_weights_and_layers(tmp_path):
    dataset = token_dataset(num_train=33, vocab_size=8)
    keys = {"model": GPT, "global_batch_size": 16, **CLIPPED}
    conf = make_conf(strategy="fsdp_tp", **keys)
    _, expected = fit(tmp_path / "one", make_conf(**keys), dataset=dataset)
    four = RankProcesses(join, size=4)
    try:
        results = four.run(fit_rank, str(tmp_path / "four"), conf, dataset=dataset)
        four.run(fit_rank, str(tmp_path / "again"), conf, dataset=dataset, stop_after={0: 1})
        four.run(fit_rank, str(tmp_path / "again"), conf, dataset=dataset)
    finally:
        four.close()
    assert_same(expected, whole(tmp_path / "four", tmp_path), rtol=1e-3, atol=1e-5)
    assert_same(whole(tmp_path / "four", tmp_path), whole(tmp_path / "again", tmp_path), **EXACT)
    rows = [next(one.facts["num_rows"]["train"] for one in part if isinstance(one, WorkerRecord)) for part in results]
    assert sorted(rows) == [0, 0, 16, 17]


@pytest.mark.parametrize("tp_size", [1, 2])
def test_a_mesh_of_two_dimensions_trains_like_one_process(world, tmp_path, tp_size):
    dataset, keys = token_dataset(), {"model": GPT, "global_batch_size": 16, "accumulate_steps": 2, **CLIPPED}
    _, expected = fit(tmp_path / "one", make_conf(**keys), dataset=dataset)
    conf = make_conf(strategy="fsdp_tp", strategy_options=StrategyConf(tp_size=tp_size), **keys)
    world.run(fit_rank, str(tmp_path / "two"), conf, dataset=dataset)
    assert_same(expected, whole(tmp_path / "two", tmp_path), rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize(
    "keys", [CLIPPED, {"accumulate_steps": 3, "ema_decay": 0.9}], ids=lambda keys: next(iter(keys))
)
def test_accelerate_trains_like_one_process(world, tmp_path, keys):
    dataset, keys = token_dataset(num_train=33), {"model": GPT, "global_batch_size": 16, **keys}
    one, expected = fit(tmp_path / "one", make_conf(**keys), dataset=dataset)
    conf = make_conf(strategy="accelerate", **keys)
    alone, found = fit(tmp_path / "alone", conf, dataset=dataset)
    assert_same(expected, found, **EXACT)
    records, _ = world.run(fit_rank, str(tmp_path / "two"), conf, dataset=dataset)
    assert_same(expected, weights(tmp_path / "two"), rtol=1e-3, atol=1e-5)
    assert metrics_of(records)["val/loss"] == pytest.approx(one.metrics["val/loss"], rel=1e-4)
    assert alone.metrics["val/loss"] == one.metrics["val/loss"]


def test_accelerate_resumes_and_computes_in_a_smaller_type(world, tmp_path):
    dataset = token_dataset()
    conf = make_conf(model=GPT, strategy="accelerate", global_batch_size=16, precision="bf16")
    world.run(fit_rank, str(tmp_path / "a"), conf, dataset=dataset)
    world.run(fit_rank, str(tmp_path / "b"), conf, dataset=dataset, stop_after={0: 1})
    world.run(fit_rank, str(tmp_path / "b"), conf, dataset=dataset)
    assert_same(weights(tmp_path / "a"), weights(tmp_path / "b"), **EXACT)
    _, plain = fit(tmp_path / "c", make_conf(model=GPT, global_batch_size=16), dataset=dataset)
    assert not torch.equal(plain["tokens.weight"], weights(tmp_path / "a")["tokens.weight"])


@pytest.mark.slow
@pytest.mark.skipif(find_spec("deepspeed") is None, reason="deepspeed is not installed")
@pytest.mark.parametrize("stage", [1, 2, 3])
def test_deepspeed_trains_like_one_process(world, tmp_path, stage):
    # The first run of a machine compiles C++ for half a minute.
    dataset, keys = token_dataset(num_train=33), {"model": GPT, "global_batch_size": 16, "accumulate_steps": 2}
    keys |= {"clip_norm": 0.05, "scheduler": COSINE}
    one, expected = fit(tmp_path / "one", make_conf(**keys), dataset=dataset)
    conf = make_conf(strategy="deepspeed", strategy_options=StrategyConf(zero_stage=stage), **keys)
    records, _ = world.run(fit_rank, str(tmp_path / "two"), conf, dataset=dataset)
    found = weights(tmp_path / "two")
    assert_same(expected, found, rtol=1e-3, atol=1e-5)
    assert metrics_of(records)["val/loss"] == pytest.approx(one.metrics["val/loss"], rel=1e-4)
    world.run(fit_rank, str(tmp_path / "again"), conf, dataset=dataset, stop_after={0: 1})
    world.run(fit_rank, str(tmp_path / "again"), conf, dataset=dataset)
    assert_same(weights(tmp_path / "two"), weights(tmp_path / "again"), **EXACT)
    rows = dataset.splits["val"].columns
    found = load_predictor(newest(tmp_path / "two", conf, dataset)).predict(rows["x"])
    assert (found.argmax(2) == rows["y"]).mean() == pytest.approx(metrics_of(records)["val/accuracy"])


@pytest.mark.slow
@pytest.mark.skipif(find_spec("deepspeed") is None, reason="deepspeed is not installed")
@pytest.mark.parametrize("stage", [2, 3])
def test_deepspeed_trains_in_one_process_and_names_checkpoints_of_several(world, tmp_path, stage):
    dataset = token_dataset()
    keys = {"model": GPT, "global_batch_size": 16, "precision": "bf16"}
    conf = make_conf(strategy="deepspeed", strategy_options=StrategyConf(zero_stage=stage), **keys)
    plain, _ = fit(tmp_path / "plain", make_conf(**keys), dataset=dataset)
    for run in "ab":
        found, _ = fit(tmp_path / run, conf, dataset=dataset)
        assert found.metrics["val/loss"] == pytest.approx(plain.metrics["val/loss"], rel=1e-3)
    world.run(fit_rank, str(tmp_path / "two"), conf, dataset=dataset, stop_after={0: 1})
    with pytest.raises(CheckpointError, match="written by 2 workers"):
        fit(tmp_path / "two", conf, dataset=dataset)


@pytest.mark.slow
@pytest.mark.skipif(find_spec("deepspeed") is None, reason="deepspeed is not installed")
def test_deepspeed_runs_no_code_of_its_files(tmp_path):
    class Evil:
        def __reduce__(self):
            return os.system, (f"touch {tmp_path / 'it-ran'}",)

    conf = make_conf(strategy="deepspeed", strategy_options=StrategyConf(zero_stage=1), model=GPT, global_batch_size=16)
    fit(tmp_path / "run", conf, dataset=token_dataset())
    newest_one = latest_checkpoint(tmp_path / "run")
    for path in newest_one.glob("deepspeed/*.pt"):
        torch.save({"module": Evil()}, tmp_path / "evil")
        replace_file(newest_one, path.relative_to(newest_one).as_posix(), (tmp_path / "evil").read_bytes())
    with pytest.raises(CheckpointError, match="more than tensors"):
        fit(tmp_path / "run", conf, dataset=token_dataset())
    assert not (tmp_path / "it-ran").exists()
