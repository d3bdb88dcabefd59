"""The lines that report a run, on the terminal and in ``logs/driver.log``: how it starts, gets on and ends."""

from __future__ import annotations

import math
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rtrain.config.files.locations import shown
from rtrain.runs.events import Event
from rtrain.runs.manifest import Manifest
from rtrain.runs.status import Status
from rtrain.runs.written_files import COPIES, names_text
from rtrain.storage.stores import is_url
from rtrain.text.enumeration import few
from rtrain.text.numbers import number_text
from rtrain.text.printable import printable

SPEED = "train/rows_per_second"
NO_RESULTS = ("train/lr", SPEED)
LOSSES = ("logloss", "mlogloss", "binary_logloss", "multi_logloss", "cross_entropy", "rmse", "l2", "mse", "mae", "l1")
"""Names of losses in libraries whose loss may be one of them."""
SAME = 1e-6
"""Largest share by which two numbers differ that are one."""
MAX_OTHERS = 3
"""Runs that are named."""
ROUNDS = "num_boost_round"
"""The key of trainers whose epochs and steps are rounds."""


@dataclass(frozen=True)
class Limits:
    """How far a run is to go, where the config says so, and what its epochs are called."""

    max_epochs: int | None
    max_steps: int | None
    unit: str = "epoch"

    @classmethod
    def of(cls, manifest: Manifest) -> Limits:
        """Read the limits from the config in the manifest."""
        trainer = manifest.config.get("trainer") or {}
        if trainer.get("train_loop") is not None:  # a custom loop decides on its number of epochs
            return cls(None, trainer.get("max_steps"))
        if ROUNDS in trainer:
            return cls(trainer[ROUNDS], None, "round")
        return cls(trainer.get("max_epochs"), trainer.get("max_steps"))

    def place(self, epoch: int | str) -> str:
        """Return where a run is: ``epoch 2/15``, ``round 7/100``."""
        return f"{self.unit} {epoch}" + (f"/{self.max_epochs}" if self.max_epochs else "")


def is_milestone(event: Event) -> bool:
    """Return whether an event gets its own line: it holds an evaluation or a whole epoch."""
    return any(not name.startswith("train/") for name in event.metrics) or "train/epoch_loss" in event.metrics


def event_line(event: Event, limits: Limits) -> str:
    """Return one line for a report: where it is, and its metrics."""
    epoch, step, metrics = place_and_rest(event.epoch, event.step, event.metrics)
    parts = [limits.place(epoch), *([] if limits.unit == "round" else [f"step {step}"])]
    rate = metrics.get(SPEED)
    told = told_once(metrics, limits.unit)
    return "  ".join([*parts, metrics_text(told), *([] if rate is None else [f"{rate:,.0f} rows/s"])])


def told_once(metrics: Mapping[str, float | None], unit: str = "epoch") -> dict[str, float | None]:
    """Return the metrics, each fact once: an error is 1 minus the accuracy, and the loss has a second name.

    Learning rate and speed are left out. Boosted trees are judged by the second name, and keep it.

    Args:
        metrics: By name.
        unit: Name of an epoch.
    """
    same = [(loss, own) for own in metrics if (loss := _loss_like(own, metrics)) is not None]
    told_already = {*NO_RESULTS, *(loss if unit == "round" else own for loss, own in same)}
    return {name: value for name, value in metrics.items() if name not in told_already and not _is_told(name, metrics)}


def _is_told(name: str, metrics: Mapping[str, float | None]) -> bool:
    split, _, what = name.rpartition("/")
    value, accuracy = metrics[name], metrics.get(f"{split}/accuracy")
    if what == "loss":
        return f"{split}/epoch_loss" in metrics
    if what not in ("error", "merror") or value is None or accuracy is None:
        return False
    return abs(1 - value - accuracy) < SAME


def _loss_like(name: str, metrics: Mapping[str, float | None]) -> str | None:
    """Return the name of the loss that a metric is by another name; None if it is none."""
    split, _, what = name.rpartition("/")
    value, loss = metrics[name], metrics.get(f"{split}/loss")
    is_same = what in LOSSES and value is not None and loss is not None and abs(value - loss) < SAME * abs(loss)
    return f"{split}/loss" if is_same else None


