"""The scheduler of a sweep: what it hears of trials, and what becomes of what it says."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from rtrain.config.secrets import mask_word
from rtrain.config.trials import PauseAt, Trials
from rtrain.errors import CheckpointError
from rtrain.runs.events import Event, events_file, read_events
from rtrain.runs.manifest import read_manifest, utc_now
from rtrain.schedulers.base import Exploit, Pause, Scheduler, Stop
from rtrain.sweeps.paused import end_run, take_checkpoint
from rtrain.sweeps.record import SweepRecord
from rtrain.sweeps.trial import OVER, Trial


class Judge:
    """Stands between a sweep and its scheduler, if it has one.

    Args:
        scheduler: Decides.
        trials: Know the values that a trial tries.
        record: Of the sweep.
        notice: Takes a line for the user.
    """

    def __init__(
        self, scheduler: Scheduler | None, trials: Trials, record: SweepRecord, notice: Callable[[str], None]
    ) -> None:
        self.pausing = "paused by the scheduler"
        """What the manifests of paused runs say."""
        self._scheduler, self._trials, self._record, self._notice = scheduler, trials, record, notice
        self._decided: dict[int, Stop | Pause] = {}
        """What is to come of trials that are trained."""

    def add(self, trial: Trial) -> None:
        """Tell of a trial that there will be."""
        if self._scheduler is not None:
            self._scheduler.add(trial.number, trial.point_now(self._trials.axes))

    def complete(self) -> None:
        """Tell that there will be no more trials."""
        if self._scheduler is not None:
            self._scheduler.complete()

    def remember(self) -> None:
        """Tell of what there is already, in the order in which it happened."""
        reports: list[tuple[str, int, Event]] = []
        for trial in self._record.trials:
            events = read_events(events_file(self._record.folder / trial.name))
            reports += [(event.time, trial.number, event) for event in events]
            self.add(trial)
        for time, number, event in sorted(reports, key=lambda one: one[:2]):
            trial = self._record.trials[number]
            counts = not trial.lineage or time > trial.lineage[-1]["time"]
            if trial.hear(self._record.goals, event.step, event.epoch, event.metrics, counts=counts):
                self._ask(trial, event.step, event.epoch, event.metrics)
        for trial in self._record.trials:
            self.over(trial)

    def hear(self, trial: Trial, step: int, epoch: int, metrics: Mapping[str, Any]) -> Stop | Pause | None:
        """Take a report of a trial that is trained; return what is to come of it, once."""
        judged = trial.hear(self._record.goals, step, epoch, metrics)
        if not judged or trial.number in self._decided:
            return None
        decision = self._ask(trial, step, epoch, metrics)
        if decision is not None:
            self._decided[trial.number] = decision
        return decision

    def _ask(self, trial: Trial, step: int, epoch: int, metrics: Mapping[str, Any]) -> Stop | Pause | None:
        if self._scheduler is None:
            return None
        length = step if self._scheduler.conf.unit == "steps" else epoch
        return self._scheduler.hear(trial.number, length, metrics[self._record.goals[0].metric])

    def next_pause(self, trial: Trial) -> PauseAt | None:
        """Return where a trial will be paused, if that is known before."""
        length = None if self._scheduler is None else self._scheduler.next_pause(trial.number)
        if self._scheduler is None or length is None:
            return None
        metric = self._record.goals[0].metric
        return PauseAt(unit=self._scheduler.conf.unit, length=length, metric=metric, reason=self.pausing)

    def outcome(self, number: int, status: str, reason: str) -> str:
        """Return the status of a trial that is trained no more.

        Args:
            number: Of the trial.
            status: What its manifest says.
            reason: What its manifest says.
        """
        decision = self._decided.pop(number, None)
        if status == "succeeded":
            return "stopped" if isinstance(decision, Stop) else "succeeded"
        return "paused" if isinstance(decision, Pause) or reason == self.pausing else "interrupted"

    def forget(self, number: int) -> None:
        """Let what was decided of a trial go: it failed, or its process died."""
        self._decided.pop(number, None)

    def over(self, trial: Trial) -> None:
        """Tell how a trial stands that is trained no more."""
        if self._scheduler is not None and trial.status == "paused":
            self._scheduler.paused(trial.number)
        elif self._scheduler is not None and trial.status in OVER:
            self._scheduler.ended(trial.number)

    def decide(self) -> list[Trial]:
        """Return paused trials that are decided on by now: ``planned``, if they go on, or ``stopped``."""
        decided = []
        while self._scheduler is not None and (found := self._scheduler.decide_paused()) is not None:
            number, decision = found
            trial = self._record.trials[number]
            if isinstance(decision, Stop):
                end_run(self._record.folder / trial.name, decision.reason)
                trial.status, trial.reason = "stopped", decision.reason
            else:
                trial.status = "planned"
            if isinstance(decision, Exploit):
                self._exploit(trial, decision)
            decided.append(trial)
        return decided

    def _exploit(self, trial: Trial, exploit: Exploit) -> None:
        trial.lineage.append({"time": utc_now(), "source": exploit.source, "changes": dict(exploit.changes)})
        self._record.write()  # a process that is killed now does the rest when the sweep goes on
        self.hand_over(trial)

    def hand_over(self, trial: Trial) -> None:
        """Give a trial the checkpoint that its newest lineage says, unless it has it."""
        folder, entry = self._record.folder, trial.lineage[-1]
        if len(read_manifest(folder / trial.name).lineage) == len(trial.lineage):
            return
        source = self._record.trials[entry["source"]]
        try:
            copied = take_checkpoint(folder / trial.name, folder / source.name, entry)
        except CheckpointError as error:
            self._notice(f"{trial.name} goes on by itself, and not from {source.name}: {error.message}")
            trial.lineage.pop()
            return
        entry |= {"checkpoint": copied["name"], "step": copied["step"]}
        values = [copied["metrics"].get(goal.metric) for goal in self._record.goals]
        trial.values = None if None in values else values
        trial.overrides = [mask_word(word) for word in self._trials.words(trial.point_now(self._trials.axes))]
