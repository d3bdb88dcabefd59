"""Weights of a Keras model in an HDF5 file, whose content may otherwise lie in any other file of this machine."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import h5py

from rtrain.errors import CheckpointError

FILE_NAME = "model.weights.h5"


def load_weights(model: Any, folder: Path, but: Sequence[Any] = ()) -> None:
    """Take the weights of a checkpoint.

    Args:
        model: What they belong to.
        folder: The checkpoint.
        but: Parts of the model that stay as they are; older checkpoints hold the optimizer's numbers twice.

    Raises:
        CheckpointError: They are not there, don't fit the model, or lie in another file.
    """
    try:
        with h5py.File(folder / FILE_NAME) as file:
            for name in _lying_elsewhere(file):
                raise CheckpointError(f"{folder / FILE_NAME} is refused: {name} in it leads to other data.")
        model.load_weights(folder / FILE_NAME, objects_to_skip=but)
    except (OSError, ValueError, KeyError) as error:
        raise CheckpointError(f"{folder} does not hold the weights of this model: {error}") from error


def _lying_elsewhere(group: h5py.Group) -> Iterator[str]:
    """Yield the names of links, and of arrays that are put together from other files."""
    for name in group:
        link = group.get(name, getlink=True)
        if not isinstance(link, h5py.HardLink):
            yield f"{group.name}/{name}"
            continue
        value = group[name]
        if isinstance(value, h5py.Group):
            yield from _lying_elsewhere(value)
        elif isinstance(value, h5py.Dataset) and (value.external or value.is_virtual):
            yield str(value.name)
