"""Train what a config describes. This page is the table of contents of a run."""

from __future__ import annotations

import hashlib
import json
import logging
import time
import traceback
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rtrain.cluster import StartingCluster, connect
from rtrain.config.session import Composed, Session
from rtrain.datasets import registry as datasets
from rtrain.errors import RtrainError
from rtrain.interrupts import StopRequest, stop_on_signals
from rtrain.runs.facts import describe_git, describe_host, installed_versions
from rtrain.runs.manifest import Manifest, utc_now
from rtrain.runs.recorder import Observer, Recorder
from rtrain.runs.run import Run
from rtrain.scaling import check_feasible, cluster_cpus, num_cores, sharing_notice, worker_resources
from rtrain.schemas import schemas
from rtrain.trainers import registry as trainers
from rtrain.trainers.base import Job, TrainerPlugin

DATA_CPUS = 2
"""Logical CPUs kept free for Ray Data beside workers that would hold them all."""


def fit(config: str, overrides: Sequence[str] = (), *, config_dir: str | None = None) -> Run:
    """Train what ``config`` describes and return the run.

    Args:
        config: Path of a YAML file, or the name of one in ``./configs`` or built in.
        overrides: Hydra overrides, ``["num_workers=2", "optimizer.lr=0.01"]`` say.
        config_dir: One more folder to look config groups up in.

    Raises:
        ConfigError: The config is wrong; nothing was started or written.
        TrainingError: Training failed; the run directory tells why.
    """
    with Session(config, overrides, schemas(), config_dir) as session:
        return fit_session(session, SilentObserver())


def fit_session(session: Session, observer: Observer) -> Run:
    """Train the one job of ``session``."""
    composed = session.check()
    with _prepared(composed, observer) as prepared:
        return session.run(lambda _, run_dir: _train(prepared, run_dir, observer))


def fit_sweep(session: Session, observer: Observer) -> list[Run]:
    """Train all jobs of a sweep, one after the other; every job is composed and checked before the first one starts."""

    def one(composed: Composed, run_dir: Path) -> Run:
        with _prepared(composed, observer) as prepared:
            return _train(prepared, run_dir, observer)

    return session.multirun(one)


class SilentObserver:
    """Watches a run without a word."""

    def __getattr__(self, name: str) -> Any:
        return lambda *_: None


@dataclass(frozen=True, kw_only=True)
class _Prepared:
    """A job that is sure to start: data read, targets checked, cluster up."""

    composed: Composed
    job: Job
    plugin: TrainerPlugin
    cluster: StartingCluster | None
    stop: StopRequest
    seconds: float


@contextmanager
def _prepared(composed: Composed, observer: Observer) -> Iterator[_Prepared]:
    """Check all that can be checked before anything is written, while Ray starts in the background."""
    began = time.monotonic()
    scaling = composed.conf.scaling
    worker_resources(scaling)
    with ExitStack() as stack:
        cluster = None
        if scaling.num_workers > 0:
            observer.stage("starting Ray")
            cluster = stack.enter_context(connect(composed.conf.cluster, cluster_cpus(scaling, DATA_CPUS)))
        job, plugin = _check_job(composed, observer)
        if cluster is not None:
            _check_cluster(composed, job, plugin, cluster, observer)
        stop = stack.enter_context(stop_on_signals())
        seconds = time.monotonic() - began
        yield _Prepared(composed=composed, job=job, plugin=plugin, cluster=cluster, stop=stop, seconds=seconds)


def _check_job(composed: Composed, observer: Observer) -> tuple[Job, TrainerPlugin]:
    dataset = None
    if composed.conf.dataset is not None:
        name = composed.resolved["dataset"]["type"]
        observer.stage(f"reading {name}")
        dataset = datasets.load_source(name).load(composed.conf.dataset)
    trainer_name = composed.resolved["trainer"]["type"]
    plugin = trainers.load_trainer(trainer_name)
    observer.stage(f"checking {trainer_name}")
    job = Job(
        conf=composed.conf,
        trainer_name=trainer_name,
        dataset=dataset,
        allow=composed.allow,
        project_root=str(composed.project_root),
    )
    plugin.check(job)
    return job, plugin


def _check_cluster(
    composed: Composed, job: Job, plugin: TrainerPlugin, pending: StartingCluster, observer: Observer
) -> None:
    from rtrain.trainers.on_ray import is_sharded

    cluster = pending.wait()
    scaling = composed.conf.scaling
    command = " ".join(_command(composed, without="scaling.num_workers"))
    check_feasible(scaling, cluster.nodes, command, data_cpus=1 if is_sharded(plugin, job) else 0)
    notice = sharing_notice(scaling) if cluster.own and not scaling.use_gpu else None
    if notice is not None:
        observer.notice(notice)


