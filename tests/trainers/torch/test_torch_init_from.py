"""A run begins with the weights of another one, whatever strategy each of them has."""

import pytest
from safetensors.torch import load_file
from torch_runs import EXACT, GPT, assert_same, fit, fit_rank, join, make_conf, token_dataset, weights

from rtrain.runs.checkpoints import latest_checkpoint
from rtrain.testing.ranks import RankProcesses
from rtrain.trainers.torch.checkpoint.shards import consolidate
from rtrain.trainers.torch.config import StrategyConf

SHARDED = ["fsdp", "tp"]
STILL = {"_target_": "torch.optim.SGD", "lr": 0.0}
"""Leaves the weights as they are."""


def make_still(strategy="ddp", **keys):
    return make_conf(**{"model": GPT, "strategy": strategy, "optimizer": STILL, "max_epochs": 1, **keys})


def whole(folder, tmp_path):
    """The weights of the newest checkpoint, put together."""
    newest = latest_checkpoint(folder)
    if not (newest / "shards").is_dir():
        return weights(folder)
    out = tmp_path / f"{folder.name}.safetensors"
    consolidate(newest, out)
    return load_file(out)


@pytest.mark.parametrize("before", ["ddp", *SHARDED])
@pytest.mark.parametrize("now", ["ddp", "accelerate", *SHARDED])
def test_weights_go_from_any_strategy_to_any_other(world, tmp_path, before, now):
    dataset = token_dataset()
    world.run(fit_rank, str(tmp_path / "first"), make_conf(model=GPT, strategy=before), dataset=dataset)
    first = str(latest_checkpoint(tmp_path / "first"))
    world.run(fit_rank, str(tmp_path / "second"), make_still(now), dataset=dataset, init_from=first)
    assert_same(whole(tmp_path / "first", tmp_path), whole(tmp_path / "second", tmp_path), **EXACT)


@pytest.mark.parametrize("strategy", SHARDED)
def test_one_process_begins_with_shards(world, tmp_path, strategy):
    dataset = token_dataset()
    world.run(fit_rank, str(tmp_path / "first"), make_conf(model=GPT, strategy=strategy), dataset=dataset)
    first = str(latest_checkpoint(tmp_path / "first"))
    _, found = fit(tmp_path / "second", make_still(ema_decay=0.9), dataset=dataset, init_from=first)
    assert_same(whole(tmp_path / "first", tmp_path), found, **EXACT)
    averaged = weights(tmp_path / "second", "model_ema.safetensors")
    assert_same(found, averaged, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("strategy", SHARDED)
def test_parts_are_those_of_averaged_weights(world, tmp_path, strategy):
    dataset = token_dataset()
    fit(tmp_path / "first", make_conf(model=GPT, ema_decay=0.9), dataset=dataset)
    first = str(latest_checkpoint(tmp_path / "first"))
    world.run(fit_rank, str(tmp_path / "second"), make_still(strategy), dataset=dataset, init_from=first)
    averaged = weights(tmp_path / "first", "model_ema.safetensors")
    assert_same(averaged, whole(tmp_path / "second", tmp_path), **EXACT)


@pytest.mark.parametrize("strategy", ["ddp", *SHARDED])
@pytest.mark.parametrize("before", ["ddp", "fsdp"])
def test_weights_of_another_model_are_refused(world, tmp_path, before, strategy):
    dataset = token_dataset()
    world.run(fit_rank, str(tmp_path / "first"), make_conf(model=GPT, strategy=before), dataset=dataset)
    first, wider = str(latest_checkpoint(tmp_path / "first")), {**GPT, "width": 32}
    with pytest.raises(AssertionError, match="does not contain the weights of this model"):
        world.run(
            fit_rank, str(tmp_path / "second"), make_still(strategy, model=wider), dataset=dataset, init_from=first
        )


@pytest.mark.slow
def test_groups_that_share_weights_and_layers_take_their_parts(tmp_path):
    dataset = token_dataset(vocab_size=8)
    fit(tmp_path / "first", make_conf(model=GPT), dataset=dataset)
    first = str(latest_checkpoint(tmp_path / "first"))
    conf = make_still("fsdp_tp", strategy_options=StrategyConf(tp_size=2))
    four = RankProcesses(join, size=4)
    try:
        four.run(fit_rank, str(tmp_path / "second"), conf, dataset=dataset, init_from=first)
    finally:
        four.close()
    assert_same(weights(tmp_path / "first"), whole(tmp_path / "second", tmp_path), **EXACT)
