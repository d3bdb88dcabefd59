"""What training with torch sets for the whole process, and sets back."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np
import torch
import torch.utils.deterministic

from rtrain.cluster.scaling import refuse_shared_gpu
from rtrain.config.did_you_mean import to_try
from rtrain.config.schema import ScalingConf
from rtrain.errors import ConfigError
from rtrain.trainers.loops.seeding import seed_step
from rtrain.trainers.worker import Worker

CUBLAS_WORKSPACE = "CUBLAS_WORKSPACE_CONFIG"
SWITCHES: tuple[tuple[Callable[[], Any], Callable[[Any], object]], ...] = (
    (torch.get_default_dtype, torch.set_default_dtype),
    (torch.is_grad_enabled, torch.set_grad_enabled),
    (torch.get_float32_matmul_precision, torch.set_float32_matmul_precision),
    (torch.is_anomaly_enabled, torch.autograd.set_detect_anomaly),
    (lambda: torch.backends.mkldnn.enabled, partial(setattr, torch.backends.mkldnn, "enabled")),
    (lambda: torch.backends.cudnn.enabled, partial(setattr, torch.backends.cudnn, "enabled")),
    (torch.get_default_device, lambda device: torch.set_default_device(None if device.type == "cpu" else device)),
)
"""What holds for all that a process computes: how it is found out, and set."""


def check_gpu(scaling: ScalingConf) -> None:
    """Refuse a GPU for training in this process where torch sees none, and one for several workers.

    Raises:
        ConfigError: Names the key.
    """
    refuse_shared_gpu(scaling)
    if scaling.use_gpu and scaling.num_workers == 0 and not torch.cuda.is_available():
        raise ConfigError("scaling.use_gpu: torch sees no GPU on this machine.", to_try("use_gpu=false"))


@contextmanager
def torch_settings(worker: Worker, *, deterministic: bool | None) -> Iterator[None]:
    """Set threads, determinism and the seed of everything that is built; afterwards the process is as it was.

    What the process draws later is what it would have drawn without the block, but for GPUs that it first uses in it.

    Args:
        worker: Its conf has ``num_threads``.
        deterministic: Whether kernels repeat their results where they can; None: the block decides.
    """
    filling: Any = torch.utils.deterministic
    threads, fill = torch.get_num_threads(), filling.fill_uninitialized_memory
    strict = _determinism()
    benchmark = torch.backends.cudnn.benchmark
    workspace = os.environ.get(CUBLAS_WORKSPACE)
    if deterministic and worker.use_gpu:
        # cuBLAS reads this when it starts; without it, its results depend on timing.
        os.environ.setdefault(CUBLAS_WORKSPACE, ":4096:8")
    torch.set_num_threads(worker.conf.num_threads or worker.num_threads)
    if deterministic is not None:
        torch.use_deterministic_algorithms(deterministic, warn_only=True)
        # Filling memory that is written anyway finds bugs in kernels; it doesn't make results repeat.
        filling.fill_uninitialized_memory = False
        torch.backends.cudnn.benchmark = not deterministic
    is_used = worker.in_process and torch.cuda.is_initialized()  # type: ignore[no-untyped-call]
    own_gpus = range(torch.cuda.device_count()) if is_used else ()
    try:
        with torch.random.fork_rng(own_gpus):
            torch.manual_seed(worker.run.seed)
            seed_step(worker.run.seed, 0)  # all ranks build the same
            yield
    finally:
        torch.set_num_threads(threads)
        if _determinism() != strict:  # the call imports torch's compiler, which takes seconds
            torch.use_deterministic_algorithms(strict[0], warn_only=strict[1])
        filling.fill_uninitialized_memory = fill
        torch.backends.cudnn.benchmark = benchmark
        if workspace is None:
            os.environ.pop(CUBLAS_WORKSPACE, None)


@contextmanager
def training_settings(worker: Worker, *, deterministic: bool | None) -> Iterator[None]:
    """Do the same while a model is trained; what the user's code switches for the process is switched back too."""
    before = [value() for value, _ in SWITCHES]
    with torch_settings(worker, deterministic=deterministic), np.errstate():
        try:
            yield
        finally:
            for (value, set_to), was in zip(SWITCHES, before, strict=True):
                if value() != was:
                    set_to(was)


@contextmanager
def matmul_precision(precision: str) -> Iterator[None]:
    """Multiply float32 matrices this exactly; ``highest``, torch's own choice, leaves the process as it is."""
    if precision == "highest":
        yield
        return
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision(precision)
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


def _determinism() -> tuple[bool, bool]:
    """Return whether kernels have to repeat their results, and whether those that can't only warn."""
    return torch.are_deterministic_algorithms_enabled(), torch.is_deterministic_algorithms_warn_only_enabled()
