"""Two ranks train the same as one: gradients, evaluations, stopping and checkpoints."""

import numpy as np
import pytest
import torch
from torch_runs import (
    EXACT,
    MLP,
    MODELS,
    SGD,
    RecordingChannel,
    assert_same,
    fit,
    fit_rank,
    make_conf,
    make_worker,
    metrics_of,
    small_dataset,
    weights,
)

from rtrain.runs.records import CheckpointRecord
from rtrain.testing.small_data import streamed
from rtrain.trainers.loops.stopping import StopSignal
from rtrain.trainers.torch.loop import training
from rtrain.trainers.torch.ranks import TorchRanks

RESNET = {"_target_": f"{MODELS}.ResNet", "in_channels": "auto", "num_classes": "auto", "layers": [1, 1], "width": 8}


@pytest.mark.parametrize("keys", [{}, {"accumulate_steps": 3}, {"clip_norm": 0.5, "ema_decay": 0.9}])
def test_two_halves_of_a_batch_train_like_the_whole(world, tmp_path, keys):
    # 129 rows in steps of 64: the last step has one row, so that a rank gets none.
    dataset = small_dataset(num_train=129)
    one, expected = fit(tmp_path / "one", make_conf(global_batch_size=64, **keys), dataset=dataset)
    conf = make_conf(global_batch_size=64, **keys)
    records, _ = world.run(fit_rank, str(tmp_path / "two"), conf, dataset=dataset)
    assert_same(expected, weights(tmp_path / "two"), rtol=1e-4, atol=1e-6)
    alone = {name: value for name, value in one.metrics.items() if "per_second" not in name}
    assert metrics_of(records) == pytest.approx(alone, rel=1e-4)


def test_batch_size_counts_per_worker(world, tmp_path):
    world.run(fit_rank, str(tmp_path / "two"), make_conf(batch_size=32))
    _, expected = fit(tmp_path / "one", make_conf(batch_size=64))
    assert_same(expected, weights(tmp_path / "two"), rtol=1e-4, atol=1e-6)


def test_the_gradient_is_that_of_all_rows(world, tmp_path):
    """5 rows over two ranks, 2 and 3, and one row over two ranks, 0 and 1."""
    for rows in (5, 1):
        dataset = small_dataset(num_train=rows)
        conf = make_conf(max_steps=1, global_batch_size=8, optimizer={**SGD, "lr": 1.0, "momentum": 0.0})
        _, expected = fit(tmp_path / f"one-{rows}", conf, dataset=dataset)
        world.run(fit_rank, str(tmp_path / f"two-{rows}"), conf, dataset=dataset)
        assert_same(expected, weights(tmp_path / f"two-{rows}"), rtol=1e-5, atol=1e-6)


def test_a_rank_without_rows_leaves_batch_statistics_alone(world, tmp_path):
    dataset = small_dataset(num_train=33)
    conf = make_conf(model=RESNET, max_epochs=1, global_batch_size=32)
    results = world.run(_buffers, str(tmp_path), conf, dataset=dataset)
    assert results[0].keys() == results[1].keys()
    for name in results[0]:
        np.testing.assert_array_equal(results[0][name], results[1][name], err_msg=name)
    stored = weights(tmp_path)
    # Rank 0 had no row in the second step: its batch statistics come from the first one alone.
    counts = {int(value) for name, value in stored.items() if "num_batches_tracked" in name}
    assert counts == {1}


def _buffers(rank, folder, conf, **keys):
    with training(make_worker(folder, conf, rank=rank, world_size=2, **keys)) as loop:
        loop.run()
        return {name: value.numpy().copy() for name, value in loop.learner.state.model.named_buffers()}


def test_evaluation_counts_every_row_once(world, tmp_path):
    """37 rows in steps of 2 x 8: the last step has 5 rows; and a single row, which only one rank has."""
    node = {"_target_": "torchmetrics.classification.MulticlassF1Score", "num_classes": "auto", "average": "micro"}
    for rows in (37, 1):
        dataset = small_dataset(num_test=rows)
        conf = make_conf(max_epochs=1, global_batch_size=64, eval_batch_size=8, metrics={"f1": node})
        one, _ = fit(tmp_path / f"one-{rows}", conf, dataset=dataset)
        records, others = world.run(fit_rank, str(tmp_path / f"two-{rows}"), conf, dataset=dataset)
        found = metrics_of(records)
        assert found["test/accuracy"] == one.metrics["test/accuracy"] == pytest.approx(found["test/f1"])
        assert found["test/loss"] == pytest.approx(one.metrics["test/loss"], rel=1e-4)
        facts = [record.facts["num_rows"]["test"] for both in (records, others) for record in both[:1]]
        assert sum(facts) == rows


def test_one_rank_that_is_told_to_stop_stops_both_at_the_same_step(world, tmp_path):
    conf = make_conf(max_epochs=10_000)
    records, _ = world.run(fit_rank, str(tmp_path), conf, stop_after={1: 3})
    checkpoint = [record.entry for record in records if isinstance(record, CheckpointRecord)][-1]
    assert 3 <= checkpoint["step"] < 30_000
    steps = world.run(_stop_steps)
    assert steps[0] == steps[1]


def _stop_steps(rank):
    channel = RecordingChannel(stop_after=2 if rank == 0 else None)
    worker = make_worker(".", None, channel=channel, rank=rank, world_size=2, dataset=small_dataset())
    stop = StopSignal(worker, TorchRanks(rank, 2, torch.device("cpu")), None)
    return next(step for step in range(100_000) if stop.agreed(step))


