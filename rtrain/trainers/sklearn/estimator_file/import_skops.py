"""Import skops without torch, which takes seconds.

skops lists all estimators of scikit-learn. To find them, scikit-learn imports all its packages, one of which imports
torch where that is installed.
"""

import sys
from typing import Any

NEEDLESS = "sklearn.externals.array_api_compat.torch"
"""Holds no estimator."""


def skops_io() -> Any:
    """Return ``skops.io``."""
    is_left_out = not {"skops.io", NEEDLESS} & sys.modules.keys()
    if is_left_out:
        sys.modules[NEEDLESS] = None  # type: ignore[assignment]  # to Python: there is none
    try:
        import skops.io
    finally:
        if is_left_out:
            del sys.modules[NEEDLESS]
    return skops.io
