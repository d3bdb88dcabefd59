"""Callbacks of XGBoost, LightGBM and transformers are told what the library itself would tell them."""

import json
from pathlib import Path

import numpy as np
import pytest

import rtrain
from rtrain.errors import ConfigError, TrainingError

OWN = """
import json
from pathlib import Path

import lightgbm
import xgboost
from transformers import TrainerCallback

import rtrain


class Fail(rtrain.WorkerCallback):
    def step_end(self, training, batch):
        if training.step == 4 and Path("fail").exists():
            raise RuntimeError("as a machine that goes")


class Stop:
    order = 50

    def __init__(self, at):
        self.at = at

    def __call__(self, env):
        with open("stop.jsonl", "a") as file:
            print(json.dumps([env.iteration, env.end_iteration, env.begin_iteration]), file=file)
        if env.iteration + 1 == self.at:
            raise lightgbm.callback.EarlyStopException(env.iteration, [])


class Told(xgboost.callback.TrainingCallback):
    def __init__(self, path):
        self.path = path

    def note(self, *what):
        with open(self.path, "a") as file:
            print(json.dumps(what), file=file)

    def before_training(self, model):
        self.note("before_training")
        return model

    def before_iteration(self, model, epoch, evals_log):
        self.note("before_iteration", epoch, len(evals_log))
        return False

    def after_iteration(self, model, epoch, evals_log):
        names = {f"{split}/{name}": len(values) for split, found in evals_log.items() for name, values in found.items()}
        self.note("after_iteration", epoch, names["val/mlogloss"])
        return epoch == 3

    def after_training(self, model):
        self.note("after_training")
        return model


class Replacing(xgboost.callback.TrainingCallback):
    def after_training(self, model):
        return model.copy()


class HF(TrainerCallback):
    def __init__(self, path="hf.jsonl", stops_at=None, wants=None):
        self.path, self.stops_at, self.wants = path, stops_at, wants

    def note(self, name, state, **facts):
        with open(self.path, "a") as file:
            print(json.dumps([name, state.global_step, state.epoch, facts]), file=file)

    def on_train_begin(self, args, state, control, model=None, optimizer=None, **kwargs):
        assert optimizer.param_groups[0]["params"]
        self.note("on_train_begin", state, model=type(model).__name__, epochs=args.num_train_epochs)

    def on_epoch_begin(self, args, state, control, **kwargs):
        self.note("on_epoch_begin", state)

    def on_step_end(self, args, state, control, **kwargs):
        self.note("on_step_end", state)
        control.should_training_stop = state.global_step == self.stops_at
        control.should_save = self.wants == "should_save"

    def on_evaluate(self, args, state, control, metrics, **kwargs):
        self.note("on_evaluate", state, names=sorted(metrics))

    def on_save(self, args, state, control, **kwargs):
        self.note("on_save", state)

    def on_train_end(self, args, state, control, **kwargs):
        self.note("on_train_end", state)


class Logging(TrainerCallback):
    def on_log(self, args, state, control, **kwargs):
        pass
"""
SCHEDULES = {
    "xgboost": "{_target_: xgboost.callback.LearningRateScheduler, learning_rates: %s}",
    "lightgbm": "{_target_: lightgbm.reset_parameter, learning_rate: %s}",
}
RATES = "[0.5, 0.4, 0.3, 0.2, 0.1, 0.05]"


@pytest.fixture(autouse=True)
def _own(project):
    (project / "called_by_libraries.py").write_text(OWN)


def fit(config, node, *words):
    return rtrain.fit(config, ["num_workers=0", f"trainer.callbacks=[{node}]", *words])


def lines(path):
    return [json.loads(line) for line in Path(path).read_text().splitlines()]


def probabilities(run):
    rtrain.predict(run.path, "out.csv", checkpoint="latest", split="test", force=True)
    rows = Path("out.csv").read_text().splitlines()[1:]
    return np.array([[float(one) for one in row.split(",")[-3:]] for row in rows])


