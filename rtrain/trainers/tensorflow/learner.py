"""A Keras model as the loop of epochs sees it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from safetensors.numpy import load_file, save_file

from rtrain.datasets.base import Batch
from rtrain.errors import CheckpointError
from rtrain.runs.checkpoints import Writer
from rtrain.trainers.base import Job
from rtrain.trainers.loops.auto import evaluated_split
from rtrain.trainers.loops.epochs.learner import Learner
from rtrain.trainers.loops.tasks import CLASSES, TINY, derived_metrics, mean_names
from rtrain.trainers.sanity_worker import sanity_worker
from rtrain.trainers.tensorflow.build import (
    build_callbacks,
    build_loss,
    build_metrics,
    build_model,
    build_optimizer,
    gives_logits,
    note_on_averages,
)
from rtrain.trainers.tensorflow.callbacks import FILE_NAME as CALLBACKS
from rtrain.trainers.tensorflow.callbacks import Callbacks
from rtrain.trainers.tensorflow.checkpoint.weights import FILE_NAME as WEIGHTS
from rtrain.trainers.tensorflow.checkpoint.weights import load_weights
from rtrain.trainers.tensorflow.config import Conf
from rtrain.trainers.tensorflow.environment import kept_random_numbers
from rtrain.trainers.tensorflow.inputs import Inputs
from rtrain.trainers.tensorflow.ranks import TensorflowRanks
from rtrain.trainers.tensorflow.sanity_check.losses import check_mask, try_loss, try_metrics
from rtrain.trainers.tensorflow.sanity_check.model import check_loss, try_model
from rtrain.trainers.tensorflow.shapes import OfColumns, is_single, update
from rtrain.trainers.tensorflow.steps import (
    evaluate_step,
    seed_states,
    train_step,
)
from rtrain.trainers.worker import Worker

TRAINING = "training.safetensors"
RANK_SEEDS = 1_000_003
"""Distance between the seeds of two ranks, so that their rows get different dropout."""


class KerasLearner(Learner):
    """Model and optimizer, the same on each rank."""

    def __init__(self, worker: Worker, ranks: TensorflowRanks) -> None:
        conf: Conf = worker.conf
        info, builder = worker.data.info, worker.builder
        self._info, self._ranks, self._split = info, ranks, evaluated_split(conf.evaluate_split, info)
        keras.utils.set_random_seed(worker.run.seed)
        self.model, inputs = build_model(conf, info, builder), Inputs(info)
        output, target = try_model(self.model, inputs, worker, ranks.size)
        check_mask(output, ranks.size * conf.accumulate_steps)
        single = info.task in CLASSES and is_single(output, target)
        steps_per_epoch = -(-worker.data.splits["train"].num_rows // conf.rows_per_step(ranks.size))
        steps = conf.num_steps(steps_per_epoch)
        optimizer = build_optimizer(conf, steps, builder)
        note = note_on_averages(optimizer, steps or steps_per_epoch)
        if note is not None:
            worker.notice(note)
        loss = build_loss(conf, self.model, info, builder, single=single)
        taken = OfColumns(loss) if output.shape.rank == 1 else loss
        self.model.compile(optimizer=optimizer, loss=taken, jit_compile=False)
        optimizer.build(self.model.trainable_variables)
        computes = type(self.model).compute_loss is not keras.Model.compute_loss
        try_loss(self.model, inputs, output, info, own=computes or conf.loss is not None)
        check_loss(self.model, inputs, worker, ranks.size)
        self._metrics = build_metrics(conf, info, builder)
        try_metrics(self._metrics, output, info)
        skips, parts = worker.run.failure.nan_loss == "skip", conf.accumulate_steps
        self._train = train_step(self.model, inputs, info, ranks, parts=parts, skips=skips)
        self._evaluate = evaluate_step(self.model, inputs, info, gives_logits(loss, self.model))
        self._callbacks = Callbacks(build_callbacks(conf, self._metrics, builder), self.model, conf.max_epochs)
        self._stager = Stager((*self.model.variables, *optimizer.variables))
        self._move_seeds(ranks.rank)

    def train_step(self, batch: Batch, step: int) -> Any:
        """Do one step."""
        self._callbacks.begin_step(step)
        x, y, weight = _rows(batch)
        total = float(batch.num_global)
        if "weight" in self._info.columns:
            total = self._ranks.sum([float(weight.sum()) if len(batch.y) else 0.0])[0]
            weight = weight * np.float32(batch.num_global / max(total, TINY))
        loss = self._train(x, y, weight, np.float32(len(batch.y) / batch.num_global))
        self._callbacks.end_step(step, loss)
        return loss, total

    def step_losses(self, taken: Sequence[Any]) -> list[tuple[float, float]]:
        """Return the sums; waits for the device."""
        return [(float(loss) * weight, weight) for loss, weight in taken]

    def evaluate(self, batches: Iterable[Batch]) -> dict[str, float]:
        """Return the mean of each metric over all rows of all ranks, by their weights."""
        names = mean_names(self._info.task)
        sums = np.zeros(1 + len(names))
        for batch in batches:
            if len(batch.y) == 0:
                continue
            x, y, counts = _rows(batch)
            output, found = self._evaluate(x, y, counts)
            sums += found.numpy()
            for metric in self._metrics.values():
                update(metric, y, output, counts if "weight" in self._info.columns else None)
        weight, *totals = self._ranks.sum(sums.tolist())
        means = {name: total / max(weight, TINY) for name, total in zip(names, totals, strict=True)}
        return derived_metrics(self._info.task, means) | self._own_metrics()

    def _own_metrics(self) -> dict[str, float]:
        """Return the user's metrics; what they have counted is added up over ranks."""
        found = {}
        for name, metric in self._metrics.items():
            if self._ranks.size > 1:
                for variable in metric.variables:
                    counted = self._ranks.sum(np.ravel(variable.numpy()).tolist())
                    variable.assign(np.reshape(counted, variable.shape))
            found[name] = float(np.mean(metric.result()))
            metric.reset_state()
        return found

    def learning_rate(self) -> float | None:
        """Return the learning rate of the next step."""
        return float(self.model.optimizer.learning_rate)

    def end_epoch(self, epoch: int, metrics: Mapping[str, float]) -> str:
        """Tell the callbacks; they may end training."""
        named = {"train/epoch_loss": "loss", "train/lr": "learning_rate"}
        prefix = f"{self._split}/"
        logs = {f"val_{name.removeprefix(prefix)}": one for name, one in metrics.items() if name.startswith(prefix)}
        logs |= {named[name]: one for name, one in metrics.items() if name in named}
        return self._callbacks.end_epoch(epoch, logs)

    def close(self) -> None:
        """Tell the callbacks that training has ended."""
        self._callbacks.end()

    def non_finite(self) -> set[str]:
        """Return the names of weights and batch statistics that are not finite."""
        weights = [one for one in self.model.weights if keras.backend.is_float_dtype(one.dtype)]
        return {one.path for one in weights if not np.isfinite(one.numpy()).all()}

    def snapshot(self) -> Writer:
        """Copy all variables, and return what writes them: the weights as Keras does, and all other numbers."""
        self._stager.take()
        remembered = json.dumps(self._callbacks.state()) if self._callbacks else None

        def write(folder: Path) -> None:
            with self._stager.shown():
                keras.saving.save_weights(self.model, folder / WEIGHTS, objects_to_skip=[self.model.optimizer])
                save_file({name: np.asarray(one.numpy()) for name, one in self._others().items()}, folder / TRAINING)
            if remembered is not None:
                (folder / CALLBACKS).write_text(remembered, encoding="utf-8")

        return write

    def load(self, folder: Path) -> None:
        """Take weights, optimizer and seeds from a checkpoint."""
        load_weights(self.model, folder, [self.model.optimizer])
        stored, others = load_file(folder / TRAINING), self._others()
        if stored.keys() != others.keys():
            raise CheckpointError(f"{folder / TRAINING} does not fit this model and optimizer.")
        for name, variable in others.items():
            variable.assign(stored[name])
        self._callbacks.load(folder)
        self._move_seeds(self._ranks.rank)

    def load_weights(self, folder: Path) -> None:
        """Take the weights."""
        load_weights(self.model, folder, [self.model.optimizer])

    def _others(self) -> dict[str, Any]:
        """Return the variables other than the weights, by name."""
        parts = {"optimizer": self.model.optimizer.variables, "seed": seed_states(self.model)}
        return {f"{part}/{place}": one for part, many in parts.items() for place, one in enumerate(many)}

    def _move_seeds(self, rank: int) -> None:
        for state in seed_states(self.model) if rank > 0 else []:
            own = state.numpy().copy()
            own[0] += rank * RANK_SEEDS
            state.assign(own)

    def describe(self) -> Mapping[str, Any]:
        """Return the size of the model."""
        return {"device": "gpu" if self._ranks.hint == "nccl" else "cpu", "num_parameters": self.model.count_params()}


