"""Categories of new rows that training never saw: they count as missing, and too many of them are a mistake."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from rtrain.datasets.base import DatasetInfo
from rtrain.errors import DatasetError

log = logging.getLogger(__name__)


class Unseen:
    """Counts, over all rows of a prediction, the values of each category that training never saw."""

    def __init__(self) -> None:
        self._counts: dict[str, tuple[int, int]] = {}

    def add(self, counts: Mapping[str, tuple[int, int]]) -> None:
        """Count some rows, as ``RawChunk.categories`` does."""
        for name, (unseen, num_values) in counts.items():
            before = self._counts.get(name, (0, 0))
            self._counts[name] = (before[0] + unseen, before[1] + num_values)

    def check(self, info: DatasetInfo, dataset: Any, num_rows: int) -> None:
        """Report what was counted, by column; of several rows, a column without any value too.

        Args:
            info: The dataset of training.
            dataset: The conf of the rows, which may say what share is too large.
            num_rows: How many rows there were.

        Raises:
            DatasetError: There are more than ``dataset.max_unseen`` allows. Of a category that names rows, with about
                one value for each row of training, all values may be new.
        """
        most, too_many = getattr(dataset, "max_unseen", 1.0), []
        for name, (unseen, num_values) in self._counts.items():
            if not num_values and num_rows > 1:
                log.warning("feature '%s': the value is missing in all %s rows", name, f"{num_rows:,}")
            if not unseen:
                continue
            said = f"feature '{name}': training never saw {unseen:,} of {num_values:,} values"
            if unseen > most * num_values and 2 * len(info.categories.get(name, ())) <= info.num_rows["train"]:
                too_many.append(said)
            else:
                log.warning("%s; they count as missing", said)
        if too_many:
            raise DatasetError(
                f"{'; '.join(too_many)}. The maximum share is {most:g} (dataset.max_unseen).",
                "Compare the texts with those of training: blanks, capitals, spelling. To accept them: "
                "dataset.max_unseen=1",
            )
