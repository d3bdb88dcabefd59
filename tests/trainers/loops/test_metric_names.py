"""Metrics of the user's choice: those of the task keep their names, whatever the trainer."""

import pytest

from rtrain.config.schema import RtrainConf
from rtrain.errors import ConfigError
from rtrain.testing.small_data import small_dataset
from rtrain.testing.workers import make_job
from rtrain.trainers.loops.tasks import metric_names
from rtrain.trainers.registry import confs, load_trainer

KEYS = {
    "torch": (
        {"_target_": "torch.nn.Flatten"},
        {"_target_": "torch.optim.SGD"},
        {"_target_": "torchmetrics.MeanMetric"},
    ),
    "jax": (
        {"_target_": "rtrain.models.jax.MLP", "num_classes": "auto"},
        {"_target_": "optax.sgd", "learning_rate": 0.1},
        {"_target_": "optax.softmax_cross_entropy_with_integer_labels"},
    ),
    "tensorflow": (
        {"_target_": "rtrain.models.keras.mlp", "input_shape": "auto", "num_classes": "auto"},
        {"_target_": "keras.optimizers.SGD"},
        {"_target_": "keras.metrics.Mean"},
    ),
}
"""Model, optimizer and a metric of each trainer that has ``trainer.metrics``."""


def check(trainer, metrics, data):
    model, optimizer, metric = KEYS[trainer]
    plugin = load_trainer(trainer)
    conf = plugin.Conf(model=model, optimizer=optimizer, metrics=dict.fromkeys(metrics, metric), max_epochs=1)
    plugin.check(make_job(RtrainConf(trainer=conf), data, trainer))


def test_every_trainer_with_metrics_is_tried():
    assert {name for name in confs() if "metrics" in confs()[name].__dataclass_fields__} == KEYS.keys()


@pytest.mark.parametrize("task", ["classification", "token-classification", "language-modeling", "regression"])
@pytest.mark.parametrize("trainer", KEYS)
def test_metrics_of_the_task_keep_their_names(trainer, task):
    data = small_dataset(task)
    for name in ("loss", "accuracy", "perplexity", "mae", "mse"):
        if name not in metric_names(task):
            check(trainer, ["other", name], data)
            continue
        with pytest.raises(ConfigError) as error:
            check(trainer, ["other", name], data)
        assert f"trainer.metrics.{name}: every evaluation already has a metric {name}" in error.value.message
        assert f"trainer.metrics.own_{name}" in error.value.hint
