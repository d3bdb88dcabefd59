"""Each key that a train loop of the user's own leaves to rtrain has an effect."""

from acting_looks import best_monitor, best_step, drawn, last_step, measured, names, saved_steps, threads_told
from acting_rows import acts, shown, together
from acting_run_rows import NOT_TRAINED, PLACE
from acting_tables import KeysAct

DOWN = ("run.checkpoint.best.monitor=train/down", "run.checkpoint.best.mode=min")


class TestLoop(KeysAct):
    trainer = "torch"
    workers = ("scaling.num_workers=1",)
    """Two would be new processes for each row, as they might read with Ray Data."""
    config = """
defaults: [scaling: in_process]
trainer: {type: torch, train_loop: "acting_probes:loop"}
allow: [acting_probes]
"""
    rows = (
        *(row for row in NOT_TRAINED if row.key != "scaling.use_gpu"),
        *shown(
            "tests/engine/ray/test_ray_failures.py::test_a_loop_resumes_with_another_number_of_workers_whatever_was_pruned",
            "scaling.num_workers",
        ),
        *shown(
            "tests/trainers/loops/custom/reports/test_validation.py::test_what_it_finds_belongs_to_the_checkpoint_and_is_an_event",
            "trainer.validation_config.function",
        ),
        *shown(
            "tests/trainers/loops/custom/reports/test_validation.py::test_arguments_are_those_of_the_config_with_those_of_the_report_on_top",
            "trainer.validation_config.arguments",
        ),
        *shown(
            "tests/trainers/loops/custom/reports/test_validation.py::test_one_that_fails_is_no_end_of_the_loop",
            "trainer.validation_config.timeout_seconds",
        ),
        *shown(
            "tests/trainers/loops/custom/shards/test_several_datasets.py::test_ray_splits_those_that_the_key_names",
            "trainer.datasets_to_split",
        ),
        *together(
            *PLACE,
            acts("run.seed=1", on=drawn),
            acts("trainer.num_threads=1", on=threads_told, on_workers=("trainer.num_threads=2",)),
        ),
        acts("trainer.train_loop=acting_probes:other_loop", on=names),
        acts("+trainer.train_loop_config.value=5", on=measured, axis="+trainer.train_loop_config.value=4,5"),
        acts("+trainer.arguments.shift=5", on=measured, axis="+trainer.arguments.shift=4,5"),
        acts("trainer.max_steps=1", on=last_step),
        acts("trainer.max_seconds=0.0001", on=last_step),
        acts("run.stop.max_seconds=0.0001", on=last_step),
        acts("run.stop.target={train/down: -1}", on=last_step, given=DOWN),
        acts("run.stop.bounds={train/down: {min: -1}}", on=last_step),
        acts("run.checkpoint.keep=1", on=saved_steps),
        *shown(
            "tests/trainers/loops/custom/test_custom_loop.py::test_a_new_run_begins_with_the_checkpoint_of_another_one",
            "run.init_from",
        ),
        *shown(
            "tests/trainers/loops/custom/predictors/test_loop_predictor.py::test_predictions_are_those_of_the_function",
            "trainer.predictor",
        ),
        *together(
            acts("run.checkpoint.best.keep=3", on=saved_steps, given=(*DOWN, "run.checkpoint.keep=1")),
        ),
        acts("run.checkpoint.best.monitor=train/told", on=best_monitor, given=DOWN),
        acts("run.checkpoint.best.mode=max", on=best_step, given=DOWN),
    )
