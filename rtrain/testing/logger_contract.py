"""The tests that every logger passes: inherit ``LoggerContract``, and say how the tracker is read."""

from __future__ import annotations

import json
import math
import os
import secrets
import signal
import time
from collections.abc import Mapping
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any, ClassVar

import pytest
from pydantic import TypeAdapter

from rtrain.loggers.base import LoggedRun, Outcome
from rtrain.loggers.registry import LOGGERS
from rtrain.process import retrying
from rtrain.runs.events import Event, EventLog, events_file, read_events
from rtrain.runs.status import Status
from rtrain.tracking import delivery
from rtrain.tracking.delivery import Delivery
from rtrain.tracking.position import FOLDER

Metrics = Mapping[str, Mapping[int, float]]
"""Value of each metric by step."""
DONE = Outcome(status=Status.SUCCEEDED, reason="trained to the end", ended_at="2026-01-01T00:01:00.000+00:00")
SECONDS = 60.0


class LoggerContract:
    """Attacks a logger with what happens to runs: kills, steps that are done again, a tracker that fails."""

    logger: ClassVar[str]
    """Its name below ``run.loggers``."""

    @pytest.fixture(autouse=True)
    def _quick(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(delivery, "POLL_SECONDS", 0.01)
        monkeypatch.setattr(retrying, "BACKOFF_SECONDS", (0.01, 0.01))

    @pytest.fixture
    def keys(self) -> dict[str, Any]:
        """Return the keys below ``run.loggers.NAME`` to test with."""
        return {}

    @pytest.fixture
    def tracked(self, tmp_path: Path) -> LoggedRun:
        """Return a run that has reported nothing so far."""
        folder = tmp_path / f"2026-01-01_00-00-00-{secrets.token_hex(2)}"
        folder.mkdir()
        EventLog(events_file(folder)).close()
        parameters = {"trainer.type": "torch", "trainer.lr": 0.1, "vars.long": "long " * 5000, "vars.nothing": None}
        return LoggedRun(
            id=folder.name,
            name="contract",
            folder=folder,
            started_at="2026-01-01T00:00:00.000+00:00",
            parameters=parameters,
            facts={"command": "rtrain fit contract", "run_dir": str(folder), "trainer": "torch"},
            tags=("quick", "two words"),
            notes="a note",
        )

    def read(self, run: LoggedRun, keys: Mapping[str, Any]) -> Metrics:
        """Return what the tracker has of a run, read by the tracker's own means. Override it."""
        raise NotImplementedError

    def test_a_tracker_has_what_was_reported(self, tracked: LoggedRun, keys: dict[str, Any]) -> None:
        """Numbers of all kinds and texts of any length arrive."""
        wild = Event.at(
            3.0, step=3, epoch=1, metrics={"loss": math.nan, "grad": math.inf}, values={"text": "é" * 20_000}
        )
        _report(tracked, [_event(1), _event(2, more={"val/loss": 0.5}), wild, _event(4)])
        assert self._deliver(tracked, keys) == []
        self._check(tracked, keys)

    def test_what_is_reported_twice_at_a_step_arrives(self, tracked: LoggedRun, keys: dict[str, Any]) -> None:
        """An evaluation after a step is a separate event."""
        _report(tracked, [_event(1), Event.at(1.5, step=1, epoch=1, metrics={"val/loss": 0.25}), _event(2)])
        self._deliver(tracked, keys)
        self._check(tracked, keys)

    def test_a_run_that_is_killed_and_resumed_is_one_run_with_each_step_once(
        self, tracked: LoggedRun, keys: dict[str, Any]
    ) -> None:
        """Each time training does steps again; at the last kill nothing was noted of what had been delivered."""
        for begin, end in ((1, 4), (3, 6), (5, 5), (2, 9)):
            _report(tracked, [_event(step, more={"val/loss": step / 7}) for step in range(begin, end + 1)], again=begin)
            noted = _noted(tracked, self.logger)
            self._deliver_until_killed(tracked, keys)
        if noted is not None:
            (tracked.folder / FOLDER / f"{self.logger}.json").write_text(noted)
        resumed = replace(tracked, changed={"trainer.lr": 0.2})
        _report(resumed, [_event(10)], again=10)
        self._deliver(resumed, keys)
        self._check(resumed, keys)

    def test_a_finished_run_can_be_extended(self, tracked: LoggedRun, keys: dict[str, Any]) -> None:
        """The tracker's run was over, and continues."""
        _report(tracked, [_event(1)])
        self._deliver(tracked, keys)
        _report(tracked, [_event(2)])
        self._deliver(tracked, keys)
        self._check(tracked, keys)

    def test_a_tracker_that_fails_is_one_warning_and_gets_everything_later(
        self, tracked: LoggedRun, keys: dict[str, Any], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The tracker fails before, and in the middle of, what it gets."""
        kind, failures = LOGGERS.load(self.logger), [1, 3]
        plain, calls = kind.log, []

        def log(self: Any, events: Any) -> None:
            calls.append(len(events))
            if len(calls) in failures:
                raise ConnectionError("the tracker is away")
            plain(self, events)

        monkeypatch.setattr(kind, "log", log)
        _report(tracked, [_event(step) for step in (1, 2)])
        notices = self._deliver(tracked, keys)
        _report(tracked, [_event(step) for step in (3, 4)])
        notices += self._deliver(tracked, keys)
        assert len(calls) == 4
        assert [one.count("the tracker is away") for one in notices] == [1, 1]
        self._check(tracked, keys)

    def _deliver(self, run: LoggedRun, keys: dict[str, Any]) -> list[str]:
        """Deliver what there is, and return the lines that the user sees."""
        notices: list[str] = []
        assert _delivery(self.logger, keys, run, notices).finish(DONE, SECONDS, lambda: False) is None
        return notices

    def _deliver_until_killed(self, run: LoggedRun, keys: dict[str, Any]) -> None:
        """Deliver what there is in a process that is killed then."""
        process = get_context("spawn").Process(target=_deliver_and_die, args=(self.logger, keys, run))
        process.start()
        process.join(SECONDS)
        assert process.exitcode == -signal.SIGKILL

    def _check(self, run: LoggedRun, keys: Mapping[str, Any]) -> None:
        expected: dict[str, dict[int, float]] = {}
        for event in read_events(events_file(run.folder)):
            for name, value in event.metrics.items():
                expected.setdefault(name, {})[event.step] = math.nan if value is None else value
        found = self.read(run, keys)
        assert {name: list(steps) for name, steps in found.items()} == {
            name: list(steps) for name, steps in expected.items()
        }
        for name, steps in expected.items():
            assert dict(found[name]) == pytest.approx(steps, rel=1e-6, nan_ok=True), name


def _event(step: int, more: Mapping[str, float] | None = None) -> Event:
    return Event.at(float(step), step=step, epoch=1, metrics={"loss": 1 / step, **(more or {})})


def _report(run: LoggedRun, events: list[Event], again: int | None = None) -> None:
    log = EventLog(events_file(run.folder))
    if again is not None:
        log.go_back(again - 1)
    for event in events:
        log.append(event)
    log.close()


def _delivery(logger: str, keys: dict[str, Any], run: LoggedRun, notices: list[str]) -> Delivery:
    kind = LOGGERS.load(logger)
    conf = TypeAdapter(kind.Conf).validate_python(keys)
    return Delivery(logger, lambda: kind(conf), run, notices.append)


def _deliver_and_die(logger: str, keys: dict[str, Any], run: LoggedRun) -> None:
    """Deliver what there is, and be killed."""
    delivery.POLL_SECONDS = 0.01
    _delivery(logger, keys, run, [])
    size = events_file(run.folder).stat().st_size
    while (noted := _noted(run, logger)) is None or json.loads(noted)["offset"] < size:
        time.sleep(0.01)
    os.kill(os.getpid(), signal.SIGKILL)


def _noted(run: LoggedRun, logger: str) -> str | None:
    path = run.folder / FOLDER / f"{logger}.json"
    return path.read_text() if path.exists() else None
