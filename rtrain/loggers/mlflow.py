"""Runs in MLflow, by the client of ``mlflow-skinny``."""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import datetime
from hashlib import sha256
from itertools import islice
from math import nan
from typing import Annotated, Any

from rtrain.config.value_types.texts import one_of
from rtrain.loggers import base
from rtrain.loggers.base import Delivered, LoggedRun, Outcome, SystemSample, cut
from rtrain.process.variables import variables_set
from rtrain.runs.events import Event
from rtrain.runs.status import Status

NAME, PARAMETER, TAG = 250, 6000, 5000
"""How long MLflow lets names, values of parameters and of tags be."""
METRICS_AT_ONCE, PARAMETERS_AT_ONCE = 1000, 100
RETRIES = "MLFLOW_HTTP_REQUEST_MAX_RETRIES"
FOLDERS = "MLFLOW_ALLOW_FILE_STORE"
"""The variable by which MLflow takes a folder as a server."""
ENDED: dict[str, str] = {Status.SUCCEEDED: "FINISHED", Status.FAILED: "FAILED"}
SWEEP, RUN, CHANGED, PARENT = "rtrain.sweep", "rtrain.run_id", "rtrain.changed", "mlflow.parentRunId"


@dataclass(kw_only=True)
class Conf:
    """An MLflow server, or a database as one."""

    tracking_uri: str | None = None
    """``http://host:5000``, ``databricks``, or ``sqlite:///mlflow.db``; null: ``MLFLOW_TRACKING_URI``, else MLflow's
    own default. A folder needs ``MLFLOW_ALLOW_FILE_STORE=true``: MLflow has given them up. Set credentials in MLflow's
    environment variables, e.g. ``MLFLOW_TRACKING_TOKEN``."""
    experiment: str | None = None
    """Name of the experiment, which is created if it does not exist; null: ``run.name``."""
    tags: dict[str, str] = field(default_factory=dict)
    """Tags in addition to ``run.tags``: values by name."""
    checkpoints: Annotated[str, *one_of("none", "best", "last")] = "none"
    """Which checkpoint becomes an artifact once the run is over."""
    register: str | None = None
    """Name in the model registry under which that checkpoint becomes a new version."""

    def __post_init__(self) -> None:
        if self.register is not None and self.checkpoints == "none":
            raise ValueError("has register, which needs a checkpoint: checkpoints=best or last")
        if _is_folder(self.tracking_uri or "") and os.environ.get(FOLDERS, "").lower() not in ("true", "1"):
            raise ValueError(
                f"has tracking_uri={self.tracking_uri}, a folder, which MLflow refuses: name a database, as "
                f"sqlite:///mlflow.db, or set {FOLDERS}=true"
            )


def _is_folder(uri: str) -> bool:
    scheme, separator, _ = uri.partition("://")
    return scheme == "file" if separator else bool(uri) and not uri.startswith(("databricks", "uc"))


