"""What a config may say to the sklearn trainer; each field's docstring is its documentation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, ClassVar

from pydantic import Field

from rtrain.config.needs import WORKERS, Need, Rules
from rtrain.config.value_types.texts import one_of
from rtrain.trainers.loops.early_stopping import EarlyStoppingConf
from rtrain.trainers.loops.epochs.conf import CAN_SKIP
from rtrain.trainers.loops.epochs.too_late import ENDED_BY_RUN, ENDED_BY_TRAINER, JUDGED, SAVED_BY_EPOCH, can_stop

IN_EPOCHS = Need(
    met=lambda way: way.trainer.max_epochs is not None,
    otherwise="the estimator is fitted in one call",
    instead="Only estimators with partial_fit train in epochs: trainer.max_epochs=10",
    keys=("trainer.max_epochs",),
)
JUDGED_BY_EPOCH = replace(
    JUDGED,
    met=lambda way: way.resumed or can_stop(way.trainer.early_stopping, way.trainer.max_epochs),
    keys=("trainer.max_epochs", "trainer.early_stopping"),
    of_rows=False,
)


@dataclass(kw_only=True)
class CrossValidationConf:
    """Fit and score on parts of the train split, before the estimator is fitted on all of it."""

    folds: Annotated[int, Field(ge=2)] = 5
    """Parts; each one is scored by an estimator fitted on the others. Of classes, each part has the same share."""

    scoring: list[str] = field(default_factory=list)
    """Names of scikit-learn's scorers, e.g. ``[roc_auc_ovr, f1_macro]``; empty: accuracy, or mae and mse."""


@dataclass(kw_only=True)
class Conf:
    """Fits any scikit-learn estimator on one worker with all its cores."""

    foreign: ClassVar[tuple[str, ...]] = ("torch", "rtrain.models.torch", "rtrain.trainers.torch")
    """Modules whose classes this trainer can't use: options of config groups that build them are refused."""
    homes: ClassVar[Mapping[str, Sequence[str]]] = {
        "estimator": tuple(
            f"sklearn.{module}"
            for module in (
                *("ensemble", "linear_model", "tree", "svm", "neighbors", "naive_bayes", "neural_network"),
                *("discriminant_analysis", "gaussian_process", "kernel_ridge", "isotonic", "cross_decomposition"),
                *("calibration", "multiclass", "multioutput", "pipeline", "dummy", "model_selection"),
            )
        ),
    }
    """Modules that have what each part may be built of."""
    needs: ClassVar[Rules] = (
        IN_EPOCHS.of("batch_size", "max_seconds", "early_stopping"),
        JUDGED_BY_EPOCH.of("early_stopping"),
        ENDED_BY_RUN.of("max_seconds"),
        WORKERS.of("parallel"),
    )
    follows: ClassVar[Rules] = (
        IN_EPOCHS.of("run.log_every_steps", "run.checkpoint.every_epochs", "run.checkpoint.every_steps"),
        IN_EPOCHS.of("run.checkpoint.every_seconds", "run.checkpoint.keep", "run.checkpoint.on_exit", "run.stop"),
        IN_EPOCHS.of("run.checkpoint.best.keep"),
        SAVED_BY_EPOCH.of("run.checkpoint.every_epochs"),
        ENDED_BY_TRAINER.of("run.stop.max_seconds"),
        CAN_SKIP.of("run.failure.max_skipped_steps"),
    )

    estimator: dict[str, Any] = field(default_factory=dict)
    """The classifier or regressor, or a pipeline that ends in one, by ``_target_``. ``run.seed`` becomes its
    ``random_state``, the features that are categories its ``categorical_features``, unless it says otherwise."""

    cross_validation: CrossValidationConf | None = None
    """Scores by cross-validation on the train split, as ``cv/<metric>`` and ``cv/<metric>_std``; null: none."""

    evaluate_split: Annotated[str, *one_of("auto", "val", "test", "none")] = "auto"
    """Split to evaluate on; ``auto``: ``val`` if there is one, else ``test``, else none."""

    max_epochs: Annotated[int, Field(ge=1)] | None = None
    """Passes of ``partial_fit`` over the training data, with an evaluation and a checkpoint after each; null: one call
    of ``fit`` with all rows."""

    batch_size: Annotated[int, Field(ge=1)] | None = None
    """Rows per call of ``partial_fit``; null: all rows."""

    max_seconds: Annotated[float, Field(gt=0)] | None = None
    """Seconds of training with ``partial_fit``; null for no limit."""

    early_stopping: EarlyStoppingConf | None = None
    """Stop ``partial_fit`` when a metric no longer gets better; null: train to the limit."""

    parallel: Annotated[str, *one_of("auto", "local", "ray")] = "auto"
    """Where joblib runs what can run side by side (trees, folds, candidates): on the cores of the worker, or on all
    free CPUs of the Ray cluster; ``auto``: on Ray where the cluster has several machines."""

    num_threads: Annotated[int, Field(ge=1)] | None = None
    """Cores of the worker to use, also as ``n_jobs``; null: all of them."""

    def __post_init__(self) -> None:
        if "_target_" not in self.estimator:
            raise ValueError("estimator is not chosen: give it a _target_, e.g. sklearn.neighbors.KNeighborsClassifier")
