"""The metrics that decide something, and whether the module logs them."""

from __future__ import annotations

from collections.abc import Collection

from rtrain.errors import TrainingError
from rtrain.trainers.monitor import Monitor, goal_names
from rtrain.trainers.worker import Worker


class Watched:
    """The metrics that the config names for a decision.

    Args:
        worker: Its config names them.
        monitor: The metric of the best checkpoint.
        split: What ``validation_step`` is called on.
    """

    def __init__(self, worker: Worker, monitor: Monitor, split: str | None) -> None:
        conf, named, self._split = worker.conf, worker.run.checkpoint.best.monitor, split
        watched = [("run.checkpoint.best.monitor", named)]
        if conf.early_stopping is not None:
            watched.append(("trainer.early_stopping.monitor", conf.early_stopping.monitor or monitor.name))
        watched += [(key, name) for name, key in goal_names(worker.run.stop).items()]
        self._keys = [(key, name) for key, name in watched if name is not None]
        """Each metric after the key that names it."""

    @property
    def of_validation(self) -> bool:
        """Whether a metric of the validation is among them."""
        return any(name.startswith(f"{self._split}/") for _, name in self._keys)

    def check(self, logged: Collection[str], of: str = "", more: str = "") -> None:
        """Fail at the first opportunity, rather than never, if the module doesn't log what is watched.

        Args:
            logged: What it logs.
            of: How the names begin of what should be there.
            more: Another hint.
        """
        for key, name in self._keys:
            if name.startswith(of) and name not in logged:
                raise TrainingError(
                    f"{key}: the module logs no {name}, only {', '.join(sorted(logged))}.",
                    f"Log it with self.log in validation_step, or set {key} to another.{more}",
                )
