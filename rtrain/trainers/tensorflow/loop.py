"""Train a Keras model in epochs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import tensorflow as tf
from tensorflow.python.framework import config as switches

from rtrain.trainers.loops.epochs.loop import EpochLoop
from rtrain.trainers.tensorflow.config import Conf
from rtrain.trainers.tensorflow.environment import kept_random_numbers
from rtrain.trainers.tensorflow.learner import KerasLearner
from rtrain.trainers.tensorflow.ranks import process_group
from rtrain.trainers.worker import Worker


def train(worker: Worker) -> None:
    """Train until a limit is reached, a metric stops improving, or all ranks agree to stop."""
    conf: Conf = worker.conf
    if not worker.in_process:
        # In an existing process, the number of TensorFlow's threads can't be changed any more.
        tf.config.threading.set_intra_op_parallelism_threads(conf.num_threads or worker.num_threads)
    with kept_random_numbers(), _determinism(conf.deterministic), process_group(worker) as ranks:
        learner = KerasLearner(worker, ranks)
        EpochLoop(worker, conf, learner, ranks).run()
        learner.close()


@contextmanager
def _determinism(wanted: bool) -> Iterator[None]:
    """Have operations be deterministic, or not, in the block; afterwards the process is as it was.

    TensorFlow's public switch can't be turned back: an earlier run of the process would decide for the next one.
    """
    before = switches.is_op_determinism_enabled()
    _switch(wanted)
    try:
        yield
    finally:
        _switch(before)


def _switch(on: bool) -> None:
    if on:
        switches.enable_op_determinism()
    else:
        switches.disable_op_determinism()
