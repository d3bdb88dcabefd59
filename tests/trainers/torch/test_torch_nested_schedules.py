"""Schedules that are made of others move as those of a script, end to end and after a resume."""

import pytest
import torch
from torch.optim.lr_scheduler import (
    ChainedScheduler,
    ConstantLR,
    CosineAnnealingLR,
    ExponentialLR,
    LinearLR,
    SequentialLR,
)
from torch_runs import RecordingChannel, fit, make_conf, small_dataset

from rtrain.config.schema import RtrainConf
from rtrain.errors import ConfigError
from rtrain.testing.workers import make_job
from rtrain.trainers.torch.plugin import Plugin

OF_TORCH = "torch.optim.lr_scheduler"
NUM_STEPS, RATE = 12, 0.1


def node(name, **arguments):
    return {"_target_": f"{OF_TORCH}.{name}", **arguments}


LINEAR = node("LinearLR", start_factor=0.25, total_iters="auto")
COSINE, DECAY = node("CosineAnnealingLR", T_max="auto"), node("ExponentialLR", gamma=0.9)
SCHEDULES = {
    "one after the other": (
        node("SequentialLR", schedulers=[LINEAR, COSINE], milestones=[4]),
        lambda one: SequentialLR(one, [LinearLR(one, 0.25, total_iters=4), CosineAnnealingLR(one, 8)], [4]),
    ),
    "together": (
        node("ChainedScheduler", schedulers=[LINEAR, DECAY]),
        lambda one: ChainedScheduler([LinearLR(one, 0.25, total_iters=NUM_STEPS), ExponentialLR(one, 0.9)]),
    ),
    "one after the other, of which one is two": (
        node(
            "SequentialLR",
            schedulers=[node("ChainedScheduler", schedulers=[LINEAR, DECAY]), node("ConstantLR", factor=0.5), COSINE],
            milestones=[3, 7],
        ),
        lambda one: SequentialLR(
            one,
            [
                ChainedScheduler([LinearLR(one, 0.25, total_iters=3), ExponentialLR(one, 0.9)]),
                ConstantLR(one, 0.5),
                CosineAnnealingLR(one, 5),
            ],
            [3, 7],
        ),
    ),
    "together, of which one is two": (
        node(
            "ChainedScheduler",
            schedulers=[node("SequentialLR", schedulers=[LINEAR, COSINE], milestones=[4]), DECAY],
        ),
        lambda one: ChainedScheduler(
            [
                SequentialLR(one, [LinearLR(one, 0.25, total_iters=4), CosineAnnealingLR(one, 8)], [4]),
                ExponentialLR(one, 0.9),
            ]
        ),
    ),
}


def rates_of(channel):
    """Return the rate after each step; a report at the end of an epoch repeats it."""
    found = {record.step: record.metrics["train/lr"] for record in channel.events if "train/lr" in record.metrics}
    return list(found.values())


def rates_by_hand(schedule):
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=RATE)
    made, rates = schedule(optimizer), []
    for _ in range(NUM_STEPS):
        optimizer.step()
        made.step()
        rates.append(optimizer.param_groups[0]["lr"])
    return rates


@pytest.mark.parametrize("name", SCHEDULES)
def test_the_rates_are_those_of_a_script(tmp_path, name):
    config, by_hand = SCHEDULES[name]
    conf = make_conf(max_epochs=4, batch_size=50, scheduler=config)
    channel, _ = fit(tmp_path / "whole", conf, log_every_steps=1)
    assert rates_of(channel) == pytest.approx(rates_by_hand(by_hand), rel=1e-12)
    stopped, _ = fit(tmp_path / "parts", conf, channel=RecordingChannel(stop_after=5), log_every_steps=1)
    resumed, _ = fit(tmp_path / "parts", conf, log_every_steps=1)
    assert rates_of(stopped) + rates_of(resumed) == rates_of(channel)


@pytest.mark.parametrize("name", SCHEDULES)
def test_a_schedule_by_epochs_is_as_long_as_the_run_has_epochs(tmp_path, name):
    config, by_hand = SCHEDULES[name]
    conf = make_conf(max_epochs=NUM_STEPS, batch_size=50, scheduler=config, scheduler_interval="epoch")
    channel, _ = fit(tmp_path, conf, log_every_steps=1)
    assert rates_of(channel)[3::3] == pytest.approx(rates_by_hand(by_hand)[:-1], rel=1e-12)


@pytest.mark.parametrize(
    ("config", "says"),
    [
        (
            node("SequentialLR", schedulers=[node("LinearLR", strat_factor=0.1), COSINE], milestones=[4]),
            r"trainer\.scheduler\.schedulers\.0\.strat_factor.*\n.*start_factor",
        ),
        (
            node("ChainedScheduler", schedulers=[node("StepLR", step_size=0)]),
            r"trainer\.scheduler\.schedulers\.0\.step_size: must be at least 1",
        ),
        (node("SequentialLR", schedulers=[LINEAR, COSINE]), r"SequentialLR needs milestones"),
        (node("SequentialLR", schedulers=[LINEAR, COSINE], milestones=[1, 2]), "number of milestone"),
        (node("ChainedScheduler", schedulers=[node("ReduceLROnPlateau")]), "does not support `ReduceLROnPlateau`"),
        (node("ChainedScheduler", schedulers=["linear"]), "schedulers"),
        (
            node("SequentialLR", schedulers=[LINEAR, node("ChainedScheduler", schedulers=[COSINE])], milestones=[4]),
            r"schedulers\.1: torch's SequentialLR can begin with a ChainedScheduler",
        ),
    ],
    ids=[
        "a misspelt argument",
        "a number that can't be",
        "one left out",
        "too many",
        "a plateau",
        "no schedule",
        "a chain as the second",
    ],
)
def test_what_can_not_be_made_is_refused_before_anything_starts(config, says):
    job = make_job(RtrainConf(trainer=make_conf(scheduler=config)), small_dataset())
    with pytest.raises(ConfigError, match=says):
        _check_and_try(job)


def _check_and_try(job):
    Plugin().check(job)
    Plugin().try_out(job)


def test_auto_in_a_run_of_seconds_names_the_place():
    conf = make_conf(max_seconds=3.0, scheduler=node("SequentialLR", schedulers=[LINEAR, COSINE], milestones=[4]))
    with pytest.raises(ConfigError, match=r"trainer\.scheduler\.schedulers\.0\.total_iters: auto needs a known"):
        Plugin().check(make_job(RtrainConf(trainer=conf), small_dataset()))
