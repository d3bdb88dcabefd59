"""Copies that threads of several ranks make of one checkpoint: rank 0 completes it when all of them are done."""

from __future__ import annotations

import time
from collections.abc import Callable

from rtrain.trainers.loops.custom.shards.turns import Board

COPIED, FAILED, OVER = "copied", "copy-failed", "checkpoint-over"
"""What a rank pins up, with the token of the checkpoint."""
LOOK_SECONDS = 0.05
"""How often a rank looks what the others have done."""


class Copies:
    """What has become of the checkpoint that all ranks copy; each copies one at a time.

    Args:
        rank: This one.
        size: Number of ranks.
        board: Where all of them look.
    """

    def __init__(self, rank: int, size: int, board: Board) -> None:
        self._rank, self._size, self._board = rank, size, board

    def copy(self, token: str, copy: Callable[[], None], complete: Callable[[], None]) -> None:
        """Copy the files of this rank; on rank 0, complete the checkpoint once all ranks have copied theirs.

        Args:
            token: Of the checkpoint, the same on all ranks.
            copy: Copies this rank's files.
            complete: Completes the checkpoint; not called if a rank could not copy.
        """
        try:
            copy()
            self._pin(COPIED, token)
            if self._rank == 0 and self._all_could_copy(token):
                complete()
        except BaseException:
            self._pin(FAILED, token)
            raise
        finally:
            if self._rank == 0:
                self._board.pin(OVER, token)

    def wait(self, token: str) -> None:
        """Wait until rank 0 has done what it can with a checkpoint."""
        while self._board.pinned(OVER) != token:
            time.sleep(LOOK_SECONDS)

    def _pin(self, what: str, token: str) -> None:
        self._board.pin(f"{COPIED}-{self._rank}", f"{what} {token}")

    def _all_could_copy(self, token: str) -> bool:
        """Wait until the other ranks have copied; return whether each of them could."""
        waiting = set(range(1, self._size))
        while waiting:
            found = {rank: self._board.pinned(f"{COPIED}-{rank}") for rank in waiting}
            if f"{FAILED} {token}" in found.values():
                return False
            waiting = {rank for rank, said in found.items() if said != f"{COPIED} {token}"}
            if waiting:
                time.sleep(LOOK_SECONDS)
        return True
