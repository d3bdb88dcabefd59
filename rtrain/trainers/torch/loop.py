"""Train a declared module: the same loop on every rank."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager

from rtrain.trainers.loops.epochs.loop import EpochLoop
from rtrain.trainers.torch.learner import TorchLearner
from rtrain.trainers.torch.optimization.unused import unused_named
from rtrain.trainers.torch.process_settings import matmul_precision, training_settings
from rtrain.trainers.torch.ranks import TorchRanks
from rtrain.trainers.torch.strategies import make_strategy, process_group
from rtrain.trainers.worker import Worker


def train(worker: Worker) -> None:
    """Train until a limit is reached, a metric stops improving, or all ranks agree to stop."""
    with training(worker) as loop, unused_named(loop.learner.learned()[0]):
        loop.run()


@contextmanager
def training(worker: Worker) -> Iterator[EpochLoop]:
    """Build everything that ``worker.conf`` declares, for as long as the block runs."""
    conf = worker.conf
    settings = training_settings(worker, deterministic=conf.deterministic)
    with settings, matmul_precision(conf.float32_matmul_precision), process_group(worker):
        ranks = TorchRanks.of(worker)
        # Ranks that write together need their process groups until they have.
        with closing(make_strategy(worker.conf, ranks)) as strategy, worker.checkpoints.finishing():
            yield EpochLoop(worker, worker.conf, TorchLearner(worker, strategy), strategy.data, ranks)
