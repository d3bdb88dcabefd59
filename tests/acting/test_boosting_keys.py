"""Each key that the trainers of boosted trees follow has an effect."""

from acting_looks import best_monitor, evaluated_split, last_step, names, threads, weights
from acting_rows import acts, shown, together
from acting_run_rows import CALLBACKS, LOSS, NOT_TRAINED, OWN_LOOP, PLACE, SAVING, STOPS, early_stopping
from acting_tables import KeysAct

NOT_FINITE = "tests/trainers/loops/boosting/test_boosting_not_finite.py"
REGRESSION = ("dataset.name=diabetes",)
TWO_WORKERS = "test_two_workers_share_the_rows_and_learn_what_one_process_learns"
ROWS = (
    *NOT_TRAINED,
    *OWN_LOOP,
    *CALLBACKS,
    *shown(
        f"{NOT_FINITE}::test_a_deciding_metric_that_is_not_finite_fails_the_run_or_ends_it_with_the_checkpoint_before",
        "run.failure.nan_loss",
    ),
    *SAVING,
    *STOPS,
    *together(
        *PLACE,
        acts("trainer.num_threads=1", on=threads, on_workers=("trainer.num_threads=2",)),
        acts("trainer.eval_splits=[test]", on=evaluated_split),
    ),
    acts("run.checkpoint.best.monitor=val/accuracy", on=best_monitor, given=LOSS),
    acts("run.init_from=BASE", on=weights),
    acts("trainer.num_boost_round=5", on=last_step),
    acts("trainer.max_seconds=0.0001", on=last_step),
    acts("trainer.params.learning_rate=0.5", on=weights, axis="trainer.params.learning_rate=0.1,0.5"),
    *early_stopping(),
    acts("trainer.early_stopping_rounds=1", on=last_step, given=("trainer.params.learning_rate=20",)),
    acts("trainer.early_stopping_min_delta=100", on=last_step, given=("trainer.early_stopping_rounds=1",)),
    acts("trainer.objective_function=acting_trees_probes:to_the_mean", on=weights, given=REGRESSION),
)


class TestXGBoost(KeysAct):
    trainer = "xgboost"
    config = """
defaults: [trainer: xgboost, dataset: sklearn, scaling: in_process]
trainer: {num_boost_round: 6, params: {max_depth: 2}}
dataset: {limit: 60, split: {val: 0.1, test: 0.1}}
allow: [acting_trees_probes]
"""
    rows = (
        *ROWS,
        *shown(f"tests/trainers/xgboost/test_xgboost_contract.py::TestXGBoost::{TWO_WORKERS}", "scaling.num_workers"),
        acts("trainer.metric_functions=[acting_trees_probes:one]", on=names),
        acts("run.seed=1", on=weights, given=("+trainer.params.subsample=0.5",)),
    )


class TestLightGBM(KeysAct):
    trainer = "lightgbm"
    config = """
defaults: [trainer: lightgbm, dataset: sklearn, scaling: in_process]
trainer: {num_boost_round: 6, params: {min_data_in_leaf: 2}}
dataset: {limit: 60, split: {val: 0.1, test: 0.1}}
allow: [acting_trees_probes]
"""
    rows = (
        *ROWS,
        *shown(
            f"tests/trainers/lightgbm/test_lightgbm_contract.py::TestLightGBM::{TWO_WORKERS}", "scaling.num_workers"
        ),
        acts("trainer.metric_functions=[acting_trees_probes:two]", on=names),
        acts("run.seed=1", on=weights, given=("+trainer.params.feature_fraction=0.5",)),
    )
