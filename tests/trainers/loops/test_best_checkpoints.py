"""What a run has reported decides which checkpoint is the best, and that it has ended, also when it is resumed."""

import json
import shutil
from functools import cache
from itertools import product

import pytest

import rtrain
from rtrain.runs.run import Run
from rtrain.trainers.loops.boosting.conf import BoostingConf
from rtrain.trainers.registry import confs

SMALL = (
    *("dataset.limit=200", "trainer.max_epochs=2", "run.checkpoint.keep=1"),
    *("run.checkpoint.every_epochs=null", "run.checkpoint.every_seconds=null"),
)
WORSE = "run.checkpoint.best={monitor: val/loss, mode: max}"
"""The loss falls, so that the first evaluation is the best one, and no checkpoint is due there."""
OFTEN = ("trainer.eval_every_steps=2", "trainer.eval_every_epochs=null")
TINY_VIT = ("trainer.model.config.hidden_size=16", "trainer.model.config.intermediate_size=32")
MANY = ("~trainer.estimator.n_estimators", "trainer.estimator._target_=sklearn.neural_network.MLPClassifier")
TRAINERS = {
    "torch": ("mlp", "trainer.batch_size=32", *OFTEN),
    "jax": ("jax", "trainer.global_batch_size=32", "trainer.model.channels=[4]", *OFTEN),
    "tensorflow": ("keras", "trainer.global_batch_size=32", "trainer.model.channels=[4]", *OFTEN),
    "transformers": ("transformers", "trainer.global_batch_size=32", *TINY_VIT, *OFTEN),
    "lightning": ("lightning", "trainer.global_batch_size=32", "trainer.trainer_args={val_check_interval: 2}"),
    "sklearn": ("sklearn", "trainer.batch_size=32", "trainer.max_epochs=4", *MANY),
}
EARLY = "trainer.early_stopping={patience: 1}"


def fit(folder, trainer, *overrides):
    config, *often = TRAINERS[trainer]
    return rtrain.fit(config, [f"run.root_dir={folder}", "num_workers=0", *SMALL, WORSE, *often, *overrides])


@pytest.fixture(scope="module")
def stopped_early(tmp_path_factory):
    """Train until early stopping ends it, once for each trainer; the run is not to be changed."""
    return cache(lambda trainer: fit(tmp_path_factory.mktemp(trainer), trainer, EARLY))


def assert_best_is_kept(run):
    """Check the best checkpoint against all that was reported."""
    values = {event.step: event.metrics["val/loss"] for event in run.events() if "val/loss" in event.metrics}
    best = run.manifest.best
    assert len(values) > 1
    assert max(values.values()) != values[max(values)], "the last checkpoint is the best one anyway"
    assert best["value"] == max(values.values()) == values[best["step"]]
    assert rtrain.evaluate(run.path, split="val")["loss"] == pytest.approx(best["value"], rel=1e-5)


def test_all_trainers_that_stop_early_are_looked_at():
    in_rounds = {name for name, conf in confs().items() if issubclass(conf, BoostingConf)}  # see test_best_rounds.py
    assert TRAINERS.keys() == {name for name, conf in confs().items() if hasattr(conf, "early_stopping")} - in_rounds


@pytest.mark.parametrize("trainer", TRAINERS)
@pytest.mark.parametrize("early", [False, True], ids=["to the end", "early stopping"])
def test_the_best_evaluation_has_a_checkpoint(tmp_path, stopped_early, trainer, early):
    run = stopped_early(trainer) if early else fit(tmp_path, trainer)
    assert early == str(run.manifest.exit_reason).startswith("early stopping")
    assert_best_is_kept(run)


@pytest.mark.slow
def test_the_best_evaluation_of_two_workers_has_a_checkpoint(tmp_path):
    run = fit(tmp_path, "torch", "num_workers=2", "trainer.batch_size=16", "trainer.strategy=fsdp")
    assert len(run.manifest.checkpoints[0]["files"]) > 3, "each worker writes a part"
    assert_best_is_kept(run)


@pytest.mark.parametrize("trainer", TRAINERS)
def test_a_run_resumes_from_its_best_checkpoint_to_the_same_end(tmp_path, trainer):
    early = "trainer.early_stopping={patience: 2}"
    whole = fit(tmp_path / "whole", trainer, early, "run.checkpoint.keep=9")
    cut = shutil.copytree(whole.path, tmp_path / "cut")
    for record in whole.manifest.checkpoints[1:]:
        shutil.rmtree(cut / "checkpoints" / record["name"])
    manifest = json.loads((cut / "manifest.json").read_text())
    (cut / "manifest.json").write_text(json.dumps({**manifest, "status": "interrupted"}))
    resumed = Run.load(rtrain.resume(cut).path)
    assert resumed.manifest.exit_reason == whole.manifest.exit_reason
    for name in ("best", "step", "epoch"):
        assert getattr(resumed.manifest, name) == getattr(whole.manifest, name)
    found, expected = (_progress(one.path) for one in (resumed, whole))
    assert found == expected


ENDS = [
    *product(TRAINERS, (EARLY, "run.stop.target={val/loss: 100}")),
    *product(TRAINERS.keys() - {"sklearn"}, ["run.stop.max_seconds=1e-6"]),  # which leaves no time to fit at all
]


def _usual(trainer, stop):
    """Tell whether ``make test`` has this end: each trainer has one, torch has all."""
    return trainer == "torch" or stop == "run.stop.target={val/loss: 100}"


@pytest.mark.parametrize(
    ("trainer", "stop"),
    [pytest.param(*end, marks=() if _usual(*end) else pytest.mark.slow) for end in sorted(ENDS)],
)
def test_a_run_that_has_ended_trains_nothing_when_it_is_resumed(tmp_path, stopped_early, trainer, stop):
    run = fit(tmp_path, trainer, stop) if stop != EARLY else copied(stopped_early(trainer), tmp_path / "runs" / "copy")
    ended, steps, files = run.manifest.exit_reason, [event.step for event in run.events()], _names(run.path)
    assert ended
    resumed = rtrain.resume(run.path)
    assert resumed.manifest.exit_reason == ended
    assert ([event.step for event in resumed.events()], _names(run.path)) == (steps, files)


def copied(run, path):
    return Run.load(shutil.copytree(run.path, path))


def _names(run):
    return sorted(path.name for path in (run / "checkpoints").iterdir())


def _progress(run):
    """Return where the newest checkpoint of a run is, but for the time that it took."""
    newest = sorted((run / "checkpoints").glob("*-step-*"))[-1]
    progress = json.loads((newest / "progress.json").read_text())
    steady = {name: value for name, value in progress["metrics"].items() if "per_second" not in name}
    return {**progress, "metrics": steady, "seconds": 0}
