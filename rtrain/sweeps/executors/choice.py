"""Which pool trains the trials of a sweep."""

from __future__ import annotations

from rtrain.cluster.ray_cluster import Cluster
from rtrain.config.trials import Trials
from rtrain.process.interrupts import StopRequest
from rtrain.sweeps.data import Data
from rtrain.sweeps.executors.base import Pool, TrialListener
from rtrain.sweeps.executors.hydra_launcher import HydraLauncherExecutor
from rtrain.sweeps.executors.in_process import SequentialExecutor
from rtrain.sweeps.executors.ray import RayExecutor


def make_pool(trials: Trials, cluster: Cluster | None, hearer: TrialListener, data: Data, stop: StopRequest) -> Pool:
    """Return the pool that a sweep asks for.

    Args:
        trials: Know the launcher, if one is named.
        cluster: Where trials are trained; None: in this process.
        hearer: Receives the state of trials.
        data: Reads their data.
        stop: Whether the sweep is to end.
    """
    if trials.launcher is not None:
        return HydraLauncherExecutor(trials, hearer, stop)
    return SequentialExecutor(hearer, data, stop) if cluster is None else RayExecutor(cluster, hearer, data)
