"""What is found before anything starts."""

import subprocess
import sys
from dataclasses import replace

import pytest
from jax_runs import ADAM, MLP, make_conf

from rtrain.config.schema import RtrainConf, ScalingConf
from rtrain.datasets.base import Dataset
from rtrain.errors import CheckpointError, ConfigError
from rtrain.testing.small_data import small_dataset
from rtrain.testing.workers import make_job
from rtrain.trainers.jax.checks import check_conf
from rtrain.trainers.jax.config import Conf
from rtrain.trainers.jax.plugin import Plugin
from rtrain.trainers.jax.predictor import load_predictor
from rtrain.trainers.loops.early_stopping import EarlyStoppingConf
from rtrain.trainers.trained import LoadedCheckpoint

SCHEDULE = {"_target_": "optax.cosine_decay_schedule", "init_value": 0.1, "decay_steps": "auto"}


def check(conf, dataset=None, **scaling):
    check_conf(make_job(RtrainConf(trainer=conf, scaling=ScalingConf(**scaling)), dataset or small_dataset(), "jax"))


def test_a_good_config_passes():
    loss = {"_target_": "optax.softmax_cross_entropy_with_integer_labels"}
    check(make_conf(optimizer={**ADAM, "learning_rate": SCHEDULE}, loss=loss))
    check(Conf(train_function="jax.numpy:sin"))


@pytest.mark.parametrize(
    ("keys", "says"),
    [
        ({"model": {**MLP, "hiden": [1]}}, r"trainer.model.hiden: .* has no argument 'hiden'"),
        ({"model": {"_target_": "rtrain.models.jax.CNN", "in_channels": "auto"}}, "in_channels"),
        ({"optimizer": {"_target_": "optax.adam"}}, "needs learning_rate"),
        ({"optimizer": {"_target_": "optax.adamz", "learning_rate": 1}}, "optax"),
        ({"loss": {"_target_": "optax.huber_loss", "detla": 1}}, "trainer.loss.detla"),
        ({"metrics": {"m": {"_target_": "optax.no_such"}}}, "trainer.metrics.m"),
        ({"evaluate_split": "val"}, "no split val"),
        ({"early_stopping": EarlyStoppingConf(monitor="val/acc")}, "reports no val/acc"),
        (
            {"max_epochs": None, "max_seconds": 9, "optimizer": {**ADAM, "learning_rate": SCHEDULE}},
            "known number of steps",
        ),
        ({"train_function": "jax.numpy:pi"}, "is a float, not a function"),
        ({"train_function": "jax.numpy:where_"}, "where"),
    ],
)
def test_what_can_not_work_is_found_first(keys, says):
    with pytest.raises(ConfigError, match=says):
        check(make_conf(**keys))


def test_a_step_has_a_row_for_each_worker():
    with pytest.raises(ConfigError, match="less than one row for each of 3 workers"):
        check(make_conf(global_batch_size=2), num_workers=3)


def test_contradictions_are_refused():
    for keys, says in (
        ({"batch_size": 1}, "contradict"),
        ({"max_epochs": None}, "never end"),
        ({"model": {}}, "model is not chosen"),
    ):
        with pytest.raises(ValueError, match=says):
            make_conf(**keys)


def test_the_checkpoint_of_ones_own_function_has_no_predictor(tmp_path):
    trained = LoadedCheckpoint(folder=tmp_path, conf=Conf(train_function="a:b"), info=small_dataset().info)
    with pytest.raises(CheckpointError, match="a custom loop"):
        load_predictor(trained)
    with pytest.raises(CheckpointError, match="can't be read"):
        load_predictor(LoadedCheckpoint(folder=tmp_path, conf=make_conf(), info=small_dataset().info))


def test_categories_are_no_quantities():
    data = small_dataset(shape=(4,))
    data = Dataset(replace(data.info, categories={"color": ("red", "blue")}), data.splits)
    with pytest.raises(ConfigError, match="needs numbers, but color of small are categories"):
        check(make_conf(), data)


def test_what_workers_import_early_leaves_devices_alone():
    """Which of them a worker may use is known later, and so are the other processes of its world."""
    code = (
        f"import importlib; [importlib.import_module(name) for name in {Plugin.worker_modules!r}]; "
        "from jax._src import xla_bridge; print(xla_bridge.backends_are_initialized())"
    )
    assert subprocess.check_output([sys.executable, "-c", code], text=True).splitlines()[-1] == "False"
