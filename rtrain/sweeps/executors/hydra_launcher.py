"""Train trials with a Hydra launcher, for example on Slurm: all together, each in a process that the launcher starts.

The jobs contain no secrets: each process composes its trial again, with its environment.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from rtrain.config.session import Session, job_place
from rtrain.config.trials import Plan, Trials
from rtrain.errors import ConfigError, RtrainError, TrainingError
from rtrain.process.interrupts import StopRequest, leave_ctrl_c_to_parent, stop_on_signals, watching
from rtrain.process.variables import arguments_hidden
from rtrain.runs.filesystem.lock import end_asked, holder, is_abandoned
from rtrain.runs.manifest import MANIFEST, read_manifest
from rtrain.runs.observer import SilentObserver
from rtrain.runs.run import Run
from rtrain.runs.status import Status
from rtrain.schemas import schemas
from rtrain.sweeps.executors.base import NO_ROOM, TrialListener
from rtrain.sweeps.trial_runner import ForwardingObserver, begun
from rtrain.training.fit import train_prepared
from rtrain.training.preparation import prepared

SUBMITS_BY = {"SlurmLauncher": "srun"}
"""Class of a launcher -> the program that it starts trials with."""
UNTOLD = {
    "scheduler": "Remove the scheduler, or hydra/launcher.",
    "max_seconds": "Limit each trial instead, e.g. run.stop.max_seconds=3600",
}
"""Keys of the sweep that need to reach trials while they train, and what to do without."""
POLL_SECONDS = 0.3
"""Between two checks of a trial whether its sweep has ended, or was asked to."""


class NotStartedError(Exception):
    """The sweep of a trial has ended, or was asked to, before the trial began."""


@dataclass(frozen=True, kw_only=True)
class LaunchedJob:
    """What each process of the launcher does."""

    config: str
    config_dir: str | None
    project_root: str
    trust: bool
    sweeper: tuple[int, str] | None
    """The process that works on the sweep, and its host."""

    def __call__(self, _: Any) -> None:
        """Train the trial that Hydra has made the folder for.

        Raises:
            NotStartedError: The sweep has ended, or has been asked to.
        """
        words, run_dir = job_place()
        if self.sweeper is not None and self.sweeper[0] != os.getpid():
            leave_ctrl_c_to_parent()  # it ends what the launcher started, which would print a traceback
        try:
            with stop_on_signals():  # the launcher's own processes would end by Ctrl-C, and with them those that save
                if self._end(run_dir.parent) is not None:
                    raise NotStartedError
                self._train(words, run_dir)
        finally:
            if self._is_left(run_dir.parent):
                os._exit(1)  # no process reads the result: to write it could block forever

    def _train(self, words: list[str], run_dir: Path) -> None:
        observer = SilentObserver()
        typed, root = ("rtrain", "fit", self.config, "--multirun"), Path(self.project_root)
        with arguments_hidden(), Session(self.config, words, schemas(), self.config_dir, root, typed) as session:
            session.trust = self.trust
            composed = replace(session.check(), run_dir=run_dir, sweep=run_dir.parent.name)
            resumption = begun(composed, observer)
            preparation = prepared(composed, observer)
            end = partial(self._end, run_dir.parent)
            with session.environment(), preparation as ready, _stopped_by(end, ready.stop):
                train_prepared(ready, run_dir, observer, resumption)

    def _end(self, sweep: Path) -> tuple[str, str] | None:
        """Return the status and the reason with which the trial is to end now; None: it trains on."""
        if (asked := end_asked(sweep)) is not None:  # wherever the trial trains
            return asked
        return (Status.INTERRUPTED, "the process of the sweep was killed") if self._is_left(sweep) else None

    def _is_left(self, sweep: Path) -> bool:
        """Return whether the process of the sweep was killed, on the machine of the trial."""
        return self.sweeper is not None and is_abandoned(sweep, self.sweeper)


@contextmanager
def _stopped_by(end: Callable[[], tuple[str, str] | None], stop: StopRequest) -> Iterator[None]:
    """Ask the trial of the block to end once ``end`` returns a status and a reason."""

    def look() -> bool:
        try:
            found = end()
        except (OSError, RtrainError):  # it is asked again
            return False
        if found is not None:
            stop.ask(*found)
        return found is not None

    with watching(look, POLL_SECONDS, "rtrain-sweep"):
        yield


class HydraLauncherExecutor:
    """A pool that passes all trials to a launcher, which returns their results when the last one has ended.

    Args:
        trials: Knows the launcher.
        hearer: Receives the state of trials.
        stop: Whether the sweep is to end; the trials read it from the lock of its folder.
    """

    most_at_once: int | None = None
    obstacle = NO_ROOM

    def __init__(self, trials: Trials, hearer: TrialListener, stop: StopRequest) -> None:
        self._trials, self._hearer, self._stop = trials, hearer, stop
        config, config_dir = trials.source
        probe = trials.probe
        self._job = LaunchedJob(
            config=config,
            config_dir=config_dir,
            project_root=str(probe.project_root),
            trust=probe.trust,
            sweeper=holder(trials.folder),
        )
        self._waiting: dict[int, Plan] = {}
        self._launching: dict[int, Plan] = {}
        """Trials that the launcher has, until their results are known."""
        self._before: dict[int, int | None] = {}
        """When the manifest of each was written before that."""

    def try_start(self, number: int, plan: Plan) -> bool:
        """Put the trial with those that will be launched."""
        self._waiting[number] = plan
        return True

    def wait(self) -> None:
        """Launch them, and tell what came of each."""
        self._launching, self._waiting = self._waiting, {}
        self._before = {number: _written_at(plan.composed.run_dir) for number, plan in self._launching.items()}
        errors = self._launched(list(self._launching.values())) if self._launching else []
        for number, error in zip(list(self._launching), errors, strict=True):
            self._tell(number, self._launching.pop(number).composed.run_dir, error)

    def _launched(self, plans: list[Plan]) -> list[BaseException | None]:
        try:
            return self._trials.launch(plans, self._job)
        except RtrainError:
            raise
        except Exception as error:
            if self._stop.signal is not None:  # it has ended the launcher's processes too
                raise KeyboardInterrupt from error
            message = f"{self._trials.launcher} failed: {type(error).__name__}: {error}"
            raise TrainingError(message) from error

    def _tell(self, number: int, run_dir: Path, error: BaseException | None) -> None:
        if isinstance(error, NotStartedError):
            self._hearer.not_started(number)
            return
        facts, seconds = None, None
        if error is not None:
            facts = {"type": type(error).__name__, "message": str(error)}
        if (run_dir / MANIFEST).exists():
            run, forwarding = Run.load(run_dir), ForwardingObserver(lambda record: self._hearer.hear(number, record))
            manifest = run.manifest
            for event in run.events():
                forwarding.event(event)
            forwarding.ended(run_dir, manifest)
            facts = facts and (manifest.error or facts)
            seconds = manifest.timings_seconds.get("total")
        self._hearer.over(number, facts, seconds=seconds)

    def stop(self, number: int, status: str, reason: str) -> None:
        """Do nothing: only a sweep as a whole is stopped, and the trials learn that from its lock."""

    def close(self) -> None:
        """Report the trials of a launcher that was cut off: those that it never started are planned as before."""
        for number, plan in self._launching.items():
            run_dir = plan.composed.run_dir
            if _written_at(run_dir) == self._before[number]:
                self._hearer.not_started(number)
                continue
            with suppress(RtrainError):  # what can't be read counts as interrupted, as what was cut off itself
                manifest = read_manifest(run_dir)
                if manifest.status != Status.RUNNING:
                    error = None if manifest.error is None else TrainingError(manifest.error["message"])
                    self._tell(number, run_dir, error)


def _written_at(run_dir: Path) -> int | None:
    """Return the time of a run's manifest; None if it has none."""
    try:
        return (run_dir / MANIFEST).stat().st_mtime_ns
    except FileNotFoundError:
        return None


def check_launcher(trials: Trials) -> None:
    """Check that the processes of the launcher, if one is named, would train what is asked for.

    Raises:
        ConfigError: They would not.
    """
    if trials.launcher is None:
        return
    name = trials.launcher.rpartition(".")[2]
    program = SUBMITS_BY.get(name)
    if program is not None and shutil.which(program) is None:
        problem = f"hydra/launcher: {name} starts trials with '{program}', which is not on this machine."
        raise ConfigError(problem, "Start the sweep where jobs are submitted, or leave hydra/launcher out.")
    for key, hint in UNTOLD.items():
        if getattr(trials.conf, key) is not None:
            problem = f"sweep.{key}: the processes of {trials.launcher} can't be controlled while they train."
            raise ConfigError(problem, hint)
    secret = trials.typed_secrets()
    if secret:
        raise ConfigError(
            f"{', '.join(secret)}: secrets of the command line are not passed to the processes of {trials.launcher}.",
            "Write '${oc.env:NAME}' in the config, and set the variable where the trials run.",
        )
