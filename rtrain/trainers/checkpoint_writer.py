"""Writes the checkpoints of one worker, during training if they may be, and reports each to the driver."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from rtrain.errors import CheckpointError
from rtrain.runs.checkpoints import RECORD_NAME, Writer, checkpoint_dir, note_in_checkpoint, write_checkpoint
from rtrain.runs.events import events_file
from rtrain.runs.records import CheckpointRecord, RunRecord
from rtrain.trainers.async_writer import AsyncWriter, in_turn
from rtrain.trainers.sharded_checkpoint import CheckpointGroup, write_shards
from rtrain.trainers.trained import CheckpointMetadata
from rtrain.trainers.unsaved_events import UnsavedEvents


@dataclass(kw_only=True)
class CheckpointWriter:
    """The checkpoints of a run as one of its ranks writes them: each is complete or not there at all."""

    run_dir: Path
    rank: int
    in_thread: bool
    """Files are written while training continues: ``run.checkpoint.upload`` is ``async``."""
    send: Callable[[RunRecord], None]
    """Tells the driver, which lists them and drops old ones."""
    about: CheckpointMetadata
    """The metadata of each checkpoint."""
    signing_key: str = field(default="", repr=False)
    """Signs their files; empty: they are not signed."""
    thread: AsyncWriter = field(default_factory=AsyncWriter)
    group: CheckpointGroup | None = None
    """All ranks, where each of them writes a part of each checkpoint; the loop sets it."""
    unsaved: UnsavedEvents = field(default_factory=UnsavedEvents)

    def save(self, snapshot: Callable[[], Writer], *, step: int, epoch: int, **facts: Any) -> None:
        """Write a checkpoint; see ``Worker.save_checkpoint``."""
        if self.rank > 0 and self.group is None:
            return
        self.thread.wait()
        target = checkpoint_dir(self.run_dir, step=step, epoch=epoch)
        if self._is_there(target):
            return
        reported = self.unsaved.end
        rest = [partial(self._write_rest, reported=reported)] if self.rank == 0 else []
        write = in_turn(snapshot(), *rest)
        facts = {"step": step, "epoch": epoch, **facts, "metrics": dict(facts["metrics"])}

        def finish() -> None:
            self._write(target, write, facts)
            self.unsaved.drop(reported)

        self.thread.start(finish, in_thread=self.in_thread)

    def note_score(self, *, step: int, epoch: int, **facts: Any) -> None:
        """Note how good a checkpoint is that was written before its step was evaluated; on rank 0."""
        if self.rank == 0:
            self.thread.wait()
            target = checkpoint_dir(self.run_dir, step=step, epoch=epoch)
            if not target.exists():  # the run directory was moved or deleted since
                return
            self.tell(note_in_checkpoint(target, {**facts, "metrics": dict(facts["metrics"])}))

    def tell(self, entry: Mapping[str, Any]) -> None:
        """Tell the driver of a checkpoint that is complete and in its place."""
        self.send(CheckpointRecord(entry=entry))

    @contextmanager
    def finishing(self) -> Iterator[None]:
        """Wait for the checkpoint that is being written when the block, a train loop, ends or fails.

        Raises:
            CheckpointError: It can't be written.
        """
        try:
            yield
        except BaseException:
            with suppress(CheckpointError):  # the error of the loop comes first
                self.thread.wait()
            raise
        self.thread.wait()

    def _is_there(self, target: Path) -> bool:
        """Return whether a checkpoint is complete; all ranks that write it have the same answer."""
        there = (target / RECORD_NAME).exists()
        return there if self.group is None else any(self.group.gather(there))

    def _write(self, target: Path, write: Writer, facts: Mapping[str, Any]) -> None:
        if self.group is None:
            self.tell(write_checkpoint(target, write, facts, self.signing_key))
            return
        entry = write_shards(target, write, facts, self.group, first=self.rank == 0, signing_key=self.signing_key)
        if entry is not None:
            self.tell(entry)

    def _write_rest(self, folder: Path, reported: int) -> None:
        """Write the metadata of the checkpoint, and what was reported since the previous one.

        The driver may be killed before it receives those reports.
        """
        self.about.write(folder)
        self.unsaved.write(events_file(folder), reported)
