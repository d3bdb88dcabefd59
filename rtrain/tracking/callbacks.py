"""``run.callbacks``: a thread of the driver that calls them for what is new in the run directory."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rtrain.callbacks import Callback, FailedAttempt, SavedCheckpoint, check_callback
from rtrain.config.targets.builder import Builder
from rtrain.config.targets.importing import raised_at
from rtrain.errors import ConfigError, TrainingError, first_line
from rtrain.loggers.base import LoggedRun, Outcome
from rtrain.process.interrupts import StopRequest
from rtrain.runs.checkpoints import checkpoints_dir
from rtrain.runs.events import Event, events_file
from rtrain.runs.manifest import Manifest
from rtrain.runs.status import Status
from rtrain.tracking.position import end_of, load_position, read_new, save_position

logger = logging.getLogger(__name__)

KEY, STATE = "run.callbacks", "callbacks"
POLL_SECONDS = 1.0
"""How often the run directory is looked at."""
WAIT_SECONDS = 0.05
RAISED = (Exception, SystemExit, KeyboardInterrupt)
"""Whatever code of the user's raises. Ctrl-C interrupts another thread."""
EVALUATED = ("val/", "test/")
"""Begin the names of metrics of an evaluated split."""


def check_run_callbacks(nodes: Sequence[Any], builder: Builder) -> None:
    """Refuse callbacks that can't be made, without making one.

    Raises:
        ConfigError: One is not allowed, not there, not a callback, or has wrong arguments.
    """
    for index, node in enumerate(nodes):
        where = f"{KEY}.{index}"
        builder.check_node(node, where)
        kind = builder.locate(node["_target_"], f"{where}._target_")
        if isinstance(kind, type):
            if not issubclass(kind, Callback):
                raise _no_callback(where, node)
            check_callback(where, node, kind, Callback, node.get("on_error", kind.on_error))


def make_callbacks(nodes: Sequence[Any], builder: Builder) -> list[Callback]:
    """Return the callbacks of a run.

    Raises:
        ConfigError: One can't be made, or is something else.
    """
    found = []
    for index, node in enumerate(nodes):
        made = builder.build(node, f"{KEY}.{index}")
        if not isinstance(made, Callback):
            raise _no_callback(f"{KEY}.{index}", node)
        check_callback(f"{KEY}.{index}", node, type(made), Callback, made.on_error)
        found.append(made)
    return found


def _no_callback(where: str, node: Mapping[str, Any]) -> ConfigError:
    hint = "Inherit from rtrain.Callback. Callbacks of workers and of frameworks belong in trainer.callbacks"
    return ConfigError(f"{where}: {node['_target_']} is not an rtrain.Callback", hint)


