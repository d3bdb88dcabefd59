"""``--multirun``: plan all trials, train as many in parallel as fit, keep the record. The outline of a sweep."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

from rtrain.config.session import Session
from rtrain.config.trials import Plan, Trials
from rtrain.errors import ConfigError, NoRoomError
from rtrain.plugins import named_plugin
from rtrain.process.interrupts import StopRequest, is_by_signal, stop_on_signals
from rtrain.runs.events import Event
from rtrain.runs.filesystem.files import private_files
from rtrain.runs.records import NoticeRecord, TrialOutputRecord, TrialOverRecord, TrialRecord
from rtrain.runs.status import TRIAL_OVER, WITH_RESULT, Status
from rtrain.schedulers.base import Pause, Stop
from rtrain.schedulers.registry import SCHEDULERS
from rtrain.searches.registry import SEARCHES
from rtrain.storage.stores import shown_url
from rtrain.sweeps.cluster import SweepCluster
from rtrain.sweeps.data import Data
from rtrain.sweeps.executors.base import Pool
from rtrain.sweeps.executors.choice import make_pool
from rtrain.sweeps.executors.hydra_launcher import check_launcher
from rtrain.sweeps.factory import decides_nothing, goals_of, make_scheduler, make_search
from rtrain.sweeps.left_files import files_reported
from rtrain.sweeps.observer import SweepObserver
from rtrain.sweeps.planning import Checks, Planner, named
from rtrain.sweeps.record.catching_up import catch_up, end_cut_off, end_dead, take_results, tell_of_other_code
from rtrain.sweeps.record.folder import opened
from rtrain.sweeps.record.rebuilding import opened_record
from rtrain.sweeps.record.remote import copied, find_sweep
from rtrain.sweeps.record.sweep_record import SweepRecord
from rtrain.sweeps.record.trial import Trial
from rtrain.sweeps.scheduling import Judge
from rtrain.sweeps.unjudged import MetricNotes

NO_RESOURCES = NoRoomError.__name__
OVERTAKING = 8
"""How many trials may start before one that waits for more resources; then they wait for it."""


def run_sweep(session: Session, observer: SweepObserver, folder: Path | None = None) -> SweepRecord:
    """Train the trials of a command that have not ended yet, and return the record.

    Args:
        session: The command.
        observer: Notified of the progress.
        folder: Folder of the sweep to resume; None: as in the command.

    Raises:
        ConfigError: Something is wrong with a trial, or the cluster is too small for one; none has started.
    """
    began = time.monotonic()
    observer.stage("planning")
    trials = session.trials(folder)
    run = trials.probe.conf.run
    with ExitStack() as stack:
        stack.enter_context(private_files(run.private))
        cluster = SweepCluster(stack, trials)
        cluster.prepare(trials.probe)
        lock = stack.enter_context(opened(trials.folder))
        if run.storage is not None:
            observer.stage(f"checking {shown_url(run.storage)}")
            find_sweep(run.storage, trials.folder, observer.notice)
        sweep = Sweep(trials, observer, cluster)
        sweep.plan()
        if run.storage is not None:
            stack.enter_context(copied(sweep.record, run.storage, run.storage_timeout_seconds, observer.notice))
        stack.enter_context(trials.around())
        stop = stack.enter_context(stop_on_signals())
        stop.note_by(lock.note_end)
        stack.enter_context(files_reported(trials, observer))
        sweep.train(stop, began)
    sweep.record.by_ctrl_c = stop.by_ctrl_c
    return sweep.record


class Sweep:
    """The trials of one command, from plan to result.

    Args:
        trials: The trials of the command.
        observer: Notified of the progress.
        cluster: Where they are trained, unless none of them needs one.
    """

    def __init__(self, trials: Trials, observer: SweepObserver, cluster: SweepCluster) -> None:
        self._trials, self._observer, self._conf = trials, observer, trials.conf
        check_launcher(trials)
        self._data = Data(observer, cluster)
        self._checks = Checks(self._data, cluster, trials.command, observer.notice)
        name = SEARCHES.name_of(self._conf)
        reported = partial(self._checks.reported, trials.probe)
        self._checks.goals = goals = goals_of(self._conf, trials.probe, reported)
        self._search, scheduler = make_search(trials, goals, reported), make_scheduler(trials, goals, reported)
        self._scheduler_name = None if self._conf.scheduler is None else SCHEDULERS.name_of(self._conf.scheduler)
        if scheduler is not None and (idle := decides_nothing(scheduler)):
            observer.notice(idle)
        self._is_steered = self._search.adaptive or scheduler is not None
        """Whether trials continue is decided during the sweep."""
        facts = {"command": trials.command, "search": name, "axes": [asdict(axis) for axis in trials.axes]}
        self.record = opened_record(trials, self._search, facts, observer.notice)
        self.record.judge_by(goals)
        self._planner = Planner(trials, self._search, self.record)
        self._judge = Judge(scheduler, trials, self.record, observer.notice)
        if scheduler is not None and scheduler.exploits:
            self._planner.check_changes()
        self._pool: Pool
        self._stop: StopRequest
        self._began: float
        self._plans: dict[int, Plan] = {}
        self._queue: list[Trial] = []
        self._overtaken = 0
        self._running: dict[int, float] = {}
        """When each of the trials that are trained now began."""
        self._ended: dict[int, str] = {}
        """By trial, the status that its manifest has at the end."""
        self._metric_notes = MetricNotes(trials.probe.conf, self.record, observer.notice)
        self._told_wait = ""
        """Why nothing trains, as the last notice says; empty once something trains."""
        self._ending: str | None = None
        """Why no more trials are started."""

    def plan(self) -> None:
        """Compose and check what can be before anything starts."""
        self._remember()
        trials = []
        for trial, plan in self._planner.known() if self._search.adaptive else iter(self._planner.next, None):
            trials.append(trial)
            if trial.status in WITH_RESULT:
                self._checks.trained.add(self.record.folder / trial.name, plan.composed)
        if self._search.adaptive and self._has_more():
            self._checks.check_sampled(self._planner)
        for trial in trials:  # all of them are composed before: that takes no framework
            if self._is_to_train(trial):
                self._judge.add(trial)
                with named(trial.overrides, f"trial {trial.number}"):
                    self._checks.check(self._planner.plan(trial).composed)
                trial.status, trial.error = Status.PLANNED, None
                self._queue.append(trial)
        if not self._search.adaptive:
            self._judge.complete()
            if not self.record.trials:
                raise ConfigError("sweep.exclude excludes every combination.", "Remove one of its rules.")
            self._tell_fewer()
        if self._queue:
            tell_of_other_code(self.record, self._trials.probe, self._observer.notice)
        self._trials.save()
        self.record.write()

    def _tell_fewer(self) -> None:
        """Say so where there are fewer trials than the search was to propose."""
        found, wanted = len(self.record.trials), self._search.num_trials
        if found < wanted:
            self._observer.notice(f"{found} of {wanted} trials: the others are excluded or duplicates")

    def _is_to_train(self, trial: Trial) -> bool:
        waits = trial.status == Status.PAUSED and self._conf.scheduler is not None
        return trial.status == Status.FAILED or not (waits or trial.status in TRIAL_OVER)

    def _remember(self) -> None:
        """Pass the existing trials to search and scheduler."""
        found = catch_up(self.record, self._scheduler_name, self._observer.notice)
        self._judge.remember()
        take_results(self.record, found)
        for trial in self.record.trials:
            if trial.status in TRIAL_OVER:
                self._learn(trial)

    def train(self, stop: StopRequest, began: float) -> None:
        """Train until no trial is left, or the sweep is to end."""
        is_here = self._trials.launcher is None and (self._queue or self._has_more())
        cluster = self._checks.cluster if is_here else None
        self._stop, self._began = stop, began
        self._pool = make_pool(self._trials, cluster, self, self._data, stop)
        most = self._search.num_trials if self._search.adaptive else 0  # else those that there are are all
        self._observer.sweep_started(self.record, max(most, len(self.record.trials)))
        if self._queue:
            self._metric_notes.begin()
        status: str = Status.INTERRUPTED  # unless it comes to its end
        try:
            while True:
                self._look_at_limits()
                if self._ending is None:
                    self._fill()
                if not self._running and not self._waits_for_room():
                    break
                self._pool.wait()
            status = self._status()
            if self._search.adaptive and self._ending is None:
                self._tell_fewer()
        except KeyboardInterrupt as error:
            if not is_by_signal(error, stop):
                raise
            status = self._status()
        finally:
            stop.ending = True
            self._pool.close()
            cut_off = [self._taken(number) for number in list(self._running)]  # in the middle of the loop above
            end_cut_off([self.record.folder / one.name for one in cut_off], status, self._ending or "the sweep ended")
            for trial in cut_off:
                trial.status = Status.INTERRUPTED
                self._observer.trial_changed(trial)
            self.record.finish(status)
            self._observer.sweep_ended(self.record)

    def _waits_for_room(self) -> bool:
        """Tell whether nothing trains although trials are left, and say once why: others hold the cluster, say."""
        if self._ending is not None or not self._queue:
            return False
        if self._told_wait != (why := self._pool.obstacle):
            self._told_wait = why
            self._observer.notice(f"{self._queue[0].name} is pending: {why}")
        return True

    def _has_more(self) -> bool:
        """Tell whether trials may be trained beyond those that are planned."""
        more = any(one.status == Status.PAUSED for one in self.record.trials)
        return more or (self._search.adaptive and len(self.record.trials) < self._search.num_trials)

    def _status(self) -> str:
        if self._stop.reason is not None:
            return self._stop.reason
        if any(one.status == Status.FAILED for one in self.record.trials):
            return Status.FAILED
        has_result = any(one.status in TRIAL_OVER for one in self.record.trials)
        return Status.SUCCEEDED if has_result else Status.INTERRUPTED  # sweep.max_seconds was over before

    def _look_at_limits(self) -> None:
        """Find out whether the sweep is to end, and have the trials end in time."""
        if self._ending is not None:
            return
        failed = sum(one.status == Status.FAILED for one in self.record.trials)
        if (verdict := self._stop.verdict()) is not None:
            self._end_all(*verdict)
        elif self._conf.max_seconds is not None and time.monotonic() - self._began > self._conf.max_seconds:
            self._end_all(Status.INTERRUPTED, "sweep.max_seconds has passed")
            self._observer.notice(
                f"sweep.max_seconds={self._conf.max_seconds:g} has passed: no more trials are started"
            )
        elif self._conf.max_failed is not None and failed > self._conf.max_failed:
            self._ending = f"{failed} trial{'s have' if failed > 1 else ' has'} failed"
            self._observer.notice(f"{self._ending} (sweep.max_failed={self._conf.max_failed}): no more are started")

    def _end_all(self, status: str, reason: str) -> None:
        self._ending = reason
        for number in self._running:
            self._pool.stop(number, status, reason)

    def _fill(self) -> None:
        """Start trials while resources are free."""
        limit = self._pool.most_at_once or self._conf.max_concurrent
        while limit is None or len(self._running) < limit:
            self._decide_paused()
            if not self._queue and not self._ask():
                return
            if not self._start_one():
                return

    def _ask(self) -> bool:
        """Have the search propose one more trial."""
        if not self._search.adaptive:
            return False
        found = self._planner.next()
        if found is None:
            self._judge.complete()
            self._decide_paused()
            return bool(self._queue)
        trial, plan = found
        self._judge.add(trial)
        self._queue.append(trial)
        self._plans[trial.number] = plan
        return True

    def _decide_paused(self) -> None:
        """Queue paused trials that continue before those that have not begun, and end those that do not continue."""
        decided = self._judge.decide()
        self._queue[:0] = [trial for trial in decided if trial.status == Status.PLANNED]
        for trial in decided:
            if trial.status == Status.STOPPED:
                self._learn(trial)
            self._observer.trial_changed(trial)

    def _start_one(self) -> bool:
        """Start the first trial whose resources are free, but not too many before one that needs more."""
        candidates = self._queue[: OVERTAKING + 1] if self._overtaken < OVERTAKING else self._queue[:1]
        for place, trial in enumerate(candidates):
            if trial.number not in self._plans:
                self._plans[trial.number] = self._planner.plan(trial)
            plan = replace(self._checks.marked(self._plans[trial.number]), pause=self._judge.next_pause(trial))
            if self._pool.try_start(trial.number, plan):
                self._overtaken = 0 if place == 0 else self._overtaken + 1
                self._begin(trial)
                return True
        return False

    def _begin(self, trial: Trial) -> None:
        self._queue.remove(trial)
        self._running[trial.number] = time.monotonic()
        self._told_wait = ""
        trial.status, trial.num_starts = Status.RUNNING, trial.num_starts + 1
        self.record.write(now=self._is_steered)  # else the file has been there since they were planned
        self._observer.trial_changed(trial)

    def hear(self, number: int, record: TrialRecord) -> None:
        """Take what a trial tells."""
        trial = self.record.trials[number]
        match record:
            case NoticeRecord():
                self._observer.notice(f"{trial.name}: {record.text}")
            case TrialOutputRecord():
                lines = record.text.split("\n")
                self._observer.printed("\n".join(f"{trial.name}: {line}" for line in lines))
                return
            case TrialOverRecord():
                trial.reason, self._ended[number] = record.reason or "", record.status
                trial.lacks_copy = record.lacks_copy
                self.record.take_best(trial, record.best)
            case Event():
                self._metric_notes.hear(trial, record.metrics)
                self._take_decision(number, self._judge.hear(trial, record.step, record.epoch, record.metrics))
                self._look_at_limits()  # a trial in this process leaves no other moment
        self.record.write(now=False)
        self._observer.trial_changed(trial)

    def _take_decision(self, number: int, decision: Stop | Pause | None) -> None:
        if isinstance(decision, Stop):
            self._pool.stop(number, Status.SUCCEEDED, decision.reason)
        elif isinstance(decision, Pause):
            self._pool.stop(number, Status.INTERRUPTED, self._judge.pausing)

    def not_started(self, number: int) -> None:
        """Take that a trial is planned as before: the sweep ends."""
        trial = self._taken(number, 0.0)
        trial.status, trial.num_starts = Status.PLANNED, trial.num_starts - 1
        self._observer.trial_changed(trial)

    def _taken(self, number: int, seconds: float | None = None) -> Trial:
        """Return a trial that trains no more, and add what it took; None: since it began."""
        trial, began = self.record.trials[number], self._running.pop(number)
        trial.seconds += round(time.monotonic() - began if seconds is None else seconds, 3)
        return trial

    def over(
        self, number: int, error: Mapping[str, Any] | None, *, died: bool = False, seconds: float | None = None
    ) -> None:
        """Take that a trial is trained no more."""
        trial = self._taken(number, seconds)
        if died or error is not None:
            self._judge.forget(number)
        if died and self._may_start_again(trial, "its process exited unexpectedly; it continues from its checkpoint"):
            return
        is_without_place = error is not None and error["type"] == NO_RESOURCES
        if is_without_place and self._may_start_again(trial, "others took its resources; it is pending"):
            return
        if died:
            times = "once" if trial.num_deaths == 1 else f"{trial.num_deaths} times"
            message = f"its process exited unexpectedly {times}, more than run.failure.max_failures allows"
            error = {"type": "ProcessDied", "message": message}
            end_dead(self.record.folder / trial.name, error)
        if error is not None:
            trial.status, trial.error, trial.reason = Status.FAILED, dict(error), error["message"].partition("\n")[0]
        else:
            trial.status = self._judge.outcome(number, self._ended.pop(number), trial.reason)
        plan = self._plans.pop(number)
        if not self._search.adaptive and trial.status in TRIAL_OVER:
            self._data.done(plan.composed)
        if trial.status in TRIAL_OVER:
            self._learn(trial)
        if trial.status == Status.SUCCEEDED and trial.values is None:
            self._metric_notes.over(trial)
        self._judge.over(trial)
        self.record.write(now=self._is_steered)  # else the trial's own manifest says it too
        self._observer.trial_changed(trial)

    def _may_start_again(self, trial: Trial, why: str) -> bool:
        """Queue a trial whose process died, or whose resources were taken, first, unless that happened too often."""
        trial.num_deaths += 1
        if self._ending is not None:
            trial.status = Status.INTERRUPTED
        elif trial.num_deaths > self._plans[trial.number].composed.conf.run.failure.max_failures:
            return False
        else:
            trial.status = Status.PLANNED
            self._queue.insert(0, trial)
            self._observer.notice(f"{trial.name}: {why}")
        self.record.write()
        return True

    def _learn(self, trial: Trial) -> None:
        values = None if trial.status == Status.FAILED else trial.values
        with named_plugin(type(self._search).__module__, self._search):
            self._search.learn(trial.point, values)
