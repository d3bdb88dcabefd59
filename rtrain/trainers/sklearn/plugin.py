"""The sklearn plugin as the driver sees it; scikit-learn itself is imported only by its methods."""

from __future__ import annotations

from collections.abc import Sequence

from rtrain.config.targets.builder import Builder
from rtrain.trainers.base import Job, TrainerPlugin
from rtrain.trainers.loops.directions import Directions
from rtrain.trainers.sklearn import config


class Plugin(TrainerPlugin):
    """scikit-learn: any estimator or pipeline by _target_, on one worker with all its cores."""

    Conf = config.Conf
    worker_modules = ("rtrain.trainers.sklearn.loop",)
    requires = ("sklearn", "skops")
    pickles = ("estimator.pkl",)
    takes_missing = True  # as far as the estimator does

    def directions(self, conf: config.Conf, builder: Builder) -> Directions:
        """Return that more is better of each score: scikit-learn turns the others round."""
        scoring = [] if conf.cross_validation is None else conf.cross_validation.scoring
        return Directions(own={f"cv/{name}": "max" for name in scoring})

    def reports(self, job: Job) -> Sequence[str] | None:
        """Return the metrics of the loop of epochs, and the scores of a cross-validation.

        There is no rate; and of scikit-learn's own estimators, its networks alone tell the loss of train.
        """
        from rtrain.trainers.loops.auto import dataset_of, evaluated_split, reported_metrics
        from rtrain.trainers.sklearn.cross_validation import score_names

        conf, info = job.conf.trainer, dataset_of(job)
        scores = () if conf.cross_validation is None else score_names(conf.cross_validation, info)
        target = str(conf.estimator.get("_target_"))
        tells_loss = not target.startswith("sklearn.") or target.startswith("sklearn.neural_network.")
        never = ("train/lr", *(() if tells_loss else ("train/loss", "train/epoch_loss")))
        usual = [one for one in reported_metrics(conf.evaluate_split, info) if one not in never]
        return (*scores, *usual) if evaluated_split(conf.evaluate_split, info) is None else (*usual, *scores)

    def notices(self, job: Job) -> Sequence[str]:
        """Report that the test split chooses the best checkpoint, if it does."""
        from rtrain.trainers.loops.auto import dataset_of
        from rtrain.trainers.loops.optimistic import chosen_on_test
        from rtrain.trainers.sklearn.loop import epochs_conf

        return chosen_on_test(job, epochs_conf(job.conf.trainer, dataset_of(job)))
