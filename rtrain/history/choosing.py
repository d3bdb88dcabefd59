"""Which of some runs is the best one, and in which order they are listed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rtrain.config.did_you_mean import did_you_mean, there_are
from rtrain.errors import ConfigError
from rtrain.history.query.fields import Fields, short
from rtrain.history.rows import Row


@dataclass(frozen=True)
class Goal:
    """What the best run is chosen by."""

    field: str
    """``best``, or the fact that holds the latest value of a metric."""
    monitor: str
    mode: str
    """``min`` or ``max``."""
    otherwise: str | None = None
    """The fact that counts for runs that are judged by another metric; None: they have no value."""

    def fact(self, row: Row) -> str | None:
        """Return the name of the fact that holds the value of a run."""
        is_judged_so = (row.get("monitor"), row.get("mode")) == (self.monitor, self.mode)
        return self.field if self.field != "best" or is_judged_so else self.otherwise

    def value(self, row: Row) -> float | None:
        """Return the value of a run; None if it has none, or is judged by another metric."""
        name = self.fact(row)
        value = None if name is None else row.get(name)
        return value if isinstance(value, int | float) else None


def find_goal(rows: Sequence[Row], among: Sequence[Row], metric: str | None = None, mode: str | None = None) -> Goal:
    """Return what to choose the best run by.

    Args:
        rows: The runs.
        among: All that they were chosen from, which know the names of metrics.
        metric: Its name; None: the one that all runs monitor.
        mode: ``min`` or ``max``; None: what is known of the metric.

    Raises:
        ConfigError: The runs are judged by several metrics or by none, or nothing says whether less is better.
    """
    monitored = Counter((str(row.get("monitor")), str(row.get("mode"))) for row in rows if row.get("best") is not None)
    if metric is None:
        if len(monitored) > 1:
            words = (f"--metric {name}" for name, _ in dict(monitored.most_common()))
            raise ConfigError("these runs are judged by several metrics.", did_you_mean(*dict.fromkeys(words)))
        if not monitored:
            raise ConfigError("none of these runs has a best value.", "Choose a metric: --metric val/loss")
        monitor, own = next(iter(monitored))
        return Goal("best", monitor, mode or own)
    if (same := [one for one in monitored if one[0] == metric]) and mode in (None, same[0][1]) and len(same) == 1:
        return Goal("best", metric, same[0][1], f"metrics.{metric}")
    field = Fields(among, rows).find(metric)
    return Goal(field, short(field).removeprefix("metrics."), mode or _direction(field))


def _direction(field: str) -> str:
    from rtrain.trainers.loops.directions import known_direction

    found = known_direction(field.removeprefix("metrics."))
    if found is None:
        raise ConfigError(f"it is unknown whether lower or higher {short(field)} is better.", "Set it: --mode min")
    return found


def best_rows(rows: Sequence[Row], goal: Goal) -> list[Row]:
    """Return the runs that have a value, the best first; of equal ones, the oldest first. Sweeps are left out."""
    sign = -1 if goal.mode == "max" else 1
    known = [(sign * value, row.started, row) for row in rows if (value := _own_value(row, goal)) is not None]
    return [row for _, _, row in sorted(known, key=lambda one: one[:2])]


def _own_value(row: Row, goal: Goal) -> float | None:
    return None if row.kind == "sweep" else goal.value(row)


def ordered(rows: Sequence[Row], by: str | None, among: Sequence[Row]) -> list[Row]:
    """Return the rows in the order of a field, rows without it last; with ``-`` before its name the largest first.

    Best values of different metrics don't compare: ``best`` keeps those of a metric together.

    Args:
        rows: The newest first, which is their order if ``by`` is None.
        by: The name of a field.
        among: All rows that they were chosen from, which know the names of fields.

    Raises:
        ConfigError: There is no such field.
    """
    if by is None:
        return list(rows)
    name = Fields(among, rows).find(by.lstrip("-"))
    known = [row for row in rows if row.get(name) is not None]
    known.sort(key=lambda row: _sortable(row.get(name)), reverse=by.startswith("-"))
    if name == "best":
        monitored = Counter(row.get("monitor") for row in known)
        known.sort(key=lambda row: (-monitored[row.get("monitor")], str(row.get("monitor"))))
    return known + [row for row in rows if row.get(name) is None]


def _sortable(value: Any) -> tuple[int, Any]:
    """Return what compares with any other value: numbers come before texts."""
    return (0, value) if isinstance(value, int | float) else (1, str(value))


def no_rows(what: str, rows: Sequence[Row]) -> ConfigError:
    """Return the error for a name that no run has, with the names that there are."""
    names = [name for name, _ in Counter(row.name for row in rows if row.kind != "trial").most_common()]
    return ConfigError(what, there_are(names) if names else "No runs were found in this folder.")
