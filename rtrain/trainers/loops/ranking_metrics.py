"""How well rows are ranked within their queries, as XGBoost and LightGBM measure it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from rtrain.errors import ConfigError

USUAL = ("ndcg@1", "ndcg@3", "ndcg@5", "ndcg@10")
"""What is measured whatever the run reported."""
_NAME = re.compile(r"(ndcg|map|pre)(?:@(\d+))?(-?)")


@dataclass(frozen=True)
class Ranking:
    """The metrics of a ranking by the definition of its run."""

    reported: tuple[str, ...] = ()
    """What the run reported, without the split; names of other metrics are left out."""
    gains: tuple[float, ...] | None = None
    """Of each grade from 0 on; None: 2^grade - 1."""
    linear: bool = False
    """A grade is its own gain."""

    def measure(
        self, scores: np.ndarray, grades: np.ndarray, group: np.ndarray, weight: np.ndarray
    ) -> dict[str, float]:
        """Return the mean of each metric over queries, each of which counts by the mean weight of its rows.

        Args:
            scores: (rows,), the larger the higher; rows of equal scores keep their order.
            grades: (rows,).
            group: (rows,) numbers of queries, in any order.
            weight: (rows,).
        """
        order = np.argsort(group, kind="stable")
        queries = np.split(order, np.flatnonzero(np.diff(group[order])) + 1)
        ranked = [query[np.argsort(-scores[query], kind="stable")] for query in queries]
        weights = np.array([weight[query].mean() for query in queries])
        found = {}
        for name, kind, at, empty in self._asked():
            parts = [getattr(self, f"_{kind}")(grades[query], at) for query in ranked]
            # Both libraries leave the weight out where a query has no gains, in ndcg only.
            counts = [1.0 if kind == "ndcg" else one for one in weights]
            values = [
                count * empty if part is None else one * part
                for part, one, count in zip(parts, weights, counts, strict=True)
            ]
            found[name] = float(np.sum(values) / weights.sum())
        return found

    def _asked(self) -> Iterator[tuple[str, str, int | None, float]]:
        """Yield each metric's name, its kind, how many places count, and what a query without gains counts as."""
        for name in dict.fromkeys((*USUAL, *self.reported)):
            parts = _NAME.fullmatch(name)
            if parts is not None:
                yield name, parts[1], int(parts[2]) if parts[2] else None, 0.0 if parts[3] else 1.0

    def _ndcg(self, grades: np.ndarray, at: int | None) -> float | None:
        """Return the gains of a query's rows in their order, a place counting less than the one before, of the best."""
        discount = 1 / np.log2(np.arange(len(grades))[:at] + 2)
        gains = self._gains(grades)
        best = float(np.sort(gains)[::-1][:at] @ discount)
        return float(gains[:at] @ discount) / best if best > 0 else None

    def _map(self, grades: np.ndarray, at: int | None) -> float | None:
        """Return the mean of the precision at each relevant row."""
        hits = grades > 0
        precision = np.cumsum(hits) / np.arange(1, len(hits) + 1)
        most = min(int(hits.sum()), len(hits[:at]))
        return float(precision[:at] @ hits[:at]) / most if most else None

    def _pre(self, grades: np.ndarray, at: int | None) -> float:
        """Return the share of relevant rows."""
        return float((grades[:at] > 0).mean())

    def _gains(self, grades: np.ndarray) -> np.ndarray:
        """Return what each grade is worth.

        Raises:
            ConfigError: The run gave no gain to a grade.
        """
        if self.linear:
            return grades.astype(np.float64)
        whole = grades.astype(int)
        if self.gains is not None and whole.max() >= len(self.gains):
            raise ConfigError(
                f"a row has the grade {whole.max()}, but the run has gains for grades up to {len(self.gains) - 1}.",
                "Correct the labels to evaluate, or train with a longer trainer.params.label_gain.",
            )
        gains: np.ndarray = np.exp2(whole) - 1 if self.gains is None else np.asarray(self.gains, np.float64)[whole]
        return gains


def without_splits(names: Iterable[str]) -> tuple[str, ...]:
    """Return names of metrics, e.g. ``test/ndcg@5``, without their splits, each once."""
    return tuple(dict.fromkeys(name.rpartition("/")[2] for name in names))
