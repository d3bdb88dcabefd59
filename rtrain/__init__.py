"""rtrain: declarative distributed training on Ray. The whole public Python API is on this screen."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"
__all__ = [
    "Callback",
    "ConfigError",
    "RtrainError",
    "Run",
    "SweepResult",
    "TrainingError",
    "WorkerCallback",
    "__version__",
    "choice",
    "consolidate",
    "evaluate",
    "fit",
    "load_checkpoint",
    "predict",
    "resume",
    "runs",
    "sweep",
]

if TYPE_CHECKING:
    from rtrain.api.models import evaluate, load_checkpoint, predict
    from rtrain.api.sweep_result import SweepResult
    from rtrain.api.sweeps import sweep
    from rtrain.api.training import fit, resume
    from rtrain.callbacks import Callback
    from rtrain.config.calls.overrides import choice
    from rtrain.errors import ConfigError, RtrainError, TrainingError
    from rtrain.history.api import runs
    from rtrain.runs.run import Run
    from rtrain.trainers.loops.callbacks.base import WorkerCallback
    from rtrain.trainers.torch.checkpoint.shards import consolidate

_HOMES = {
    "Callback": "rtrain.callbacks",
    "WorkerCallback": "rtrain.trainers.loops.callbacks.base",
    "fit": "rtrain.api.training",
    "resume": "rtrain.api.training",
    "predict": "rtrain.api.models",
    "load_checkpoint": "rtrain.api.models",
    "evaluate": "rtrain.api.models",
    "runs": "rtrain.history.api",
    "sweep": "rtrain.api.sweeps",
    "choice": "rtrain.config.calls.overrides",
    "SweepResult": "rtrain.api.sweep_result",
    "consolidate": "rtrain.trainers.torch.checkpoint.shards",
    "Run": "rtrain.runs.run",
    "ConfigError": "rtrain.errors",
    "RtrainError": "rtrain.errors",
    "TrainingError": "rtrain.errors",
}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used, so that ``import rtrain`` stays free."""
    if name not in _HOMES:
        raise AttributeError(f"module 'rtrain' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    """Return the public names, which is what Tab completes: the modules of the package are none of them."""
    return sorted(__all__)