class Logger(base.Logger):
    """Logs runs to MLflow; trials of a sweep are child runs."""

    Conf = Conf
    requires = ("mlflow", "psutil", "pynvml")
    extra = "mlflow"

    _client: Any
    _run_ids: Sequence[str]
    """The run, and the child run that stands for it since its config was changed."""
    _sweep_id: str | None
    """The run that stands for the sweep."""

    def open(self, run: LoggedRun, delivered: Delivered) -> Mapping[str, str]:
        """Begin a run with its parameters, or continue it.

        Parameters can't change in MLflow: if a resume has changed the config, they are those of a child run, which gets
        the metrics from then on as well.
        """
        from mlflow import MlflowClient

        self._client = MlflowClient(self.conf.tracking_uri)
        with _few_retries():
            return self._opened(run, delivered)

    def _opened(self, run: LoggedRun, delivered: Delivered) -> Mapping[str, str]:
        experiment = self._experiment(self.conf.experiment or run.name)
        self._sweep_id = None if run.sweep is None else self._sweep_run(experiment, run)
        known = delivered.ids.get("run_id") if delivered.ids.get("experiment_id") == experiment else None
        if known is None or not self._exists(known):
            known = self._find(experiment, {RUN: run.id})  # of another process, or from before another server was named
        if known is None:
            parent = {} if self._sweep_id is None else {PARENT: self._sweep_id}
            known = self._create(experiment, run, {RUN: run.id, **parent}, run.id)
            self._run_ids = (known,)
        else:
            self._continue(experiment, known, run)
        return {"run_id": known, "experiment_id": experiment}

    def log(self, events: Sequence[Event]) -> None:
        """Send numbers as metrics, and texts as tags: MLflow has no texts by step."""
        metrics = [metric for event in events for metric in _metrics(event)]
        texts = {name: value for event in events for name, value in event.values.items()}
        with _few_retries():
            for run_id in self._run_ids:
                self._send(run_id, metrics=metrics, tags=texts)

    def log_system(self, sample: SystemSample) -> None:
        """Send it as MLflow's own system metrics, whose step is the run's second."""
        from mlflow.entities import Metric

        now = int(time.time() * 1000)
        metrics = [Metric(name, value, now, sample.seconds) for name, value in sample.values.items()]
        self._send(self._run_ids[0], metrics=metrics)

    def end(self, outcome: Outcome) -> None:
        """Send the checkpoint, and say how the run ended."""
        run_id, artifacts = self._run_ids[0], f"checkpoints/{self.conf.checkpoints}"
        folder = outcome.checkpoints.get(self.conf.checkpoints)
        if folder is not None:
            self._client.log_artifacts(run_id, str(folder), artifacts)
        for one in self._run_ids:
            self._send(one, tags={"rtrain.exit_reason": outcome.reason or outcome.status})
            self._end(one, ENDED.get(outcome.status, "KILLED"), outcome)
        if self._sweep_id is not None:  # trials that still train end it once more
            self._end(self._sweep_id, "FINISHED", outcome)
        if folder is not None and self.conf.register is not None:
            self._register(f"runs:/{run_id}/{artifacts}")

    def _end(self, run_id: str, status: str, outcome: Outcome) -> None:
        with variables_set({"MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true"}):
            self._client.set_terminated(run_id, status, end_time=_milliseconds(outcome.ended_at))

    def _continue(self, experiment: str, known: str, run: LoggedRun) -> None:
        self._run_ids = (known,)
        began = self._client.get_run(known).data.params
        now = _texts(run.changed, PARAMETER)
        changes = {name: value for name, value in now.items() if began.get(name) != value}
        if changes:
            tags = {f"changed.{name}": value for name, value in changes.items()}
            self._send(known, tags=tags)
            self._run_ids = (known, self._changed_run(experiment, known, run, tags))
        for run_id in self._run_ids:
            self._client.update_run(run_id, status="RUNNING")

    def _changed_run(self, experiment: str, parent: str, run: LoggedRun, changes: Mapping[str, str]) -> str:
        """Return the child run with the parameters of now, which an earlier process may have made."""
        digest = sha256(json.dumps(changes, sort_keys=True).encode()).hexdigest()
        own = {PARENT: parent, CHANGED: digest}
        return self._find(experiment, own) or self._create(experiment, run, {**own, **changes}, f"{run.id} (changed)")

    def _create(self, experiment: str, run: LoggedRun, more: Mapping[str, str], name: str) -> str:
        tags = {
            **{f"rtrain.{name}": value for name, value in run.facts.items()},
            **dict.fromkeys(run.tags, "true"),
            **self.conf.tags,
            "mlflow.source.name": run.facts.get("command", "rtrain"),
            **({"mlflow.source.git.commit": run.facts["git_commit"]} if "git_commit" in run.facts else {}),
            **({"mlflow.note.content": run.notes} if run.notes else {}),
            **more,
        }
        began = _milliseconds(run.started_at)
        begun = self._client.create_run(experiment, began, run_name=name, tags=_texts(tags, TAG))
        run_id = str(begun.info.run_id)
        self._send(run_id, parameters=run.parameters)
        return run_id

    def _register(self, source: str) -> None:
        from mlflow.exceptions import MlflowException

        try:
            self._client.create_registered_model(self.conf.register)
        except MlflowException as error:
            if error.error_code != "RESOURCE_ALREADY_EXISTS":
                raise
        self._client.create_model_version(self.conf.register, source, self._run_ids[0])

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

    def _sweep_run(self, experiment: str, run: LoggedRun) -> str:
        """Return the run of the sweep; if several trials begin at the same time, that of the oldest one counts."""
        assert run.sweep is not None
        tags = {SWEEP: run.sweep.name}
        if (found := self._find(experiment, tags)) is not None:
            return found
        tags = {**tags, "rtrain.run_dir": str(run.sweep)}
        began = _milliseconds(run.started_at)
        made = self._client.create_run(experiment, began, run_name=run.sweep.name, tags=tags)
        return self._find(experiment, {SWEEP: run.sweep.name}) or str(made.info.run_id)

    def _find(self, experiment: str, tags: Mapping[str, str]) -> str | None:
        """Return the oldest run with these tags."""
        condition = " and ".join(f"tags.`{name}` = '{value}'" for name, value in tags.items())
        found = self._client.search_runs([experiment], condition, order_by=["attributes.start_time ASC"])
        return str(found[0].info.run_id) if found else None

    def _send(
        self,
        run_id: str,
        *,
        metrics: Sequence[Any] = (),
        tags: Mapping[str, Any] | None = None,
        parameters: Mapping[str, Any] | None = None,
    ) -> None:
        from mlflow.entities import Param, RunTag

        for some in _parts(metrics, METRICS_AT_ONCE):
            self._client.log_batch(run_id, metrics=some)
        for some in _parts(_texts(tags or {}, TAG).items(), PARAMETERS_AT_ONCE):
            self._client.log_batch(run_id, tags=[RunTag(*one) for one in some])
        for some in _parts(_texts(parameters or {}, PARAMETER).items(), PARAMETERS_AT_ONCE):
            self._client.log_batch(run_id, params=[Param(*one) for one in some])


def _few_retries() -> AbstractContextManager[None]:
    """Have the client give up within seconds, unless the user wants something else: rtrain says so and tries again."""
    return variables_set({RETRIES: "2"} if RETRIES not in os.environ else {})


def _milliseconds(moment: str) -> int:
    return int(datetime.fromisoformat(moment).timestamp() * 1000)


def _metrics(event: Event) -> Iterator[Any]:
    from mlflow.entities import Metric

    for name, value in event.metrics.items():
        yield Metric(_name(name), nan if value is None else value, _milliseconds(event.time), event.step)


def _parts(values: Iterable[Any], most: int) -> Iterator[list[Any]]:
    rest = iter(values)
    while some := list(islice(rest, most)):
        yield some


def _texts(values: Mapping[str, Any], length: int) -> dict[str, str]:
    return {_name(name): cut(str(value), length) for name, value in values.items()}


def _name(name: str) -> str:
    """Return a name with the characters that MLflow takes."""
    return cut(re.sub(r"[^\w\-. /]", "_", name), NAME)
