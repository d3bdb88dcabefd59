"""What is found before anything starts, and what processes are told."""

import os
import subprocess
import sys
from dataclasses import replace

import keras
import pytest
from keras_runs import ADAM, MLP, make_conf

from rtrain.config.schema import RtrainConf, ScalingConf
from rtrain.config.targets import allow_list
from rtrain.config.targets.builder import Builder
from rtrain.datasets.base import Dataset
from rtrain.errors import CheckpointError, ConfigError
from rtrain.testing.small_data import small_dataset
from rtrain.testing.workers import make_job
from rtrain.trainers.loops.early_stopping import EarlyStoppingConf
from rtrain.trainers.tensorflow.environment import prepare_import
from rtrain.trainers.tensorflow.plugin import Plugin
from rtrain.trainers.trained import LoadedCheckpoint


def check(conf, dataset=None, **scaling):
    job = make_job(RtrainConf(trainer=conf, scaling=ScalingConf(**scaling)), dataset or small_dataset(), "tensorflow")
    Plugin().check(job)


def test_a_good_config_passes():
    check(make_conf(loss={"_target_": "keras.losses.SparseCategoricalCrossentropy"}), num_workers=2)


def test_a_function_as_loss_is_not_called_with_nothing():
    loss = {"_target_": "keras.losses.sparse_categorical_crossentropy"}
    with pytest.raises(ConfigError, match="is a function of y_true and y_pred, but a loss is a") as raised:
        check(make_conf(loss=loss))
    assert raised.value.hint == "try: +trainer.loss._partial_=true"
    check(make_conf(loss={**loss, "_partial_": True}))


@pytest.mark.parametrize(
    ("keys", "says"),
    [
        ({"model": {**MLP, "hiden": [1]}}, r"trainer.model.hiden: .* has no argument 'hiden'"),
        ({"optimizer": {**ADAM, "_target_": "keras.optimizers.Adan"}}, "keras.optimizers"),
        ({"optimizer": {**ADAM, "learning_rat": 0.1}}, "learning_rat"),
        ({"loss": {"_target_": "keras.losses.CategoricalCrossentropy"}}, "one-hot"),
        ({"metrics": {"m": {"_target_": "keras.metrics.NoSuch"}}}, "trainer.metrics.m"),
        ({"callbacks": [{"_target_": "keras.callbacks.EarlyStoping"}]}, "trainer.callbacks.0"),
        (
            {"callbacks": ["EarlyStopping"]},
            "trainer.callbacks.0: must be a mapping with a _target_",
        ),
        ({"callbacks": [{"_target_": "keras.optimizers.Adam"}]}, "keras.optimizers.Adam is not a Keras callback"),
        ({"evaluate_split": "val"}, "no split val"),
        ({"early_stopping": EarlyStoppingConf(monitor="val/acc")}, "reports no val/acc"),
        ({"global_batch_size": 1}, "less than one row for each of 2 workers"),
    ],
)
def test_what_can_not_work_is_found_first(keys, says):
    with pytest.raises(ConfigError, match=says):
        check(make_conf(**keys), num_workers=2)


SPARSE = "keras.losses.SparseCategoricalCrossentropy"


@pytest.mark.parametrize("reduction", ["sum", "none", None, "mean_with_sample_weight", "sum_over_batch_size", "mean"])
def test_a_loss_that_is_no_mean_over_rows_is_refused(reduction):
    conf = make_conf(loss={"_target_": SPARSE, "from_logits": True, "reduction": reduction})
    if reduction in ("sum_over_batch_size", "mean"):
        check(conf)
        return
    with pytest.raises(ConfigError, match=r"trainer\.loss\.reduction"):
        check(conf)


@pytest.mark.parametrize("num_workers", [1, 2])
def test_a_loss_that_leaves_out_rows_is_refused(num_workers):
    check(make_conf(loss={"_target_": SPARSE, "from_logits": True, "ignore_class": None}), num_workers=num_workers)
    with pytest.raises(ConfigError, match=r"trainer\.loss\.ignore_class"):
        check(make_conf(loss={"_target_": SPARSE, "from_logits": True, "ignore_class": 1}), num_workers=num_workers)


