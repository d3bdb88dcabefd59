"""The workers of Ray Train as the driver sees them: those of one run, and those that train one run after the other.

Trials of a sweep that need the same workers share a ``KeptGroup``. Its workers ask for runs
(``worker_main.train_in_turn``); the actor that holds the group answers in another thread than the one that follows the
training. When all workers ask for the next run, the previous run is over.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from rtrain.cluster.scaling import is_elastic
from rtrain.config.schema import RtrainConf
from rtrain.trainers.base import TrainerPlugin

LEAVE_SECONDS = 30.0
"""How long a controller may take to notice that its workers are gone."""
ASK_SECONDS = 5.0
"""How long a question for the next run waits for an answer before it is asked again."""

Start = tuple[Callable[[dict[str, Any]], None], dict[str, Any]]
"""What new workers call, and with what."""


class Group:
    """Workers of one run. ``trainer.fit()`` runs in a separate thread, so that the caller's stays free for signals.

    Args:
        name: Of their channel; those of their placement groups begin with it.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.data: Any = None
        """Reference to the data of the next run, if they lie in the object store already."""
        self._trainer: Any = None
        self._ended: threading.Event | None = None
        """Set when the workers have ended; None before they begin. Ctrl-C in a wait for a thread itself would have
        Python 3.11 take it for ended."""
        self.error: BaseException | None = None
        """What the workers have ended by."""

    def give(self, task: dict[str, Any]) -> Start | None:
        """Take a run to train; return what to ``begin`` workers with, or None if they are there.

        Args:
            task: What ``worker_main.train_on_worker`` takes.
        """
        from rtrain.engine.ray.worker_main import train_on_worker

        return train_on_worker, task

    def begin(self, trainer: Any) -> None:
        """Start the workers of a Ray trainer."""
        self._trainer = trainer
        self.begin_again()

    def begin_again(self) -> None:
        """Start workers once more, after the process that watched them has died."""
        self.error, ended = None, threading.Event()
        threading.Thread(target=self._run, args=(ended,), name="rtrain-fit", daemon=True).start()
        self._ended = ended

    def leave(self) -> None:
        """Have the thread leave Ray alone: the cluster is about to be shut down, though training is not over."""
        if self.is_there and self._trainer.leave():
            self.is_over(LEAVE_SECONDS)

    def _run(self, ended: threading.Event) -> None:
        try:
            self._trainer.fit()
        except BaseException as error:  # for the thread that follows
            self.error = error
        finally:
            ended.set()

    @property
    def is_there(self) -> bool:
        """There are workers, or will be."""
        return self._ended is not None and not self._ended.is_set()

    def is_over(self, seconds: float) -> bool:
        """Wait for the end of the run for some seconds, and tell whether it has come."""
        assert self._ended is not None, "never begun"
        return self._ended.wait(seconds)


class KeptGroup(Group):
    """Workers that train one run after the other, of the same shape.

    Args:
        name: As for ``Group``.
        task_queue: The actor that they ask for runs; it passes ``next_number`` and ``task`` on to this.
    """

    def __init__(self, name: str, task_queue: Any) -> None:
        super().__init__(name)
        self._task_queue = task_queue
        self._number = 0
        self._task: dict[str, Any] | None = None
        self._changed = threading.Condition()

    def give(self, task: dict[str, Any]) -> Start | None:
        """Take the next run to train."""
        from rtrain.engine.ray.worker_main import train_in_turn

        with self._changed:
            self._number, self._task = self._number + 1, task
            self._changed.notify_all()
        lasting = {name: task[name] for name in ("run_dir", "channel")}
        return None if self.is_there else (train_in_turn, {**lasting, "task_queue": self._task_queue})

    def is_over(self, seconds: float) -> bool:
        """Wait until all workers are done with the run, or have ended, for some seconds; tell whether they are."""
        with self._changed:
            done = self._changed.wait_for(lambda: self._task is None, seconds)
        return done or not self.is_there

    def next_number(self, done: int) -> int | None:
        """Return the number of the run that the workers are to train now; None if there is none yet.

        Args:
            done: Number of the run that all of them have come to the end of; 0 if they are new.
        """
        with self._changed:
            if done == self._number:
                self._task = None
                self._changed.notify_all()
            self._changed.wait_for(lambda: self._task is not None, ASK_SECONDS)
            return None if self._task is None else self._number

    @property
    def task(self) -> dict[str, Any] | None:
        """The run that they are to train."""
        return self._task


def can_be_kept(plugin: TrainerPlugin, conf: RtrainConf) -> bool:
    """Return whether the workers of a run can train another one after it."""
    return plugin.can_rejoin and not plugin.takes_ray_datasets(conf.trainer) and not is_elastic(conf.scaling)
