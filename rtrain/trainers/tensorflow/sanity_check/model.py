"""Model and loss on the first rows, before training: what doesn't fit the data is one error that names both."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import tensorflow as tf

from rtrain.datasets.base import ResidentSplit
from rtrain.errors import TrainingError
from rtrain.trainers.loops.auto import channels_last_shape, evaluated_split
from rtrain.trainers.sanity_check import is_at_hand, num_tried_rows, tried_model, try_rows
from rtrain.trainers.tensorflow.inputs import Inputs
from rtrain.trainers.tensorflow.outputs import check_output
from rtrain.trainers.tensorflow.steps import call, is_mean_of_rows, seed_states, target_spec, zeros
from rtrain.trainers.worker import Worker


def try_model(model: Any, inputs: Inputs, worker: Worker, num_ranks: int) -> tuple[Any, Any]:
    """Call a new model with the first rows of training; neither weights nor batch statistics change.

    Returns:
        What it gives for some rows, and targets of as many rows; zeros where it fails with zeros in place of rows that
        are streamed.

    Raises:
        TrainingError: It fails with these rows, or its outputs don't fit the targets.
    """
    conf, info = worker.conf, worker.data.info

    def attempt(rows: ResidentSplit) -> tuple[Any, Any]:
        x, target = tf.constant(rows.columns["x"]), tf.cast(rows.columns["y"], target_spec(info).dtype)
        with tried_model(conf.model, info, channels_last_shape(info)):
            output = call(model, inputs.ready(x), training=False)
        check_output(output, target, info)
        return output, target

    with _kept_statistics(model):
        found = try_rows(worker, -(-conf.rows_per_step(num_ranks) // num_ranks), attempt)
    if found is not None:
        return found
    count = num_tried_rows(info)
    with tried_model(conf.model, info, channels_last_shape(info)):
        output, target = zeros(_output_spec(model, inputs), count), zeros(target_spec(info), count)
    check_output(output, target, info)
    return output, target


@contextmanager
def _kept_statistics(model: Any) -> Iterator[None]:
    """Bring back, after the block, the statistics of a model that updates them in evaluations too."""
    seeds = {id(one) for one in seed_states(model)}
    before = [(one, one.numpy()) for one in model.non_trainable_variables if id(one) not in seeds]
    try:
        yield
    finally:
        for one, value in before:
            one.assign(value)


def _output_spec(model: Any, inputs: Inputs) -> Any:
    """Return shape and type of the outputs of any number of rows; nothing is computed."""
    graph = tf.function(lambda x: call(model, inputs.ready(x), training=False))
    return graph.get_concrete_function(inputs.x).structured_outputs


def check_loss(model: Any, inputs: Inputs, worker: Worker, num_ranks: int) -> None:
    """Find a loss of the user's that is not a mean over rows, as far as some rows tell.

    Raises:
        TrainingError: Several workers, or backward passes, would train something else than one does.
    """
    conf, info, train = worker.conf, worker.data.info, worker.data.splits["train"]
    if conf.loss is None:
        return
    split = evaluated_split(conf.evaluate_split, info)
    in_parts = split is not None and info.num_rows[split] > conf.eval_batch_size
    num_parts = num_ranks * conf.accumulate_steps
    if num_parts == 1 and not (in_parts and is_at_hand(train) and not conf.loss["_target_"].startswith("keras.")):
        return
    if is_mean_of_rows(model, inputs, next(iter(train.own_rows(0, 1)))):
        return
    what = "trainer.loss: the loss of some rows is not the mean of the losses of its parts"
    if num_parts > 1:
        raise TrainingError(
            f"{what}: several workers, or trainer.accumulate_steps, would train differently than one step of all rows.",
            "Use num_workers=1 and trainer.accumulate_steps=1, or a loss that returns one value per row.",
        )
    worker.notice(
        f"{what}, so that the loss of an evaluation depends on trainer.eval_batch_size. For the loss of all rows "
        f"together: trainer.eval_batch_size={info.num_rows[str(split)]}"
    )
