"""What a benchmark measures: processes of rtrain and of a peer in turn, and a row of the table for both."""

from __future__ import annotations

import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import IO, Any

PEERS = Path(__file__).parent / "peers"
RTRAIN = str(Path(sys.executable).parent / "rtrain")


@dataclass(frozen=True)
class Spent:
    """What a process took, from its start to its end."""

    seconds: float
    cpu_seconds: float
    """User and system time; that of Ray's processes, which outlive their parents, is not in it."""
    peak_bytes: int
    """Largest resident set of the process, or of one of its children."""
    reached: float | None
    """The metric of what it trained; None if it trained nothing."""


@dataclass(frozen=True)
class Row:
    """A line of the table: the same thing measured several times, each time of rtrain next to one of its peer."""

    name: str
    unit: str
    ours: list[float]
    peer: list[float] = field(default_factory=list)
    """Empty: the goal is one for rtrain's own number. A single one stands next to all of ours."""
    goal: float | None = None
    """The largest ratio, or number, that is good enough."""
    reached: list[float] = field(default_factory=list)
    """The medians of the metric, ours and the peer's; empty if nothing was trained."""
    tolerance: float = 0.03
    """How far ours may be below the peer's."""

    def ratios(self) -> list[float]:
        """Return ours / peer of each pair."""
        peers = self.peer * len(self.ours) if len(self.peer) == 1 else self.peer
        return [mine / other for mine, other in zip(self.ours, peers, strict=bool(peers))]

    def is_met(self) -> bool | None:
        """Return whether the goal is met; None without a goal."""
        return None if self.goal is None else statistics.median(self.ratios() or self.ours) <= self.goal

    def problem(self) -> str | None:
        """Return what is wrong if rtrain trained something worse: its time can't be compared then."""
        if not self.reached or self.reached[0] >= self.reached[1] - self.tolerance:
            return None
        ours, peer = self.reached
        return f"{self.name}: rtrain reaches {ours:.4g}, its peer {peer:.4g}. Their times can't be compared."


@dataclass(frozen=True)
class Growth:
    """How a cost grows with a size."""

    name: str
    unit: str
    axis: str
    """What the sizes count."""
    sizes: list[float]
    costs: list[float]

    def exponent(self) -> float:
        """Return the steepest slope between neighbours on logarithmic axes: 1 is linear, 0 is flat."""
        points = [*zip(map(math.log, self.sizes), map(math.log, self.costs), strict=True)]
        return max((y1 - y0) / (x1 - x0) for (x0, y0), (x1, y1) in pairwise(points))


def once(
    command: Sequence[str],
    code: int = 0,
    reached: Callable[[Path, str], float] | None = None,
    folder: Path | None = None,
    variables: Mapping[str, str] | None = None,
) -> Spent:
    """Run a command.

    Args:
        command: The command.
        code: How it has to exit.
        reached: Reads the metric from its folder and its output.
        folder: Where it runs; None: in an empty one.
        variables: Further environment variables.
    """
    with (
        tempfile.TemporaryDirectory() as empty,
        tempfile.TemporaryFile() as output,
        tempfile.TemporaryFile() as errors,
    ):
        place = folder or Path(empty)
        environment = os.environ | {"RAY_DEDUP_LOGS": "1", "RTRAIN_UP": "off", **(variables or {})}
        returned, *used = _alone(command, cwd=place, stdout=output, stderr=errors, env=environment)
        text, log = (_text(file) for file in (output, errors))
        if returned != code:
            sys.exit(f"{' '.join(command)} failed:\n{text}{log}")
        metric = None if reached is None else reached(place, text)
    return Spent(*used, metric)


def _alone(command: Sequence[str], **how: Any) -> tuple[int, float, float, int]:
    """Run a command that a small process starts, whose peak memory it begins with; and say what that took.

    Returns:
        The exit code; seconds; seconds of processor; peak memory in bytes.
    """
    with tempfile.NamedTemporaryFile("r") as file:
        subprocess.run([sys.executable, "-IS", str(PEERS / "one_process.py"), file.name, *command], check=True, **how)
        code, seconds, cpu_seconds, kilobytes = json.load(file)
    return code, seconds, cpu_seconds, kilobytes * 1024


def _text(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode()


def output_of(script: str, *arguments: object) -> str:
    """Return what a script of the peers prints; end with its error."""
    command = [sys.executable, str(PEERS / script), *map(str, arguments)]
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        code, *_ = _alone(command, stdout=output, stderr=errors)
        text = _text(output)
        if code != 0:
            sys.exit(f"{' '.join(command)} failed:\n{text}{_text(errors)}")
    return text


def last_number(folder: Path, output: str) -> float:
    """Return the number in the last line of an output, which peers print last."""
    return float(output.split()[-1])


def compared(pairs: Sequence[tuple[Spent, Spent]], name: str, goal: float | None) -> Row:
    """Return the row for the seconds of pairs of processes."""
    ours, peer = zip(*pairs, strict=True)
    return Row(name, "s", _seconds(ours), _seconds(peer), goal, medians(ours, peer))


def medians(ours: Sequence[Spent], peer: Sequence[Spent]) -> list[float]:
    """Return the median of the metric of both sides; nothing if they trained nothing."""
    sides = [[one.reached for one in side if one.reached is not None] for side in (ours, peer)]
    return [statistics.median(side) for side in sides] if all(sides) else []


def _seconds(spent: Sequence[Spent]) -> list[float]:
    return [one.seconds for one in spent]