def test_a_time_limit_ends_both(world, tmp_path):
    records, others = world.run(fit_rank, str(tmp_path), make_conf(max_seconds=0.5))
    assert [record.entry for record in records if isinstance(record, CheckpointRecord)][-1]["step"] > 0
    assert not [record for record in others if isinstance(record, CheckpointRecord)]


def test_early_stopping_ends_both(world, tmp_path):
    from rtrain.trainers.loops.early_stopping import EarlyStoppingConf

    early = EarlyStoppingConf(monitor="test/loss", patience=1, min_delta=100.0)
    records, _ = world.run(fit_rank, str(tmp_path), make_conf(max_epochs=50, early_stopping=early))
    assert [record.entry["epoch"] for record in records if isinstance(record, CheckpointRecord)][-1] == 2


@pytest.mark.parametrize("precision", ["fp32", "fp16"])
def test_resuming_inside_an_epoch_changes_nothing(world, tmp_path, precision):
    model = {"_target_": f"{MODELS}.MLP", "in_features": "auto", "num_classes": "auto", "hidden": [16], "dropout": 0.5}
    conf = make_conf(model=model, batch_size=8, max_epochs=3, precision=precision, ema_decay=0.9)
    whole, _ = world.run(fit_rank, str(tmp_path / "a"), conf, log_every_steps=4)
    world.run(fit_rank, str(tmp_path / "b"), conf, stop_after={0: 1})
    resumed, _ = world.run(fit_rank, str(tmp_path / "b"), conf, log_every_steps=4)
    assert_same(weights(tmp_path / "a"), weights(tmp_path / "b"), **EXACT)
    assert metrics_of(whole) == pytest.approx(metrics_of(resumed), rel=1e-12)


def test_a_loss_that_explodes_is_told_by_both(world, tmp_path):
    dataset = small_dataset(task="regression", shape=(5,))
    conf = make_conf(max_epochs=500, evaluate_split="none", optimizer={**SGD, "lr": 1e6})
    with pytest.raises(AssertionError, match="is not a finite number"):
        world.run(fit_rank, str(tmp_path), conf, dataset=dataset)


def test_ranks_that_share_a_stream_end_together_and_evaluate_all_of_it(world, tmp_path):
    whole = small_dataset(num_train=23, num_test=14)
    splits = {name: streamed(split.columns) for name, split in whole.splits.items()}
    dataset = type(whole)(whole.info, splits)
    schedule = {"_target_": "torch.optim.lr_scheduler.OneCycleLR", "max_lr": 0.1, "total_steps": "auto"}
    conf = make_conf(batch_size=4, max_epochs=2, scheduler=schedule)
    records, _ = world.run(fit_rank, str(tmp_path), conf, dataset=dataset, log_every_steps=1)
    assert [record.entry["step"] for record in records if isinstance(record, CheckpointRecord)] == [3, 6]
    with training(make_worker(tmp_path, conf, dataset=whole)) as loop:
        assert loop.progress.step == 6
        expected = loop.learner.evaluate(loop.eval_loader.steps(loop._evaluation_pass()))
    assert metrics_of(records)["test/loss"] == pytest.approx(expected["loss"], rel=1e-5)
    assert metrics_of(records)["test/accuracy"] == expected["accuracy"]


@pytest.mark.parametrize("num_test", [1, 3, 7])
@pytest.mark.parametrize("task", ["classification", "regression"])
def test_metrics_with_a_state_see_each_row_once_on_ranks_of_different_lengths(world, tmp_path, task, num_test):
    """Of one row, a rank has none; states are sums, and lists of all values."""
    kinds = {
        "classification": {"f1": ("F1Score", {"average": "macro"}), "auroc": ("AUROC", {})},
        "regression": {
            "error": ("MeanAbsoluteError", {}),
            "rank": ("SpearmanCorrCoef", {}),
            "r": ("PearsonCorrCoef", {}),
        },
    }[task]
    same = {"task": "multiclass", "num_classes": "auto"} if task == "classification" else {}
    metrics = {name: {"_target_": f"torchmetrics.{one}", **same, **more} for name, (one, more) in kinds.items()}
    if num_test == 1:
        metrics.pop("r", None), metrics.pop("rank", None)  # of one row there is none
    dataset = small_dataset(task=task, num_test=num_test)
    layers = [{"_target_": "torch.nn.Flatten"}, {"_target_": "torch.nn.Linear", "in_features": 64, "out_features": 3}]
    # Of logits, torchmetrics guesses from each batch whether they are probabilities.
    layers.append({"_target_": "torch.nn.Softmax", "dim": 1})
    model = {"_target_": "torch.nn.Sequential", "_args_": layers} if task == "classification" else MLP
    conf = make_conf(
        model=model,
        metrics=metrics,
        global_batch_size=64,
        eval_batch_size=2,
        max_epochs=1,
        optimizer={**SGD, "lr": 0.01},
    )
    one, _ = fit(tmp_path / "one", conf, dataset=dataset)
    whole, _ = fit(tmp_path / "whole", make_conf(**{**vars(conf), "eval_batch_size": 100}), dataset=dataset)
    records, _ = world.run(fit_rank, str(tmp_path / "two"), conf, dataset=dataset)
    for name in metrics:
        assert whole.metrics[f"test/{name}"] == pytest.approx(one.metrics[f"test/{name}"], rel=1e-4)
        assert metrics_of(records)[f"test/{name}"] == pytest.approx(one.metrics[f"test/{name}"], rel=1e-4)
