"""What can be wrong with a jax config and be found before anything starts."""

from __future__ import annotations

from rtrain.cluster.scaling import refuse_shared_gpu
from rtrain.datasets.base import DatasetInfo
from rtrain.trainers.base import Job
from rtrain.trainers.jax.config import Conf
from rtrain.trainers.jax.nets.modes import MODES
from rtrain.trainers.loops.auto import (
    channels_last_shape,
    check_names,
    check_network,
    fill_from_dataset,
    fill_lengths,
)
from rtrain.trainers.loops.callbacks.build import check_trainer_callbacks
from rtrain.trainers.loops.loss_kinds import check_loss_kind
from rtrain.trainers.loops.number_ranges import check_numbers


def check_conf(job: Job) -> None:
    """Check targets, splits and sizes, or the function.

    Raises:
        ConfigError: Something can't work; names the key.
    """
    conf: Conf = job.conf.trainer
    if conf.train_function is not None:
        job.builder.locate_function(conf.train_function, "trainer.train_function", num_arguments=1)
        return
    info = check_network(job)
    refuse_shared_gpu(job.conf.scaling)
    check_trainer_callbacks(conf.callbacks, job.builder)
    _check_targets(conf, info, job)


def _check_targets(conf: Conf, info: DatasetInfo, job: Job) -> None:
    model = fill_from_dataset(conf.model, info, input_shape=channels_last_shape(info))
    job.builder.check_node(model, "trainer.model", provided=("rngs", *MODES))
    check_numbers(conf.optimizer, "trainer.optimizer")
    steps = conf.num_steps(steps_per_epoch=1)
    job.builder.check_node(fill_lengths(conf.optimizer, steps, "trainer.optimizer"), "trainer.optimizer")
    if conf.loss is not None:
        job.builder.check_node({**conf.loss, "_partial_": True}, "trainer.loss")
        choose = "'trainer.loss={_target_: optax.%s}'"
        of_classes = choose % "softmax_cross_entropy_with_integer_labels"
        words = {"of_numbers": choose % "squared_error", "of_classes": of_classes}
        check_loss_kind(conf.loss["_target_"], job, **words)
    for name, node in conf.metrics.items():
        job.builder.check_node({**node, "_partial_": True}, f"trainer.metrics.{name}")
    check_names(conf, info)
