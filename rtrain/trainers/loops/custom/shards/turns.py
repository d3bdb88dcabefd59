"""Where workers wait for each other: in passes over Ray's dataset shards, in reports, and in barriers.

Ray Data shares out the rows of each pass among all workers, and waits for those that don't take part, forever. So each
worker pins up which passes it has begun and how often it has come to where all workers meet, and looks at what the
others have before it begins one. So it does when its loop is over.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Protocol

from ray.data._internal.iterator.stream_split_iterator import StreamSplitDataIterator

from rtrain.errors import TrainingError
from rtrain.runs.records import NoticeRecord
from rtrain.trainers.loops.custom.shards.names import shared_splits
from rtrain.trainers.worker import Worker

GRACE_SECONDS = 10.0
"""How long two workers wait for each other before that counts as forever."""
NOTICE_SECONDS = 60.0
LOOK_SECONDS = 0.05
LONGEST_LOOK_SECONDS = 1.0
OVER = 10**9


class Board(Protocol):
    """Where workers of the same attempt read what the others pin up."""

    def pin(self, key: str, value: str) -> None:
        """Let the others see a value."""

    def pinned(self, key: str) -> str | None:
        """Return the value of a key, or None."""


class Turns:
    """What this worker has begun, and whether the others do too.

    Args:
        worker: This one.
        board: Where all of them look.
    """

    def __init__(self, worker: Worker, board: Board) -> None:
        self._worker, self._board = worker, board
        self._passes: Counter[str] = Counter()
        self._meetings = 0
        self._has_told = False
        self._counts = worker.world_size > 1

    @contextmanager
    def meeting(self) -> Iterator[None]:
        """Note that this worker is where all of them meet, in a report or a barrier; if it fails, they have not met."""
        self._meetings += 1
        self._pin()
        try:
            yield
        except BaseException:
            self._meetings -= 1
            self._pin()
            raise

    def over(self) -> None:
        """Note that the loop of this worker is over, and wait for the others.

        Raises:
            TrainingError: Another worker is in a report or a barrier that this one will never come to.
        """
        mine, self._meetings = self._meetings, OVER
        self._pin()
        began = time.monotonic()
        while self._counts and (meetings := [(rank, state["meetings"]) for rank, state in self._others()]):
            if waiting := [rank for rank, count in meetings if mine < count < OVER]:
                raise self._left_alone(waiting)
            if all(count == OVER for _, count in meetings):
                return
            time.sleep(min(LONGEST_LOOK_SECONDS, LOOK_SECONDS + (time.monotonic() - began) / 10))

    def begin(self, name: str) -> None:
        """Wait until all workers have begun the next pass over a shard.

        Raises:
            TrainingError: They can't, because they wait for this one somewhere else, or they don't in time.
        """
        if not self._counts:
            return
        self._passes[name] += 1
        self._pin()
        wanted, began, stuck_since = self._passes[name], time.monotonic(), None
        while missing := {rank: state for rank, state in self._others() if state["passes"].get(name, 0) < wanted}:
            now = time.monotonic()
            stuck = [rank for rank, state in missing.items() if self._is_ahead(state)]
            stuck_since = (stuck_since or now) if stuck else None
            if stuck_since is not None and now - stuck_since >= GRACE_SECONDS:
                raise self._deadlock(name, stuck)
            self._wait(name, list(missing), now - began)

    def _pin(self) -> None:
        if self._counts:
            state = {"passes": self._passes, "meetings": self._meetings}
            self._board.pin(f"turns-{self._worker.rank}", json.dumps(state))

    def _others(self) -> list[tuple[int, Mapping[str, Any]]]:
        ranks = [rank for rank in range(self._worker.world_size) if rank != self._worker.rank]
        empty = '{"passes": {}, "meetings": 0}'
        return [(rank, json.loads(self._board.pinned(f"turns-{rank}") or empty)) for rank in ranks]

    def _is_ahead(self, state: Mapping[str, Any]) -> bool:
        """Return whether a worker waits for this one: in a meeting, or in a pass over another shard."""
        passes: Mapping[str, int] = state["passes"]
        return state["meetings"] > self._meetings or any(count > self._passes[name] for name, count in passes.items())

    def _wait(self, name: str, missing: list[int], seconds: float) -> None:
        """Let time pass; notify once that it takes long, and fail after ``run.failure.hang_seconds``."""
        longest = self._worker.run.failure.hang_seconds
        if longest is not None and seconds >= longest:
            raise self._deadlock(name, missing)
        if seconds >= NOTICE_SECONDS and not self._has_told:
            self._has_told = True
            waits = f"worker {self._worker.rank} waits for {_workers(missing)}"
            self._worker.channel.send(NoticeRecord(text=f"{waits} to read the dataset shard '{name}' as well"))
        time.sleep(LOOK_SECONDS)

    def _deadlock(self, name: str, ranks: list[int]) -> TrainingError:
        return TrainingError(
            f"worker {self._worker.rank} reads the dataset shard '{name}', {_workers(ranks)} did not: each worker has "
            "a part of every shard, and gets rows only when all of them read.",
            "Read it on all workers (in an `if` of one rank it waits forever) and combine their results; or give each "
            f"worker all of it: 'trainer.datasets_to_split=[{','.join(self._others_than(name))}]'",
        )

    def _left_alone(self, ranks: list[int]) -> TrainingError:
        waits = "wait" if len(ranks) > 1 else "waits"
        return TrainingError(
            f"{_workers(ranks)} {waits} in ray.train.report (or a barrier) for worker {self._worker.rank}, whose "
            "train loop has ended.",
            "All workers must report equally often: call ray.train.report on each of them, not in an `if` of one "
            "rank; only one needs to pass a checkpoint: ray.train.report(metrics, checkpoint=None).",
        )

    def _others_than(self, name: str) -> list[str]:
        """Return the splits that workers share, but for one."""
        wanted = getattr(self._worker.conf, "datasets_to_split", "all")
        return [one for one in shared_splits(self._worker.data, wanted) if one != name]


class _ShardInTurn(StreamSplitDataIterator):
    """Ray's own shard; each pass begins when all workers begin it."""

    _name: str
    _turns: Turns

    def _to_ref_bundle_iterator(self) -> Any:
        blocks, *others = super()._to_ref_bundle_iterator()

        def in_turn() -> Any:
            self._turns.begin(self._name)
            yield from blocks

        return (in_turn(), *others)

    def __reduce__(self) -> Any:
        return StreamSplitDataIterator, (self._coord_actor, self._output_split_idx, self._world_size)


def shard_in_turn(shard: Any, name: str, turns: Turns) -> Any:
    """Return a shard of Ray's that fails where it would wait forever for workers that don't read it."""
    if type(shard) is StreamSplitDataIterator:
        shard.__class__ = _ShardInTurn
        shard._name, shard._turns = name, turns
    return shard


def _workers(ranks: list[int]) -> str:
    return f"worker{'s' if len(ranks) > 1 else ''} {', '.join(map(str, ranks))}"
