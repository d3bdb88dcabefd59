"""The sanity check of model, loss and metrics on the driver; what fails is refused before a run directory exists."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from rtrain.config.diagnostics.own_lines import own_lines, render_lines
from rtrain.config.targets.importing import raised_at
from rtrain.engine.masked_output import masked_output
from rtrain.engine.side_effects import looking
from rtrain.errors import ConfigError, RtrainError, TargetError, first_line
from rtrain.trainers.base import Job
from rtrain.trainers.known_errors import is_out_of_memory
from rtrain.trainers.sanity_check import WrongOutputsError

OUTPUTS = ("num_classes", "out_features", "num_labels", "vocab_size")
"""Arguments of models that are usually their number of outputs."""
_KEY = re.compile(r"(trainer(?:\.\w+|\[\d+\])+): (.+)", re.DOTALL)
_OF_DEVICES = re.compile(r"\b(cpu|cuda|cudnn|cublas|gpus?|hip|triton|nccl|driver|devices?)\b", re.IGNORECASE)
"""Words of errors that may come of a CPU in the place of a GPU."""


@contextmanager
def tried_before_start(job: Job) -> Iterator[None]:
    """Let the block try what ``job`` names, and make its failure an error of the config.

    The workers decide where code wants to fetch something, lacks a file, a module or memory, or needs a GPU: they may
    succeed.

    Raises:
        ConfigError: Training would fail before its first step; names the key.
    """
    with masked_output(job.redact), looking() as look:  # children and libraries print past Python's streams
        try:
            yield
        except Exception as error:
            if look.connects or not _is_certain(error, use_gpu=job.conf.scaling.use_gpu):
                return
            raise _refusal(error, job) from error.__cause__ or error


def _is_certain(error: BaseException, *, use_gpu: bool) -> bool:
    cause = error.__cause__ if isinstance(error, RtrainError) and error.__cause__ is not None else error
    if isinstance(cause, RtrainError):
        return True
    text = str(cause)
    return not (
        isinstance(cause, OSError | MemoryError | ImportError)
        or is_out_of_memory(type(cause).__name__, text)
        or (use_gpu and _OF_DEVICES.search(text))
    )


def _refusal(error: Exception, job: Job) -> ConfigError:
    """Return the error of a config: with its key, whose place in the command or a file is then shown."""
    if isinstance(error, WrongOutputsError):
        return TargetError(_output_key(job.conf.trainer.model, error.size), error.message, error.hint)
    if not isinstance(error, RtrainError):
        message = f"the {job.trainer_name} trainer can't be built: {type(error).__name__}: {first_line(error)}"
        return ConfigError(message, raised_at(error))
    frames, found = own_lines(error, job.redact), _KEY.fullmatch(error.message)
    lines = render_lines(frames, folded=False) if frames["own"] and not isinstance(error, ConfigError) else []
    hint = "\n".join([*lines, error.hint or ""]).strip("\n") or None
    return ConfigError(error.message, hint) if found is None else TargetError(found[1], found[2], hint)


def _output_key(node: Mapping[str, Any], size: int) -> str:
    """Return the key that gives a model its number of outputs, as far as one of the usual names has that number."""
    named = [f"trainer.model.{name}" for name in OUTPUTS if node.get(name) == size]
    return named[0] if named else "trainer.model"
