"""What a trainer takes from the dataset: sizes that a config leaves to it, and the split to evaluate on."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from rtrain.config.did_you_mean import to_try
from rtrain.datasets.base import DatasetInfo
from rtrain.errors import ConfigError
from rtrain.text.enumeration import few
from rtrain.trainers.base import SCHEDULE_LENGTHS, Job
from rtrain.trainers.loops.directions import Directions, check_modes, not_reported
from rtrain.trainers.loops.epochs.conf import EpochsConf
from rtrain.trainers.loops.monitor import metrics_named
from rtrain.trainers.loops.tasks import CLASSES, metric_names, usual_monitor

AUTO = "auto"
MOST_COLUMNS = 3
"""So many columns are named in an error."""


def fill_from_dataset(
    node: Mapping[str, Any],
    info: DatasetInfo,
    where: str = "trainer.model",
    input_shape: Sequence[int] | None = None,
) -> dict[str, Any]:
    """Return ``node`` with each ``auto`` replaced by what the dataset says, at any depth.

    Args:
        node: A part of the config.
        info: The dataset.
        where: The key of ``node``, for messages.
        input_shape: Shape of one row as the framework has it; None: as the dataset has it.

    Raises:
        ConfigError: The dataset can't say it; names the key.
    """
    outputs = 1 if info.num_classes is None else info.num_classes
    known = {
        "block_size": info.input_shape[0] if len(info.input_shape) == 1 else None,
        "in_channels": info.input_shape[0] if len(info.input_shape) == 3 else None,
        "in_features": math.prod(info.input_shape),
        "input_shape": list(info.input_shape if input_shape is None else input_shape),
        "num_classes": outputs,
        "out_features": outputs,
        "vocab_size": info.num_classes if info.task == "language-modeling" else None,
    }

    def fill(value: Any, place: str) -> Any:
        key = place.rpartition(".")[2]
        if value != AUTO or key not in known:
            return value
        if known[key] is None:
            raise ConfigError(
                f"{place}: auto can't be filled in: the rows of {info.name} have the shape {info.input_shape}.",
                "A language model needs a dataset of tokens, e.g. dataset=text."
                if key in ("block_size", "vocab_size")
                else "An image model needs a dataset of images; for other rows:\n" + to_try("model=mlp"),
            )
        return known[key]

    filled: dict[str, Any] = _filled(node, where, fill)
    return filled


def fill_lengths(node: Mapping[str, Any], steps: int | None, where: str) -> dict[str, Any]:
    """Return ``node`` with each ``auto`` that means the length of the run replaced by it, at any depth.

    Raises:
        ConfigError: The length is not known before.
    """

    def fill(value: Any, place: str) -> Any:
        if value != AUTO or place.rpartition(".")[2] not in SCHEDULE_LENGTHS:
            return value
        if steps is None:
            raise ConfigError(
                f"{place}: auto needs a known number of steps.",
                "Set trainer.max_epochs or trainer.max_steps, or a number here.",
            )
        return steps

    filled: dict[str, Any] = _filled(node, where, fill)
    return filled


def _filled(value: Any, place: str, fill: Callable[[Any, str], Any]) -> Any:
    """Return a part of the config with what ``fill`` makes of each value and its key."""
    if isinstance(value, Mapping):
        return {name: _filled(inner, f"{place}.{name}", fill) for name, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_filled(inner, f"{place}[{index}]", fill) for index, inner in enumerate(value)]
    return fill(value, place)


def standardization(info: DatasetInfo) -> tuple[np.ndarray, np.ndarray] | None:
    """Return means and deviations that broadcast over (rows, *input_shape); None if rows stay as they are.

    They are float32; of float64 rows float64, from which the mean has to be subtracted before they become float32.
    """
    if not info.mean:
        return None
    shape, dtype = (1, -1, *[1] * (len(info.input_shape) - 1)), "float64" if info.dtype == "float64" else "float32"
    return np.asarray(info.mean, dtype).reshape(shape), np.asarray(info.std, dtype).reshape(shape)


def standardized(x: Any, scale: Sequence[Any] | None) -> Any:
    """Return rows minus means, by deviations, as ``standardization`` gives them in the framework of ``x``."""
    return x if scale is None else (x - scale[0]) / scale[1]


def channels_last_shape(info: DatasetInfo) -> tuple[int, ...]:
    """Return the shape of one row for frameworks that put channels last: (height, width, channels) for images."""
    shape = info.input_shape
    return (*shape[1:], shape[0]) if len(shape) == 3 else shape


def evaluated_split(wanted: str, info: DatasetInfo) -> str | None:
    """Return the split that ``trainer.evaluate_split`` means, or None."""
    names = ("val", "test") if wanted == AUTO else (wanted,)
    return next((name for name in names if info.num_rows.get(name)), None)


def default_monitor(wanted: str, info: DatasetInfo) -> str:
    """Return the metric that decides the best checkpoint, unless the config names one.

    Args:
        wanted: ``trainer.evaluate_split``.
        info: The dataset.
    """
    split = evaluated_split(wanted, info)
    return f"{split}/{usual_monitor(info.task)}" if split else "train/epoch_loss"


def dataset_of(job: Job, such_as: str = "digits") -> DatasetInfo:
    """Return what is known of the dataset.

    Raises:
        ConfigError: The config names none.
    """
    if job.dataset is None:
        raise ConfigError(
            f"the {job.trainer_name} trainer needs a dataset.", f"Add `- dataset: {such_as}` to the defaults list."
        )
    return job.dataset.info


def check_split(wanted: str, info: DatasetInfo) -> None:
    """Refuse a split that the dataset doesn't have.

    Raises:
        ConfigError: Names the splits that there are.
    """
    if wanted not in (AUTO, "none") and wanted not in info.num_rows:
        there = ", ".join(info.num_rows)
        raise ConfigError(f"trainer.evaluate_split: {info.name} has no split {wanted}, only {there}.")


def check_task(trainer: str, info: DatasetInfo, tasks: Sequence[str]) -> None:
    """Refuse a dataset that the trainer can't learn from.

    Raises:
        ConfigError: It holds texts, or a column that the trainer would ignore, or its task is not among ``tasks``.
    """
    if info.dtype == "object":
        raise ConfigError(
            f"the {trainer} trainer needs numbers, but the rows of {info.name} are text.",
            "Set a tokenizer of the dataset, or use a trainer for text: trainer=transformers",
        )
    if info.task not in tasks:
        raise ConfigError(
            f"the {trainer} trainer supports {' and '.join(tasks)}, but {info.name} is for {info.task}.",
            "For rankings, use trainer=xgboost or trainer=lightgbm; for text, trainer=torch or trainer=transformers.",
        )
    check_roles(trainer, info, ("weight",))


ROLES = {
    "weight": ("weight rows", "use a trainer that can: trainer=torch, trainer=xgboost"),
    "group": (
        "rank the rows of a query",
        "rank them with boosted trees: dataset.task=ranking and trainer=xgboost or trainer=lightgbm",
    ),
    "base_margin": ("start from scores", "use boosted trees: trainer=xgboost or trainer=lightgbm"),
}
"""What a trainer does with the optional columns of rows, and which ones do."""


def check_roles(trainer: str, info: DatasetInfo, used: Sequence[str]) -> None:
    """Refuse rows that bring a column which the trainer would ignore.

    Args:
        trainer: Its name.
        info: The dataset.
        used: The optional columns that the trainer uses.

    Raises:
        ConfigError: Names the column.
    """
    for role in info.columns:
        if role not in used:
            what, others = ROLES[role]
            raise ConfigError(
                f"the {trainer} trainer can't {what}, but the rows of {info.name} have dataset.{role}.",
                f"Leave dataset.{role} out, or {others}",
            )


def check_float32(trainer: str, info: DatasetInfo) -> None:
    """Refuse targets that a trainer which computes in float32 can't tell apart.

    Raises:
        ConfigError: They are.
    """
    if info.merged_targets:
        raise ConfigError(
            f"the {trainer} trainer computes in float32, in which many different targets of {info.name} become equal.",
            "Subtract a number from the label in the data, or divide it, so that the targets differ; or use "
            "trainer=sklearn, which computes in float64",
        )


def check_no_missing(taker: str, info: DatasetInfo, *, ways: str = "use trees: trainer=xgboost") -> None:
    """Refuse features that have missing values, of which a network would make a loss of NaN.

    Raises:
        ConfigError: Names some of them.
    """
    if info.missing:
        columns = few(info.missing, MOST_COLUMNS)
        raise ConfigError(
            f"{taker} does not support missing values, but there are some in {columns} of {info.name}.",
            f"Fill them in (for tables: 'dataset.on_missing=mean'), drop what has them, or {ways}",
        )


def needs_one_size(trainer: str) -> ConfigError:
    """Return the error of images that differ in size, for a trainer that does not transform rows."""
    return ConfigError(
        f"dataset.image_size: the {trainer} trainer needs images of one size.",
        "Set it: 'dataset.image_size=[224,224]'; or let trainer=torch transform them: trainer.transform",
    )


def check_quantities(trainer: str, info: DatasetInfo) -> None:
    """Refuse categorical features, whose codes a model would treat as quantities, and features with missing values.

    Raises:
        ConfigError: Names some of them, and what to do about all.
    """
    if not info.categories:
        return check_no_missing(f"the {trainer} trainer", info)
    columns, some = ",".join(info.categories), few(list(info.categories), MOST_COLUMNS)
    missing = f", and values are missing in {few(info.missing, MOST_COLUMNS)}" if info.missing else ""
    raise ConfigError(
        f"the {trainer} trainer needs numbers, but {some} of {info.name} are categories{missing}.",
        f"Encode them: 'dataset.preprocessors=[{{type: OneHotEncoder, columns: [{columns}]}}]', or drop them: "
        f"'dataset.drop=[{columns}]'{'; fill in what is missing: dataset.on_missing=mean' if missing else ''}. "
        "Or use trees, which need none of this: trainer=xgboost",
    )


def judged_metrics(wanted: str, info: DatasetInfo, more: Sequence[str] = ()) -> tuple[str, ...]:
    """Return the metrics that training in epochs can be judged by, the one that does so by default first.

    Args:
        wanted: ``trainer.evaluate_split``.
        info: The dataset.
        more: Further metrics than those of the task.
    """
    split = evaluated_split(wanted, info)
    own = () if split is None else [f"{split}/{name}" for name in (*metric_names(info.task), *more)]
    return tuple(dict.fromkeys((default_monitor(wanted, info), *own, "train/loss", "train/epoch_loss")))


def reported_metrics(wanted: str, info: DatasetInfo, more: Sequence[str] = ()) -> tuple[str, ...]:
    """Return all metrics that training in epochs may report: these, and those of its speed and rate."""
    return (*judged_metrics(wanted, info, more), "train/lr", "train/rows_per_second")


def check_network(job: Job) -> DatasetInfo:
    """Check what a network with one of the shared losses needs of the data, and the metrics that the config names.

    Returns:
        The dataset.

    Raises:
        ConfigError: The rows or targets can't be learned from, or a metric does not exist; names the key.
    """
    info, conf = dataset_of(job), job.conf.trainer
    check_task(job.trainer_name, info, (*CLASSES, "regression"))
    check_quantities(job.trainer_name, info)
    check_float32(job.trainer_name, info)
    check_monitors(conf, info, job, tuple(conf.metrics))
    return info


def check_monitors(conf: EpochsConf, info: DatasetInfo, job: Job, more: Sequence[str] = ()) -> None:
    """Refuse to watch a metric that the run won't report, or in the wrong direction; and steps of too few rows.

    Args:
        conf: What is watched.
        info: The dataset.
        job: Its config may name the metric of the best checkpoint.
        more: Metrics of the user's choice, in addition to those of the task.

    Raises:
        ConfigError: Names the key.
    """
    check_split(conf.evaluate_split, info)
    split = evaluated_split(conf.evaluate_split, info)
    workers = conf.num_with_own_rows(max(1, job.conf.scaling.num_workers))
    if conf.early_stopping is not None and split is None:
        raise ConfigError("trainer.early_stopping needs an evaluation, but there is no split to evaluate on.")
    check_modes(job.conf.run.checkpoint.best, conf, Directions(), default_monitor(conf.evaluate_split, info))
    known = judged_metrics(conf.evaluate_split, info, more)
    for key, name in metrics_named(job.conf.run, conf):
        if name not in known:
            raise not_reported(key, name, known, conf)
    if conf.global_batch_size is not None and conf.global_batch_size < workers:
        raise ConfigError(
            f"trainer.global_batch_size={conf.global_batch_size} is less than one row for each of {workers} workers."
        )


def check_names(conf: Any, info: DatasetInfo, same: Mapping[str, str] | None = None) -> None:
    """Refuse metrics of the user's choice that would take the place of those of the task.

    Args:
        conf: Its ``metrics`` are config nodes by name.
        info: The dataset.
        same: Path of what measures the same, by name.

    Raises:
        ConfigError: Names the key.
    """
    for name, node in conf.metrics.items():
        if name in metric_names(info.task) and node["_target_"] != (same or {}).get(name):
            raise ConfigError(
                f"trainer.metrics.{name}: every evaluation already has a metric {name}.",
                f"Give it another name: trainer.metrics.own_{name}",
            )
