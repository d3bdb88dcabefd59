"""``trainer.callbacks``: what is called on workers, in which order, and what the callbacks may do."""

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

import rtrain
from rtrain.cli.app import run as command
from rtrain.errors import ConfigError, TrainingError
from rtrain.runs.run import Run

WATCH = """
import json

import rtrain


class Watch(rtrain.WorkerCallback):
    def __init__(self, fails_in=None, on_error="fail", stops_at=None):
        self.fails_in, self.on_error, self.stops_at = fails_in, on_error, stops_at

    def note(self, name, training, *more):
        line = [name, training.step, training.epoch, training.rank, training.world_size, *more]
        with open(training.run_dir / f"calls-{training.rank}.jsonl", "a") as file:
            print(json.dumps(line), file=file)
        if name == self.fails_in:
            raise RuntimeError(f"{name} went wrong")

    def train_begin(self, training):
        self.note("train_begin", training)

    def epoch_begin(self, training):
        self.note("epoch_begin", training)

    def step_begin(self, training, batch):
        self.note("step_begin", training, None if batch is None else len(batch.x))

    def step_end(self, training, batch):
        self.note("step_end", training)
        if training.step == self.stops_at:
            training.log({"own/number": 3})
            training.stop()

    def epoch_end(self, training):
        self.note("epoch_end", training)

    def evaluated(self, training, metrics):
        assert metrics.items() <= training.metrics.items()
        self.note("evaluated", training, sorted(metrics))

    def before_save(self, training):
        self.note("before_save", training)

    def after_save(self, training):
        self.note("after_save", training)

    def train_end(self, training):
        self.note("train_end", training, type(training.model).__name__, type(training.optimizer).__name__)


class Freeze(rtrain.WorkerCallback):
    def __init__(self, layer, after):
        self.layer, self.after = layer, after

    def epoch_begin(self, training):
        if training.epoch >= self.after:
            training.model.get_submodule(self.layer).requires_grad_(False)


class Logs(rtrain.WorkerCallback):
    def __init__(self, what):
        self.what = eval(what)

    def step_end(self, training, batch):
        training.log(self.what)


class Other:
    pass


class OnDriver(rtrain.Callback):
    pass
"""
TRAINERS = {
    "torch": ("mlp", ["epochs=2", "dataset.limit=200"]),
    "jax": ("jax", ["trainer.max_epochs=2", "dataset.limit=200", "trainer.optimizer.learning_rate=0.01"]),
    "transformers": ("texts.yaml", []),
    "xgboost": ("xgboost", ["trainer.num_boost_round=2"]),
    "lightgbm": ("lightgbm", ["trainer.num_boost_round=2"]),
}
LENGTHS = {
    **dict.fromkeys(("torch", "jax", "transformers"), "trainer.max_epochs=3"),
    **dict.fromkeys(("xgboost", "lightgbm"), "trainer.num_boost_round=3"),
}
WORD = "trainer.callbacks=[{_target_: seen_on_workers.Watch}]"


@pytest.fixture(autouse=True)
def _own(project):
    (project / "seen_on_workers.py").write_text(WATCH)


def fit(trainer, *words, word=WORD):
    config, own = TRAINERS[trainer]
    return rtrain.fit(config, ["num_workers=0", *own, word, *words])


def calls(run, rank=0):
    return [json.loads(line) for line in (run.path / f"calls-{rank}.jsonl").read_text().splitlines()]


def check_order(found, boosted):
    """Assert what a training tells, from its first call to its last."""
    names = [one[0] for one in found]
    assert (names[0], names[-1]) == ("train_begin", "train_end")
    assert names.count("train_begin") == names.count("train_end") == 1
    inside = {"step": False, "epoch": False, "save": False}
    opening = {"step_begin": "step", "epoch_begin": "epoch", "before_save": "save"}
    closing = {"step_end": "step", "epoch_end": "epoch", "after_save": "save"}
    for name, step, epoch, *_ in found:
        if name in opening:
            assert not inside[opening[name]], name
            inside[opening[name]] = (step, epoch)
        elif name in closing:
            began = inside[closing[name]]
            assert began, name
            grown = (step - began[0], epoch - began[1])
            of_step = (1, 1) if boosted else (1, 0)
            expected = {"step_end": of_step, "after_save": (0, 0)}.get(name)
            assert grown == expected or (expected is None and grown[1] == 1)
            inside[closing[name]] = False
        if name == "evaluated":
            assert not inside["step"]
            assert not inside["save"]
    assert not any(inside.values())


@pytest.mark.parametrize("trainer", list(TRAINERS))
def test_all_moments_are_told_in_their_order_also_of_a_resumed_run(trainer):
    run = fit(trainer)
    found = calls(run)
    check_order(found, boosted=trainer.endswith(("boost", "gbm")))
    assert [one[0] for one in found].count("epoch_end") == 2
    evaluated = {
        event.step for event in run.events() if any(name.startswith(("val/", "test/")) for name in event.metrics)
    }
    assert {one[1] for one in found if one[0] == "evaluated"} == evaluated
    assert "after_save" in {one[0] for one in found}
    (run.path / "calls-0.jsonl").unlink()
    before = run.manifest.step
    rtrain.resume(run.path, [LENGTHS[trainer]])
    again = calls(run)
    check_order(again, boosted=trainer.endswith(("boost", "gbm")))
    assert again[0][1:3] == [before, 2]
    assert [one[0] for one in again].count("epoch_end") == 1


