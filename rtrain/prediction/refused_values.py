"""Values that a model would make predictions of NaN of, in rows of whatever source."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from rtrain.datasets.base import DatasetInfo
from rtrain.datasets.checked_columns import first_infinite
from rtrain.errors import PredictionError


def check_values(
    rows: np.ndarray,
    info: DatasetInfo,
    name_row: Callable[[int], str],
    takes_missing: Callable[[], bool],
    advice: str = "",
) -> None:
    """Refuse infinite values; and NaN, where the model takes it not for a missing value.

    Args:
        rows: Prepared rows.
        info: The dataset of training.
        name_row: Returns what to call a row in messages.
        takes_missing: Tells whether the model takes NaN; asked if there is some.
        advice: More of what to do about NaN.

    Raises:
        PredictionError: Names the row and the feature.
    """
    if rows.dtype.kind != "f" or rows.ndim < 2 or np.isfinite(rows).all():
        return
    if (infinite := first_infinite(rows)) is not None:
        row, place = infinite
        problem = f"is infinite, or too large for {rows.dtype}, at {_name(place, info)}"
        raise PredictionError(f"{name_row(row)} {problem}.", "Correct the value, or leave the row out.")
    if takes_missing():
        return
    missing = np.isnan(rows)
    if rows.shape[1:] == (len(info.feature_names),):
        missing[:, [name in info.categories for name in info.feature_names]] = False  # of an unknown name
    if missing.any():
        row, place = (int(one) for one in np.argwhere(missing)[0][:2])
        raise PredictionError(
            f"{name_row(row)} has no value (NaN) at {_name(place, info)}: this model was trained on rows without "
            "missing values.",
            f"Fill it in, or leave the row out.{advice}",
        )


def _name(place: int, info: DatasetInfo) -> str:
    return f"'{info.feature_names[place]}'" if place < len(info.feature_names) else f"place {place}"
