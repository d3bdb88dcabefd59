"""Pickles of estimators that run no code of the file's choice when they are loaded.

scikit-learn has no other format. A pickle may call anything it names; here it may only make objects of scikit-learn's,
SciPy's, NumPy's, XGBoost's and LightGBM's classes, and of the classes that the config itself allows.
"""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from rtrain.config.allowed import FRAMEWORKS, is_allowed
from rtrain.errors import CheckpointError

LIBRARIES = ("sklearn", "scipy", "numpy", "xgboost", "lightgbm")
BUILTINS = ("set", "frozenset", "slice", "range", "complex", "bytearray", "int", "float", "str", "bool", "object")
REBUILDERS = (
    *("_reconstruct", "_mareconstruct", "scalar", "_frombuffer", "newObj", "asarray", "check_array"),
    "__pyx_unpickle_",
)
"""How the names of functions begin with which the libraries make an object of plain data."""
CLASSES = (
    *("sklearn.", "scipy.sparse.", "scipy.interpolate.", "scipy.spatial.", "scipy.stats.", "scipy.optimize."),
    *("xgboost.sklearn", "lightgbm.sklearn"),
)
"""Where classes are that only hold and compute; others open files, ``numpy.memmap`` say."""
NO_CLASSES = ("sklearn.datasets", "sklearn.externals", "sklearn.utils._testing", "sklearn.utils._mocking")
FUNCTIONS = ("sklearn.feature_selection._univariate_selection", "sklearn.cluster._kmeans", "sklearn.metrics._")
"""Where functions are that estimators hold, and that only compute."""
BOOSTERS = (("xgboost.core", "Booster"), ("lightgbm.basic", "Booster"))
ARRAYS = (np.ndarray, np.generic, np.dtype, np.random.BitGenerator, np.random.SeedSequence)
OTHERS = (
    ("copyreg", "_reconstructor"),
    ("_codecs", "encode"),
    ("collections", "OrderedDict"),
    ("collections", "defaultdict"),
    ("collections", "deque"),
    ("functools", "partial"),
    ("numpy", "mean"),
    ("numpy", "median"),
)


def load(path: Path, allow: Sequence[str]) -> Any:
    """Return the estimator in ``path``.

    Args:
        path: A pickle of an estimator.
        allow: Modules of the user's whose classes may be in it.

    Raises:
        CheckpointError: It is no such file, or names something else than a class that may be in it.
    """
    try:
        with path.open("rb") as file:
            return _Loader(file, allow).load()
    except FileNotFoundError:
        raise
    except Exception as error:  # a damaged pickle raises whatever the objects in it raise
        raise CheckpointError(f"{path} holds no estimator that can be loaded: {error}") from error


class _Loader(pickle.Unpickler):
    def __init__(self, file: Any, allow: Sequence[str]) -> None:
        super().__init__(file)
        self._allow = allow

    def find_class(self, module: str, name: str) -> Any:
        """Return the object that a pickle names, if it may name it."""
        if (module, name) in OTHERS or (module == "builtins" and name in BUILTINS):
            return super().find_class(module, name)
        if self._is_ours(module):
            found = super().find_class(module, name)
            if self._may_be_called(found, module):
                return found
        raise pickle.UnpicklingError(f"{module}.{name} is not allowed in a checkpoint")

    def _is_ours(self, module: str) -> bool:
        """Tell whether ``module`` is one of the libraries', or one that the user's config allows."""
        top = module.partition(".")[0]
        return top in LIBRARIES or (top not in FRAMEWORKS and is_allowed(module, self._allow))

    def _may_be_called(self, found: Any, module: str) -> bool:
        owner = str(getattr(found, "__module__", None) or module)
        if not self._is_ours(owner):
            return False
        if owner.partition(".")[0] not in LIBRARIES or isinstance(found, np.ufunc):
            return True
        name = getattr(found, "__name__", "")
        if isinstance(found, type):
            return _only_holds(found, owner, name)
        return owner == "numpy.random._pickle" or name.startswith(REBUILDERS) or owner.startswith(FUNCTIONS)


def _only_holds(found: type, owner: str, name: str) -> bool:
    """Tell whether a class of a library's opens no file and starts nothing when it is called."""
    if issubclass(found, ARRAYS):
        return not issubclass(found, np.memmap)
    return (owner, name) in BOOSTERS or (owner.startswith(CLASSES) and not owner.startswith(NO_CLASSES))