@pytest.mark.parametrize("trainer", list(TRAINERS))
def test_a_callback_ends_training_for_good(trainer):
    run = fit(trainer, word="trainer.callbacks=[{_target_: seen_on_workers.Watch, stops_at: 1}]")
    assert (run.status, run.manifest.exit_reason, run.manifest.step) == ("succeeded", "a callback", 1)
    assert [event.metrics["own/number"] for event in run.events() if "own/number" in event.metrics] == [3]
    assert run.checkpoints
    assert rtrain.resume(run.path).manifest.step == 1


@pytest.mark.parametrize(
    ("trainer", "method"),
    [("torch", "step_end"), *(("lightgbm", one) for one in ("train_begin", "evaluated", "before_save", "train_end"))],
)
def test_an_exception_fails_the_run_with_its_place_unless_it_may_happen(trainer, method):
    node = f"{{_target_: seen_on_workers.Watch, fails_in: {method}}}"
    with pytest.raises(TrainingError) as caught:
        fit(trainer, word=f"trainer.callbacks=[{node}]")
    assert f"{method} went wrong" in str(caught.value)
    assert "seen_on_workers.py" in f"{caught.value.message} {caught.value.hint}"
    assert Run.load(caught.value.run_dir).status == "failed"
    run = fit(trainer, word=f"trainer.callbacks=[{node[:-1]}, on_error: warn}}]")
    assert run.status == "succeeded"
    log = (run.path / "logs" / "driver.log").read_text()
    assert log.count(f"{method} went wrong") == 1


@pytest.mark.parametrize("trainer", ["torch", "xgboost"])
@pytest.mark.parametrize("what", ["{1: 2.0}", "{None: 1.0}", "{'': 1.0}", "{'a': 'b'}", "{'a': None}", "{'a': [1]}"])
def test_what_is_no_metric_is_an_error_at_the_line_that_logs_it(trainer, what):
    with pytest.raises(TrainingError) as caught:
        fit(trainer, word=f'trainer.callbacks=[{{_target_: seen_on_workers.Logs, what: "{what}"}}]')
    assert "training.log(self.what)" in f"{caught.value.message} {caught.value.hint}"


def test_layers_are_frozen_after_an_epoch():
    weights = {}
    for number in (1, 2):
        node = "{_target_: seen_on_workers.Freeze, layer: layers.0, after: 1}"
        run = fit("torch", f"epochs={number}", "run.checkpoint.best.monitor=null", word=f"trainer.callbacks=[{node}]")
        weights[number] = load_file(run.checkpoints[-1] / "model.safetensors")
    same = {name for name, one in weights[1].items() if torch.equal(one, weights[2][name])}
    assert {name for name in weights[1] if name.startswith("layers.0.")} == same


WRONG = {
    "seen_on_workers.Other": "rtrain.WorkerCallback",
    "seen_on_workers.OnDriver": "run.callbacks",
    "keras.callbacks.TerminateOnNaN": "trainer=tensorflow",
    "seen_on_workers.Wach": "Watch",
    "seen_on_workers.Watch, fails_inn: x": "fails_in",
    "seen_on_workers.Watch, on_error: ignore": "fail, warn",
    "misspelt.EpochEnds": "did you mean: epoch_end",
    "misspelt.OnTrainBegin": "did you mean: train_begin",
    "misspelt.OnFitStart": "did you mean: train_begin",
    "misspelt.EpochStart": "did you mean: epoch_begin",
    "misspelt.NoBatch": "def step_end(self, training, batch):",
    "misspelt.Inherits": "nothing calls the method epoch_ends of misspelt.Inherits",
}
MISSPELT = """
import rtrain

class EpochEnds(rtrain.WorkerCallback):
    def epoch_ends(self, training): ...

class OnTrainBegin(rtrain.WorkerCallback):
    def on_train_begin(self, training): ...

class OnFitStart(rtrain.WorkerCallback):
    def on_fit_start(self, training): ...

class EpochStart(rtrain.WorkerCallback):
    def epoch_start(self, training): ...

class NoBatch(rtrain.WorkerCallback):
    def step_end(self, training): ...

class Inherits(EpochEnds):
    def epoch_end(self, training): ...
"""


@pytest.mark.parametrize("trainer", ["torch", "lightgbm"])  # the others take the same way
@pytest.mark.parametrize("node", list(WRONG))
def test_what_is_no_callback_is_refused_before_anything_is_written(trainer, node):
    Path("misspelt.py").write_text(MISSPELT)
    with pytest.raises(ConfigError) as caught:
        fit(trainer, word=f"trainer.callbacks=[{{_target_: {node}}}]")
    assert caught.value.message.startswith("trainer.callbacks.0")
    assert WRONG[node] in f"{caught.value.message} {caught.value.hint}"
    assert not Path("runs").exists()


DECIDING = {
    "run.checkpoint.best.monitor": ["run.checkpoint.best={monitor: own/number, mode: max}"],
    "trainer.early_stopping.monitor": ["trainer.early_stopping={monitor: own/number, mode: max, patience: 1}"],
    "run.stop.target": ["run.stop.target={own/number: 1}"],
    "run.stop.bounds": ["run.stop.bounds={own/number: {min: 1}}"],
    "sweep.metric": ["sweep.metric=own/number", "sweep.mode=max", "seed=1,2", "--multirun"],
}


@pytest.mark.parametrize("key", list(DECIDING))
@pytest.mark.parametrize("trainer", ["torch", "xgboost"])
def test_a_metric_of_callbacks_decides_nothing_and_the_error_says_so(trainer, key, capsys):
    config, own = TRAINERS[trainer]
    for callback, is_said in ((WORD, True), ("run.notes=none", False)):
        assert command(["fit", config, "num_workers=0", *own, LENGTHS[trainer], callback, *DECIDING[key]]) == 2
        said = " ".join(capsys.readouterr().err.split())
        assert f"{key}:" in said
        assert ("what trainer.callbacks log, which is recorded and decides nothing" in said) == is_said
