"""Why an attempt to train ended, and whether another one is made."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from rtrain.config.diagnostics.own_lines import render_lines
from rtrain.config.files.locations import shown
from rtrain.config.run_conf import FailureConf
from rtrain.engine.crash import HINT, Crash
from rtrain.engine.same_error import lasting
from rtrain.runs.records import FailureKind, FailureRecord, WorkerFailure
from rtrain.trainers.known_errors import LESS_MEMORY, is_out_of_memory, what_to_try

HANG = "Hang"
"""Type of the failure that a worker records of itself when it gets no further."""

_COLLATERAL = re.compile(
    r"connection (closed|reset|refused)|closed by peer|broken pipe|\bgloo\b|\bnccl|process group|socket"
    r"|allreduce failed|remote process|heartbeat|coordination service|unavailableerror|tracker"
    r"|timed out waiting",
    re.IGNORECASE,
)
_KILLED_BY_RAY = re.compile(r"NODE_OUT_OF_MEMORY|running low on memory", re.IGNORECASE)
LIKELY_TO_COME_AGAIN = (FailureKind.EXCEPTION, FailureKind.OUT_OF_MEMORY, FailureKind.HANG)
NO_CRASHES: Mapping[int, Crash] = MappingProxyType({})
_ROOT_FIRST = (FailureKind.PREEMPTED, FailureKind.NODE_LOST, FailureKind.WORKER_DIED, FailureKind.HANG)
"""Of workers that could not say what ended them, the first of these names the cause."""


@dataclass(frozen=True, kw_only=True)
class FailureReason:
    """Why an attempt ended before its time."""

    kind: FailureKind
    message: str
    """What happened, in one line or a few."""
    rank: int | None = None
    type: str | None = None
    """Class of the exception."""
    hint: str | None = None
    final: bool = False
    """It would come again: rtrain's own errors name a mistake of the config or the data."""
    bug: bool = False
    """It is a mistake of the user's code; one that comes before any step comes again."""
    frames: Mapping[str, Any] | None = None
    """Where it comes from, as ``own_lines`` tells it."""

    log: Path | None = None
    """The file that says more, if it is not the worker's log."""

    def is_like(self, other: FailureReason | None) -> bool:
        """Return whether the same came again, on whatever worker and machine, at whatever time."""
        return other is not None and self._lasting() == other._lasting()

    def _lasting(self) -> tuple[str, str | None, str]:
        return self.kind, self.type, lasting(self.message, numbers=self.kind != FailureKind.OUT_OF_MEMORY)

    def facts(self) -> dict[str, Any]:
        """Return what the manifest keeps."""
        known = asdict(self)
        return {name: known[name] for name in ("kind", "message", "rank", "type") if known[name] is not None}


class Retries:
    """Decides after each ending whether to try again, and when.

    Args:
        conf: The limits.
        chance: Returns numbers from 0 to 1, to spread the waits of many runs that failed together.
    """

    def __init__(self, conf: FailureConf, chance: Callable[[], float] = random.random) -> None:
        self._conf, self._chance = conf, chance
        self._failures = self._preemptions = self._in_vain = 0
        self._last: FailureReason | None = None
        self._got_further = False
        self.refusal = ""
        """Why there is no other attempt, once there is none."""

    def wait_after(self, ending: FailureReason, *, progress: bool) -> float | None:
        """Return the seconds until the next attempt, or None if there is none.

        Args:
            ending: What ended this one.
            progress: It got further than all before it.
        """
        is_likely = ending.kind in LIKELY_TO_COME_AGAIN or ending.type is not None
        same = is_likely and not progress and ending.is_like(self._last)
        self._last, self._got_further = ending, self._got_further or progress
        self._in_vain = 0 if progress else self._in_vain + 1
        self.refusal = self._refuse(ending, same)
        if self.refusal or ending.final:
            return None
        if self._in_vain == 0:
            return 0.0
        longest = min(self._conf.max_backoff_seconds, self._conf.backoff_seconds * 2.0 ** min(self._in_vain - 1, 60))
        return longest * (0.5 + 0.5 * self._chance())

    def _refuse(self, ending: FailureReason, same: bool) -> str:
        if ending.bug and not self._got_further:
            return "the error is in your code and occurred before the first step, so it would occur again"
        if same:
            return "the same error occurred again, with no progress in between"
        if ending.kind == FailureKind.PREEMPTED:
            self._preemptions += 1
            limit = self._conf.max_preemption_failures
            return f"run.failure.max_preemption_failures={limit}" if self._preemptions > limit else ""
        self._failures += 1
        limit = self._conf.max_failures
        return f"run.failure.max_failures={limit}" if self._failures > limit else ""


def frames_to_tell(raised: FailureRecord) -> Mapping[str, Any] | None:
    """Return where an error comes from that a worker recorded; for rtrain's errors, only the user's lines."""
    frames = raised.frames
    return None if frames is None or (raised.mistake and not frames["own"]) else frames


