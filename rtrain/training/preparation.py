"""Everything that can be found out before a run writes anything, while Ray starts in the background."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from rtrain.cluster.prestart import Prestart
from rtrain.cluster.ray_cluster import Cluster, StartingCluster, connect
from rtrain.cluster.scaling import check_feasible, cluster_cpus, sharing_notice, worker_resources
from rtrain.config.composed import Composed
from rtrain.config.diagnostics.idle import check_with_rows
from rtrain.config.did_you_mean import to_try
from rtrain.config.needs import Way
from rtrain.config.secrets.names import is_secret
from rtrain.datasets import registry as datasets
from rtrain.datasets.base import Dataset, ResidentSplit
from rtrain.datasets.missing.elsewhere import folder_named
from rtrain.datasets.several import load_part, load_several
from rtrain.datasets.without_effect import as_recorded, with_typed
from rtrain.engine.log_capture import masked_streams
from rtrain.engine.ray.worker_group import Group
from rtrain.errors import ConfigError, RtrainError
from rtrain.plugins import named_plugin
from rtrain.process.interrupts import StopRequest, stop_on_signals
from rtrain.runs.facts import num_cores
from rtrain.runs.filesystem.files import private_files
from rtrain.runs.observer import Observer, Stages
from rtrain.runs.signature import signing_key
from rtrain.runs.verify import check_whole
from rtrain.storage.access import check_access
from rtrain.storage.folders import Folder
from rtrain.storage.stores import shown_url
from rtrain.tracking.callbacks import check_run_callbacks
from rtrain.tracking.trackers import check_loggers
from rtrain.trainers import registry as trainers
from rtrain.trainers.base import Job, TrainerPlugin
from rtrain.trainers.loops.auto import check_no_missing, needs_one_size
from rtrain.trainers.loops.directions import check_directions
from rtrain.trainers.named_code import named_code
from rtrain.trainers.number_keys import paths_of_number_keys
from rtrain.trainers.trained import CheckpointMetadata, find_checkpoint, read_about, refuse_pickles

DATA_CPUS = 2
"""Logical CPUs kept free for Ray Data if the workers would otherwise hold them all."""
ENGINE_MODULES = ("rtrain.engine.ray.worker_actor", "rtrain.engine.ray.worker_main")
"""What workers import whatever they train."""


@dataclass(frozen=True, kw_only=True)
class Prepared:
    """A job that is sure to start: data read, targets checked, cluster up."""

    composed: Composed
    job: Job
    plugin: TrainerPlugin
    cluster: Cluster | None
    """None: train in this process."""
    storage: Folder | None
    """Where the runs of this name are copied to: reached, and writable."""
    stop: StopRequest
    seconds: float
    """What the preparation took."""
    num_threads: int | None = None
    """Cores that training in this process may use; None: all."""
    group: Group | None = None
    """Workers on the cluster, where other runs have them too; None: they are this run's own."""


@contextmanager
def prepared(composed: Composed, observer: Observer, shared: StartingCluster | None = None) -> Iterator[Prepared]:
    """Read the data, check targets and cluster, and keep the cluster while the block runs.

    Args:
        composed: The job.
        observer: Notified of each step.
        shared: The cluster to train on, where the caller keeps one for several runs.

    Raises:
        ConfigError: Something can't work; nothing has been written.
    """
    began = time.monotonic()
    scaling = composed.conf.scaling
    worker_resources(scaling)
    with composed.redact.cleaning(), private_files(composed.conf.run.private), ExitStack() as stack:
        starting = None
        if scaling.num_workers > 0:
            observer.stage("starting Ray")
            starting = shared or stack.enter_context(_started(composed))
        job, plugin, storage = check_whole_job(composed, observer, starting)
        cluster = None if starting is None else starting.wait()
        if cluster is not None:
            check_room(job, plugin, cluster, composed.command)
            for notice in _notices(composed, cluster):
                observer.notice(notice)
        stop = stack.enter_context(stop_on_signals())
        seconds = time.monotonic() - began
        yield Prepared(
            composed=composed, job=job, plugin=plugin, cluster=cluster, storage=storage, stop=stop, seconds=seconds
        )


