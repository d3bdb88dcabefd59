"""A scikit-learn estimator as the loop of epochs sees it: one call of fit, or partial_fit batch by batch."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from rtrain.datasets.base import Batch, DatasetInfo
from rtrain.errors import CheckpointError
from rtrain.runs.checkpoints import Writer
from rtrain.trainers.loops.epochs.learner import Learner
from rtrain.trainers.sklearn.build import weight_argument
from rtrain.trainers.sklearn.class_names import named
from rtrain.trainers.sklearn.estimator_file.arguments import take_arguments
from rtrain.trainers.sklearn.estimator_file.content import load, written
from rtrain.trainers.sklearn.inputs import Inputs
from rtrain.trainers.sklearn.outputs import Sums

MAX_IMPORTANCES = 100
SAMPLE = 100
"""Rows that show whether a checkpoint predicts what the estimator does."""


class SklearnLearner(Learner):
    """An estimator that learns.

    Args:
        estimator: Not fitted.
        info: The dataset.
        whole: Fit in one call, with what the only batch holds; else in parts.
        num_threads: For the manifest.
    """

    hint = "Check the data for extreme values, or set other arguments of trainer.estimator."

    def __init__(self, estimator: Any, info: DatasetInfo, *, whole: bool, num_threads: int) -> None:
        self.estimator, self._built, self._info, self._whole = estimator, estimator, info, whole
        self._rows, self._num_threads = Inputs(info), num_threads
        self._sample = np.zeros((0, 0))

    def train_step(self, batch: Batch, step: int) -> tuple[float, float] | None:
        """Fit, or fit on; return the loss of the batch where the estimator tells one."""
        x = self._rows.ready(batch.x)
        self._sample = x[:SAMPLE]
        if self._whole:
            # What a checkpoint holds is never fitted: its arguments may name folders.
            self.estimator = self._built
            self.estimator.fit(x, batch.y, **fit_arguments(self.estimator, batch.weight))
            return None
        more = {} if batch.weight is None else {"sample_weight": batch.weight}
        if self._info.num_classes is not None and step == 0:
            more["classes"] = np.arange(self._info.num_classes)
        self.estimator.partial_fit(x, batch.y, **more)
        loss = getattr(self.estimator, "loss_", None)
        total = float(len(batch.y) if batch.weight is None else batch.weight.sum())
        return None if loss is None else (float(loss) * total, total)

    def step_losses(self, taken: Sequence[tuple[float, float] | None]) -> list[tuple[float, float]]:
        """Return the losses that the estimator told."""
        return [one for one in taken if one is not None]

    def evaluate(self, batches: Iterable[Batch]) -> dict[str, float]:
        """Return accuracy and loss, or errors."""
        sums = Sums(self.estimator, self._info.num_classes)
        for batch in batches:
            sums.add(self._rows.ready(batch.x), batch.y, batch.weight)
        return sums.metrics()

    def snapshot(self) -> Writer:
        """Copy the estimator."""
        name, content = written(self.estimator, self._sample, self._info.num_classes)

        def write(folder: Path) -> None:
            (folder / name).write_bytes(content)

        return write

    def load(self, folder: Path) -> None:
        """Take the estimator of a checkpoint; the driver has refused a pickle that another account wrote.

        To learn on, it gets the arguments of the config, at any depth.

        Raises:
            CheckpointError: It is another kind of estimator, or holds parts that the config knows nothing of.
        """
        found = load(folder, trusted=True)
        if type(found) is not type(self.estimator):
            raise CheckpointError(f"{folder} contains a {type(found).__name__}, not a {type(self.estimator).__name__}.")
        if not self._whole:
            take_arguments(found, self._built)
        self.estimator = found

    def describe(self) -> Mapping[str, Any]:
        """Return the device and its threads."""
        return {"device": "cpu", "num_threads": self._num_threads}

    def model_facts(self) -> Mapping[str, Any]:
        """Return the most important features, and what a search has found, of an estimator that has them."""
        facts: dict[str, Any] = {}
        found = getattr(self.estimator, "best_params_", None)
        if found is not None:
            facts["best_params"] = {name: _plain(named(name, value, self._info)) for name, value in found.items()}
            facts["best_score"] = float(getattr(self.estimator, "best_score_", np.nan))
        best = getattr(self.estimator, "best_estimator_", self.estimator)
        importances = getattr(best, "feature_importances_", None)
        if importances is not None:
            names = self._info.feature_names or tuple(f"f{place}" for place in range(len(importances)))
            order = np.argsort(-importances, kind="stable")[:MAX_IMPORTANCES]
            shown = {names[place]: float(importances[place]) for place in order}
            facts["feature_importance"] = {"estimator": shown}
        return facts


def _plain(value: Any) -> Any:
    """Return an argument as the manifest can hold it: an object as scikit-learn shows it."""
    value = value.item() if isinstance(value, np.generic) else value
    return value if isinstance(value, (bool, int, float, str, type(None))) else str(value)


def fit_arguments(estimator: Any, weight: np.ndarray | None) -> dict[str, np.ndarray]:
    """Return the arguments of ``fit`` other than rows and targets."""
    name = None if weight is None else weight_argument(estimator)
    return {} if weight is None or name is None else {name: weight}
