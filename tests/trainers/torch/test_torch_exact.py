"""Interrupted trainings end with the very numbers of uninterrupted ones: weights, optimizer, schedule and the rest."""

import pytest
from exactness import assert_exact
from torch_runs import MLP, MODELS, fit, fit_rank, make_conf, small_dataset

from rtrain.datasets.base import Dataset
from rtrain.testing.small_data import streamed
from rtrain.trainers.loops import stopping
from rtrain.trainers.loops.early_stopping import EarlyStoppingConf

NOISY = {"_target_": "torch.nn.Dropout", "p": 0.3}
ADAM = {"_target_": "torch.optim.AdamW", "lr": 0.01, "amsgrad": True}
RESNET = {"_target_": f"{MODELS}.ResNet", "in_channels": "auto", "num_classes": "auto", "layers": [1], "width": 8}
SCHEDULES = "torch.optim.lr_scheduler"
HOSTILE = {
    "batch statistics, averages, clipping, parts, random rows, a schedule": {
        **{"model": RESNET, "ema_decay": 0.9, "clip_norm": 0.5, "accumulate_steps": 2, "transform": [NOISY]},
        **{"optimizer": ADAM, "eval_every_steps": 3},
        "scheduler": {"_target_": f"{SCHEDULES}.OneCycleLR", "max_lr": 0.05, "total_steps": "auto"},
    },
    "dropout, a scaler, a plateau, an early stop": {
        **{"model": {**MLP, "dropout": 0.5}, "precision": "fp16", "max_epochs": 20},
        "early_stopping": EarlyStoppingConf(monitor="test/loss", patience=4, min_delta=100.0),
        "scheduler": {"_target_": f"{SCHEDULES}.ReduceLROnPlateau", "patience": 1, "threshold": 10.0},
    },
    "a schedule by epochs, rows in their order, steps for all workers": {
        **{"batch_size": None, "global_batch_size": 40, "shuffle": False, "scheduler_interval": "epoch"},
        "scheduler": {"_target_": f"{SCHEDULES}.CosineAnnealingLR", "T_max": "auto"},
    },
}
STOPS = {"at the first step, after one, after an evaluation": [0, 1, 2], "at an epoch's end": [5, 5], "late": [11]}


def conf_of(name):
    return make_conf(**{"max_epochs": 3, "batch_size": 32, **HOSTILE[name]})


@pytest.mark.parametrize("stops", STOPS)
@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("source", ["memory", "stream"])
def test_one_worker(tmp_path, source, name, stops):
    data, conf = small_dataset(num_train=150), conf_of(name)
    if source == "stream":
        data = Dataset(data.info, {split: streamed(rows.columns) for split, rows in data.splits.items()})
    assert_exact(tmp_path, lambda folder, channel: fit(folder, conf, channel=channel, dataset=data), STOPS[stops])


@pytest.mark.parametrize("name", HOSTILE)
def test_two_workers(world, tmp_path, name):
    conf = conf_of(name)

    def go(folder, channel):
        stop = {} if channel.stop_after is None else {0: channel.stop_after}
        records, _ = world.run(_fit_rank, str(folder), conf, stop_after=stop)
        channel.records += records

    assert_exact(tmp_path, go, [1, 4])


def _fit_rank(rank, folder, conf, **keys):
    """Train as one of the ranks, which let each other know at every step whether to stop."""
    before, stopping.CHECK_SECONDS = stopping.CHECK_SECONDS, 0
    try:
        return fit_rank(rank, folder, conf, **keys)
    finally:
        stopping.CHECK_SECONDS = before