@pytest.mark.parametrize("trainer", list(SCHEDULES))
def test_a_schedule_of_rates_is_followed_and_resumed_exactly(trainer):
    rate = {"xgboost": "eta", "lightgbm": "learning_rate"}[trainer]
    words = ["dataset=sklearn", "dataset.name=iris", "trainer.num_boost_round=6", f"trainer.params.{rate}=0.5"]
    words += ["run.checkpoint.every_steps=1"]
    schedule = SCHEDULES[trainer] % RATES
    constant = probabilities(fit(trainer, "{_target_: called_by_libraries.Fail}", *words))
    whole = probabilities(fit(trainer, f"{{_target_: called_by_libraries.Fail}}, {schedule}", *words))
    assert np.abs(whole - constant).max() > 0.01
    Path("fail").touch()
    with pytest.raises(TrainingError) as caught:
        fit(trainer, f"{{_target_: called_by_libraries.Fail}}, {schedule}", *words)
    Path("fail").unlink()
    run = rtrain.resume(caught.value.run_dir)
    assert run.manifest.step == 6
    np.testing.assert_allclose(probabilities(run), whole, atol=1e-6)


def test_a_callback_of_xgboost_is_told_of_each_round_and_ends_training():
    run = fit(
        "xgboost",
        "{_target_: called_by_libraries.Told, path: told.jsonl}",
        "trainer.num_boost_round=9",
        "dataset.split.val=0.2",
    )
    found = lines("told.jsonl")
    rounds = [("before_iteration", "after_iteration")] * 4
    assert [one[0] for one in found] == [
        "before_training",
        *(name for pair in rounds for name in pair),
        "after_training",
    ]
    assert [one[1] for one in found[1:-1]] == [0, 0, 1, 1, 2, 2, 3, 3]
    assert [one[2] for one in found if one[0] == "after_iteration"] == [1, 2, 3, 4]
    assert (run.manifest.exit_reason, run.manifest.step) == ("a callback", 4)


def test_callbacks_of_lightgbm_see_the_last_round_and_end_training():
    node = "{_target_: called_by_libraries.Stop, at: %d}"
    run = fit("lightgbm", node % 3, "trainer.num_boost_round=9")
    assert (run.manifest.exit_reason, run.manifest.step) == ("a callback", 3)
    assert lines("stop.jsonl") == [[0, 9, 0], [1, 9, 0], [2, 9, 0]]
    Path("stop.jsonl").unlink()
    fit("lightgbm", node % 100, "trainer.num_boost_round=4")
    assert len(lines("stop.jsonl")) == 4


def test_a_callback_of_transformers_is_told_as_its_trainer_would():
    run = fit("texts.yaml", "{_target_: called_by_libraries.HF}")
    found = lines("hf.jsonl")
    steps = run.manifest.step
    epoch = ["on_epoch_begin", *["on_step_end"] * (steps // 2), "on_evaluate", "on_save"]
    assert [one[0] for one in found] == ["on_train_begin", *epoch, *epoch, "on_train_end"]
    assert found[0][3] == {"model": "BertForSequenceClassification", "epochs": 2}
    assert [one[1] for one in found if one[0] == "on_step_end"] == list(range(1, steps + 1))
    assert found[-2][1:3] == [steps, 2]
    assert found[-3][3] == {"names": ["epoch", "eval_accuracy", "eval_loss"]}


def test_what_a_callback_of_transformers_asks_for_is_followed_or_told():
    run = fit("texts.yaml", "{_target_: called_by_libraries.HF, stops_at: 2, wants: should_save}")
    assert (run.manifest.exit_reason, run.manifest.step) == ("a callback", 2)
    log = (run.path / "logs" / "driver.log").read_text()
    assert log.count("HF sets should_save, which rtrain ignores: run.checkpoint") == 1


REFUSED = {
    ("texts.yaml", "{_target_: transformers.EarlyStoppingCallback}"): "trainer.early_stopping",
    ("texts.yaml", "{_target_: transformers.integrations.TensorBoardCallback}"): "run.loggers",
    ("texts.yaml", "{_target_: called_by_libraries.Logging}"): "on_step_end",
    ("xgboost", "{_target_: xgboost.callback.EarlyStopping, rounds: 3}"): "trainer.early_stopping",
    ("lightgbm", "{_target_: lightgbm.early_stopping, stopping_rounds: 3}"): "trainer.early_stopping",
}


@pytest.mark.parametrize(("config", "node"), list(REFUSED))
def test_what_would_wait_for_the_library_s_own_training_is_refused(config, node):
    with pytest.raises(ConfigError) as caught:
        fit(config, node)
    assert caught.value.message.startswith("trainer.callbacks.0")
    assert REFUSED[config, node] in caught.value.hint
    assert not Path("runs").exists()


def test_a_callback_of_xgboost_that_returns_another_model_is_named():
    with pytest.raises(TrainingError, match="Replacing returns another model"):
        fit("xgboost", "{_target_: called_by_libraries.Replacing}", "trainer.num_boost_round=2")
