"""Keep the record of a run from its first second to its last."""

from __future__ import annotations

import time
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from rtrain.cluster.ray_cluster import Cluster
from rtrain.cluster.scaling import fewest_and_most, worker_resources
from rtrain.config.diagnostics.own_lines import render_lines
from rtrain.config.did_you_mean import nearest_or_all
from rtrain.config.files.locations import shown
from rtrain.config.run_conf import RunConf
from rtrain.config.schema import ScalingConf
from rtrain.config.secrets.masked_lines import masked_diff
from rtrain.config.secrets.redact import Redactor
from rtrain.driver_log import LoggingObserver, driver_log, log_error
from rtrain.engine.crash import read_crash
from rtrain.errors import (
    MOST_OF_TRACEBACK,
    CheckpointError,
    ForbiddenFileError,
    RtrainError,
    TrainingError,
    first_line,
    in_brief,
    shortened,
)
from rtrain.process.interrupts import AT_ONCE, StopRequest, is_by_signal
from rtrain.runs.checkpoints import RECORD_NAME, Retention, all_checkpoints, read_record
from rtrain.runs.events import events_file, newest_first
from rtrain.runs.facts import GitState, describe_host, installed_versions, num_cores, read_git
from rtrain.runs.filesystem.files import SWEEP, named_errors
from rtrain.runs.filesystem.lock import Lock, locked
from rtrain.runs.filesystem.plain_files import check_run_dir
from rtrain.runs.logs import OutputLines
from rtrain.runs.manifest import Manifest, read_manifest, utc_now
from rtrain.runs.observer import Observer
from rtrain.runs.origin import code_changes, code_now, code_of_run, in_words, write_origin
from rtrain.runs.recorder import Recorder
from rtrain.runs.signature import with_signature
from rtrain.runs.status import Status
from rtrain.runs.verify import set_aside, without_record
from rtrain.text.enumeration import few
from rtrain.tracking.callbacks import make_callbacks
from rtrain.trainers.loops.monitor import goal_names
from rtrain.trainers.named_code import changed_code
from rtrain.trainers.registry import recorded_packages
from rtrain.trainers.trained import CheckpointMetadata, read_about
from rtrain.training.companions import Companions
from rtrain.training.preparation import Prepared
from rtrain.training.resuming import Resumption, describe_changes

MOST_CHANGES = 6
"""So many changes of the code are named to whoever resumes a run."""


@contextmanager
def recorded(
    prepared: Prepared, run_dir: Path, observer: Observer, resumption: Resumption | None = None
) -> Iterator[Recorder]:
    """Write the run directory: the manifest says how the block ended, however it does.

    Raises:
        RunInUseError: Another process writes it.
        StrangeFileError: A link, a pipe or the like stands where a run writes.
        ConfigError: The data are not those of the run to resume.
    """
    began, stop = time.monotonic(), prepared.stop
    callbacks = make_callbacks(prepared.composed.conf.run.callbacks, prepared.composed.builder)
    run_dir.mkdir(parents=True, exist_ok=True)
    check_run_dir(run_dir)
    with locked(run_dir) as lock:
        stop.note_by(lock.note_end)
        recorder = _opened(prepared, run_dir, observer, resumption, lock)
        companions = Companions(prepared, recorder, callbacks)
        manifest, observer, at_once = recorder.manifest, recorder.observer, False
        with driver_log(run_dir, prepared.composed.redact):
            try:
                observer.started(run_dir, manifest)
                companions.start()
                yield recorder
                companions.drain()
                check_rows(manifest)
                _finish(manifest, stop)
                tell_missing_goals(manifest, prepared.composed.conf.run, observer)
            except BaseException as error:
                stop.ending = True
                if is_by_signal(error, stop):
                    _finish(manifest, stop, at_once=True)
                    at_once = True
                    return
                _note_failure(error, recorder, prepared.composed.redact)
                raise
            finally:
                stop.ending = True
                manifest.ended_at = utc_now()
                _note_times(recorder, prepared.seconds, began)
                recorder.close()
                companions.finish(at_once=at_once)
                observer.ended(run_dir, manifest)


def _opened(
    prepared: Prepared, run_dir: Path, observer: Observer, resumption: Resumption | None, lock: Lock
) -> Recorder:
    """Return what writes the run, once its first manifest is there."""
    composed = prepared.composed
    git = read_git(composed.project_root)
    manifest = _first_manifest(prepared, run_dir, git)
    if resumption is not None:
        # Another process may have resumed it, and ended, since it was found.
        _take_up(manifest, replace(resumption, manifest=read_manifest(run_dir)), prepared, observer)
    config = with_signature(composed.yaml, str(composed.project_root))
    cadence = composed.conf.run.checkpoint
    retention = Retention(cadence.keep, cadence.best.keep)
    logged = LoggingObserver(observer, run_dir)
    recorder = Recorder(run_dir, manifest, logged, retention, config, lock, _output_lines(prepared))
    if resumption is None or manifest.resumes[-1].get("code_before"):
        _write_origin(prepared, run_dir, git, manifest)
    return recorder