def place_and_rest(
    epoch: int, step: int, metrics: Mapping[str, float | None]
) -> tuple[str, str, dict[str, float | None]]:
    """Return the texts of an epoch and a step, and the metrics without them: loops report both as metrics, too.

    The loop's own numbers are shown: half an epoch, say.
    """
    rest = dict(metrics)
    own_epoch, own_step = rest.pop("epoch", None), rest.pop("step", None)
    return _count_text(own_epoch, epoch), _count_text(own_step, step), rest


def _count_text(own: float | None, counted: int) -> str:
    if own is None or not math.isfinite(own):
        return str(counted)
    return str(int(own)) if own == int(own) else number_text(own)


def metrics_text(metrics: Mapping[str, float | None]) -> str:
    """Return metrics as ``name value`` pairs with four significant digits."""
    return "  ".join(f"{printable(name)} {number_text(value)}" for name, value in metrics.items())


def start_line(run_dir: Path, manifest: Manifest) -> str:
    """Return the line that a run begins with; it is shown again to those who attach to the run later."""
    workers = manifest.resources["num_workers"]
    least = manifest.resources.get("min_workers", workers)
    count = str(workers) if least == workers else f"{least} to {workers}"
    where = "in this process" if workers == 0 else f"on {count} worker{'s' if workers > 1 else ''}"
    trainer = (manifest.config.get("trainer") or {}).get("type")
    data = manifest.dataset
    what = f" on {_data_text(data)}" if data else ""
    verb, begin = "training", ""
    if (resumed_from := _resumed_from(manifest)) is not None:
        verb, begin = "resuming", f", from {resumed_from}"
    elif manifest.parent_run:
        begin = f", from the weights of {_place_text(manifest.parent_run)}"
    return f"{verb} {manifest.run_name} with {trainer}{what} {where}{begin} -> {shown(run_dir)}"


def _resumed_from(manifest: Manifest) -> str | None:
    """Return the checkpoint that a run was resumed from last; None if it trains from the start."""
    if not manifest.resumes:
        return None
    since = manifest.resumes[-1].get("time", "")
    for attempt in manifest.attempts:
        if attempt.get("started_at", "") >= since:
            name: str | None = attempt.get("from_checkpoint")
            return name
    return manifest.checkpoints[-1]["name"] if manifest.checkpoints else None


def _place_text(place: str) -> str:
    return place if is_url(place) else shown(Path(place))


def _data_text(data: Mapping[str, Any]) -> str:
    """Return what is trained on, with its rows; of several data sets the rows of each."""
    if data.get("parts"):
        return ", ".join(f"{name} ({count:,} rows)" for name, count in data["num_rows"].items())
    return f"{data['name']} ({data['num_rows'].get('train', 0):,} rows)"


def end_lines(run_dir: Path, manifest: Manifest) -> list[str]:
    """Return the end of every run: result, times, best metric, checkpoint, files, run directory, next command."""
    newest = f"checkpoints/{manifest.checkpoints[-1]['name']}" if manifest.checkpoints else None
    checkpoint = manifest.best_checkpoint or newest
    return [
        _result_line(manifest),
        *_times_line(manifest),
        _best_line(manifest),
        f"checkpoint  {shown(run_dir / checkpoint) if checkpoint else 'none'}",
        *([f"files       {files_text(manifest.files, run_dir)}"] if manifest.files else []),
        f"run         {shown(run_dir)}",
        f"next        {next_command(run_dir, manifest)}",
    ]


def _result_line(manifest: Manifest) -> str:
    """Return how the run ended; the error of one that failed is shown by itself."""
    seconds = manifest.timings_seconds.get("total")
    ended = f"result      {manifest.status}" + ("" if seconds is None else f" after {seconds:.1f} s")
    if manifest.status != Status.FAILED:
        return f"{ended}: {manifest.exit_reason}"
    return f"{ended}; its copy is NOT COMPLETE" if manifest.lacks_copy else ended


def _times_line(manifest: Manifest) -> list[str]:
    """Return how long each stage took, where that is known."""
    times = manifest.timings_seconds
    if not {"prepare", "start", "train"} <= times.keys():
        return []
    parts = {"preparing": times["prepare"], "starting workers": times["start"]}
    if not manifest.resources["num_workers"]:
        del parts["starting workers"]
    parts["training"] = times["train"]
    return [f"time        {', '.join(f'{what} {seconds:.1f} s' for what, seconds in parts.items())}"]


