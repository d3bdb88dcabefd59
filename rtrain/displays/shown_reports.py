"""The reports that a terminal shows: which of them get a line, and as many columns of each as fit."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from typing import Any

from rtrain.run_lines import SPEED, Limits, place_and_rest, told_once
from rtrain.runs.events import Event
from rtrain.text.numbers import number_text
from rtrain.text.printable import printable

MOST_LINES = 100
"""Lines of a run that are shown however fast it is; a tenth of those after them are, and so on."""
SLOW_SECONDS = 60.0
"""After which a report is shown whatever came before."""
NUMBER_WIDTH = 7
"""Of most numbers of four digits, so that columns rarely move."""


class Thinning:
    """Chooses the reports that get a line: about a hundred of a run, and one a minute; ``driver.log`` has them all.

    Args:
        limits: How far the run is to go: the hundred are spread over its epochs.
    """

    def __init__(self, limits: Limits) -> None:
        self._last_epoch = limits.max_epochs
        self._every = math.ceil((limits.max_epochs or 1) / MOST_LINES)
        self._count, self._shown_at = 0, 0.0
        self._withheld: Event | None = None

    def shows(self, event: Event) -> bool:
        """Return whether a report gets a line; called once for each."""
        now = time.monotonic()
        shown = now - self._shown_at >= SLOW_SECONDS or event.epoch == self._last_epoch or self._is_one_of_few(event)
        self._withheld = None if shown else event
        if shown:
            self._shown_at = now
        return shown

    def _is_one_of_few(self, event: Event) -> bool:
        if event.epoch > 1 and event.epoch % self._every:
            return False
        self._count += 1
        power = max(0, math.ceil(math.log10(self._count / MOST_LINES)))
        return self._count % int(10**power) == 0

    def last(self) -> Event | None:
        """Return the newest report if it got no line; nothing more comes."""
        return self._withheld


class ReportColumns:
    """Writes reports below each other in columns that are as wide as they ever were.

    Where not all fit, the first to go is the speed, then other metrics of training than the loss, the step, and the
    last metrics of evaluation; the metric that decides stays. A star follows a value of it that is the best so far.

    Args:
        limits: How far the run is to go.
    """

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._widths: dict[str, int] = {}
        self._best: float | None = None

    def line(self, event: Event, best: Mapping[str, Any] | None, width: int) -> str:
        """Return the line of a report.

        Args:
            event: The report.
            best: ``monitor``, ``mode`` and ``value`` of the best checkpoint so far, if there is one; of boosted trees,
                which are saved at the end, without a value.
            width: Characters of a line.
        """
        monitor = None if best is None else best.get("monitor")
        epoch, step, metrics = place_and_rest(event.epoch, event.step, event.metrics)
        texts = {"place": self._place(epoch)}
        if self._limits.unit != "round":
            last = event.step * (self._limits.max_epochs or 1) // max(event.epoch, 1)
            self._widths.setdefault("step", len(str(self._limits.max_steps or last)))
            texts["step"] = f"step {self._aligned('step', step, right=True)}"
        for name, value in told_once(metrics, self._limits.unit).items():
            number = number_text(value) + ("*" if name == monitor and self._is_best(value, best) else "")
            texts[name] = f"{printable(name)} {self._aligned(name, number)}"
        if (speed := event.metrics.get(SPEED)) is not None:
            texts[SPEED] = f"{self._aligned(SPEED, f'{speed:,.0f}', right=True)} rows/s"
        while len("  ".join(texts.values()).rstrip()) > width and len(texts) > 1:
            del texts[max(texts, key=lambda name: _rank(name, list(texts), monitor))]
        return "  ".join(texts.values()).rstrip()

    def _place(self, epoch: str) -> str:
        """Return the epoch, with the space that the last one needs."""
        space = " " * (1 + len(str(self._limits.max_epochs or epoch)) - len(epoch))
        return self._limits.place(epoch).replace(" ", space or " ", 1)

    def _aligned(self, column: str, text: str, *, right: bool = False) -> str:
        """Return a text with the space that the column needs."""
        usual = 0 if right else NUMBER_WIDTH
        width = self._widths[column] = max(self._widths.get(column, usual), len(text))
        return f"{text:>{width}}" if right else f"{text:<{width}}"

    def _is_best(self, value: float | None, best: Mapping[str, Any] | None) -> bool:
        """Return whether a value of the metric that decides is better than all before it."""
        if value is None or best is None:
            return False
        before = self._best if self._best is not None else best.get("value")
        better = before is None or (value < before if best.get("mode") == "min" else value > before)
        if better:
            self._best = value
        return better


def _rank(name: str, names: list[str], monitor: str | None) -> tuple[int, int]:
    """Return how early a column gives way: the one with the highest rank is the first."""
    if name in ("place", monitor):
        kind = 0
    elif name == "step":
        kind = 2
    elif name == SPEED:
        kind = 4
    else:
        kind = 3 if name.startswith("train/") and not name.endswith("loss") else 1
    return kind, names.index(name)
