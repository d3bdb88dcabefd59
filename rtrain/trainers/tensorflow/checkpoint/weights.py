"""Weights of a Keras model in an HDF5 file, whose content may otherwise lie in any other file of this machine."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import h5py

from rtrain.errors import CheckpointError
from rtrain.text.printable import printable

FILE_NAME = "model.weights.h5"
MAX_PARTS, MAX_DEPTH = 1_000_000, 100
"""Groups and arrays in a file, and groups in each other: many times what the largest models have."""


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
            for name in _refused(file):
                raise CheckpointError(f"{folder / FILE_NAME} is rejected: {name} in it refers to other data.")
        model.load_weights(folder / FILE_NAME, objects_to_skip=but)
    except (OSError, ValueError, KeyError) as error:
        raise CheckpointError(f"{folder} does not contain the weights of this model: {error}") from error


def _refused(file: h5py.File) -> Iterator[str]:
    """Yield the names of links, of arrays that are put together from other files, and of what has two names.

    Raises:
        CheckpointError: There are more groups in each other, or more parts, than a model has.
    """
    seen, waiting = {_address(file)}, [("", file, 0)]
    while waiting:
        place, group, depth = waiting.pop()
        for name in group:
            inner = f"{place}/{name}"
            if not isinstance(group.get(name, getlink=True), h5py.HardLink):
                yield inner
                continue
            value = group[name]
            if _address(value) in seen:
                yield inner
                continue
            seen.add(_address(value))
            if len(seen) > MAX_PARTS or depth > MAX_DEPTH:
                raise CheckpointError(f"{file.filename} is rejected: it has too many parts, or is nested too deeply.")
            if isinstance(value, h5py.Group):
                waiting.append((inner, value, depth + 1))
            elif isinstance(value, h5py.Dataset):
                if value.external or value.is_virtual:
                    yield inner
                _check_size(value)


def _check_size(array: h5py.Dataset) -> None:
    """Refuse what unpacks to more than the file holds: Keras packs nothing.

    Raises:
        CheckpointError: Names the array.
    """
    stored = array.id.get_storage_size()
    if array.shape is None or array.nbytes != stored:
        raise CheckpointError(
            f"{array.file.filename} is refused: {printable(array.name)} in it, {array.dtype} {array.shape}, takes "
            f"{stored:,} bytes of the file."
        )


def _address(value: Any) -> Any:
    """Return what is the same for two names of one part of a file."""
    return h5py.h5o.get_info(value.id).addr
