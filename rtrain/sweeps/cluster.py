"""The cluster that the trials of a sweep share, started for the first one that needs workers."""

from __future__ import annotations

from contextlib import ExitStack

from rtrain.cluster.ray_cluster import StartingCluster, connect
from rtrain.config.composed import Composed
from rtrain.config.trials import Trials
from rtrain.runs.facts import num_cores


class SweepCluster:
    """The cluster of a sweep.

    Args:
        stack: Leaves the cluster when it is closed.
        trials: The trials of the command. Those of a launcher of Hydra's find their own clusters.
    """

    def __init__(self, stack: ExitStack, trials: Trials) -> None:
        self._stack, self._trials = stack, trials
        self.starting: StartingCluster | None = None
        """None: no trial so far needs workers, and this process trains them, one after the other."""

    def prepare(self, composed: Composed) -> None:
        """Start, or join, the cluster if a trial needs workers."""
        if self.starting is None and int(composed.conf.scaling.num_workers) > 0 and self._trials.launcher is None:
            self.starting = self._stack.enter_context(connect(self._trials.probe.conf.cluster, num_cores()))