def _started(composed: Composed) -> AbstractContextManager[StartingCluster]:
    """Return the cluster of a run, whose workers are ready when the data is."""
    conf, trainer_name = composed.conf, composed.resolved["trainer"]["type"]
    num_cpus = cluster_cpus(conf.scaling, DATA_CPUS)
    plugin = trainers.load_trainer(trainer_name, conf.trainer)
    if plugin.takes_ray_datasets(conf.trainer) and composed.resolved["dataset"] is not None:
        return connect(conf.cluster, num_cpus)  # processes of Ray Data would import the modules as well
    prestart = Prestart.of_run(
        conf.scaling,
        (*plugin.worker_modules, *ENGINE_MODULES),
        num_cpus,
        worker_env=plugin.worker_env(conf.trainer),
    )
    return connect(conf.cluster, num_cpus, prestart)


def check_whole_job(
    composed: Composed, observer: Observer, starting: StartingCluster | None = None
) -> tuple[Job, TrainerPlugin, Folder | None]:
    """Read the data, and return what is sure to train it, and where its copies go: all checks but those of the cluster.

    Args:
        composed: The job.
        observer: Notified of each step.
        starting: The cluster, which some sources read with.

    Raises:
        ConfigError: Something can't work.
    """
    storage = check_run_storage(composed, observer)
    check_loggers(composed.conf.run)
    check_run_callbacks(composed.conf.run.callbacks, composed.builder)
    job, plugin = check_job(composed, load_dataset(composed, observer, starting), observer)
    try_job(job, plugin)
    return job, plugin, storage


def _notices(composed: Composed, cluster: Cluster) -> Iterator[str]:
    """Yield what the user should know of the cluster."""
    if cluster.own:
        sharing = sharing_notice(composed.conf.scaling)
        if sharing is not None:
            yield sharing
        return
    variables = composed.conf.cluster.runtime_env.get("env_vars", {})
    secret = [name for name in variables if is_secret(name)]
    if secret:
        yield f"every user of the cluster can read {', '.join(secret)} of cluster.runtime_env.env_vars"


def check_run_storage(composed: Composed, observer: Observer) -> Folder | None:
    """Return the folder that holds the copies of runs like this one, if ``run.storage`` says where.

    Raises:
        ConfigError: The store can't be written.
    """
    run = composed.conf.run
    if run.storage is None:
        return None
    observer.stage(f"checking {shown_url(run.storage)}")
    folder = check_access(run.storage, composed.sweep or run.name, key="run.storage")
    run.storage = shown_url(run.storage)  # workers get no keys that the URL holds
    return folder


def load_dataset(composed: Composed, observer: Stages, starting: StartingCluster | None) -> Dataset | None:
    """Return the data that a job names, if it names any.

    Args:
        composed: The job.
        observer: Notified when reading begins.
        starting: The cluster, which some sources read with.

    Raises:
        ConfigError: It can't be read.
    """
    with folder_named(composed.project_root, composed.config_path):
        if composed.conf.datasets:
            return _load_several(composed, observer, starting)
        return None if composed.conf.dataset is None else _load_one(composed, observer, starting)


def _load_one(composed: Composed, observer: Stages, starting: StartingCluster | None) -> Dataset:
    """Return the data of ``dataset``."""
    name = composed.resolved["dataset"]["type"]
    observer.stage(f"reading {name}")
    source = datasets.load_source(name, composed.builder)
    if source.may_use_ray and starting is not None:
        starting.wait()
    recorded, typed = as_recorded(composed.of_run), with_typed(composed.typed)
    with masked_streams(composed.redact), recorded, typed, named_plugin(name, source):
        found = source.load(composed.conf.dataset)
    if not isinstance(found, Dataset):
        raise ConfigError(f"the source {name}: load returned a {type(found).__name__}.", "Return an rtrain Dataset.")
    return found