def _train(prepared: _Prepared, run_dir: Path, observer: Observer) -> Run:
    """Keep the record of the run from its first second to its last, and train in between."""
    run_dir.mkdir(parents=True, exist_ok=True)
    (run_dir / "config.yaml").write_text(prepared.composed.yaml, encoding="utf-8")
    manifest = _first_manifest(prepared, run_dir)
    recorder = Recorder(run_dir, manifest, observer, prepared.composed.conf.run.checkpoint.keep)
    with _driver_log(run_dir):
        try:
            observer.started(run_dir, manifest)
            _run_workers(prepared, recorder)
            _finish(manifest, prepared.stop.reason or "succeeded")
        except KeyboardInterrupt:
            _finish(manifest, prepared.stop.reason or "interrupted", "ended at once by a second signal")
        except Exception as error:
            _finish(manifest, "failed", str(error).partition("\n")[0])
            manifest.error = _describe_error(error, recorder)
            raise
        finally:
            manifest.timings_seconds["total"] = round(prepared.seconds + _age(manifest), 3)
            recorder.close()
            observer.ended(run_dir, manifest)
    return Run.load(run_dir)


def _run_workers(prepared: _Prepared, recorder: Recorder) -> None:
    from rtrain.trainers.in_process import train_in_process
    from rtrain.trainers.on_ray import train_on_ray

    began = time.monotonic()
    if prepared.cluster is None:
        train_in_process(prepared.plugin, prepared.job, recorder, prepared.stop)
    else:
        train_on_ray(prepared.plugin, prepared.job, recorder, prepared.stop, prepared.cluster.wait())
    recorder.manifest.timings_seconds["train"] = round(time.monotonic() - began, 3)


def _first_manifest(prepared: _Prepared, run_dir: Path) -> Manifest:
    composed, job = prepared.composed, prepared.job
    canonical = json.dumps(composed.resolved, sort_keys=True, default=str)
    cluster = None if prepared.cluster is None else prepared.cluster.wait()
    return Manifest(
        run_id=run_dir.name,
        run_name=composed.conf.run.name,
        command=_command(composed),
        config_file=None if composed.config_path is None else str(composed.config_path),
        config_hash=hashlib.sha256(canonical.encode()).hexdigest(),
        config=composed.resolved,
        overrides=list(composed.overrides),
        seed=composed.conf.run.seed,
        versions=installed_versions(),
        git=describe_git(composed.project_root),
        host=describe_host(),
        resources={
            "num_workers": composed.conf.scaling.num_workers,
            "per_worker": worker_resources(composed.conf.scaling),
            "own_cluster": None if cluster is None else cluster.own,
            "nodes": [] if cluster is None else [dict(node) for node in cluster.nodes],
            "num_cores": num_cores(),
        },
        dataset=None if job.dataset is None else asdict(job.dataset.info),
        timings_seconds={"prepare": round(prepared.seconds, 3)},
    )


def _command(composed: Composed, without: str | None = None) -> list[str]:
    """Return the command that repeats this run, with secrets masked, and without the override of one key."""
    overrides = [word for word in composed.overrides if word.partition("=")[0] != without]
    return ["rtrain", "fit", str(composed.config_path or composed.config_name), *overrides]


def _finish(manifest: Manifest, status: str, reason: str | None = None) -> None:
    manifest.status = status
    manifest.exit_reason = reason or {"succeeded": "trained to the end"}.get(status, f"stopped: {status}")
    manifest.ended_at = utc_now()


def _describe_error(error: Exception, recorder: Recorder) -> dict[str, Any]:
    if recorder.failures:
        return {key: value for key, value in recorder.failures[0].items() if key != "time"}
    text = "".join(traceback.format_exception(error))
    return {"type": type(error).__name__, "message": str(error), "rank": None, "traceback": text}


def _age(manifest: Manifest) -> float:
    from datetime import UTC, datetime

    return (datetime.now(UTC) - datetime.fromisoformat(manifest.started_at)).total_seconds()


@contextmanager
def _driver_log(run_dir: Path) -> Iterator[None]:
    """Send the log messages of rtrain and Ray to ``logs/driver.log`` while the block runs."""
    handler = logging.FileHandler(run_dir / "logs" / "driver.log", encoding="utf-8")
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    loggers = [logging.getLogger(name) for name in ("rtrain", "ray")]
    before = [(logger.handlers, logger.propagate) for logger in loggers]
    for logger in loggers:
        logger.handlers, logger.propagate = [handler], False
    try:
        yield
    except RtrainError:
        raise
    except Exception:
        logging.getLogger("rtrain").exception("the run failed")
        raise
    finally:
        for logger, (handlers, propagate) in zip(loggers, before, strict=True):
            logger.handlers, logger.propagate = handlers, propagate
        handler.close()
