"""Everything inside a run directory; standard library only, so that reading one needs nothing else.

The package is called as well: ``rtrain.runs(where="val/accuracy > 0.9")`` returns runs.
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import Any


class _Package(ModuleType):
    """A package that is a function, too; Python sets it as ``rtrain.runs`` when anything in it is imported."""

    def __call__(self, *folders: Any, **how: Any) -> Any:
        return import_module("rtrain.history.api").runs(*folders, **how)

    def __reduce__(self) -> tuple[Any, ...]:
        return import_module, (self.__name__,)


sys.modules[__name__].__class__ = _Package