def told(ending: FailureReason, run_dir: Path, *more: str) -> str | None:
    """Return what is shown below an error's message: the user's own lines, what to try, and the log that has it all."""
    lines = render_lines(ending.frames) if ending.frames else []
    log = run_dir / "logs" / f"worker-{ending.rank}.log"
    has_log = ending.rank is not None and log.is_file() and log.stat().st_size > 0
    where = f"The full traceback is in {shown(log)}" if has_log and ending.type is not None else ""
    if ending.log is not None:
        where = f"The stack of every thread is in {shown(ending.log)}"
    return "\n".join(filter(None, [*lines, ending.hint, *more, where])) or None


def is_collateral(error_type: str, message: str) -> bool:
    """Return whether an error reads like that of a worker whose partner is gone."""
    return bool(_COLLATERAL.search(f"{error_type}: {message}"))


def ending_of(
    raised: Sequence[FailureRecord],
    workers: Sequence[WorkerFailure],
    oom_kills: int = 0,
    crashes: Mapping[int, Crash] = NO_CRASHES,
) -> FailureReason:
    """Find the true cause among what several workers show.

    Args:
        raised: What workers recorded of themselves.
        workers: What the cluster reports about each that failed.
        oom_kills: Processes that the system has killed for want of memory on the driver's machine.
        crashes: What workers wrote when they crashed, by rank.
    """
    hung = [one for one in raised if one.type == HANG]
    if hung:
        return _ending_by_hang(hung)
    told = {one.rank for one in raised}
    gone = [one for one in workers if one.kind != FailureKind.EXCEPTION and one.rank not in told]
    for rank in sorted(crashes.keys() & {one.rank for one in gone}):
        return ending_by_crash(crashes[rank], rank)
    if gone:
        return _ending_without_words(gone, oom_kills)
    heard = [FailureRecord(rank=one.rank, type=one.type, message=one.message, time=0.0) for one in workers]
    if raised or heard:
        return _ending_by_exception(raised or heard)
    return FailureReason(kind=FailureKind.WORKER_DIED, message="the workers ended without an error message")


def ending_by_crash(crash: Crash, rank: int) -> FailureReason:
    """Return how a process ended that crashed."""
    return FailureReason(
        kind=FailureKind.WORKER_DIED,
        message=f"the process of worker {rank} crashed{crash.place}: {crash.what}",
        rank=rank,
        type=crash.what,
        hint=HINT,
        frames=crash.frames,
        log=crash.path,
    )


def _ending_by_hang(hung: Sequence[FailureRecord]) -> FailureReason:
    by_rank = sorted({one.rank: one for one in hung}.items())
    places = ", ".join(f"worker {rank} in {one.place}" for rank, one in by_rank)
    return FailureReason(
        kind=FailureKind.HANG,
        message=f"training made no progress for {hung[0].seconds:g} seconds: {places}",
        rank=by_rank[0][0] if len(by_rank) == 1 else None,
        hint="The stack of every thread is in logs/worker-<rank>.stacks.txt. If a step can take that long: "
        "run.failure.hang_seconds=null",
    )


def _ending_by_exception(raised: Sequence[FailureRecord]) -> FailureReason:
    first = min(raised, key=lambda one: (is_collateral(one.type, one.message), one.time))
    later = sorted({one.rank for one in raised} - {first.rank})
    also = f" (worker {', '.join(map(str, later))} failed after it)" if later else ""
    memory = is_out_of_memory(first.type, first.message)
    return FailureReason(
        kind=FailureKind.OUT_OF_MEMORY if memory else FailureKind.EXCEPTION,
        message=f"{first.type} on worker {first.rank}{also}: {first.message}",
        rank=first.rank,
        type=first.type,
        hint=what_to_try(first.type, first.message),
        final=first.mistake,
        bug=first.bug and not memory and not is_collateral(first.type, first.message),
        frames=frames_to_tell(first),
    )


def is_killed_for_memory(message: str) -> bool:
    """Return whether Ray says that it has killed a process because its machine ran out of memory."""
    return bool(_KILLED_BY_RAY.search(message))


def ending_for_memory(who: str, rank: int | None = None) -> FailureReason:
    """Return how an attempt ended one of whose workers was killed for want of memory."""
    message = f"{who} was killed because the machine ran out of memory"
    return FailureReason(kind=FailureKind.OUT_OF_MEMORY, message=message, rank=rank, hint=LESS_MEMORY)


def _ending_without_words(gone: Sequence[WorkerFailure], oom_kills: int) -> FailureReason:
    """Tell how workers ended that could not say it themselves."""
    first = min(gone, key=lambda one: (_ROOT_FIRST.index(one.kind), one.rank))
    same = [one.rank for one in gone if one.kind == first.kind]
    who = f"worker {same[0]}" if len(same) == 1 else f"workers {', '.join(map(str, same))}"
    rank = first.rank if len(same) == 1 else None
    said = {
        FailureKind.PREEMPTED: f"the machine of {who} was removed",
        FailureKind.NODE_LOST: f"the machine of {who} was lost",
        FailureKind.HANG: f"the process of {who} no longer responds",
    }
    if first.kind in said:
        return FailureReason(kind=first.kind, message=said[first.kind], rank=rank)
    if oom_kills or is_killed_for_memory(first.message):
        return ending_for_memory(who, rank)
    return FailureReason(
        kind=FailureKind.WORKER_DIED,
        message=f"the process of {who} exited without an error message",
        rank=rank,
        hint="It was killed (for example by the system, out of memory), or its code crashed or exited.",
    )
