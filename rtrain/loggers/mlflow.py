"""Runs in MLflow, by the client of ``mlflow-skinny``."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from math import nan
from typing import Annotated, Any

from rtrain.config.schema import one_of
from rtrain.loggers import base
from rtrain.loggers.base import Delivered, LoggedRun, Outcome, cut
from rtrain.runs.events import Event
from rtrain.variables import variables_set

NAME, PARAMETER, TAG = 250, 6000, 5000
"""How long MLflow lets names, values of parameters and of tags be."""
METRICS_AT_ONCE, PARAMETERS_AT_ONCE = 1000, 100
ENDED = {"succeeded": "FINISHED", "failed": "FAILED"}
SWEEP = "rtrain.sweep"


@dataclass(kw_only=True)
class Conf:
    """An MLflow server, or a folder as one."""

    tracking_uri: str | None = None
    """``http://host:5000``, ``databricks``, or ``sqlite:///mlflow.db``; null: ``MLFLOW_TRACKING_URI``, else MLflow's
    own default. Credentials belong into MLflow's variables, ``MLFLOW_TRACKING_TOKEN`` say."""
    experiment: str | None = None
    """Name of the experiment, which is made if there is none; null: ``run.name``."""
    checkpoints: Annotated[str, *one_of("none", "best", "last")] = "none"
    """Which checkpoint becomes an artifact once the run is over."""


class Logger(base.Logger):
    """Logs runs to MLflow; trials of a sweep are child runs."""

    Conf = Conf
    requires = ("mlflow",)
    extra = "mlflow"

    _client: Any
    _run_id: str

    def open(self, run: LoggedRun, delivered: Delivered) -> Mapping[str, str]:
        """Begin a run with its parameters, or go on with it."""
        from mlflow import MlflowClient

        self._client = MlflowClient(self.conf.tracking_uri)
        experiment = self._experiment(self.conf.experiment or run.name)
        known = delivered.ids.get("run_id") if delivered.ids.get("experiment_id") == experiment else None
        if known is None or not self._exists(known):
            self._run_id = self._begin(experiment, run)
        else:
            self._run_id = known
            self._client.update_run(known, status="RUNNING")
            self._send(tags={f"changed.{name}": value for name, value in run.changed.items()})
        return {"run_id": self._run_id, "experiment_id": experiment}

    def log(self, events: Sequence[Event]) -> None:
        """Send numbers as metrics, and texts as tags: MLflow has no texts by step."""
        metrics = [metric for event in events for metric in _metrics(event)]
        for some in _parts(metrics, METRICS_AT_ONCE):
            self._client.log_batch(self._run_id, metrics=some)
        self._send(tags={name: value for event in events for name, value in event.values.items()})

    def end(self, outcome: Outcome) -> None:
        """Send the checkpoint, and say how the run ended."""
        folder = outcome.checkpoints.get(self.conf.checkpoints)
        if folder is not None:
            self._client.log_artifacts(self._run_id, str(folder), f"checkpoints/{self.conf.checkpoints}")
        self._send(tags={"rtrain.exit_reason": outcome.reason or outcome.status})
        with variables_set({"MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true"}):
            self._client.set_terminated(self._run_id, ENDED.get(outcome.status, "KILLED"))

    def _begin(self, experiment: str, run: LoggedRun) -> str:
        tags = {
            **{f"rtrain.{name}": value for name, value in run.facts.items()},
            **dict.fromkeys(run.tags, "true"),
            "mlflow.source.name": run.facts.get("command", "rtrain"),
            **({"mlflow.source.git.commit": run.facts["git_commit"]} if "git_commit" in run.facts else {}),
            **({"mlflow.note.content": run.notes} if run.notes else {}),
            **({} if run.sweep is None else {"mlflow.parentRunId": self._parent(experiment, run)}),
        }
        begun = self._client.create_run(experiment, run_name=run.id, tags=_texts(tags, TAG))
        self._run_id = str(begun.info.run_id)
        self._send(parameters=run.parameters)
        return self._run_id

    def _experiment(self, name: str) -> str:
        """Return the id of an experiment, which another process may make at the same time."""
        from mlflow.exceptions import MlflowException

        found = self._client.get_experiment_by_name(name)
        if found is None:
            try:
                return str(self._client.create_experiment(name))
            except MlflowException:
                found = self._client.get_experiment_by_name(name)
                if found is None:
                    raise
        return str(found.experiment_id)

    def _exists(self, run_id: str) -> bool:
        from mlflow.exceptions import MlflowException

        try:
            return bool(self._client.get_run(run_id).info.lifecycle_stage == "active")
        except MlflowException as error:
            if error.error_code == "RESOURCE_DOES_NOT_EXIST":
                return False
            raise

    def _parent(self, experiment: str, run: LoggedRun) -> str:
        """Return the run that stands for the sweep; of several trials that begin at once, the oldest one's counts."""
        assert run.sweep is not None
        name = run.sweep.name
        condition = f"tags.`{SWEEP}` = '{name}'"
        found = self._client.search_runs([experiment], condition, order_by=["attributes.start_time ASC"])
        if not found:
            tags = {SWEEP: name, "rtrain.run_dir": str(run.sweep)}
            self._client.create_run(experiment, run_name=name, tags=tags, start_time=int(time.time() * 1000))
            found = self._client.search_runs([experiment], condition, order_by=["attributes.start_time ASC"])
        return str(found[0].info.run_id)

    def _send(self, *, tags: Mapping[str, Any] | None = None, parameters: Mapping[str, Any] | None = None) -> None:
        from mlflow.entities import Param, RunTag

        for some in _parts(_texts(tags or {}, TAG).items(), PARAMETERS_AT_ONCE):
            self._client.log_batch(self._run_id, tags=[RunTag(*one) for one in some])
        for some in _parts(_texts(parameters or {}, PARAMETER).items(), PARAMETERS_AT_ONCE):
            self._client.log_batch(self._run_id, params=[Param(*one) for one in some])


def _metrics(event: Event) -> Iterator[Any]:
    from mlflow.entities import Metric

    milliseconds = int(datetime.fromisoformat(event.time).timestamp() * 1000)
    for name, value in event.metrics.items():
        yield Metric(_name(name), nan if value is None else value, milliseconds, event.step)


def _parts(values: Iterable[Any], most: int) -> Iterator[list[Any]]:
    rest = iter(values)
    while some := list(islice(rest, most)):
        yield some


def _texts(values: Mapping[str, Any], length: int) -> dict[str, str]:
    return {_name(name): cut(str(value), length) for name, value in values.items()}


def _name(name: str) -> str:
    """Return a name with the characters that MLflow takes."""
    return cut(re.sub(r"[^\w\-. /]", "_", name), NAME)
