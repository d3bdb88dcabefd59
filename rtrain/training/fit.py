"""Train what a config describes. This page is the table of contents of a run."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path

from rtrain.cluster.ray_cluster import StartingCluster
from rtrain.config.calls.call import Call
from rtrain.config.files.locations import project_of, shown
from rtrain.config.session import Session
from rtrain.errors import ConfigError, TrainingError
from rtrain.process.interrupts import telling_of_signals
from rtrain.runs.filesystem.files import named_errors
from rtrain.runs.filesystem.plain_files import read_text
from rtrain.runs.manifest import read_manifest
from rtrain.runs.observer import Observer
from rtrain.runs.recorder import Recorder
from rtrain.runs.run import Run
from rtrain.runs.signature import is_signed_by_this_account, not_trusted
from rtrain.schemas import schemas
from rtrain.training.left_files import files_noted
from rtrain.training.preparation import Prepared, prepared
from rtrain.training.recording import is_shown_directly, recorded
from rtrain.training.resuming import Resumption, find_resumption


def resuming_session(
    run_dir: Path, overrides: Sequence[str], *, trust: bool = False, call: Call | None = None, verb: str = "resume"
) -> Session:
    """Return the session of a run's own config with changes.

    Args:
        run_dir: The run.
        overrides: The changes.
        trust: Run what its config names, even if another account wrote it.
        call: The call from Python that asks for it; None: a command does.
        verb: The command.

    Raises:
        ConfigError: Another account wrote the config, and it is not trusted.
    """
    config, manifest = run_dir / "config.yaml", read_manifest(run_dir)
    try:
        text = read_text(run_dir, config.name)
    except (FileNotFoundError, ValueError) as error:
        raise ConfigError(f"{config} can't be read: {error}", "Start a new run: rtrain fit CONFIG") from error
    if not trust and not is_signed_by_this_account(text, manifest.project_root):
        raise not_trusted(run_dir, config.name)
    typed = ("rtrain", *verb.split(), shown(run_dir))
    # A run that was brought here from another machine finds its project where the command is given.
    root, _ = project_of(run_dir, manifest.project_root, manifest.config_file)
    session = Session(str(config), overrides, schemas(), project_root=root, typed=typed, call=call)
    session.trust, session.verb = trust, verb
    return session


def fit_session(
    session: Session, observer: Observer, cluster: StartingCluster | None = None, *, resumed: Path | None = None
) -> Run:
    """Train the one job of ``session``.

    Args:
        session: What the user asks for.
        observer: Notified of the progress.
        cluster: Where to train, if workers are wanted; None: on a new cluster.
        resumed: The run to resume; None: as ``run.resume`` says.
    """
    composed = session.check()
    for notice in composed.notices:
        observer.notice(notice)
    resumption = find_resumption(composed, resumed, observer.notice)
    with prepared(composed, observer, cluster) as ready:
        run_dir = None if resumption is None else resumption.run_dir
        with named_errors(run_dir or composed.run_dir):
            return session.run(lambda _, run_dir: train_prepared(ready, run_dir, observer, resumption), run_dir)


def train_prepared(ready: Prepared, run_dir: Path, observer: Observer, resumption: Resumption | None = None) -> Run:
    """Train a job that is sure to start, and return its run.

    Args:
        ready: The job.
        run_dir: Where it is recorded.
        observer: Notified of the progress.
        resumption: The run to resume, in ``run_dir``.
    """
    if resumption is not None:
        ready = replace(ready, job=replace(ready.job, strange=resumption.strange))
    recording = recorded(ready, run_dir, observer, resumption)
    with recording as recorder, ready.composed.redact.cleaning(), _telling_of_signals(ready, recorder):
        if resumption is None and not ready.composed.sweep:  # a sweep tells it once for all of its trials
            for text in ready.job.notices:
                recorder.observer.notice(text)
        with files_noted(ready, recorder):
            _run_workers(ready, recorder)
    return Run.load(run_dir)


def _telling_of_signals(ready: Prepared, recorder: Recorder) -> AbstractContextManager[None]:
    """Say that a signal was heard, where it is to end this run and not a sweep."""
    return nullcontext() if ready.composed.sweep else telling_of_signals(ready.stop, recorder.observer.notice)


def _run_workers(ready: Prepared, recorder: Recorder) -> None:
    from rtrain.engine.in_process import train_in_process
    from rtrain.engine.ray.train import train_on_ray

    try:
        if ready.cluster is None:
            shows = is_shown_directly(ready)
            train_in_process(ready.plugin, ready.job, recorder, ready.stop, ready.num_threads, shows_output=shows)
        else:
            train_on_ray(ready.plugin, ready.job, recorder, ready.stop, ready.cluster, ready.group)
    except OSError as error:  # where the run directory can't be written, the error says so
        raise TrainingError(f"{type(error).__name__}: {error}") from error
