"""Train what a config describes. This page is the table of contents of a run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rtrain.cluster import StartingCluster
from rtrain.config.session import Composed, Session
from rtrain.preparation import Prepared, prepared
from rtrain.recording import recorded
from rtrain.runs.recorder import Observer, Recorder
from rtrain.runs.run import Run
from rtrain.schemas import schemas


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


def fit_session(session: Session, observer: Observer, cluster: StartingCluster | None = None) -> Run:
    """Train the one job of ``session``, on ``cluster`` if it wants workers; without one, on a cluster of its own."""
    composed = session.check()
    with prepared(composed, observer, cluster) as ready:
        return session.run(lambda _, run_dir: _train(ready, run_dir, observer))


def fit_sweep(session: Session, observer: Observer) -> list[Run]:
    """Train all jobs of a sweep, one after the other; every config is checked before the first one starts."""

    def one(composed: Composed, run_dir: Path) -> Run:
        with prepared(composed, observer) as ready:
            run = _train(ready, run_dir, observer)
        if run.status in ("interrupted", "preempted"):
            raise KeyboardInterrupt  # the user means the sweep, not one of its jobs
        return run

    return session.multirun(one)


def _train(ready: Prepared, run_dir: Path, observer: Observer) -> Run:
    with recorded(ready, run_dir, observer) as recorder:
        _run_workers(ready, recorder)
    return Run.load(run_dir)


def _run_workers(ready: Prepared, recorder: Recorder) -> None:
    from rtrain.trainers.in_process import train_in_process
    from rtrain.trainers.on_ray import train_on_ray

    if ready.cluster is None:
        train_in_process(ready.plugin, ready.job, recorder, ready.stop)
    else:
        train_on_ray(ready.plugin, ready.job, recorder, ready.stop, ready.cluster)


class SilentObserver:
    """Watches a run without a word."""

    def __getattr__(self, name: str) -> Any:
        return lambda *_: None
