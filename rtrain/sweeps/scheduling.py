"""The scheduler of a sweep: passes it the reports of trials, and carries out its decisions."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from rtrain.config.secrets.masked import mask_word
from rtrain.config.trials import PauseAt, Trials
from rtrain.errors import CheckpointError, ConfigError
from rtrain.plugins import named_plugin
from rtrain.runs.checkpoints import checkpoints_dir, latest_checkpoint, read_record
from rtrain.runs.events import Event, events_file, read_events
from rtrain.runs.manifest import read_manifest, utc_now
from rtrain.runs.status import TRIAL_OVER, Status
from rtrain.schedulers.base import Exploit, Pause, Scheduler, Stop
from rtrain.sweeps.checkpoint_transfer import end_run, record_values, take_checkpoint
from rtrain.sweeps.record.sweep_record import SweepRecord
from rtrain.sweeps.record.trial import Trial


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
        self._untried: set[int] = set()
        """Trials that took another one's checkpoint, with changed values, and have reported nothing since."""

    def add(self, trial: Trial) -> None:
        """Add a future trial."""
        if self._scheduler is not None:
            self._scheduler.add(trial.number, trial.point_now(self._trials.axes))

    def complete(self) -> None:
        """Tell that there will be no more trials."""
        if self._scheduler is not None:
            self._scheduler.complete()

    def remember(self) -> None:
        """Pass on all existing reports in their order, and carry out decisions made before a kill."""
        past: list[tuple[str, bool, int, Event | Exploit]] = []
        for trial in self._record.trials:
            last = self._last_step(trial)
            events = read_events(events_file(self._record.folder / trial.name))
            past += [(event.time, False, trial.number, event) for event in events if event.step <= last]
            past += [
                (entry["time"], True, trial.number, Exploit(entry["source"], entry["changes"]))
                for entry in trial.lineage
            ]
            if self._scheduler is not None:
                self._scheduler.add(trial.number, trial.point)
        due: dict[int, Stop | Pause | None] = {}
        for time, _, number, event in sorted(past, key=lambda one: one[:3]):
            trial = self._record.trials[number]
            if isinstance(event, Exploit):
                self._untried.add(number)
                if self._scheduler is not None:
                    self._scheduler.exploited(number, event)
                continue
            self._untried.discard(number)
            counts = not trial.lineage or time > trial.lineage[-1]["time"]
            metrics = _as_read_back(event.metrics)
            if trial.hear(self._record.goals, event.step, event.epoch, metrics, counts=counts):
                decision = self._ask(trial, event.step, event.epoch, metrics)
                due[number] = decision if time > trial.went_on_at else None
        for trial in self._record.trials:
            self._make_up(trial, due.get(trial.number))
            self.over(trial)
            self._carry_out(trial)

    def _make_up(self, trial: Trial, decision: Stop | Pause | None) -> None:
        """Do to a trial what its newest report led to, where a kill came in between."""
        if trial.status in (*TRIAL_OVER, Status.PAUSED):
            return
        if isinstance(decision, Pause):
            trial.status = Status.PAUSED
        elif isinstance(decision, Stop):
            trial.status, trial.reason = Status.STOPPED, decision.reason

    def _last_step(self, trial: Trial) -> float:
        """Return the step of the last report that counts: later ones come again when a trial resumes."""
        if trial.status in (*TRIAL_OVER, Status.PAUSED):
            return math.inf
        checkpoint = latest_checkpoint(self._record.folder / trial.name)
        return 0 if checkpoint is None else float(read_record(checkpoint)["step"])

    def hear(self, trial: Trial, step: int, epoch: int, metrics: Mapping[str, Any]) -> Stop | Pause | None:
        """Take a report of a trial that is trained; return what is to come of it, once."""
        self._untried.discard(trial.number)
        metrics = _as_read_back(metrics)
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
        decision = _decided(self._scheduler, trial.number, length, metrics[self._record.goals[0].metric])
        is_at_end = self._scheduler.longest is not None and length >= self._scheduler.longest
        return None if is_at_end and isinstance(decision, Stop) else decision

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
        if status == Status.SUCCEEDED:
            return Status.STOPPED if isinstance(decision, Stop) else Status.SUCCEEDED
        return Status.PAUSED if isinstance(decision, Pause) or reason == self.pausing else Status.INTERRUPTED

    def forget(self, number: int) -> None:
        """Let what was decided of a trial go: it failed, or its process died."""
        self._decided.pop(number, None)

    def over(self, trial: Trial) -> None:
        """Tell how a trial stands that is trained no more."""
        if trial.status == Status.SUCCEEDED and trial.number in self._untried:
            self._take_back(trial)
        if self._scheduler is not None and trial.status == Status.PAUSED:
            self._scheduler.paused(trial.number)
        elif self._scheduler is not None and trial.status in TRIAL_OVER:
            self._scheduler.ended(trial.number)

    def decide(self) -> list[Trial]:
        """Return paused trials with a decision: ``planned``, if they continue, or ``stopped``."""
        decided = []
        while self._scheduler is not None and (found := self._scheduler.decide_paused()) is not None:
            number, decision = found
            trial = self._record.trials[number]
            trial.status, trial.went_on_at = Status.PLANNED, utc_now()
            if isinstance(decision, Stop):
                trial.status, trial.reason = Status.STOPPED, decision.reason
            elif isinstance(decision, Exploit):
                entry = {"time": trial.went_on_at, "source": decision.source, "changes": dict(decision.changes)}
                trial.lineage.append(entry)
            decided.append(trial)
        if decided:
            self._record.write()  # all or nothing of it is known to a process that takes the sweep up after a kill
        for trial in decided:
            self._carry_out(trial)
        return decided

    def _carry_out(self, trial: Trial) -> None:
        """Carry out the decision on the run of a trial, unless done: end it, or give it another trial's checkpoint.

        Neither it nor the source of the checkpoint may be training.
        """
        folder = self._record.folder
        if not trial.lineage and trial.status != Status.STOPPED:
            return
        manifest = read_manifest(folder / trial.name)
        if trial.status == Status.STOPPED and manifest.status != Status.SUCCEEDED:
            end_run(folder / trial.name, Status.SUCCEEDED, trial.reason)
        if trial.lineage and "checkpoint" not in trial.lineage[-1]:
            self._hand_over(trial, trial.lineage[-1], manifest.lineage[len(trial.lineage) - 1 :])

    def _hand_over(self, trial: Trial, entry: dict[str, Any], done: list[dict[str, Any]]) -> None:
        """Give a trial the checkpoint that its lineage speaks of, and note which one it is; ``done``: it has it."""
        run_dir, source = self._record.folder / trial.name, self._record.trials[entry["source"]]
        try:
            if not done:
                take_checkpoint(run_dir, self._record.folder / source.name, entry)
                done = read_manifest(run_dir).lineage[-1:]
            copied = read_record(checkpoints_dir(run_dir) / done[0]["checkpoint"])
        except CheckpointError as error:
            self._notice(f"{trial.name} continues from its own checkpoint, not from {source.name}: {error.message}")
            trial.lineage.pop()
            self.add(trial)  # the scheduler takes it to have the other one's values by now
            return
        entry |= {"checkpoint": copied["name"], "step": copied["step"]}
        values = [copied["metrics"].get(goal.metric) for goal in self._record.goals]
        trial.values = None if None in values else values
        self._untried.add(trial.number)
        self._name_values(trial)

    def _take_back(self, trial: Trial) -> None:
        """Let a trial that had nothing more to train have the values that its checkpoint was made with."""
        entry, axes = trial.lineage[-1], self._trials.axes
        source = self._record.trials[entry["source"]]
        values = zip(axes, source.point_now(axes, until=entry["time"]), strict=True)
        entry["changes"] = {axis.name: text for axis, text in values}
        self._untried.discard(trial.number)
        self._name_values(trial)
        plan = self._trials.plan(trial.number, trial.point_now(axes), trial.name)
        if plan is not None:  # it is excluded otherwise
            record_values(self._record.folder / trial.name, plan.composed, entry["changes"])
        self._notice(f"{trial.name} did not train after taking {source.name}'s checkpoint: it keeps those values")

    def _name_values(self, trial: Trial) -> None:
        """Note what is particular to a trial now."""
        trial.overrides = [mask_word(word) for word in self._trials.words(trial.point_now(self._trials.axes))]


def _as_read_back(metrics: Mapping[str, float | None]) -> dict[str, float]:
    """Return metrics with NaN for all that is not finite: files hold null for it, and a resumed sweep decides alike."""
    return {name: math.nan if one is None or not math.isfinite(one) else one for name, one in metrics.items()}


def _decided(scheduler: Scheduler, trial: int, length: int, value: float) -> Stop | Pause | None:
    """Return what a scheduler makes of a report.

    Raises:
        ConfigError: It is one of a package's and fails, or returns anything but a decision that it may take.
    """
    name = type(scheduler).__module__
    with named_plugin(name, scheduler):
        decision = scheduler.hear(trial, length, value)
    if decision is None or isinstance(decision, Stop) or (isinstance(decision, Pause) and scheduler.pauses):
        return decision
    raise ConfigError(
        f"the scheduler {name} returned {decision!r} for a report.",
        "Return Stop(reason) or None; or Pause(), with pauses = True in its class.",
    )
