"""Predict with Ray Data: tasks read the pieces of the data, actors that hold the model each predict, in order.

Rows travel as they are read, pickled: so the predictions are those of one process, of any kind of data. Failures travel
the same way, in their place: the first failure in the order of the data is reported, and Ray has nothing to retry.
"""

from __future__ import annotations

import logging
import os
import pickle
import socket
import warnings
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, TypeVar

import pyarrow as pa

from rtrain.cluster.ray_cluster import Cluster, connect, worker_runtime_env
from rtrain.cluster.scaling import check_feasible, cluster_cpus, one_per_core, threads_per_worker, worker_resources
from rtrain.config.schema import RtrainConf
from rtrain.datasets.base import RowReader
from rtrain.errors import CheckpointError, PredictionError, first_line
from rtrain.prediction.scoring import Failure, Prediction, PredictionTask, read_chunks
from rtrain.process.interrupts import renew_sigterm
from rtrain.process.variables import drop_arguments
from rtrain.trainers.registry import load_trainer
from rtrain.trainers.trained import Predictor
from rtrain.training.preparation import DATA_CPUS

log = logging.getLogger(__name__)

MAX_READ_TASKS = 256
BLOCK_BYTES = 4 << 20
"""Approximate size of the rows sent to an actor together. Smaller ones share small data better, larger cost less."""
MAX_RETRIES = 3
"""Times that work is done again whose machine was lost; on this machine alone it would be lost again."""
PACKED = "packed"

T = TypeVar("T")


def predictions_on_ray(
    task: PredictionTask[T], reader: RowReader, conf: RtrainConf, command: str
) -> Generator[Prediction[T] | Failure]:
    """Predict all rows on ``scaling.num_workers`` actors, in the order of the data; a failure is the last one.

    On a cluster started for it there is one actor per core at most: others would only load the model once more.

    Raises:
        NotEnoughResourcesError: The cluster can never hold the actors, and one CPU more to read.
        PredictionError: Ray failed.
    """
    here = one_per_core(conf.scaling)
    with connect(conf.cluster, cluster_cpus(here, DATA_CPUS)) as starting:
        cluster = starting.wait()
        renew_sigterm()
        if cluster.own and here.num_workers < conf.scaling.num_workers:
            used, wanted = here.num_workers, conf.scaling.num_workers
            log.warning("num_workers: %d of %d are used, one per core of this machine", used, wanted)
        conf = replace(conf, scaling=here) if cluster.own else conf
        check_feasible(conf.scaling, cluster.nodes, command, data_cpus=1)
        with _quiet_ray_data():
            yield from _told(_predictions(task, reader, conf, cluster), conf)


def _predictions(
    task: PredictionTask[T], reader: RowReader, conf: RtrainConf, cluster: Cluster
) -> Iterator[Prediction[T] | Failure]:
    answers = _dataset(task, reader, conf, cluster)
    answers.context.target_max_block_size = BLOCK_BYTES
    answers.context.execution_options.preserve_order = True
    answers.context.wait_for_min_actors_s = max(1, round(conf.scaling.start_timeout_seconds))
    for batch in answers.iter_batches(batch_size=None, batch_format="pyarrow", prefetch_batches=1):
        yield from _unpacked(batch)


def _dataset(task: PredictionTask[Any], reader: RowReader, conf: RtrainConf, cluster: Cluster) -> Any:
    import ray.data

    environment = _environment(task, conf, cluster)
    retries = 0 if cluster.own else MAX_RETRIES
    num_pieces = len(reader.pieces)
    pieces = ray.data.from_items(list(range(num_pieces)), override_num_blocks=max(1, min(num_pieces, MAX_READ_TASKS)))
    wanted = worker_resources(conf.scaling)
    chunks = pieces.map_batches(
        _read,
        fn_kwargs={"reader": ray.put(reader), "with_labels": task.with_labels},
        max_retries=retries,
        runtime_env=environment,
    )
    return chunks.map_batches(
        Answerer,
        batch_size=1,
        batch_format="pyarrow",
        fn_constructor_args=(task,),
        compute=ray.data.ActorPoolStrategy(size=conf.scaling.num_workers),
        num_cpus=wanted.pop("CPU"),
        num_gpus=wanted.pop("GPU", 0),
        resources=wanted,
        max_restarts=-1 if retries else 0,  # the limit is that of each task's retries
        max_task_retries=retries,
        runtime_env=environment,
    )


