"""Comet: an experiment for each run, online or as an archive that `comet upload` sends later."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rtrain.loggers import base
from rtrain.loggers.base import Delivered, LoggedRun, Outcome
from rtrain.runs.events import Event


@dataclass(kw_only=True)
class Conf:
    """An experiment at Comet. The key is the environment's COMET_API_KEY."""

    project: str | None = None
    """Name of the project; null: Comet's default."""

    workspace: str | None = None
    """Name of the workspace; null: that of the account."""

    offline_dir: str | None = None
    """Folder for archives that are sent later; null: the experiment is online."""


class Logger(base.Logger):
    """Sends metrics, the config and tags to Comet."""

    Conf = Conf
    requires = ("comet_ml",)

    def open(self, run: LoggedRun, delivered: Delivered) -> Mapping[str, str]:
        """Begin an experiment, or continue that of the run."""
        import comet_ml

        # Nothing of the process is recorded: what trains may be another one, on another machine.
        config = comet_ml.ExperimentConfig(
            name=run.id,
            tags=list(run.tags),
            offline_directory=self.conf.offline_dir,
            log_code=False,
            log_graph=False,
            parse_args=False,
            auto_output_logging=False,
            auto_param_logging=False,
            auto_metric_logging=False,
        )
        key = delivered.ids.get("experiment")
        self.experiment = comet_ml.start(
            project=self.conf.project,
            workspace=self.conf.workspace,
            experiment_key=key,
            mode="create" if key is None else "get",
            online=self.conf.offline_dir is None,
            experiment_config=config,
        )
        self.experiment.log_parameters({**run.parameters, **run.changed})
        self.experiment.log_others(dict(run.facts))
        return {"experiment": self.experiment.get_key()}

    def log(self, events: Sequence[Event]) -> None:
        """Send metrics by step."""
        for event in events:
            metrics = {name: value for name, value in event.metrics.items() if value is not None}
            self.experiment.log_metrics(metrics, step=event.step, epoch=event.epoch)

    def end(self, outcome: Outcome) -> None:
        """Note how the run ended."""
        self.experiment.log_other("status", outcome.status)

    def close(self) -> None:
        """Send what is left."""
        self.experiment.end()
