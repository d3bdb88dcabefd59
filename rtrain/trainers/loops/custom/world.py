"""What a train loop of the user's finds set up: what Ray's trainer of a framework does before it calls one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import ClassVar

from rtrain.process.variables import variables_set
from rtrain.trainers.base import Job, TrainerPlugin
from rtrain.trainers.worker import Worker

Frameworks = Callable[[], Iterable[tuple[str, TrainerPlugin]]]
"""Returns plugins by name."""


@dataclass(frozen=True)
class TrainingFunction:
    """A function that trains: where several workers call it that are not joined, each would train a separate model."""

    module: str
    """That defines it."""
    name: str
    """Inside the module: ``train`` or ``Booster.update``."""
    framework: str
    """What messages call it."""
    is_joined: Callable[..., bool]
    """Whether this worker trains together with the others; it gets the arguments of the function."""
    joins: str
    """What joins the workers of this framework."""
    by_itself: bool = False
    """Whether the trainer joins them without the loop's help."""


class LoopWorld:
    """The world of one framework. Importing its module imports neither Ray nor the framework; its methods do."""

    framework: ClassVar[str]
    """Whose workers it joins: the name of the trainer for it."""
    backend: ClassVar[str | None] = None
    """The ``ray.train`` backend config of Ray's trainer; None: declared training has the same."""

    def check(self, job: Job) -> None:
        """Find out what is lacking before anything starts.

        Raises:
            ConfigError: Names it.
        """

    def variables(self) -> dict[str, str]:
        """Return the environment variables that have to be set before the framework is imported."""
        return {}

    @contextmanager
    def importing(self) -> Iterator[None]:
        """Let the block import a loop's module in the driver, to check that the function exists."""
        with variables_set(self.variables()):
            yield

    @contextmanager
    def entered(self, worker: Worker) -> Iterator[None]:
        """Join the workers where Ray's backend leaves that to the loop, and import what it imports on a worker.

        The block imports and calls the loop. Afterwards this process is as it was, as far as the framework lets it;
        variables of the environment are set back in any case.
        """
        yield

    def seed(self, number: int) -> None:
        """Seed the framework's own random numbers; those of ``random`` and NumPy are seeded already.

        Args:
            number: 64 bits.
        """
