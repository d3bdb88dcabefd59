"""Ranks that write a checkpoint together do it beside training: whole or not at all, and the same for all of them."""

import os
from functools import partial
from importlib.util import find_spec

import pytest
from epochs_contract import held_back
from safetensors.torch import load_file
from torch_runs import GPT, RecordingChannel, fit, join, make_conf, make_worker, token_dataset

from rtrain.errors import CheckpointError
from rtrain.runs.checkpoints import all_checkpoints, latest_checkpoint, read_record
from rtrain.runs.verify import damages
from rtrain.testing.ranks import RankProcesses
from rtrain.trainers.torch.config import StrategyConf
from rtrain.trainers.torch.learner import TorchLearner
from rtrain.trainers.torch.loop import training

ADAM = {"_target_": "torch.optim.Adam", "lr": 0.01}
CONF = {"model": {**GPT, "dropout": 0.1}, "optimizer": ADAM, "global_batch_size": 16, "max_epochs": 1}
"""Four steps."""
DEEPSPEED = [pytest.mark.slow, pytest.mark.skipif(find_spec("deepspeed") is None, reason="deepspeed is not installed")]
STRATEGIES = {
    "fsdp": {"strategy": "fsdp"},
    "tp": {"strategy": "tp"},
    "consolidated": {"strategy": "fsdp_tp", "strategy_options": StrategyConf(tp_size=2, consolidate=True)},
    "deepspeed-1": {"strategy": "deepspeed", "strategy_options": StrategyConf(zero_stage=1)},
    "deepspeed-3": {"strategy": "deepspeed", "strategy_options": StrategyConf(zero_stage=3)},
}


def loop_of(rank, folder, conf, upload):
    keys = {"checkpoint": {"upload": upload, "every_steps": 2}, "rank": rank, "world_size": 2}
    return training(make_worker(folder, conf, dataset=token_dataset(), **keys))


@pytest.mark.parametrize(
    "keys", [pytest.param(keys, marks=DEEPSPEED * ("deepspeed" in name), id=name) for name, keys in STRATEGIES.items()]
)
def test_training_goes_on_while_ranks_write_what_was_there_before(world, tmp_path, keys):
    conf = make_conf(**CONF, **keys)
    world.run(_train, str(tmp_path / "sync"), conf)
    busy = world.run(_train_on, str(tmp_path / "async"), conf)
    assert busy == [[3, 4], [3, 4]], "steps that were taken while the checkpoint of step 2 was not written"
    written, beside = ([_tensors(folder) for folder in all_checkpoints(tmp_path / run)] for run in ("sync", "async"))
    assert len(written) == 2
    assert beside == written


def _train(rank, folder, conf):
    with loop_of(rank, folder, conf, "sync") as loop:
        loop.run()


def _train_on(rank, folder, conf):
    """Train two steps while a checkpoint can't be written, and return which."""
    with held_back(2) as taken, loop_of(rank, folder, conf, "async") as loop:
        loop.run()
    return taken


def _tensors(folder):
    """What is in the files of a checkpoint that hold tensors; the header of safetensors has no order."""
    files = read_record(folder)["files"]
    found = {name: file["sha256"] for name, file in files.items() if name.endswith(".pt")}
    for name in files:
        if name.endswith(".safetensors"):
            found |= {(name, key): one.numpy().tobytes() for key, one in load_file(folder / name).items()}
    return found


@pytest.mark.parametrize("upload", ["sync", "async"])
@pytest.mark.parametrize(
    ("place", "failing", "reason"),
    [
        (
            "rtrain.trainers.torch.checkpoint.shards.HuggingFaceStorageWriter.write_data",
            1,
            "Disk quota exceeded, on worker 1",
        ),
        ("torch.save", 0, "Disk quota exceeded"),
        ("rtrain.trainers.sharded_checkpoint.complete_checkpoint", 0, "Disk quota exceeded"),
    ],
    ids=["a part", "the rest", "the end"],
)
def test_a_part_that_cannot_be_written_fails_all_ranks_and_leaves_no_checkpoint(
    world, tmp_path, upload, place, failing, reason
):
    conf = make_conf(**CONF, strategy="fsdp")
    failures = world.run(_fail, str(tmp_path), conf, upload, place, failing)
    second = tmp_path / "checkpoints" / "epoch-0001-step-00000004"
    assert failures == [f"can't write the checkpoint {second}: {reason}."] * 2
    assert latest_checkpoint(tmp_path).name == "epoch-0000-step-00000002"
    assert len(list(second.parent.iterdir())) == 1, "a part of a checkpoint is left"
    world.run(_train, str(tmp_path), conf)
    assert latest_checkpoint(tmp_path) == second


def _fail(rank, folder, conf, upload, place, failing):
    """Train until the second checkpoint, which one rank can't write; return what each says."""

    def no_room(*args, **kwargs):
        raise OSError(122, "Disk quota exceeded")

    with pytest.MonkeyPatch.context() as patch, pytest.raises(CheckpointError) as caught:
        _train_until(3, rank, folder, conf, upload, lambda: rank == failing and patch.setattr(place, no_room))
    return caught.value.message


def _train_until(last, rank, folder, conf, upload, happen):
    """Let something happen before a step, when the checkpoint before it is written."""
    with loop_of(rank, folder, conf, upload) as loop:
        take = loop.learner.train_step

        def take_after(batch, step):
            if step + 1 == last:
                loop.worker.checkpoints.thread.wait()
                happen()
            return take(batch, step)

        loop.learner.train_step = take_after
        loop.run()


@pytest.mark.slow
def test_a_rank_that_is_killed_while_it_writes_leaves_no_checkpoint(tmp_path):
    conf, two = make_conf(**CONF, strategy="fsdp"), RankProcesses(join)
    try:
        with pytest.raises(EOFError):
            two.run(_die, str(tmp_path), conf)
    finally:
        two.close()
    assert [folder.name for folder in (tmp_path / "checkpoints").iterdir()] == ["epoch-0000-step-00000002"]


def _die(rank, folder, conf):
    with pytest.MonkeyPatch.context() as patch:
        write = "rtrain.trainers.torch.checkpoint.shards.HuggingFaceStorageWriter.write_data"
        dies = partial(patch.setattr, write, lambda *args: os._exit(9))
        _train_until(3, rank, folder, conf, "async", dies if rank == 1 else lambda: None)


def test_the_last_checkpoint_has_a_score_however_the_run_ends(tmp_path, monkeypatch):
    """It is written before its step is evaluated, where only what comes after it ends the run."""
    stopped, _ = fit(tmp_path / "a", make_conf(max_epochs=9), channel=RecordingChannel(stop_after=4))
    step = stopped.checkpoints[-1]["step"]
    assert stopped.checkpoints[-1]["score"] is None
    fit(tmp_path / "a", make_conf(max_steps=step))
    monkeypatch.setattr(TorchLearner, "end_epoch", lambda *_: "enough")
    ended, _ = fit(tmp_path / "b", make_conf(max_epochs=9, eval_every_epochs=5))
    assert ended.checkpoints[-1]["score"] is not None
    for folder in (tmp_path / "a", tmp_path / "b"):
        record = read_record(latest_checkpoint(folder))
        assert record["score"]["monitor"] == "test/accuracy"
        assert record["score"]["value"] == record["metrics"]["test/accuracy"]
        assert not list(damages(latest_checkpoint(folder)))