def _best_line(manifest: Manifest) -> str:
    """Return the best value of the metric that decides; the last values where none does."""
    best, limits = manifest.best or {}, Limits.of(manifest)
    if best.get("value") is None or not {"epoch", "step"} <= best.keys():  # the latter of a damaged manifest
        epoch, step, metrics = place_and_rest(manifest.epoch, manifest.step, manifest.metrics)
        told = metrics_text(told_once(metrics, limits.unit))
        return f"last        {told} ({_place(limits, epoch, step)})" if told else "last        none"
    model = manifest.model
    is_older = best["epoch"] == model.get("num_rounds") and model.get("best_round") != best["epoch"]
    if is_older and model.get("best_value") is not None:
        now = f"the model has all {best['epoch']}: {number_text(best['value'])}"
        return f"best        {best['monitor']} {number_text(model['best_value'])} (round {model['best_round']}; {now})"
    rounds = model.get("num_rounds") if limits.unit == "round" else None
    is_part = isinstance(rounds, int) and rounds > best["epoch"]
    place = _place(limits, f"{best['epoch']} of {rounds}" if is_part else str(best["epoch"]), str(best["step"]))
    return f"best        {best['monitor']} {number_text(best['value'])} ({place})"


def _place(limits: Limits, epoch: str, step: str) -> str:
    """Return where a run was: rounds are steps, too."""
    return f"{limits.unit} {epoch}" + ("" if limits.unit == "round" else f", step {step}")


def next_command(run_dir: Path, manifest: Manifest) -> str:
    """Return what a user probably does next with a run."""
    if is_url(place := shown(run_dir)):
        command = ["runs", "fetch"] if manifest.status == Status.SUCCEEDED else ["resume"]
        return shlex.join(["rtrain", *command, place])
    if manifest.status == Status.FAILED:
        log = _log_of(run_dir, manifest)
        return shlex.join(["less", shown(log)] if log is not None else ["rtrain", "resume", shown(run_dir)])
    if manifest.status != Status.SUCCEEDED:
        return shlex.join(["rtrain", "resume", shown(run_dir)])
    if manifest.storage is not None and not manifest.storage["complete"]:
        return shlex.join(["rtrain", "runs", "upload", shown(run_dir)])
    return shlex.join(["rtrain", *(["evaluate"] if _can_be_evaluated(manifest) else ["runs", "show"]), shown(run_dir)])


def _can_be_evaluated(manifest: Manifest) -> bool:
    """Return whether a declared model was trained, and rows are left that it has not seen."""
    data, trainer = manifest.dataset or {}, manifest.config.get("trainer") or {}
    has_rows = not data.get("parts") and bool({"val", "test"} & data.get("num_rows", {}).keys())
    return bool(manifest.checkpoints) and has_rows and not is_own_loop(trainer)


def is_own_loop(trainer: Mapping[str, Any]) -> bool:
    """Return whether a function of the user's trains, by the section ``trainer`` of a config."""
    return (trainer.get("train_loop") or trainer.get("train_function")) is not None


def files_text(files: Mapping[str, Any], run_dir: Path | None = None) -> str:
    """Return which files a loop of the user's left in the current folder, as the manifest has them.

    Args:
        files: Of the manifest.
        run_dir: The run that has copies of them, if it does.
    """
    copies = f"; copies in {shown(run_dir / COPIES)}" if run_dir is not None and files.get("copies") == COPIES else ""
    others = f"; may be {others_text(files)}" if files.get("may_be_of") else ""
    return f"{printable(names_text(files))} in {printable(str(files['folder']))}{copies}{others}"


def others_text(files: Mapping[str, Any]) -> str:
    """Return which other runs may have written the files of a manifest."""
    return f"from {printable(few(files['may_be_of'], MAX_OTHERS))}, which trained at the same time"


def _log_of(run_dir: Path, manifest: Manifest) -> Path | None:
    """Return the log that says most of why a run failed: of the worker that failed, else the driver's."""
    last = manifest.attempts[-1].get("ended_because", {}) if manifest.attempts else {}
    rank = (manifest.error or last).get("rank", last.get("rank"))
    names = ([] if rank is None else [f"worker-{rank}.crash.txt", f"worker-{rank}.log"]) + ["driver.log"]
    paths = (run_dir / "logs" / name for name in names)
    return next((path for path in paths if path.is_file() and path.stat().st_size > 0), None)
