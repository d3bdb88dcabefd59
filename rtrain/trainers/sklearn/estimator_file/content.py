"""The file of a fitted estimator: data that skops holds where it can, else a pickle."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from rtrain.errors import CheckpointError
from rtrain.runs.filesystem.plain_files import open_inside
from rtrain.trainers.sklearn.estimator_file.import_skops import skops_io
from rtrain.trainers.sklearn.outputs import predict_rows
from rtrain.trainers.trained import TRUST

DATA, PICKLE = "estimator.skops", "estimator.pkl"


def written(estimator: Any, rows: np.ndarray, num_classes: int | None) -> tuple[str, bytes]:
    """Return name and content of the file that holds ``estimator``.

    Args:
        estimator: Fitted.
        rows: (rows, features), some: what was written as data has to predict the same for them, bit for bit.
        num_classes: None: of a regression.
    """
    content = _held_as_data(estimator, rows, num_classes)
    return (PICKLE, pickle.dumps(estimator, protocol=5)) if content is None else (DATA, content)


def _held_as_data(estimator: Any, rows: np.ndarray, num_classes: int | None) -> bytes | None:
    skops = skops_io()
    try:
        content: bytes = skops.dumps(estimator)
        found = predict_rows(from_data(content), rows, num_classes)
    except Exception:  # skops raises what it likes over what it can't hold
        return None
    same = np.array_equal(found, predict_rows(estimator, rows, num_classes), equal_nan=True)
    return content if same else None


def load(folder: Path, *, trusted: bool) -> Any:
    """Return the estimator of a checkpoint.

    Args:
        folder: The checkpoint.
        trusted: Whether this account wrote it, or the user trusts who did: only then a pickle is opened.

    Raises:
        CheckpointError: It holds none that can be loaded, or none but a pickle that is not to be opened.
    """
    if not (folder / DATA).exists() and (folder / PICKLE).exists():
        if not trusted:
            raise CheckpointError(
                f"{folder} was written by another account, and its {PICKLE} could run any code when it is loaded.",
                TRUST,
            )
        return _read(folder, PICKLE, pickle.loads)
    return _read(folder, DATA, from_data)


def from_data(content: bytes) -> Any:
    """Return the estimator that a skops file holds; runs nothing that the file names.

    Raises:
        CheckpointError: It holds something else than listed types and numbers.
    """
    from rtrain.trainers.sklearn.estimator_file.arguments import forget_caches
    from rtrain.trainers.sklearn.estimator_file.data_types import TYPES
    from rtrain.trainers.sklearn.estimator_file.members import check_members, check_rows
    from rtrain.trainers.sklearn.estimator_file.schema import check_schema
    from rtrain.trainers.sklearn.estimator_file.trees import check_trees

    check_schema(content)
    names = sorted({f"{module}.{name}" for pairs in TYPES.values() for module, name in pairs})
    estimator = skops_io().loads(content, trusted=names)
    check_members(estimator)
    check_trees(estimator)
    check_rows(estimator)
    forget_caches(estimator)
    return estimator


def _read(folder: Path, name: str, loads: Callable[[bytes], Any]) -> Any:
    try:
        with open_inside(folder, name) as file:
            content = file.read()
    except FileNotFoundError as error:
        raise CheckpointError(f"{folder} lacks {name}: {error.strerror}.") from error
    try:
        return loads(content)
    except Exception as error:  # damaged files raise whatever the objects in them raise
        raise CheckpointError(f"{folder / name} contains no loadable estimator: {error}") from error
