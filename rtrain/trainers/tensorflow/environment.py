"""What TensorFlow and Keras share with the process: variables before their import, random numbers after it."""

from __future__ import annotations

import os
import re
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from rtrain.errors import ConfigError
from rtrain.trainers.base import Job

BACKEND = "KERAS_BACKEND"
NEEDED = {BACKEND: "tensorflow", "TF_USE_LEGACY_KERAS": "0"}
QUIET = {"TF_CPP_MIN_LOG_LEVEL": "2", "GRPC_VERBOSITY": "ERROR"}
"""How much is logged, unless the user says otherwise."""

GREETING = re.compile(r"[IWE]\d{4} \d\d:|[IWE]0000 |WARNING: All log messages before absl")
"""Begins the lines that TensorFlow writes at its start, whatever its settings."""


def check_backend(job: Job) -> None:
    """Refuse another backend of Keras for the workers.

    Raises:
        ConfigError: ``cluster.runtime_env`` names one.
    """
    given = job.conf.cluster.runtime_env.get("env_vars")
    backend = given.get(BACKEND, "tensorflow") if isinstance(given, Mapping) else "tensorflow"
    if backend != "tensorflow" and job.conf.scaling.num_workers != 0:
        raise ConfigError(
            f"cluster.runtime_env.env_vars.{BACKEND}: this trainer needs Keras on TensorFlow, not on {backend}.",
            "Leave it out",
        )


def variables() -> dict[str, str]:
    """Return what has to be set before TensorFlow is imported; a level of its log that the user has set wins."""
    return {**NEEDED, **{name: os.environ.get(name, value) for name, value in QUIET.items()}}


def prepare_import() -> None:
    """Import TensorFlow and Keras, with Keras on TensorFlow, and without their greeting.

    Raises:
        ConfigError: Keras has been imported with another backend.
    """
    os.environ.update(variables())
    if "tensorflow" not in sys.modules:
        import_quietly()
    import keras

    if keras.config.backend() != "tensorflow":
        raise ConfigError(
            f"Keras has been imported with the backend {keras.config.backend()} in this process.",
            "Set KERAS_BACKEND=tensorflow, or train on a worker: num_workers=1",
        )


def import_quietly() -> None:
    """Import TensorFlow without its greeting."""
    with no_greeting():
        import tensorflow

        tensorflow.config.list_physical_devices()


@contextmanager
def no_greeting() -> Iterator[None]:
    """Leave TensorFlow's greeting out of what the block writes to the standard error; the rest comes at its end."""
    with tempfile.TemporaryFile("w+") as kept:
        before = os.dup(2)
        os.dup2(kept.fileno(), 2)
        try:
            yield
        finally:
            os.dup2(before, 2)
            os.close(before)
            kept.seek(0)
            sys.stderr.writelines(line for line in kept if not GREETING.match(line))


@contextmanager
def kept_random_numbers() -> Iterator[None]:
    """Let TensorFlow and Keras draw, after the block, as they would have before it.

    Neither has a public way: ``keras.utils.set_random_seed`` replaces what is kept here.
    """
    from keras.src.backend.common import global_state
    from keras.src.random.seed_generator import GLOBAL_SEED_GENERATOR
    from keras.src.utils.rng_utils import GLOBAL_RANDOM_SEED
    from tensorflow.python.eager import context

    eager, names = context.context(), (GLOBAL_RANDOM_SEED, GLOBAL_SEED_GENERATOR)
    of_keras = {name: global_state.get_global_attribute(name) for name in names}
    seed, numbers = eager._seed, getattr(eager, "_rng", None)  # there is none before a seed is set
    try:
        yield
    finally:
        eager._seed, eager._rng = seed, numbers
        for name, value in of_keras.items():
            global_state.set_global_attribute(name, value)
