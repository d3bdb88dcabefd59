"""Constructor arguments of an estimator that a checkpoint holds: those of the config take their place."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from rtrain.errors import CheckpointError
from rtrain.trainers.sklearn.estimator_file.objects import parts_of


def take_arguments(loaded: Any, built: Any) -> None:
    """Give ``loaded``, and each part of it that can learn on, the arguments of its kind in ``built``.

    A random generator in the place of a seed stays as far as it has come.

    Raises:
        CheckpointError: A part that can learn on is of a kind that ``built`` has not.
    """
    parts = [one for one in (*built.get_params(deep=True).values(), built) if isinstance(one, BaseEstimator)]
    kinds = {type(one): one.get_params(deep=False) for one in parts}
    for part in list(parts_of(loaded)):
        if type(part) in kinds:
            fixed = {key: one for key, one in kinds[type(part)].items() if not isinstance(one, np.random.RandomState)}
            part.set_params(**fixed)
        elif hasattr(part, "partial_fit"):
            raise CheckpointError(f"the estimator contains a {type(part).__name__}, which is not in the config.")


def forget_caches(loaded: Any) -> None:
    """Let no part of ``loaded`` keep a cache in a folder, whose files are pickles that any user may have put there."""
    for part in parts_of(loaded):
        if getattr(part, "memory", None) is not None:
            part.memory = None