def _load_several(composed: Composed, observer: Stages, starting: StartingCluster | None) -> Dataset:
    """Return the data sets of ``datasets`` as one, of which each is a split."""
    types = {name: one["type"] for name, one in composed.resolved["datasets"].items()}
    observer.stage(f"reading {', '.join(types)}")
    sources = {name: datasets.load_source(one, composed.builder) for name, one in types.items()}
    if starting is not None and any(one.may_use_ray for one in sources.values()):
        starting.wait()
    confs = composed.conf.datasets
    with masked_streams(composed.redact):
        return load_several({name: partial(load_part, one, confs[name]) for name, one in sources.items()})


def check_job(composed: Composed, dataset: Dataset | None, observer: Observer) -> tuple[Job, TrainerPlugin]:
    """Return what the plugin is asked to train, checked as far as can be without building it.

    Args:
        composed: The job.
        dataset: Its data.
        observer: Notified of each step.

    Raises:
        ConfigError: The plugin can't.
    """
    trainer_name = composed.resolved["trainer"]["type"]
    plugin = trainers.load_trainer(trainer_name, composed.conf.trainer)
    observer.stage(f"checking {trainer_name}")
    about = _describe(composed, dataset)
    job = Job(
        conf=composed.conf,
        trainer_name=trainer_name,
        dataset=dataset,
        builder=composed.builder,
        project_root=str(composed.project_root),
        about=about,
        signing_key=signing_key(about.seal),
        schedule=plugin.schedule_key(composed.resolved["trainer"]),
        typed=composed.typed,
        redact=composed.redact,
    )
    check_shares(dataset, composed.conf.scaling.num_workers)
    check_weights_count(dataset)
    if dataset is not None:
        way = Way(composed.conf, info=dataset.info)
        job = replace(job, notices=check_with_rows(composed.awaiting, way))
    with masked_streams(composed.redact):
        with named_plugin(trainer_name, plugin):
            plugin.check(job)
        _check_missing(job, plugin)
        _check_sizes(job, plugin)
        job = replace(job, directions=plugin.directions(composed.conf.trainer, composed.builder))
    check_directions(composed.conf.run, composed.conf.trainer, job.directions)
    if composed.conf.run.failure.nan_loss == "skip" and not plugin.can_skip:
        raise ConfigError(f"run.failure.nan_loss: the {trainer_name} trainer can't skip steps.", "Use raise, or stop.")
    if composed.conf.run.init_from is not None:
        weights = find_weights(composed.conf.run.init_from, trainer_name, plugin)
        job.conf.run.init_from = str(weights)
        if not plugin.takes_any_checkpoint:
            plugin.check_init(job, read_about(weights))
    with masked_streams(composed.redact), named_plugin(trainer_name, plugin):
        return replace(job, notices=(*job.notices, *plugin.notices(job))), plugin


def try_job(job: Job, plugin: TrainerPlugin) -> None:
    """Try a job on this machine with a few rows, as far as it has what the job needs.

    Args:
        job: It has passed ``check_job``.
        plugin: What trains it.

    Raises:
        ConfigError: Training would fail before its first step; names the key.
    """
    from rtrain.engine.sanity_check import tried_before_start

    with masked_streams(job.redact), tried_before_start(job):
        plugin.try_out(job)


def _check_missing(job: Job, plugin: TrainerPlugin) -> None:
    """Refuse missing values that the config doesn't ask to keep, and of which the trainer would make a loss of NaN."""
    asked = getattr(job.conf.dataset, "on_missing", None) != "auto"
    if job.dataset is not None and not asked and not plugin.takes_missing:
        check_no_missing(f"the {job.trainer_name} trainer", job.dataset.info)


def _check_sizes(job: Job, plugin: TrainerPlugin) -> None:
    """Refuse images of different sizes for a trainer that has nothing to bring them to one size."""
    if job.dataset is not None and job.dataset.info.original_sizes and not plugin.takes_original_sizes:
        raise needs_one_size(job.trainer_name)