class CallbackThread:
    """Calls callbacks until the run is over. An exception in one asks the run to stop.

    Args:
        callbacks: What is called.
        run: The facts about the run that they receive.
        manifest: Of the run; its recorder keeps it up to date.
        stop: Ends the run.
        notice: Takes a line for the user.
    """

    def __init__(
        self,
        callbacks: Sequence[Callback],
        run: LoggedRun,
        manifest: Manifest,
        stop: StopRequest,
        notice: Callable[[str], None],
    ) -> None:
        self._callbacks, self._run_of, self._manifest = list(callbacks), run, manifest
        self._stop, self._notice = stop, notice
        position, told = load_position(run.folder, STATE) or (end_of(run.folder), {})
        self._position = position
        saved = (record["name"] for record in manifest.checkpoints)
        self._checkpoints = set(str(told["checkpoints"]).split("/") if "checkpoints" in told else saved)
        self._num_failed = len(_failed(manifest))
        self._error: TrainingError | None = None
        self._warned: set[int] = set()
        self._outcome: Outcome | None = None
        self._ending, self._drained, self._over = (threading.Event() for _ in range(3))
        self._thread = threading.Thread(target=self._run, name="rtrain-callbacks", daemon=True)

    def start(self) -> None:
        """Begin to call them."""
        if self._callbacks:
            self._note_told()  # a run that is killed before the first report is read begins there when it is resumed
            self._thread.start()
        else:
            self._drained.set()

    def drain(self, timeout_seconds: float, hurry: Callable[[], bool]) -> None:
        """Wait until the callbacks have been called for everything that happened.

        Args:
            timeout_seconds: How long they may take.
            hurry: Whether to give up the rest immediately.

        Raises:
            TrainingError: One has failed.
        """
        self._ending.set()
        self._wait(self._drained.is_set, timeout_seconds, hurry)
        if self._error is not None:
            raise self._error

    def finish(self, outcome: Outcome, timeout_seconds: float, hurry: Callable[[], bool]) -> None:
        """Tell the callbacks how the run ended, and wait for them, as ``drain`` does; what fails is a notice."""
        self._ending.set()
        self._outcome = outcome
        self._over.set()
        if self._callbacks:
            self._wait(lambda: not self._thread.is_alive(), timeout_seconds, hurry)

    def _wait(self, is_done: Callable[[], bool], timeout_seconds: float, hurry: Callable[[], bool]) -> None:
        deadline = time.monotonic() + timeout_seconds
        while not is_done() and not hurry():
            if time.monotonic() >= deadline:
                self._notice(f"{KEY}: one has not returned for {timeout_seconds:g} seconds and is ignored")
                self._callbacks = []
                return
            self._thread.join(WAIT_SECONDS)

    def _run(self) -> None:
        self._call("started", self._run_of)
        while not self._has_failed():
            is_last = self._ending.is_set()
            for name, what in self._news():
                self._call(name, what)
                if self._has_failed():
                    break
            if is_last:
                break
            self._ending.wait(POLL_SECONDS)
        self._drained.set()
        self._over.wait()
        assert self._outcome is not None
        for index, callback in enumerate(self._callbacks):
            try:
                callback.ended(self._outcome)
            except RAISED as error:  # the run is over
                self._notice(str(_failure(index, callback, error)))

    def _news(self) -> Iterator[tuple[str, Any]]:
        """Yield what has happened since the last time: the method to call, and its argument."""
        yield from self._new_events()
        for record in [one for one in self._manifest.checkpoints if one["name"] not in self._checkpoints]:
            self._checkpoints.add(record["name"])
            yield "checkpoint", self._saved(record)
            self._note_told()
        for number, why in _failed(self._manifest)[self._num_failed :]:
            self._num_failed += 1
            yield "attempt_failed", FailedAttempt(number=number, **_picked(why, ("kind", "message", "rank")))

    def _new_events(self) -> Iterator[tuple[str, Event]]:
        while True:
            events, position = read_new(events_file(self._run_of.folder), self._position)
            if position == self._position:
                return
            for event in events:
                yield "event", event
                if any(name.startswith(EVALUATED) for name in event.metrics):
                    yield "evaluated", event
            self._position = position
            self._note_told()

    def _note_told(self) -> None:
        """Store what the callbacks have been called for. No name of a folder has a slash."""
        there = {record["name"] for record in list(self._manifest.checkpoints)}
        told = {"checkpoints": "/".join(sorted(self._checkpoints & there))}
        save_position(self._run_of.folder, STATE, self._position, told)

    def _saved(self, record: Mapping[str, Any]) -> SavedCheckpoint:
        folder = checkpoints_dir(self._run_of.folder) / record["name"]
        best = self._manifest.best_checkpoint
        return SavedCheckpoint(
            folder=folder,
            is_best=best is not None and Path(best).name == record["name"],
            **_picked(record, ("name", "step", "epoch", "metrics")),
        )

    def _call(self, name: str, what: Any) -> None:
        for index, callback in enumerate(self._callbacks):
            try:
                getattr(callback, name)(what)
            except RAISED as error:
                self._take_error(index, callback, error)
                if self._has_failed():
                    return

    def _has_failed(self) -> bool:
        return self._error is not None

    def _take_error(self, index: int, callback: Callback, error: BaseException) -> None:
        failure = _failure(index, callback, error)
        logger.warning("%s", failure.message, exc_info=error)
        if callback.on_error == "warn":
            if index not in self._warned:
                self._warned.add(index)
                self._notice(f"{failure.message}; training continues")
            return
        self._error = failure
        self._stop.ask(Status.FAILED, failure.message)


def _failure(index: int, callback: Callback, error: BaseException) -> TrainingError:
    kind = type(callback)
    what = f"{KEY}.{index}: {kind.__module__}.{kind.__qualname__} failed: {type(error).__name__}: {first_line(error)}"
    failure = TrainingError(what, raised_at(error))
    failure.cause = error
    return failure


def _failed(manifest: Manifest) -> list[tuple[int, Mapping[str, Any]]]:
    """Return the number of each attempt that ended before its time, and why it did."""
    attempts = enumerate(list(manifest.attempts), 1)
    return [(number, one["ended_because"]) for number, one in attempts if one.get("ended_because")]


def _picked(record: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    return {name: record.get(name) for name in names}