def _note_failure(error: BaseException, recorder: Recorder, redact: Redactor) -> None:
    manifest = recorder.manifest
    manifest.status, manifest.exit_reason = Status.FAILED, redact(first_line(error))
    manifest.error = redact.clean_data(_describe_error(error, recorder))
    if isinstance(error, RtrainError):
        error.run_dir = recorder.run_dir
    log_error(error)


def _note_times(recorder: Recorder, prepare: float, began: float) -> None:
    """Note how long the stages of this process took.

    Args:
        recorder: Of the run.
        prepare: Seconds before there was a run directory.
        began: When there was one, by :func:`time.monotonic`.
    """
    now = time.monotonic()
    start = (recorder.attempt_began or now) - began
    times = {"start": start, "train": now - began - start, "total": prepare + now - began}
    recorder.manifest.timings_seconds |= {name: round(seconds, 3) for name, seconds in times.items()}


def is_shown_directly(prepared: Prepared) -> bool:
    """Tell whether what the train loop prints goes to this process's own streams."""
    alone = prepared.cluster is None and prepared.composed.sweep is None
    return alone and prepared.composed.conf.run.show_output != "none"


def _output_lines(prepared: Prepared) -> OutputLines | None:
    """Return what makes lines of what is printed, where it has to be brought here to be shown.

    Trials train at the same time: their output is shown if all of it is wanted.
    """
    wanted = prepared.composed.conf.run.show_output
    shown = ("rank0", "all") if prepared.composed.sweep is None else ("all",)
    if wanted not in shown or is_shown_directly(prepared):
        return None
    return OutputLines(all_ranks=wanted == "all" and prepared.cluster is not None)


def _edited_files(checkpoints: Sequence[Path], about: CheckpointMetadata) -> list[str]:
    """Return the files of the project that the trainer names and that have changed since the last checkpoint."""
    try:
        return changed_code(read_about(checkpoints[-1]).code, about.code) if checkpoints else []
    except CheckpointError:  # a damaged one is reported where training takes it up
        return []


def _take_up(manifest: Manifest, resumption: Resumption, prepared: Prepared, observer: Observer) -> None:
    """Continue the record of a resumed run, and report the differences."""
    info = None if prepared.job.dataset is None else prepared.job.dataset.info
    notice = resumption.check_data(info, may_differ=prepared.composed.conf.run.resume_data == "changed")
    before, changed_keys = resumption.manifest, describe_changes(resumption.changed)
    code = code_changes(code_of_run(resumption.run_dir, before), code_now(manifest.git, manifest.versions))
    ended = how_it_was_cut_off(resumption.run_dir, before)
    changed = f"resuming with {', '.join(changed_keys)}" if changed_keys else None
    checkpoints = all_checkpoints(resumption.run_dir)
    others = [*([in_words(code)] if code else []), *_edited_files(checkpoints, prepared.job.about)]
    other_code = f"the code is another one than before: {few(others, MOST_CHANGES)}" if others else None
    anew = None if checkpoints else "it has no checkpoint, so training starts from scratch"
    for text in (ended, notice, changed, other_code, anew, _sweep_of(resumption.run_dir, prepared)):
        if text is not None:
            observer.notice(text)
    entry = {
        "time": manifest.started_at,
        "command": prepared.composed.command_resuming(resumption.run_dir),
        "changed": changed_keys,
        **({"code_before": {name: was for name, (was, _) in code.items()}} if code else {}),
        "status_before": before.status,
        "exit_reason_before": before.exit_reason,
        "error_before": before.error,
    }
    manifest.resumes = [*before.resumes, entry]
    lasting = ("started_at", "command", "workers", "model", "step", "epoch", "metrics", "values", "attempts")
    for name in (*lasting, "events_lost_until", "parent_run", "lineage"):
        setattr(manifest, name, getattr(before, name))
    for folder, wrong in without_record(resumption.run_dir, before.checkpoints):
        text = f"the checkpoint {folder.name} is damaged ({RECORD_NAME}: {wrong})"
        observer.notice(f"{text}. It was renamed to {set_aside(folder).name}")


def _sweep_of(run_dir: Path, prepared: Prepared) -> str | None:
    """Return the line that a trial is resumed apart from its sweep; None of other runs."""
    folder = run_dir.absolute().parent
    if prepared.composed.sweep is not None or not (folder / SWEEP).is_file():
        return None
    return f"it is a trial of {shown(folder)}, whose record and best trial stay as they are until that is resumed"