def find_weights(place: str, trainer_name: str, plugin: TrainerPlugin) -> Path:
    """Return the checkpoint that ``run.init_from`` means: the folder itself, or the best one of a run.

    Raises:
        ConfigError: There is none, it is damaged, or the trainer can't begin with it.
    """
    if not plugin.can_init:
        raise ConfigError(
            f"run.init_from: the {trainer_name} trainer can't start with the weights of another run.",
            "To resume a run: rtrain resume RUN",
        )
    try:
        folder = find_checkpoint(Path(place), "best").resolve()
        check_whole(folder)
        if plugin.takes_any_checkpoint:
            return folder
        wrote = read_about(folder).trainer
        refuse_pickles(folder, plugin.pickles)
    except RtrainError as error:
        raise ConfigError(f"run.init_from: {error.message}", error.hint) from error
    if trainers.has_own_loop(wrote):
        raise ConfigError(
            f"run.init_from: {folder} was reported by {wrote['train_loop']}, a custom train loop, and the "
            f"{trainer_name} trainer can't read its files.",
            "A train loop can start with it: ray.train.get_checkpoint() returns this folder.",
        )
    if wrote["type"] != trainer_name:
        raise ConfigError(f"run.init_from: {folder} was written by the trainer {wrote['type']}, not {trainer_name}.")
    return folder


def check_shares(dataset: Dataset | None, num_workers: int) -> None:
    """Refuse more workers than there are rows to train on: some would have none.

    Raises:
        ConfigError: Names both numbers.
    """
    num_rows = num_workers if dataset is None else dataset.info.num_rows.get("train", num_workers)
    if num_rows < num_workers:
        raise ConfigError(
            f"scaling.num_workers: {num_workers} workers can't share {num_rows} rows of the split 'train'.",
            to_try(f"num_workers={min(num_rows, num_cores())}", f"this machine has {num_cores()} cores"),
        )


def check_weights_count(dataset: Dataset | None) -> None:
    """Refuse a split whose rows all weigh 0: nothing is learned from it, and its metrics are 0 by 0.

    Raises:
        ConfigError: Names the key and the split.
    """
    for name, split in {} if dataset is None else dataset.splits.items():
        weight = split.columns.get("weight") if isinstance(split, ResidentSplit) else None
        if weight is not None and len(weight) and not weight.any():
            raise ConfigError(
                f"dataset.weight: all {len(weight):,} rows of the split '{name}' weigh 0.",
                "Use another column, or weight all rows equally: dataset.weight=null",
            )


def _describe(composed: Composed, dataset: Dataset | None) -> CheckpointMetadata:
    return CheckpointMetadata(
        trainer=composed.resolved["trainer"],
        number_keys=tuple(paths_of_number_keys(composed.conf.trainer)),
        dataset=composed.resolved["dataset"],
        info=None if dataset is None else dataset.info,
        encoding={} if dataset is None else dataset.encoding,
        allow=composed.allow,
        project_root=str(composed.project_root),
        code=named_code(composed.resolved["trainer"], composed.project_root),
    ).sealed()


def check_room(job: Job, plugin: TrainerPlugin, cluster: Cluster, command: Sequence[str]) -> None:
    """Compare the resources that a job's workers request with those of the cluster.

    Args:
        job: The job.
        plugin: Its plugin, which may have Ray Data read in addition to the workers.
        cluster: Where they are to be. One that is shared trains a single worker in a process that reads by itself.
        command: The command line, for one that fits.

    Raises:
        NotEnoughResourcesError: They don't fit.
    """
    scaling = job.conf.scaling
    rest = [word for word in command if not word.startswith(("scaling.num_workers=", "num_workers="))]
    alone = cluster.shared and int(scaling.num_workers) == 1
    reads = plugin.takes_ray_datasets(job.conf.trainer) and job.dataset is not None
    data_cpus = 1 if reads and not alone else 0
    check_feasible(scaling, cluster.nodes, " ".join(rest), data_cpus=data_cpus)
