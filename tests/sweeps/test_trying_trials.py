"""What trials share is tried once before the first one starts: a step, unless only the optimizer's rates differ."""

from __future__ import annotations

import pickle
from contextlib import ExitStack

import pytest

import rtrain
from rtrain.config.session import Session
from rtrain.errors import ConfigError
from rtrain.runs.observer import SilentObserver
from rtrain.schemas import schemas
from rtrain.searches import grid
from rtrain.sweeps.cluster import SweepCluster
from rtrain.sweeps.data import Data
from rtrain.sweeps.planning import Checks
from rtrain.trainers.torch.plugin import Plugin

WORDS = ["num_workers=0", "dataset.limit=50", "max_epochs=1"]
OWN = "import torch\n\n\nclass Own(torch.optim.SGD):\n    pass\n"


@pytest.fixture
def tried(monkeypatch, tmp_path):
    """Return the jobs that were tried, in order."""
    monkeypatch.chdir(tmp_path)
    jobs, try_out = [], Plugin.try_out
    monkeypatch.setattr(Plugin, "try_out", lambda self, job: (jobs.append(job), try_out(self, job))[1])
    return jobs


def check(*words):
    """Check all trials of a grid, and return what a trial is told that was packed before, as those of a sweep are."""
    with ExitStack() as stack:
        session = stack.enter_context(Session("mlp", [*WORDS, *words], schemas()))
        trials = session.trials()
        cluster = SweepCluster(stack, trials)
        checks = Checks(Data(SilentObserver(), cluster), cluster, trials.command, lambda text: None)
        search = grid.Search(trials.conf, trials.axes, [])
        plans = [trials.plan(number, search.propose(number)) for number in range(search.num_trials)]
        packed = [pickle.dumps(plan) for plan in plans]
        for plan in plans:
            checks.check(plan.composed)
        return [checks.marked(pickle.loads(one)).tried for one in packed]


@pytest.mark.parametrize(
    ("axes", "steps"),
    [
        (["lr=0.1,0.01,0.02"], 1),
        (["optimizer.weight_decay=0.0,0.1", "seed=1,2"], 1),
        (["seed=1,2,3"], 1),
        (["optimizer=sgd,adamw"], 2),
        (["+optimizer.amsgrad=true,false"], 2),
        (["batch_size=8,16"], 2),
        (["lr=0.1,0.2", "trainer.model.hidden=[8],[9]"], 2),
    ],
    ids=str,
)
def test_a_step_is_taken_once_for_trials_that_differ_in_rates(tried, axes, steps):
    assert all(check(*axes))
    assert len(tried) == steps


def test_trials_that_begin_with_the_weights_of_a_run_are_tried_once(tried, tmp_path):
    run = rtrain.fit("mlp", [*WORDS, f"run.root_dir={tmp_path}/runs"])
    tried.clear()
    assert all(check(f"run.init_from={run.path}", "seed=1,2"))
    assert len(tried) == 1


def test_an_optimizer_of_the_users_takes_a_step_with_each_rate(tried, tmp_path):
    (tmp_path / "own_optimizer.py").write_text(OWN)
    check("trainer.optimizer={_target_: own_optimizer.Own}", "+trainer.optimizer.lr=0.1,0.2", "allow=[own_optimizer]")
    assert len(tried) == 2


@pytest.mark.parametrize("axis", ["lr=0.1,-0.1", "optimizer.weight_decay=0.0,-1.0", "+optimizer.eps=1e-8,-1.0"])
def test_a_rate_that_the_optimizer_refuses_is_refused_before_the_first_trial(tried, axis):
    with pytest.raises(ConfigError) as failed:
        check(axis)
    assert axis.partition("=")[0].rpartition(".")[2] in failed.value.message
    assert len(tried) == 1
