"""Each key that the sklearn trainer follows has an effect, in epochs and where the estimator is fitted in one call."""

from acting_looks import (
    best_mode,
    best_monitor,
    ending,
    evaluated_split,
    last_step,
    logged_steps,
    measured,
    names,
    saved_beside,
    threads,
)
from acting_rows import acts, refused, shown, together
from acting_run_rows import EARLY_STOPPING, EPOCHS, LOSS, NOT_TRAINED, PLACE
from acting_tables import KeysAct

DIVERGING = ("+trainer.estimator.solver=sgd", "++trainer.estimator.learning_rate_init=1e30")
CV = "trainer.cross_validation={folds: 2}"
ALWAYS = (
    *NOT_TRAINED,
    *shown(
        "tests/trainers/sklearn/test_sklearn_plugin.py::test_what_can_not_work_is_found_first", "scaling.num_workers"
    ),
    *together(
        *PLACE,
        acts("trainer.num_threads=1", on=threads, on_workers=("trainer.num_threads=2",)),
        acts("trainer.evaluate_split=test", on=evaluated_split),
    ),
    acts("trainer.estimator.hidden_layer_sizes=[3]", on=measured),
    acts("trainer.cross_validation.folds=3", on=measured, given=(CV,)),
    acts(
        "trainer.cross_validation.scoring=[f1_macro]",
        on=names,
        given=(CV,),
        axis="trainer.cross_validation.scoring=[],[f1_macro]",
    ),
    acts("run.seed=1", on=measured),
    refused("run.init_from=BASE", because="run.init_from"),
)


class TestSklearnInEpochs(KeysAct):
    trainer = "sklearn"
    workers = ("scaling.num_workers=1",)
    config = """
defaults: [trainer: sklearn, dataset: sklearn, scaling: in_process]
trainer:
  estimator: {_target_: sklearn.neural_network.MLPClassifier, hidden_layer_sizes: [4], learning_rate_init: 0.01}
  max_epochs: 3
  batch_size: 16
dataset: {limit: 60, split: {val: 0.1, test: 0.1}}
"""
    rows = (
        *ALWAYS,
        acts("run.failure.nan_loss=stop", on=ending, given=DIVERGING),
        *(row for row in EPOCHS if row.key != "run.init_from"),
        *EARLY_STOPPING,
        acts("trainer.max_epochs=2", on=last_step),
        acts("run.log_every_steps=1", on=logged_steps),
        acts("trainer.max_seconds=0.0001", on=last_step),
        acts("trainer.batch_size=4", on=last_step),
    )


class TestSklearnAtOnce(KeysAct):
    decided = KeysAct.decided | {"trainer.max_epochs"}
    trainer = "sklearn"
    workers = ("scaling.num_workers=1",)
    config = """
defaults: [trainer: sklearn, dataset: sklearn, scaling: in_process]
trainer:
  estimator: {_target_: sklearn.neural_network.MLPClassifier, hidden_layer_sizes: [4], max_iter: 5}
dataset: {limit: 60, split: {val: 0.1, test: 0.1}}
"""
    rows = (
        *ALWAYS,
        # The loop is the same: fitting at once is one epoch of one step.
        *shown("tests/acting/test_sklearn_keys.py::TestSklearnInEpochs::test_a_key_acts", "run.failure.nan_loss"),
        acts("trainer.max_epochs=2", on=last_step),
        acts("run.checkpoint.best.mode=max", on=best_mode, given=LOSS),
        acts("run.checkpoint.upload=sync", on=saved_beside, on_workers=None),
        acts(
            "run.checkpoint.best.monitor=val/accuracy", on=best_monitor, given=("run.checkpoint.best.monitor=val/loss",)
        ),
    )
