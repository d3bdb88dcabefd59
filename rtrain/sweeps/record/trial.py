"""One trial of a sweep: what it tries, and how it stands."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache
from typing import Any, TypeVar, cast

from pydantic import TypeAdapter, ValidationError

from rtrain.config.compose.aliases import split_word
from rtrain.config.compose.search_space import Axis
from rtrain.runs.status import Status
from rtrain.searches.base import Objective, Point

T = TypeVar("T")


def as_typed(overrides: Sequence[str]) -> str:
    """Return overrides in one line, without the signs that Hydra wants."""
    return " ".join(word.lstrip("+") for word in overrides)


def failure_text(error: Mapping[str, Any]) -> str:
    """Return what a trial failed by, its class first, which some messages begin with."""
    kind, message = str(error["type"]), str(error["message"])
    return message if message.startswith((f"{kind}: ", f"{kind} on worker ")) else f"{kind}: {message}"


def typed(kind: type[T], facts: Mapping[str, Any]) -> T:
    """Make a dataclass of what was read from a file.

    Raises:
        ValueError: Something is missing, or of another type.
    """
    try:
        made: T = _adapter(cast("Hashable", kind)).validate_python(dict(facts))
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        raise ValueError(f"{'.'.join(map(str, first['loc']))}: {first['msg']}") from None
    return made


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)


@dataclass(kw_only=True)
class Trial:
    """A point of the space, and the run that tries it."""

    number: int
    point: Point
    overrides: list[str]
    """What is particular to it, secrets masked."""
    name: str
    """Its folder in that of the sweep."""
    config_hash: str
    """Hash of what may not change of its config when the sweep is resumed."""
    status: str = Status.PLANNED
    values: list[float] | None = None
    """What it reached: the best of one goal; of several, the newest report that holds all of them."""
    step: int = 0
    epoch: int = 0
    max_epochs: int | None = None
    """Epochs, or rounds of boosted trees, that it is to train; None where steps count."""
    reason: str = ""
    """Why it is over."""
    error: dict[str, Any] | None = None
    """``type`` and ``message`` of what it failed by."""
    lacks_copy: bool = False
    """Its copy in ``run.storage`` is not complete."""
    seconds: float = 0.0
    """What it took."""
    num_starts: int = 0
    num_deaths: int = 0
    """How often the process died that trained it."""
    went_on_at: str = ""
    """When it was last taken up after a pause: UTC, ISO 8601."""
    lineage: list[dict[str, Any]] = field(default_factory=list)
    """Checkpoints of other trials that it continued from: ``time``, ``source`` (number), ``checkpoint``, ``step``,
    ``changes`` (new values by axis)."""

    @property
    def params(self) -> dict[str, str]:
        """The values that are particular to it, as text, by key."""
        pairs = map(split_word, self.overrides)
        return {key: value or "" for _, key, value in pairs}

    @property
    def what(self) -> str:
        """What is particular to it, in one line."""
        return as_typed(self.overrides)

    @property
    def copied_step(self) -> int:
        """The step of the newest checkpoint that it took over from another trial; 0 without one."""
        return int(self.lineage[-1].get("step", 0)) if self.lineage else 0

    def point_now(self, axes: Sequence[Axis], until: str = "") -> Point:
        """Return what it tries now, after what its lineage has changed; or tried ``until`` a time."""
        values = {axis.name: text for axis, text in zip(axes, self.point, strict=True)}
        for entry in self.lineage:
            if not until or entry["time"] <= until:
                values |= entry["changes"]
        return tuple(values[axis.name] for axis in axes)

    def hear(
        self,
        goals: list[Objective],
        step: int,
        epoch: int,
        metrics: Mapping[str, float | None],
        *,
        counts: bool = True,
    ) -> bool:
        """Take a report; return whether it holds all goals, so that it can be judged by it.

        Args:
            goals: What is looked for.
            step: Optimizer steps done.
            epoch: Epochs done.
            metrics: What is reported.
            counts: Its values are the trial's; not those of weights that it has left for another trial's.
        """
        self.step, self.epoch = max(step, self.step), max(epoch, self.epoch)
        found = [metrics.get(goal.metric) for goal in goals]
        if not goals or any(value is None for value in found):
            return False
        new = [float(value) for value in found if value is not None]
        if not counts or not all(map(math.isfinite, new)):
            return True
        # Several goals each have their best at another time: no model holds them all, but the newest one its own.
        if self.values is None or len(goals) > 1 or goals[0].is_better(new[0], self.values[0]):
            self.values = new
        return True

    def facts(self) -> dict[str, Any]:
        """Return it as plain data, for ``sweep.json``."""
        return asdict(self)

    @classmethod
    def of(cls, facts: Mapping[str, Any]) -> Trial:
        """Return the trial that ``facts`` are of.

        Raises:
            ValueError: Something is of another type; KeyError and TypeError: It is missing, or no mapping.
        """
        trial = typed(cls, {**facts, "point": tuple(facts["point"])})
        if trial.error is not None and not {"type", "message"} <= trial.error.keys():
            raise ValueError("error: it has no type, or no message")
        return trial
