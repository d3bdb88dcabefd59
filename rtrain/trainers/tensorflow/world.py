"""What a train loop finds under trainer=tensorflow: what Ray's ``TensorflowTrainer`` sets up."""

from __future__ import annotations

import json
import os
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any

from rtrain.config.did_you_mean import to_try
from rtrain.errors import ConfigError
from rtrain.trainers.base import Job
from rtrain.trainers.loops.custom.world import LoopWorld, TrainingFunction
from rtrain.trainers.tensorflow import environment
from rtrain.trainers.worker import Worker

LEGACY = "TF_USE_LEGACY_KERAS"


class World(LoopWorld):
    """``TF_CONFIG`` with the addresses of all workers, and Keras 2: Keras 3 fails under MultiWorkerMirroredStrategy."""

    framework = "tensorflow"
    backend = "ray.train.tensorflow.TensorflowConfig"

    def check(self, job: Job) -> None:
        """Refuse several workers without Keras 2, and Keras on anything but TensorFlow."""
        environment.check_backend(job)
        if job.conf.scaling.num_workers not in (0, 1) and not _has_keras_2():
            raise ConfigError(
                "scaling.num_workers: a train loop of TensorFlow needs Keras 2 on several workers, and tf-keras is not "
                "installed: Keras 3 fails under MultiWorkerMirroredStrategy.",
                "  " + to_try("pip install tf-keras"),
            )

    def variables(self) -> dict[str, str]:
        """Keep TensorFlow's log quiet, and have ``tf.keras`` be Keras 2 where that is installed."""
        return {**environment.variables(), LEGACY: "1" if _has_keras_2() else "0"}

    @contextmanager
    def importing(self) -> Iterator[None]:
        """Keep TensorFlow's greeting out of the terminal if the module of the loop imports it."""
        with super().importing(), environment.no_greeting():
            yield

    @contextmanager
    def entered(self, worker: Worker) -> Iterator[None]:
        """Set the variables again: Ray asks for Keras 2 whether it is installed or not. Import TensorFlow."""
        os.environ.update(self.variables())
        environment.import_quietly()
        if worker.in_process and _can_still_join():
            os.environ["TF_CONFIG"] = json.dumps(_alone())
        yield

    def seed(self, number: int) -> None:
        """Seed TensorFlow."""
        import tensorflow

        tensorflow.random.set_seed(number >> 1)


def _has_keras_2() -> bool:
    return find_spec("tf_keras") is not None


def _can_still_join() -> bool:
    """Return whether TensorFlow takes the addresses of workers: before its first operation, or after others."""
    from tensorflow.python.eager import context

    here = context.context()
    return here._context_handle is None or here._collective_ops_server_def is not None


def _alone() -> dict[str, Any]:
    """Return the ``TF_CONFIG`` of one worker, as Ray writes it."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        address = "{}:{}".format(*listening.getsockname())
    return {"cluster": {"worker": [address]}, "task": {"type": "worker", "index": 0}}


def _is_joined(*_: Any, **__: Any) -> bool:
    strategy = sys.modules["tensorflow"].distribute.get_strategy()
    return bool("TF_CONFIG" in os.environ and strategy.num_replicas_in_sync > 1)


def _is_keras_joined(*_: Any, **__: Any) -> bool:
    backend = sys.modules["keras"].backend.backend()
    if backend == "tensorflow":
        return _is_joined()
    return bool(sys.modules["jax"].process_count() > 1) if backend == "jax" else True  # torch watches its gradients


JOINS = "tf.distribute.MultiWorkerMirroredStrategy"
OF_JAX = "jax.distributed.initialize"
WATCHED = (
    TrainingFunction("tf_keras.src.optimizers.optimizer", "Optimizer.apply_gradients", "keras", _is_joined, JOINS),
    TrainingFunction("keras.src.optimizers.base_optimizer", "BaseOptimizer.apply", "keras", _is_keras_joined, JOINS),
    TrainingFunction(
        "keras.src.optimizers.base_optimizer", "BaseOptimizer.stateless_apply", "keras", _is_keras_joined, OF_JAX
    ),
)