def _environment(task: PredictionTask[Any], conf: RtrainConf, cluster: Cluster) -> dict[str, Any] | None:
    """Return the actors' environment; that of readers is the same, so that Ray can use their processes for both."""
    trained = task.model.trained
    needed = load_trainer(task.model.trainer_name, trained.conf).worker_env(trained.conf)
    threads = threads_per_worker(conf.scaling, own_cluster=cluster.own)
    if threads != max(1, int(conf.scaling.cpus_per_worker)):  # which Ray sets by itself
        needed = {"OMP_NUM_THREADS": str(threads), **needed}
    return worker_runtime_env(conf.cluster, cluster, task.model.project_root, needed)


def _read(batch: dict[str, Any], reader: Any, with_labels: bool) -> Iterator[pa.Table]:
    """Read some pieces, whose numbers are ``item``; ``reader`` is in Ray's store."""
    import ray

    try:
        found: RowReader = ray.get(reader)
        for chunk in read_chunks(found, [found.pieces[number] for number in batch["item"]], with_labels):
            yield _packed(chunk)
    except Exception as error:
        yield _packed(Failure.of(error))


class Answerer:
    """An actor that holds the model; it loads it when the first rows come."""

    def __init__(self, task: PredictionTask[Any]) -> None:
        drop_arguments()
        self._task = task
        self._predictor: Predictor | None = None

    def __call__(self, batch: pa.Table) -> Iterator[pa.Table]:
        """Predict the rows of a block."""
        for chunk in _unpacked(batch):
            if isinstance(chunk, Failure):
                yield _packed(chunk)
                return
            try:
                for made in self._task.predictions(self._loaded(), chunk):
                    yield _packed(made)
            except Exception as error:
                yield _packed(Failure.of(error))
                return

    def _loaded(self) -> Predictor:
        if self._predictor is None:
            folder = self._task.model.trained.folder
            if not folder.is_dir():
                message = f"the machine {socket.gethostname()} can't access the checkpoint {folder}."
                raise CheckpointError(message, "Copy it to a folder that every node mounts at the same path.")
            self._predictor = self._task.model.load()
        return self._predictor


def _packed(thing: object) -> pa.Table:
    return pa.table({PACKED: pa.array([pickle.dumps(thing, protocol=5)], pa.large_binary())})


def _unpacked(batch: pa.Table) -> Iterator[Any]:
    for value in batch[PACKED]:
        yield pickle.loads(value.as_buffer())


def _told(answers: Iterator[T], conf: RtrainConf) -> Iterator[T]:
    """Turn what Ray itself raises into one line."""
    import ray.exceptions

    try:
        yield from answers
    except ray.exceptions.GetTimeoutError as error:
        raise PredictionError(
            f"the {conf.scaling.num_workers} workers did not start within "
            f"{conf.scaling.start_timeout_seconds:g} seconds.",
            "Use fewer workers, wait until the cluster is free, or raise scaling.start_timeout_seconds.",
        ) from error
    except ray.exceptions.RayError as error:
        raise PredictionError(
            f"Ray lost a worker: {first_line(error)}",
            "If it ran out of memory, try fewer workers, or num_workers=0.",
        ) from error


@contextmanager
def _quiet_ray_data() -> Iterator[None]:
    """Keep what Ray Data says off the terminal; it is in ``ray-data.log`` of Ray's session folder."""
    os.environ.setdefault("RAY_DATA_DISABLE_PROGRESS_BARS", "1")
    import ray.data
    from ray.util.annotations import RayDeprecationWarning

    logger = logging.getLogger(ray.data.__name__)
    before = logger.handlers
    logger.handlers = [handler for handler in before if handler.get_name() != "console"]
    try:
        with warnings.catch_warnings():
            # No parameter that has a name says yet how often work is repeated; by default it is for ever.
            warnings.simplefilter("ignore", RayDeprecationWarning)
            warnings.filterwarnings("ignore", "The minimum number of concurrent actors")
            yield
    finally:
        logger.handlers = before