def test_contradictions_are_refused():
    for keys, says in (
        ({"batch_size": 1}, "contradict"),
        ({"max_epochs": None}, "never end"),
        ({"model": {}}, "model"),
    ):
        with pytest.raises(ValueError, match=says):
            make_conf(**keys)


def test_a_folder_without_weights_is_told(tmp_path):
    with pytest.raises(CheckpointError, match="does not contain the weights"):
        Plugin().load_predictor(LoadedCheckpoint(folder=tmp_path, conf=make_conf(), info=small_dataset().info), "cpu")


def test_another_backend_of_keras_is_told_and_tensorflow_is_imported_quietly(monkeypatch):
    code = "from rtrain.trainers.tensorflow.environment import prepare_import; prepare_import(); import keras"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "oneDNN" not in done.stderr
    import keras

    monkeypatch.setattr(keras.config, "backend", lambda: "jax")
    with pytest.raises(ConfigError, match="imported with the backend jax"):
        check(make_conf())


def test_what_the_user_says_of_logging_wins_but_not_what_keras_runs_on(monkeypatch):
    for name, value in {"TF_CPP_MIN_LOG_LEVEL": "0", "KERAS_BACKEND": "jax"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("GRPC_VERBOSITY", raising=False)
    prepare_import()
    found = [os.environ[name] for name in ("TF_CPP_MIN_LOG_LEVEL", "KERAS_BACKEND", "GRPC_VERBOSITY")]
    assert found == ["0", "tensorflow", "ERROR"]
    for variables in (Plugin().worker_env(make_conf()), Plugin().world().variables()):
        assert [variables[name] for name in ("TF_CPP_MIN_LOG_LEVEL", "GRPC_VERBOSITY")] == ["0", "ERROR"]


def test_categories_are_no_quantities():
    data = small_dataset(shape=(4,))
    data = Dataset(replace(data.info, categories={"color": ("red", "blue")}), data.splits)
    with pytest.raises(ConfigError, match="needs numbers, but color of small are categories"):
        check(make_conf(), data)


@pytest.mark.parametrize(
    "path",
    [
        "keras.models.load_model",
        "keras.layers.Lambda",
        "keras.layers.TFSMLayer",
        "keras.layers.TorchModuleWrapper",
        "keras.layers.deserialize",
        "keras.Sequential.from_config",
        "keras.utils.get_file",
        "keras.src.layers.serialization_lib.deserialize_keras_object",
        "tensorflow.keras.models.load_model",
    ],
)
def test_what_runs_more_than_a_layer_is_not_for_a_checkpoint_of_somebody_elses(path):
    with pytest.raises(ConfigError, match=r"--trust|not allowed"):
        Builder(trusted=False).locate(path, "trainer.model._target_")
    assert Builder(trusted=False).locate("keras.layers.Dense", "trainer.model._target_") is keras.layers.Dense


def test_an_object_in_the_form_of_keras_is_not_made_for_somebody_else():
    config = {"class_name": "Popen", "module": "subprocess", "config": {"args": "true"}}
    node = {"_target_": "keras.layers.Dense", "units": 3, "activation": config}
    with pytest.raises(ConfigError, match="a serialized object"):
        Builder(trusted=False).build(node, "trainer.model")


SGD_EMA = {"_target_": "keras.optimizers.SGD", "use_ema": True}


@pytest.mark.parametrize("around", [False, True])
def test_averages_that_would_never_become_the_weights_are_refused(around):
    for every in (None, 3):
        optimizer = {**SGD_EMA, "ema_overwrite_frequency": every}
        if around:
            optimizer = {"_target_": "keras.optimizers.LossScaleOptimizer", "inner_optimizer": optimizer}
        if every is not None:
            check(make_conf(optimizer=optimizer))
            continue
        with pytest.raises(ConfigError, match=r"use_ema has no effect.*\n?.*ema_overwrite_frequency"):
            check(make_conf(optimizer=optimizer))


@pytest.mark.parametrize("name", ["Adam", "SGD", "RMSprop"])
def test_an_argument_that_keras_would_ignore_is_refused(name):
    with pytest.raises(ConfigError, match=r"trainer\.optimizer: Argument `decay` .* will be ignored"):
        check(make_conf(optimizer={"_target_": f"keras.optimizers.{name}", "decay": 0.1}))


@pytest.fixture
def this_file_may_be_named(monkeypatch):
    monkeypatch.setattr(allow_list, "FRAMEWORKS", allow_list.FRAMEWORKS | {__name__})


UNCALLED = ["test_begin", "test_end", "test_batch_begin", "test_batch_end", "predict_begin", "predict_end"]


@pytest.mark.usefixtures("this_file_may_be_named")
@pytest.mark.parametrize("name", UNCALLED)
def test_callbacks_that_wait_for_an_evaluation_of_keras_are_refused(monkeypatch, name):
    waiting = type("Waiting", (keras.callbacks.Callback,), {f"on_{name}": lambda self, *args, **keys: None})
    monkeypatch.setattr(keras.callbacks, "Waiting", waiting, raising=False)
    with pytest.raises(ConfigError, match=f"trainer.callbacks.0: Waiting has on_{name}, which rtrain never calls"):
        check(make_conf(callbacks=[{"_target_": "keras.callbacks.Waiting"}]))


@pytest.mark.usefixtures("this_file_may_be_named")
@pytest.mark.parametrize("derived", [False, True])
def test_callbacks_that_swap_the_weights_of_checkpoints_are_refused(monkeypatch, derived):
    swaps = keras.callbacks.SwapEMAWeights
    monkeypatch.setattr(keras.callbacks, "Swaps", type("Swaps", (swaps,), {}) if derived else swaps, raising=False)
    for callback in ("EarlyStopping", "TensorBoard", "ReduceLROnPlateau"):
        check(make_conf(callbacks=[{"_target_": f"keras.callbacks.{callback}"}]))
    with pytest.raises(ConfigError, match=r"trainer.callbacks.0: Swap\w* has no effect"):
        check(make_conf(callbacks=[{"_target_": "keras.callbacks.Swaps"}]))


@pytest.mark.parametrize(("name", "kind"), [("mae", "MeanAbsoluteError"), ("mse", "MeanSquaredError")])
def test_a_metric_may_have_the_name_of_what_is_the_same(name, kind):
    check(make_conf(metrics={name: {"_target_": f"keras.metrics.{kind}"}}), small_dataset("regression", shape=(4,)))


def test_what_workers_import_early_leaves_devices_alone():
    """Which of them a worker may use, and its number of threads, are known later."""
    code = (
        f"import importlib; [importlib.import_module(name) for name in {Plugin.worker_modules!r}]; "
        "from tensorflow.python.eager import context; print(context.context()._initialized)"
    )
    assert subprocess.check_output([sys.executable, "-c", code], text=True).splitlines()[-1] == "False"


@pytest.mark.parametrize("check_job", [Plugin().check, Plugin().world().check])
def test_workers_that_are_told_another_backend_of_keras_are_refused(check_job):
    """They import Keras before this trainer could say what it needs."""
    jax, other = ({"env_vars": env} for env in ({"KERAS_BACKEND": "jax", "MINE": "1"}, {"MINE": "1"}))

    def job(num_workers, runtime_env):
        conf = RtrainConf(trainer=make_conf(), scaling=ScalingConf(num_workers=num_workers))
        conf.cluster.runtime_env = runtime_env
        return make_job(conf, small_dataset(), "tensorflow")

    for fine in (job(0, jax), job(1, other), job(1, {})):
        check_job(fine)
    with pytest.raises(ConfigError, match=r"cluster.runtime_env.env_vars.KERAS_BACKEND: .* not on jax"):
        check_job(job(1, jax))
