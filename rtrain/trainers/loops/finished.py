"""What to say of a resumed run that had ended before: why, and which command extends it."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from rtrain.trainers.base import LENGTHS
from rtrain.trainers.worker import Worker


def tell_over(worker: Worker, reason: str, done: Mapping[str, int], lifted: Sequence[str]) -> None:
    """Tell the user that nothing is left to train; on rank 0.

    Args:
        worker: Of the resumed run.
        reason: Why it had ended, in a few words.
        done: What the run has done, by the key of the trainer, e.g. ``early_stopping.patience``, that limits it.
        lifted: The overrides that lift other limits which it has reached: of the time, and of metrics.
    """
    limits = {key: _value(worker.conf, key) for key in done}
    reached = {key: limit for key, limit in limits.items() if limit is not None and done[key] >= limit}
    lengths = [f"trainer.{key}={reached[key]} ({done[key]:,} done)" for key in LENGTHS if key in reached]
    why = " and ".join([*lengths, *([reason] if reason and reason not in LENGTHS else [])]) or "fit was called"
    longer = [*(f"trainer.{key}={done[key] + limit}" for key, limit in reached.items()), *lifted]
    worker.notice(f"nothing is left to train: {why}. {_how_to_extend(worker, longer, is_long=bool(lengths))}")


def _how_to_extend(worker: Worker, longer: list[str], *, is_long: bool) -> str:
    if is_long and worker.schedule is not None:
        again = shlex.join(["rtrain", "fit", f"{worker.run_dir}/config.yaml", f"run.init_from={worker.run_dir}"])
        return f"{worker.schedule} depends on the length of the run; to start a new run with its weights: {again}"
    if longer:
        return f"To continue training: {shlex.join(['rtrain', 'resume', str(worker.run_dir), *longer])}"
    return "To continue training, resume the run with another limit, or start a new one"


def _value(conf: Any, key: str) -> Any:
    for name in key.split("."):
        conf = getattr(conf, name, None)
    return conf
