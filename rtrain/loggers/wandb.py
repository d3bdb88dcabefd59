"""Runs in Weights & Biases, online or in offline folders for ``wandb sync``."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import nan
from typing import Annotated, Any

from rtrain.config.value_types.texts import one_of
from rtrain.loggers import base
from rtrain.loggers.base import Delivered, LoggedRun, Outcome
from rtrain.runs.events import Event
from rtrain.runs.status import Status


@dataclass(kw_only=True)
class Conf:
    """Weights & Biases."""

    project: str | None = None
    """Null: ``WANDB_PROJECT``, else ``run.name``."""
    entity: str | None = None
    """User or team; null: ``WANDB_ENTITY``, else the account's own."""
    mode: Annotated[str, *one_of("online", "offline")] | None = None
    """``offline``: write folders for ``wandb sync``; null: ``WANDB_MODE``, else online. Set the API key in
    ``WANDB_API_KEY``."""
    tags: list[str] = field(default_factory=list)
    """Tags in addition to ``run.tags``."""
    checkpoints: Annotated[str, *one_of("none", "best", "last")] = "none"
    """Which checkpoint becomes an artifact once the run is over."""


class Logger(base.Logger):
    """Logs runs to Weights & Biases; trials of a sweep are a group."""

    Conf = Conf
    requires = ("wandb",)
    extra = "wandb"

    _run: Any = None
    _begin = 0
    """The first step that the server lacks."""
    _code = 1

    def open(self, run: LoggedRun, delivered: Delivered) -> Mapping[str, str]:
        """Begin a run, or continue it under the same id.

        W&B doesn't say what of a run is on disk or on its server, and loses the newest rows where a process is killed:
        everything is sent again. Offline, the union of all folders is the run; online, the server's rows stay.
        """
        import wandb

        run_id = re.sub(r"[^\w-]", "-", run.id)[-64:]
        self._run = wandb.init(
            id=run_id,
            name=run.id,
            project=self.conf.project or os.environ.get("WANDB_PROJECT") or re.sub(r"[/\\#?%:]", "-", run.name),
            entity=self.conf.entity,
            mode=self.conf.mode,
            dir=str(run.folder),
            group=None if run.sweep is None else run.sweep.name,
            tags=[*run.tags, *self.conf.tags],
            notes=run.notes,
            config={**_nested(run.parameters), "rtrain": dict(run.facts)},
            allow_val_change=True,
            resume="allow" if delivered.ids else None,
            reinit="create_new",  # a train loop or other trials may have runs in this process
            settings=wandb.Settings(console="off", silent=True, disable_code=True, disable_git=True),
        )
        self._begin = self._run.step
        return {"run_id": run_id, "project": self._run.project, "entity": self._run.entity, "began": str(time.time())}

    def log(self, events: Sequence[Event]) -> None:
        """Send what each step reports."""
        for event in (one for one in events if one.step >= self._begin):
            numbers = {name: nan if value is None else value for name, value in event.metrics.items()}
            self._run.log({"epoch": event.epoch, **event.values, **numbers}, step=event.step)

    def end(self, outcome: Outcome) -> None:
        """Send the checkpoint; the run is over once it is closed."""
        import wandb

        folder = outcome.checkpoints.get(self.conf.checkpoints)
        if folder is not None:
            artifact = wandb.Artifact(f"{self._run.id}-checkpoint", "model")
            artifact.add_dir(str(folder))
            self._run.log_artifact(artifact, aliases=[self.conf.checkpoints])
        self._run.summary["exit_reason"] = outcome.reason or outcome.status
        self._code = 0 if outcome.status == Status.SUCCEEDED else 1

    def close(self) -> None:
        """Have it write what it holds."""
        if self._run is not None:
            self._run.finish(exit_code=self._code)


def _nested(flat: Mapping[str, Any]) -> dict[str, Any]:
    """Return parameters as W&B shows them best: nested."""
    nested: dict[str, Any] = {}
    for name, value in flat.items():
        *parents, last = name.split(".")
        node = nested
        for parent in parents:
            node = node.setdefault(parent, {})
        node[last] = value
    return nested
