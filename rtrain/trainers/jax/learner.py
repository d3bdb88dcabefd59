"""A Flax module as the loop of epochs sees it. Each step is compiled once and runs on the devices of all ranks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from safetensors.numpy import save_file

from rtrain.datasets.base import Batch, DatasetInfo, take_rows
from rtrain.runs.checkpoints import Writer
from rtrain.trainers.base import Job
from rtrain.trainers.jax import arrays
from rtrain.trainers.jax.build import RowLoss, build_loss, build_metrics, build_optimizer
from rtrain.trainers.jax.inputs import Inputs, padded, real_rows
from rtrain.trainers.jax.nets.base import Net, build_net
from rtrain.trainers.jax.outputs import fit_output
from rtrain.trainers.jax.ranks import JaxRanks
from rtrain.trainers.jax.sanity_check import try_rows
from rtrain.trainers.loops.auto import channels_last_shape
from rtrain.trainers.loops.callbacks.base import WorkerCallback
from rtrain.trainers.loops.callbacks.build import build_callbacks
from rtrain.trainers.loops.epochs.learner import Learner
from rtrain.trainers.loops.tasks import TINY, derived_metrics
from rtrain.trainers.sanity_check import tried, tried_model
from rtrain.trainers.sanity_worker import sanity_worker
from rtrain.trainers.worker import Worker

WEIGHTS, TRAINING = "model.safetensors", "optimizer.safetensors"
IDLE = (
    "trainer.model: dropout is off in training ({}). To turn it on, give the module an argument named train, which "
    "rtrain sets; otherwise set its rate to 0"
)

INSTEAD = "Choose one that needs gradients and weights alone, not the loss: optax.adamw, say."


class JaxLearner(Learner):
    """Weights, state and optimizer, whole on each device; the rows of a step are shared out among all devices.

    XLA adds up gradients over the devices, because the loss is a mean over rows that lie on all of them. Several
    workers thus compute what one computes, random numbers included; only in steps whose rows can't be shared out evenly
    do rows have other places, and with them other dropout.
    """

    def __init__(self, worker: Worker, ranks: JaxRanks) -> None:
        conf, info = worker.conf, worker.data.info
        self._info, self._ranks, self._conf, self._builder = info, ranks, conf, worker.builder
        rows = conf.rows_per_step(ranks.size)
        self._slots = ranks.slots(rows // conf.accumulate_steps)
        self._eval_slots = ranks.slots(conf.eval_batch_size * ranks.size)
        steps = conf.num_steps(-(-worker.data.splits["train"].num_rows // rows))
        optimizer, self._rate = build_optimizer(conf, steps, worker.builder)
        net, inputs = build_net(conf, info, worker.run.seed, worker.builder), Inputs(info)
        self._inputs = inputs
        row = inputs.narrow(np.zeros((1, *info.input_shape), info.dtype))
        with tried_model(conf.model, info, channels_last_shape(info)):
            weights, state = net.init(inputs.ready(jnp.asarray(row)))
        with tried("trainer.optimizer", info, "gradients like the weights", INSTEAD):
            jax.eval_shape(optimizer.update, weights, jax.eval_shape(optimizer.init, weights), weights)
        self._at = jax.device_put((weights, state, optimizer.init(weights)), ranks.everywhere)
        self._metrics = build_metrics(conf, info, worker.builder)
        loss = build_loss(conf, info, worker.builder)
        measured = {f"trainer.metrics.{name}": one for name, one in self._metrics.items()}
        idle = try_rows(conf, net, (weights, state), inputs, {"trainer.loss": loss, **measured}, info)
        if idle:
            worker.notice(IDLE.format(", ".join(idle)))
        self._key, self._step = jax.random.key(worker.run.seed), 0
        self._has_statistics, skips = bool(jax.tree.leaves(state)), worker.run.failure.nan_loss == "skip"
        part, finish = gradient_step(net, inputs, loss, info, ranks.rows), optimizer_step(optimizer, skips=skips)
        everywhere = ranks.everywhere

        def whole(at: Any, *given: Any, num_rows: int | None) -> Any:
            return finish(at, *part(at[0], at[1], *given, num_rows=num_rows))

        def add(sums: Any, *given: Any, num_rows: int | None) -> Any:
            new, state = part(*given, num_rows=num_rows)
            return jax.tree.map(jnp.add, sums, new), state

        self._whole = jax.jit(whole, donate_argnums=0, static_argnames="num_rows", out_shardings=everywhere)
        self._zeros = jax.jit(zeros, out_shardings=everywhere)
        self._add = jax.jit(add, donate_argnums=0, static_argnames="num_rows", out_shardings=everywhere)
        self._finish = jax.jit(finish, donate_argnums=0, out_shardings=everywhere)
        self._evaluate = jax.jit(
            evaluate_step(net, inputs, {"loss": loss, **self._metrics}, info), out_shardings=everywhere
        )

    def train_step(self, batch: Batch, step: int) -> Any:
        """Do one step; its loss is computed while this returns."""
        self._step, count = step + 1, np.float32(batch.num_global)
        if self._conf.accumulate_steps == 1:
            rows, num_rows = self._rows(batch)
            self._at, loss = self._whole(self._at, rows, self._key, np.int32(step), count, num_rows=num_rows)
            return loss, batch.num_global
        weights, state, _ = self._at
        sums = self._zeros(weights)
        for number, part in enumerate(self._parts(batch)):
            (rows, num_rows), key = self._rows(part), jax.random.fold_in(self._key, number)
            sums, state = self._add(sums, weights, state, rows, key, np.int32(step), count, num_rows=num_rows)
        self._at, loss = self._finish(self._at, sums, state)
        return loss, batch.num_global

    def _parts(self, batch: Batch) -> Iterator[Batch]:
        """Yield the rows of each backward pass, maybe none; all ranks have as many passes."""
        columns = {"x": batch.x, "y": batch.y} | ({} if batch.weight is None else {"weight": batch.weight})
        for rows in np.array_split(np.arange(len(batch.y)), self._conf.accumulate_steps):
            part = take_rows(columns, rows, int(self._ranks.sum([len(rows)])[0]))
            if part.num_global:
                yield part

    def _rows(self, batch: Batch) -> tuple[tuple[Any, ...], int | None]:
        """Return the rows of a backward pass, and how many of them are real if the model must see no others."""
        rows = self._gathered(padded(batch, self._slots, self._inputs))
        if not self._has_statistics or batch.num_global == rows[0].shape[0]:
            return rows, None
        return (*rows, *self._gathered([np.arange(self._slots) < len(batch.y)])), batch.num_global

    def step_losses(self, taken: Sequence[Any]) -> list[tuple[float, float]]:
        """Return the sums; waits for the devices."""
        found = ((*map(float, np.asarray(loss)), num_rows) for loss, num_rows in taken)
        return [(mean * weight * num_rows, weight * num_rows) for mean, weight, num_rows in found]

    def evaluate(self, batches: Iterable[Batch]) -> dict[str, float]:
        """Return the mean of each metric over all rows, by their weights."""
        names = ("loss", *self._metrics)
        sums = np.zeros(1 + len(names))
        for batch in batches:
            rows = self._gathered(padded(batch, self._eval_slots, self._inputs))
            sums += np.asarray(self._evaluate(self._at[:2], rows), np.float64)
        means = {name: float(total / max(sums[0], TINY)) for name, total in zip(names, sums[1:], strict=True)}
        return derived_metrics(self._info.task, means)

    def _gathered(self, own: Sequence[np.ndarray]) -> tuple[Any, ...]:
        return tuple(self._ranks.gather_rows(values) for values in own)

    def learning_rate(self) -> float | None:
        """Return the learning rate of the next step, if the config says it."""
        return None if self._rate is None else self._rate(self._step)

    def callbacks(self) -> list[WorkerCallback]:
        """Build the callbacks of the config."""
        return build_callbacks(self._conf.callbacks, self._builder)

    def learned(self) -> tuple[Any, None]:
        """Return the weights; the optimizer is part of a compiled step."""
        return self._at[0], None

    def non_finite(self) -> set[str]:
        """Return the names of weights and batch statistics that are not finite."""
        named, _ = jax.tree_util.tree_flatten_with_path(self._at[:2])
        floats = [(name, leaf) for name, leaf in named if jnp.issubdtype(leaf.dtype, jnp.inexact)]
        good = [jnp.isfinite(leaf).all() for _, leaf in floats]
        return {jax.tree_util.keystr(name) for (name, _), one in zip(floats, good, strict=True) if not one}

    def snapshot(self) -> Writer:
        """Copy weights and state, and the optimizer."""
        files = {WEIGHTS: arrays.copied(self._at[:2]), TRAINING: arrays.copied(self._at[2])}

        def write(folder: Path) -> None:
            for name, found in files.items():
                save_file(found, folder / name)

        return write

    def load(self, folder: Path) -> None:
        """Take weights, state and optimizer from a checkpoint."""
        weights, state = arrays.load(folder / WEIGHTS, self._at[:2])
        self._at = jax.device_put((weights, state, arrays.load(folder / TRAINING, self._at[2])), self._ranks.everywhere)

    def load_weights(self, folder: Path) -> None:
        """Take weights and state."""
        weights, state = arrays.load(folder / WEIGHTS, self._at[:2])
        self._at = jax.device_put((weights, state, self._at[2]), self._ranks.everywhere)

    def describe(self) -> Mapping[str, Any]:
        """Return device, processes and the size of the model."""
        return {
            "device": str(self._ranks.devices[self._ranks.rank]),
            "num_processes": jax.process_count(),
            "num_parameters": sum(leaf.size for leaf in jax.tree.leaves(self._at[0])),
        }


def try_learner(job: Job) -> None:
    """Build what training builds, which calls model, loss and metrics for their shapes.

    Raises:
        RtrainError: One of them fails; names its key.
    """
    JaxLearner(sanity_worker(job), JaxRanks(0, 1, tuple(jax.devices("cpu")[:1])))


def zeros(weights: Any) -> Any:
    """Return what the first backward pass of a step adds to."""
    return jnp.zeros(()), jnp.zeros(()), jax.tree.map(jnp.zeros_like, weights)


def gradient_step(net: Net, inputs: Inputs, loss: RowLoss, info: DatasetInfo, place: Any) -> Callable[..., Any]:
    """Return the function of one backward pass: its sums of losses, weights and gradients, by ``count``; and the state.

    ``count`` is the number of rows of the step, whatever they weigh.
    """

    def part(weights: Any, state: Any, rows: Any, key: Any, step: Any, count: Any, num_rows: Any) -> Any:
        x, y, weight = real_rows(rows, num_rows, place)

        def share(some: Any) -> tuple[Any, Any]:
            output, new = net.apply(some, state, inputs.ready(x), jax.random.fold_in(key, step), training=True)
            return (loss(fit_output(output, y, info), y) * weight).sum() / count, new

        (value, state), gradient = jax.value_and_grad(share, has_aux=True)(weights)
        return (value, weight.sum() / count, gradient), state

    return part


def optimizer_step(optimizer: optax.GradientTransformation, *, skips: bool) -> Callable[..., Any]:
    """Return the function that ends a step: (weights, state, optimizer's state) before and after, and two numbers.

    They are the mean loss and the mean weight of the rows. If it ``skips``, a step whose loss or gradients are not
    finite changes nothing, and its loss is NaN.
    """

    def finish(at: Any, sums: Any, state: Any) -> tuple[Any, Any]:
        weights, _, optimizer_state = at
        value, weight, gradient = sums
        mean = jnp.maximum(weight, TINY)
        value, gradient = jax.tree.map(lambda one: (one / mean).astype(one.dtype), (value, gradient))
        updates, optimizer_state = optimizer.update(gradient, optimizer_state, weights)
        after = (optax.apply_updates(weights, updates), state, optimizer_state)
        if skips:
            good = jnp.stack([jnp.isfinite(one).all() for one in (value, *jax.tree.leaves(gradient))]).all()
            after = jax.tree.map(lambda new, old: jnp.where(good, new, old), after, at)
            value = jnp.where(good, value, jnp.nan)
        return after, jnp.stack([value, weight.astype(value.dtype)])

    return finish


def evaluate_step(net: Net, inputs: Inputs, metrics: Mapping[str, RowLoss], info: DatasetInfo) -> Callable[..., Any]:
    """Return the function of one batch that gives the sum of its rows' weights, then that of each metric over them."""

    def step(at: Any, rows: Any) -> Any:
        (weights, state), (x, y, weight) = at, rows
        output, _ = net.apply(weights, state, inputs.ready(x), jax.random.key(0), training=False)
        output = fit_output(output, y, info)
        return jnp.stack([weight.sum(), *((metric(output, y) * weight).sum() for metric in metrics.values())])

    return step
