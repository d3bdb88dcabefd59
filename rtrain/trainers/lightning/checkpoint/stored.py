"""What goes into Lightning's checkpoint: tensors and plain data, for nothing else is read back from it."""

from __future__ import annotations

import io
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from typing import Any

import lightning.pytorch as pl
import torch
from torch import Tensor

from rtrain.errors import CheckpointError

HYPERPARAMETERS = (
    pl.LightningModule.CHECKPOINT_HYPER_PARAMS_KEY,
    pl.LightningDataModule.CHECKPOINT_HYPER_PARAMS_KEY,
)
TYPES = (pl.LightningModule.CHECKPOINT_HYPER_PARAMS_TYPE, pl.LightningDataModule.CHECKPOINT_HYPER_PARAMS_TYPE)
PLAIN = (type(None), bool, int, float, complex, str, bytes, Tensor, torch.device, torch.dtype, torch.Size)


def without_objects(checkpoint: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Return a checkpoint whose hyperparameters are plain data, and the names of those that were left out.

    Nothing that resumes reads them: a module is built from the config. ``load_from_checkpoint`` wants those that were
    left out as arguments, as it does for what ``save_hyperparameters`` ignores.
    """
    kept, left_out = {key: value for key, value in checkpoint.items() if key not in TYPES}, list[str]()
    for key in HYPERPARAMETERS:
        if key in kept:
            kept[key] = _plain(kept[key], "", left_out)
    return kept, left_out


def _plain(value: Any, name: str, left_out: list[str]) -> Any:
    """Return the plain data in a value, and note the names of what is none."""
    if isinstance(value, Mapping):
        named = [(key, _plain(one, f"{name}.{key}".lstrip("."), left_out)) for key, one in value.items()]
        return {key: one for key, one in named if one is not _OBJECT and type(key) in PLAIN}
    if type(value) in PLAIN:
        return value
    if hasattr(value, "__array__") and getattr(value, "ndim", 1) == 0:
        return value.item()
    items = [_plain(one, name, []) for one in value] if isinstance(value, list | tuple | set) else [_OBJECT]
    if any(one is _OBJECT for one in items):
        left_out.append(name)
        return _OBJECT
    return type(value)(items) if type(value) in (list, tuple, set) else items


_OBJECT = object()


def check_readable(checkpoint: Mapping[str, Any]) -> None:
    """Find what could not be read back, before it is written.

    Raises:
        CheckpointError: Names its place and type.
    """
    found = _unreadable(_light(checkpoint), "")
    if found is not None:
        place, value, reason = found
        kind = f"{type(value).__module__}.{type(value).__qualname__}".removeprefix("builtins.")
        raise CheckpointError(
            f"this checkpoint could not be resumed: its {place} contains a {kind}, but only tensors and plain data "
            f"are loaded ({reason}).",
            "Return tensors, numbers, strings, lists and dicts in state_dict of the callback, or in "
            "on_save_checkpoint.",
        )


def _light(value: Any) -> Any:
    """Return a copy of a tree without the numbers of its tensors."""
    if type(value) in (Tensor, torch.nn.Parameter):
        return torch.empty(0)
    if type(value) in (dict, OrderedDict):
        return type(value)((key, _light(one)) for key, one in value.items())
    return type(value)(map(_light, value)) if type(value) in (list, tuple) else value


def _unreadable(value: Any, place: str) -> tuple[str, Any, str] | None:
    """Return the innermost part that can't be read back, by place, and why."""
    reason = _reason(value)
    if reason is None:
        return None
    inner = (_unreadable(one, f"{place}.{key}".lstrip(".")) for key, one in _parts(value))
    return next((found for found in inner if found is not None), (place, value, reason))


def _parts(value: Any) -> Iterator[tuple[Any, Any]]:
    if isinstance(value, Mapping):
        yield from value.items()
    elif isinstance(value, list | tuple):
        yield from enumerate(value)


def _reason(value: Any) -> str | None:
    """Return why torch can't read a value back without executing what is in it; None if it can."""
    written = io.BytesIO()
    try:
        torch.save(value, written)
        written.seek(0)
        torch.load(written, weights_only=True)
    except Exception as error:  # objects raise what they like when they are pickled
        return type(error).__name__
    return None