def how_it_was_cut_off(run_dir: Path, manifest: Manifest) -> str | None:
    """Return how the process ended that wrote a run and could not say it, with the line that crashed if one did."""
    if manifest.status != Status.RUNNING:
        return None
    ranks = range(manifest.attempts[-1]["num_workers"] or 1) if manifest.attempts else range(0)
    crash = next((found for rank in ranks if (found := read_crash(run_dir, rank)) is not None), None)
    if crash is None:
        why = "it was killed (for example by the system, out of memory), or its machine went down"
        saved: list[int] = []
        reported = next((event.step for event in newest_first(events_file(run_dir))), manifest.step)
        with suppress(ForbiddenFileError):
            saved = [read_record(one)["step"] for one in all_checkpoints(run_dir)[-1:]]
        listed = [one.get("step", 0) for one in manifest.checkpoints]  # of a copy, they are not on this disk
        step = max([reported, *saved, *listed])
        return f"the process that trained this run ended without an error message after step {step}: {why}"
    lines = [f"the process that trained this run crashed{crash.place}: {crash.what}", *render_lines(crash.frames)]
    return "\n".join([*lines, f"The stack of every thread is in {shown(crash.path)}"])


def _write_origin(prepared: Prepared, run_dir: Path, git: GitState | None, manifest: Manifest) -> None:
    """Keep what the run starts from: a diff may hold secrets by their values, or by the names of their keys."""
    with named_errors(run_dir):
        write_origin(run_dir, git, lambda diff: prepared.composed.redact(masked_diff(diff)), manifest)


def _first_manifest(prepared: Prepared, run_dir: Path, git: GitState | None) -> Manifest:
    composed, dataset, cluster = prepared.composed, prepared.job.dataset, prepared.cluster
    return Manifest(
        run_id=run_dir.name,
        run_name=composed.conf.run.name,
        command=composed.command,
        config_file=None if composed.config_path is None else str(composed.config_path),
        config_hash=composed.config_hash,
        config=composed.resolved,
        overrides=list(composed.overrides),
        project_root=str(composed.project_root),
        seed=composed.conf.run.seed,
        versions=installed_versions(recorded_packages(prepared.job.trainer_name)),
        git=None if git is None else git.facts,
        host=describe_host(),
        resources={
            **_num_workers(composed.conf.scaling, cluster),
            "per_worker": worker_resources(composed.conf.scaling),
            "own_cluster": None if cluster is None else cluster.own,
            "nodes": [] if cluster is None else [dict(node) for node in cluster.nodes],
            "num_cores": num_cores(),
        },
        dataset=None if dataset is None else asdict(dataset.info),
        parent_run=composed.conf.run.init_from,
        timings_seconds={"prepare": round(prepared.seconds, 3)},
    )


def _num_workers(scaling: ScalingConf, cluster: Cluster | None) -> dict[str, int]:
    fewest, most = fewest_and_most(scaling, own_cluster=cluster is None or cluster.own)
    return {"num_workers": most, "min_workers": fewest}


def tell_missing_goals(manifest: Manifest, conf: RunConf, observer: Observer) -> None:
    """Report metrics that were to end a finished run, or to choose its best checkpoint, and were never reported.

    Most trainers know what they will report and refuse such a name before or at the first evaluation; a loop of the
    user's does not.
    """
    if manifest.status != Status.SUCCEEDED:
        return
    watched = goal_names(conf.stop)
    if conf.checkpoint.best.monitor is not None:
        watched.setdefault(conf.checkpoint.best.monitor, "run.checkpoint.best.monitor")
    for name, key in watched.items():
        if name not in manifest.metrics:
            there = nearest_or_all(name, manifest.metrics) if manifest.metrics else "there are none"
            observer.notice(f"{key}: no metric {name} was reported; {there}")


def check_rows(manifest: Manifest) -> None:
    """Raise a TrainingError if the workers together had more or fewer rows of a split than there are.

    Only workers of the last attempt count. A split that one of them says nothing of is not checked.
    """
    num_workers = max(1, manifest.attempts[-1]["num_workers"]) if manifest.attempts else 1
    counts = [manifest.workers.get(str(rank), {}).get("num_rows", {}) for rank in range(num_workers)]
    for split, expected in (manifest.dataset or {}).get("num_rows", {}).items():
        own = [count[split] for count in counts if split in count]
        if len(own) == num_workers and sum(own) != expected:
            parts = " + ".join(map(str, own))
            raise TrainingError(
                f"the workers had {parts} rows of the split '{split}', which has {expected}: rows were repeated or "
                "skipped.",
                "Do not trust the results of this run; its checkpoints are kept.",
            )


def _finish(manifest: Manifest, stop: StopRequest, *, at_once: bool = False) -> None:
    """Note how a run ended that did not fail."""
    if at_once:
        manifest.status, manifest.exit_reason = stop.reason or Status.INTERRUPTED, AT_ONCE
    elif (verdict := stop.verdict()) is not None:
        manifest.status, manifest.exit_reason = verdict
    else:
        manifest.status, manifest.exit_reason = Status.SUCCEEDED, manifest.exit_reason or "trained to the end"


def _describe_error(error: BaseException, recorder: Recorder) -> dict[str, Any]:
    if recorder.failures:
        return min(recorder.failures, key=lambda failure: failure.time).facts()
    text = shortened("".join(traceback.format_exception(error)), MOST_OF_TRACEBACK)
    return {"type": type(error).__name__, "message": in_brief(str(error)), "rank": None, "traceback": text}