def try_learner(job: Job) -> None:
    """Build what training builds, which calls model, loss and metrics.

    Raises:
        RtrainError: One of them fails; names its key.
    """
    with kept_random_numbers(), tf.device("CPU:0"):
        KerasLearner(sanity_worker(job), TensorflowRanks(rank=0, size=1))


def _rows(batch: Batch) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return rows, targets and weights; if there are no rows, one of weight 0, because the mean of nothing is NaN."""
    x, y, weight = batch.x, batch.y, batch.weight
    y = y.astype("float32") if y.dtype == np.float64 else y
    if len(y) == 0:
        x, y = (np.zeros((1, *values.shape[1:]), values.dtype) for values in (x, y))
        weight = np.zeros(1, "float32")
    elif weight is None:
        weight = np.ones(len(y), "float32")
    return x, y, weight.reshape(-1, *[1] * (y.ndim - 1))


class Stager:
    """Copies the values of variables, each time into the same room: new memory costs more than the copying does."""

    def __init__(self, variables: Iterable[Any]) -> None:
        self._variables = list(variables)
        self._room: list[np.ndarray] = []

    def take(self) -> None:
        """Copy the values as they are now, in place of those before."""
        values = [np.asarray(one.value.read_value()) for one in self._variables]
        self._room = self._room or [np.empty_like(value) for value in values]
        for room, value in zip(self._room, values, strict=True):
            np.copyto(room, value)

    @contextmanager
    def shown(self) -> Iterator[None]:
        """Have each variable show its copy to this thread, and to no other."""
        shown = list(zip(self._variables, self._room, strict=True))
        with tf.device("CPU"), keras.StatelessScope(shown, initialize_variables=False):
            yield
