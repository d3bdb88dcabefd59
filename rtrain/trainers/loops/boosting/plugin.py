"""What plugins of boosted trees have in common."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from rtrain.config.targets.builder import Builder
from rtrain.trainers.base import Job, TrainerPlugin
from rtrain.trainers.loops.directions import Directions
from rtrain.trainers.trained import CheckpointMetadata


class BoostingPlugin(TrainerPlugin):
    """A library whose ``Conf`` extends ``BoostingConf``. Its package has ``metrics``, ``params``, ``seeding``."""

    can_init = True
    takes_missing = True
    each_round: ClassVar[tuple[str, ...]]
    """Parameters that count for the round that is grown alone."""
    functions_say_modes: ClassVar[bool] = False
    """Whether metric functions of the user's say with each value which way it gets better."""

    def check(self, job: Job) -> None:
        """Find what is wrong, also with the metrics that the config names."""
        from rtrain.trainers.loops.boosting.judged import check_named

        super().check(job)
        check_named(job, self)

    def directions(self, conf: Any, builder: Builder) -> Directions:
        """Return which way the library's own metrics get better."""
        later = self.functions_say_modes and bool(conf.metric_functions)
        return Directions(own=self.part("metrics").MODES, comes_later=later)

    def check_init(self, job: Job, wrote: CheckpointMetadata) -> None:
        """Compare features and objective with those that the trees were grown for."""
        self.part("params").check_init(job, wrote)

    def exploitable(self, conf: Mapping[str, Any]) -> frozenset[str]:
        """Let parameters change that count for the rounds to come alone, unless a resumed run grows all trees again."""
        starts_again = self.part("seeding").starts_again(conf["params"])
        return frozenset() if starts_again else frozenset(f"params.{name}" for name in self.each_round)

    def reports(self, job: Job) -> Sequence[str] | None:
        """Return the library's own metrics, unless functions of the user's report others."""
        found: Sequence[str] | None = self.part("params").reported(job)
        return found

    def notices(self, job: Job) -> Sequence[str]:
        """Report that the test split chooses the best checkpoint, if it does."""
        from rtrain.trainers.loops.boosting.judged import chosen_on_test

        return chosen_on_test(job)
