"""Train a Keras model in epochs."""

from __future__ import annotations

import tensorflow as tf

from rtrain.trainers.epochs import EpochLoop
from rtrain.trainers.tensorflow.config import Conf
from rtrain.trainers.tensorflow.learner import KerasLearner
from rtrain.trainers.tensorflow.world import joined
from rtrain.trainers.worker import Worker


def train(worker: Worker) -> None:
    """Train until a limit is reached, a metric stops improving, or all ranks agree to stop."""
    conf: Conf = worker.conf
    if not worker.in_process:
        # Of a process that is there, TensorFlow's threads can't be changed any more.
        tf.config.threading.set_intra_op_parallelism_threads(conf.num_threads or worker.num_threads)
    if conf.deterministic:
        tf.config.experimental.enable_op_determinism()
    with joined(worker) as world:
        learner = KerasLearner(worker, world)
        EpochLoop(worker, conf, learner, world).run()
        learner.close()
