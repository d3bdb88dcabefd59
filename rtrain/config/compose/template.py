"""A composed config that is kept to be copied, again and again."""

from __future__ import annotations

import io
import pickle
from types import BuiltinFunctionType, FunctionType, GenericAlias, UnionType
from typing import Any

from omegaconf import DictConfig

SHARED = (type, FunctionType, BuiltinFunctionType, GenericAlias, UnionType)


class Template:
    """Makes copies of a config: the same as ``copy.deepcopy`` makes, in a fifth of the time.

    Args:
        cfg: The config as it is now; what becomes of it later is not in the copies.
    """

    def __init__(self, cfg: DictConfig) -> None:
        file = io.BytesIO()
        pickler = _Pickler(file, pickle.HIGHEST_PROTOCOL)
        pickler.dump(cfg)
        self._data, self._types = file.getvalue(), pickler.types

    def copy(self) -> DictConfig:
        """Return a copy that shares nothing with others but the classes of its schemas."""
        unpickler = _Unpickler(io.BytesIO(self._data))
        unpickler.types = self._types
        cfg: DictConfig = unpickler.load()
        return cfg


class _Pickler(pickle.Pickler):
    """Numbers classes, hints and functions, and leaves them out: no module has the classes of schemas."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.types: list[Any] = []

    def persistent_id(self, obj: Any) -> int | None:
        """Return the number of a class, a hint or a function; None for everything else."""
        if not isinstance(obj, SHARED) and type(obj).__module__ != "typing":
            return None
        self.types.append(obj)
        return len(self.types) - 1


class _Unpickler(pickle.Unpickler):
    types: list[Any]

    def persistent_load(self, pid: int) -> Any:
        """Return what has a number."""
        return self.types[pid]
