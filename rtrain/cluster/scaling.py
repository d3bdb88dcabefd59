"""Workers and their resources: what a run requests, whether the cluster has it, and the request to Ray."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from rtrain.config.did_you_mean import closest, did_you_mean, there_are, to_try
from rtrain.config.schema import ScalingConf
from rtrain.config.value_types.num_workers import Elastic
from rtrain.errors import ConfigError, NotEnoughResourcesError
from rtrain.runs.facts import num_cores

RAYS_OWN = ("CPU", "GPU", "TPU")
SAME_RESOURCE = 0.75
"""How alike two names of resources have to be for one to be the misspelling of the other."""
RAY_RESOURCE_NAMES = {"cpu": "CPU", "gpu": "GPU", "tpu": "TPU", "Memory": "memory"}
"""Ray treats a misspelt name as a custom resource that no node has, and waits for it forever."""


def worker_resources(conf: ScalingConf) -> dict[str, float]:
    """Return what one worker reserves, by Ray's resource names.

    Raises:
        ConfigError: A name differs from Ray's only by its case, an amount is negative, there is nothing to reserve, or
            a device is asked for in another way than Ray Train gives it.
    """
    for name in conf.resources_per_worker:
        if name in RAY_RESOURCE_NAMES:
            raise ConfigError(
                f"scaling.resources_per_worker.{name}: Ray's resource names are case-sensitive.",
                f"Write {RAY_RESOURCE_NAMES[name]} instead of {name}.",
            )
    own = {"CPU": conf.cpus_per_worker, **({"GPU": 1.0} if conf.use_gpu else {})}
    resources = {**own, **conf.resources_per_worker}
    if min(resources.values()) < 0 or not any(resources.values()):
        raise ConfigError(
            f"scaling.resources_per_worker: a worker can't reserve {resources}.",
            "Amounts must be 0 or more, and at least one must be above 0.",
        )
    if conf.num_workers != 0:
        _check_devices(conf, resources)
    return resources


def _check_devices(conf: ScalingConf, resources: Mapping[str, float]) -> None:
    """Refuse what Ray Train refuses once the run has begun."""
    if resources.get("GPU") and not conf.use_gpu:
        raise ConfigError(
            "scaling.resources_per_worker.GPU: the workers train without a GPU.", to_try("scaling.use_gpu=true")
        )
    if resources.get("TPU"):
        raise ConfigError(
            "scaling.resources_per_worker.TPU: rtrain trains on CPUs and GPUs.",
            "Remove TPU; other resources are reserved under the names they have in the cluster.",
        )


def refuse_shared_gpu(conf: ScalingConf) -> None:
    """Refuse GPUs that several workers of one run would share: NCCL, which most frameworks talk by, can't.

    Raises:
        ConfigError: Names the key.
    """
    share = worker_resources(conf).get("GPU", 0)
    if 0 < share <= 0.5 and int(conf.num_workers) > 1:
        raise ConfigError(
            "scaling.resources_per_worker.GPU: workers of one run can't share a GPU (NCCL rejects it), as "
            f"{share:g} would.",
            to_try("num_workers=1: only trials of a sweep, with one worker each, can share GPUs."),
        )


def cluster_cpus(conf: ScalingConf, spare: int = 0) -> int:
    """Return the CPUs that a cluster started by rtrain declares: its workers may share the real cores.

    ``spare`` CPUs are left for Ray Data, which otherwise waits forever when the workers hold all.
    """
    return max(num_cores(), math.ceil(workers_here(conf) * worker_resources(conf)["CPU"]) + spare)


def workers_here(conf: ScalingConf) -> int:
    """Return the number of workers on a cluster started by rtrain: of a range, one per core if that lies within it."""
    if not is_elastic(conf):
        return int(conf.num_workers)
    return max(conf.min_workers, min(int(conf.num_workers), num_cores()))


def one_per_core(conf: ScalingConf) -> ScalingConf:
    """Return the request with no more workers than this machine has cores, for work whose result they don't change.

    Workers that have a GPU each are as many as requested.
    """
    return conf if conf.use_gpu else replace(conf, num_workers=min(int(conf.num_workers), num_cores()))


def fewest_and_most(conf: ScalingConf, *, own_cluster: bool) -> tuple[int, int]:
    """Return the minimum and maximum number of workers. They are equal on a cluster started by rtrain."""
    return (workers_here(conf), workers_here(conf)) if own_cluster else (conf.min_workers, int(conf.num_workers))


def sharing_notice(conf: ScalingConf) -> str | None:
    """Return the line that tells that workers have fewer cores on this machine than they ask for, or None."""
    cores, workers, cpus = num_cores(), workers_here(conf), worker_resources(conf)["CPU"]
    if workers * cpus <= cores or conf.use_gpu:
        return None
    if cpus > 1:
        asked = f"1 worker requests {cpus:g} CPUs" if workers == 1 else f"{workers} workers request {cpus:g} CPUs each"
        return f"{asked}, and this machine has {cores}: they share those"
    return f"{workers} workers share {cores} cores; num_workers={cores} would train faster on this machine"


def threads_per_worker(conf: ScalingConf, *, own_cluster: bool) -> int:
    """Return the cores each worker really has: a share of this machine, or what it reserves on a joined cluster."""
    if conf.num_workers == 0:
        return num_cores()
    if own_cluster and not conf.use_gpu:
        return max(1, num_cores() // workers_here(conf))
    return max(1, int(worker_resources(conf)["CPU"]))


def check_feasible(
    conf: ScalingConf, nodes: Sequence[Mapping[str, float]], command: str, *, data_cpus: float = 0
) -> None:
    """Compare the request with what each node has.

    Args:
        conf: The request.
        nodes: Total resources of each node.
        command: The command to suggest, without its ``num_workers``.
        data_cpus: CPUs that must be left over for Ray Data, which waits forever without any.

    Raises:
        NotEnoughResourcesError: The workers don't fit, now or ever.
    """
    wanted = worker_resources(conf)
    fitting = sum(_fitting(wanted, node) for node in nodes)
    if data_cpus and wanted["CPU"]:
        spare = sum(node.get("CPU", 0) for node in nodes) - data_cpus
        fitting = max(0, min(fitting, int(spare / wanted["CPU"] + 1e-9)))
    if fitting >= conf.min_workers:
        return
    have = {name: sum(node.get(name, 0) for node in nodes) for name in wanted}
    asked = ", ".join(f"{conf.min_workers * amount:g} {name}" for name, amount in wanted.items())
    there = ", ".join(f"{have[name]:g} {name}" for name in wanted)
    if way := _misspelt(conf, nodes):
        raise NotEnoughResourcesError(way[0], way[1])
    no_gpu = conf.use_gpu and not have["GPU"]
    hint = to_try("use_gpu=false") if no_gpu else "Request less per worker."
    if fitting:
        hint = to_try(f"{command} num_workers={fitting}")
    least = "at least " if is_elastic(conf) else ""
    raise NotEnoughResourcesError(
        f"scaling requests {least}{conf.min_workers} workers ({asked}), but the cluster has {there} on {len(nodes)} "
        f"{'node' if len(nodes) == 1 else 'nodes'}: enough for {fitting}"
        + (f", with {data_cpus:g} CPU left to read the data." if data_cpus else "."),
        hint,
    )


def _misspelt(conf: ScalingConf, nodes: Sequence[Mapping[str, float]]) -> tuple[str, str] | None:
    """Return message and hint where a resource that no node has is the misspelling of one that there may be."""
    there = {name for node in nodes for name in node if ":" not in name} - {"memory", "object_store_memory"}
    for name in conf.resources_per_worker:
        near = closest(name, sorted({*there, *RAYS_OWN}), SAME_RESOURCE)
        if name not in there and name not in RAYS_OWN and near is not None:
            message = f"scaling.resources_per_worker: there is no resource '{name}' on any node."
            return message, f"{did_you_mean(near)}\n{there_are(sorted(there))}"
    return None


def _fitting(wanted: Mapping[str, float], node: Mapping[str, float]) -> int:
    return min(int(node.get(name, 0) / amount + 1e-9) for name, amount in wanted.items() if amount > 0)


def is_elastic(conf: ScalingConf) -> bool:
    """Tell whether the number of workers may change while they train, on a cluster where it can."""
    return isinstance(conf.num_workers, Elastic)


def ray_scaling_config(conf: ScalingConf, *, own_cluster: bool) -> Any:
    """Return the ``ray.train.ScalingConfig`` of the request. A cluster started by rtrain does not grow or shrink."""
    from ray.train import ScalingConfig

    elastic = is_elastic(conf) and not own_cluster
    return ScalingConfig(
        num_workers=(conf.min_workers, int(conf.num_workers)) if elastic else workers_here(conf),
        elastic_resize_monitor_interval_s=conf.resize_seconds,
        use_gpu=conf.use_gpu,
        resources_per_worker=worker_resources(conf),
        placement_strategy=conf.placement_strategy,
    )
