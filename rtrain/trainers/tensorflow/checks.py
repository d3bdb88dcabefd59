"""What can be wrong with a tensorflow config and be found before anything starts."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

import keras

from rtrain.cluster.scaling import refuse_shared_gpu
from rtrain.config.did_you_mean import plain, to_try
from rtrain.config.targets.builder import Builder
from rtrain.datasets.base import DatasetInfo
from rtrain.errors import ConfigError
from rtrain.trainers.base import Job
from rtrain.trainers.loops.auto import (
    check_names,
    check_network,
    fill_lengths,
)
from rtrain.trainers.loops.loss_kinds import check_loss_kind
from rtrain.trainers.loops.number_ranges import check_numbers
from rtrain.trainers.loops.tasks import CLASSES
from rtrain.trainers.tensorflow.build import averaging, build_optimizer, check_model_class, fill
from rtrain.trainers.tensorflow.config import Conf
from rtrain.trainers.tensorflow.environment import check_backend

ONE_HOT = ("CategoricalCrossentropy", "CategoricalFocalCrossentropy", "CategoricalHinge")
"""Losses and metrics whose targets are one-hot."""
SPARSE = {
    "Accuracy": "SparseCategoricalAccuracy",
    "CategoricalAccuracy": "SparseCategoricalAccuracy",
    "CategoricalCrossentropy": "SparseCategoricalCrossentropy",
    "TopKCategoricalAccuracy": "SparseTopKCategoricalAccuracy",
    "OneHotIoU": "IoU",
    "OneHotMeanIoU": "MeanIoU",
    "IoU": "IoU",
    "MeanIoU": "MeanIoU",
}
"""Metrics of Keras that want one-hot targets or classes as outputs, and what works in their place."""
SAME = {"mae": "keras.metrics.MeanAbsoluteError", "mse": "keras.metrics.MeanSquaredError"}
"""Metrics of Keras that are what every evaluation has."""
UNCALLED = [name for name in dir(keras.callbacks.Callback) if name.startswith(("on_test_", "on_predict_"))]
"""Methods of callbacks that are about evaluations and predictions of Keras."""


def check_conf(job: Job) -> None:
    """Check targets, splits and sizes.

    Raises:
        ConfigError: Something can't work; names the key.
    """
    conf: Conf = job.conf.trainer
    check_backend(job)
    info = check_network(job)
    refuse_shared_gpu(job.conf.scaling)
    job.builder.check_node(fill(conf.model, info, "trainer.model"), "trainer.model")
    model = job.builder.locate(conf.model["_target_"], "trainer.model._target_")
    if inspect.isclass(model):
        check_model_class(model, conf)
    check_numbers(conf.optimizer, "trainer.optimizer")
    steps = conf.num_steps(steps_per_epoch=1)
    job.builder.check_node(fill_lengths(conf.optimizer, steps, "trainer.optimizer"), "trainer.optimizer")
    # The signatures of Keras's optimizers take any keyword: only their constructors know better.
    _check_averages(build_optimizer(conf, steps, job.builder))
    if conf.loss is not None:
        _check_loss(fill(conf.loss, info, "trainer.loss"), job)
    for name, node in conf.metrics.items():
        job.builder.check_node(fill(node, info, f"trainer.metrics.{name}"), f"trainer.metrics.{name}")
        _check_metric(node, f"trainer.metrics.{name}", info, job.builder)
    check_names(conf, info, SAME)
    for place, node in enumerate(conf.callbacks):
        job.builder.check_node(node, f"trainer.callbacks.{place}")
        _check_callback(node["_target_"], f"trainer.callbacks.{place}", job.builder)


def _check_callback(target: str, where: str, builder: Builder) -> None:
    """Refuse a callback that needs the events of ``model.evaluate``, which rtrain does not call.

    What Keras's own callbacks do then is to log them, but for one.
    """
    kind = builder.locate(target, where)
    if not inspect.isclass(kind):
        return
    if not issubclass(kind, keras.callbacks.Callback):
        raise ConfigError(f"{where}: {target} is not a Keras callback.")
    if issubclass(kind, keras.callbacks.SwapEMAWeights):
        raise ConfigError(
            f"{where}: {kind.__name__} has no effect, or changes weights between evaluation and checkpoint.",
            "Remove it; the optimizer's ema_overwrite_frequency applies the average to the weights.",
        )
    for name in UNCALLED:
        if getattr(kind, name).__module__.partition(".")[0] != "keras":
            raise ConfigError(
                f"{where}: {kind.__name__} has {name}, which rtrain never calls.",
                "Use on_epoch_end, whose logs contain the evaluation as val_loss and so on.",
            )


def _check_averages(optimizer: Any) -> None:
    """Refuse averages of weights that only the end of ``model.fit`` would put in place of the weights."""
    for one in averaging(optimizer):
        if not one.ema_overwrite_frequency:
            raise ConfigError(
                "trainer.optimizer.use_ema has no effect: the averages are applied only when model.fit ends, after "
                "the last evaluation.",
                "Set trainer.optimizer.ema_overwrite_frequency, or use trainer=torch and ema_decay.",
            )


def _check_loss(node: Mapping[str, Any], job: Job) -> None:
    builder = job.builder
    target = builder.locate(node["_target_"], "trainer.loss._target_")
    if inspect.isfunction(target) and not {"_partial_", "_args_"} & node.keys():
        missing = [
            name
            for name, one in inspect.signature(target).parameters.items()
            if one.default is one.empty and one.kind is one.POSITIONAL_OR_KEYWORD and name not in node
        ]
        if len(missing) == 2:  # targets and outputs
            raise ConfigError(
                f"trainer.loss: {node['_target_']} is a function of {' and '.join(missing)}, but a loss is a "
                "keras.losses.Loss, or a function that is not called yet.",
                to_try("+trainer.loss._partial_=true"),
            )
    builder.check_node(node, "trainer.loss")
    _check_targets(node["_target_"], job)
    loss = builder.build(node, "trainer.loss")
    _check_reduction(loss)
    _check_ignored(loss)


def _check_reduction(loss: Any) -> None:
    """Refuse a loss that is not a mean over rows; of others, the first rows tell."""
    reduction = getattr(loss, "reduction", "mean")
    if reduction not in ("sum_over_batch_size", "mean"):
        raise ConfigError(
            f"trainer.loss.reduction: {reduction} does not work; the loss of a step is the mean over the rows of all "
            "workers, by their weights.",
            to_try("trainer.loss.reduction=sum_over_batch_size")
            + "\nThe gradient of a sum is that of the mean times the rows of a step: "
            "trainer.optimizer.learning_rate can make up for it.",
        )


def _check_ignored(loss: Any) -> None:
    """Refuse a loss that leaves rows out: batches and workers have different numbers of those that count."""
    if getattr(loss, "ignore_class", None) is not None:
        raise ConfigError(
            "trainer.loss.ignore_class: the loss divides by the rows of other classes in each batch, so that an "
            "evaluation would depend on eval_batch_size, and the training on num_workers.",
            "Give these rows a weight of 0 (dataset.weight), or use trainer=torch, whose loss can ignore a class.",
        )


def _check_metric(node: Mapping[str, Any], where: str, info: DatasetInfo, builder: Builder) -> None:
    """Refuse a metric of Keras that would compare outputs, or one-hot targets, with the numbers of classes."""
    kind = builder.locate(node["_target_"], where)
    name = getattr(kind, "__name__", "")
    is_sparse = name in ("IoU", "MeanIoU") and node.get("sparse_y_pred") is False
    if info.task in CLASSES and getattr(keras.metrics, name, None) is kind and name in SPARSE and not is_sparse:
        raise ConfigError(
            f"{where}: {name} needs one-hot targets, or classes as outputs, but targets are class numbers and outputs "
            "have a number per class.",
            to_try(_with_classes(SPARSE[name], where)),
        )


def _with_classes(metric: str, where: str) -> str:
    """Return the words that set a metric whose targets are numbers of classes."""
    more = f" ++{where}.sparse_y_pred=false" if metric in ("IoU", "MeanIoU") else ""
    return f"{where}._target_=keras.metrics.{metric}{more}"


def _check_targets(loss: str, job: Job) -> None:
    """Refuse a loss whose targets are one-hot, or others than those of the dataset."""
    name, choose = loss.rpartition(".")[2], "'trainer.loss={_target_: keras.losses.%s}'"
    of_classes = choose % "SparseCategoricalCrossentropy"
    check_loss_kind(
        loss.replace("keras.src.", "keras."), job, of_numbers=choose % "MeanSquaredError", of_classes=of_classes
    )
    if plain(name) in map(plain, ONE_HOT):
        raise ConfigError(
            f"trainer.loss: {name} needs one-hot targets, but the dataset has class numbers.",
            to_try(of_classes),
        )
