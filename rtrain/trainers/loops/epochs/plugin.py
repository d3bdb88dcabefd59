"""What plugins have in common whose declared loop is that of epochs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rtrain.trainers.base import Job, TrainerPlugin
from rtrain.trainers.trained import CheckpointMetadata


class EpochsPlugin(TrainerPlugin):
    """A framework whose ``Conf`` extends ``EpochsConf`` and whose loop is ``EpochLoop``."""

    can_init = True
    can_skip = True

    def own_function(self, conf: Any) -> Any:
        """Return the user's function that trains in place of the declared loop; None: there is none."""
        return None

    def check_init(self, job: Job, wrote: CheckpointMetadata) -> None:
        """Compare columns and classes with those that the weights were learned for."""
        from rtrain.trainers.loops.epochs.same_places import check_num_classes, check_same_places

        check_same_places(job, wrote)
        check_num_classes(job, wrote)

    def reports(self, job: Job) -> Sequence[str] | None:
        """Return the metrics of the loop of epochs, and those of the config; a function reports its own."""
        from rtrain.trainers.loops.auto import dataset_of, reported_metrics

        conf = job.conf.trainer
        if self.own_function(conf) is not None:
            return None
        return reported_metrics(conf.evaluate_split, dataset_of(job), tuple(conf.metrics))

    def notices(self, job: Job) -> Sequence[str]:
        """Report that the test split chooses the best checkpoint, if it does."""
        from rtrain.trainers.loops.optimistic import chosen_on_test

        return chosen_on_test(job, job.conf.trainer) if self.own_function(job.conf.trainer) is None else ()
