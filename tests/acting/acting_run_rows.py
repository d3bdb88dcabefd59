"""The rows of ``run`` and ``scaling``, for all trainers: each table adds those that fit its trainer to its own."""

from __future__ import annotations

from acting_looks import (
    best_monitor,
    copied,
    last_step,
    logged_steps,
    modes,
    name,
    root,
    saved_beside,
    saved_steps,
    weights,
)
from acting_rows import STOPPED, acts, refused, shown, together

LOSS = ("run.checkpoint.best.monitor=val/loss",)
FIRST_IS_BEST = (*LOSS, "run.checkpoint.best.mode=max", "run.checkpoint.keep=9")
"""A loss that falls has its greatest value first: no later checkpoint stays as the best one."""

PLACE = [
    acts("run.name=other", on=name),
    acts("run.root_dir=elsewhere", on=root, not_varied="is the same for all trials"),
    acts("run.private=true", on=modes),
    acts("run.storage=file://FOLDER/store", on=copied),
]
"""What holds for the record of a run, whatever trains."""

NOT_TRAINED = [
    refused("scaling.use_gpu=true", because="use_gpu"),
    refused("run.resume=must", "run.name=nothing", because="run.resume=must"),
    *shown(
        "tests/training/test_resumed_data.py::test_content_that_is_meant_to_be_another_is_taken_and_noted",
        "run.resume_data",
    ),
    *shown(
        "tests/trainers/loops/custom/reports/test_shown_output.py"
        "::test_output_in_this_process_is_shown_once_or_not_at_all_and_is_in_the_log",
        "run.show_output",
    ),
    *shown("tests/tracking/test_trackers.py::test_a_run_is_in_each_tracker_that_it_names", "run.loggers"),
    *shown(
        "tests/tracking/test_trackers.py::test_a_tracker_that_hangs_is_given_up_and_the_run_says_so",
        "run.loggers_timeout_seconds",
    ),
    *shown(
        "tests/tracking/test_callbacks.py::test_a_callback_is_called_for_everything_that_the_run_directory_holds",
        "run.callbacks",
    ),
    *shown(
        "tests/tracking/test_system_metrics.py::test_a_tracker_gets_samples_while_the_run_goes_on",
        "run.system_metrics_seconds",
    ),
    *shown(
        "tests/tracking/test_trackers.py::test_trackers_are_told_what_a_run_is_and_no_secret", "run.tags", "run.notes"
    ),
    *shown(
        "tests/storage/test_runs.py::test_a_copy_that_is_not_complete_is_told_loudly", "run.storage_timeout_seconds"
    ),
]
"""What is read before training, or after it."""
OWN_LOOP = shown(
    "tests/trainers/loops/custom/test_worlds.py::test_a_loop_of_rays_trains_in_this_process", "trainer.train_loop"
)
"""A loop in place of what is declared; torch's has a table of its own."""

EACH_STEP = (*FIRST_IS_BEST, "run.checkpoint.every_steps=1")
ONE_STAYS = (*LOSS, "run.checkpoint.every_steps=1", "run.checkpoint.keep=1")
SAVING = [
    acts("run.checkpoint.keep=1", on=saved_steps, given=EACH_STEP),
    acts(
        "run.checkpoint.every_steps=2",
        on=saved_steps,
        given=FIRST_IS_BEST,
        on_workers=("run.checkpoint.every_steps=1",),
    ),
    acts("run.checkpoint.every_seconds=0.0001", on=saved_steps, given=FIRST_IS_BEST),
    acts("run.checkpoint.best.keep=3", on=saved_steps, given=(*EACH_STEP, "run.checkpoint.keep=1")),
    acts("run.checkpoint.best.mode=max", on=saved_steps, given=ONE_STAYS),
    acts("run.checkpoint.upload=sync", on=saved_beside, on_workers=None),
    acts("run.checkpoint.on_exit=false", on=saved_steps, given=(STOPPED,)),
]
"""Which checkpoints are written, and which stay."""

STOPS = [
    acts("run.stop.max_seconds=0.0001", on=last_step),
    acts("run.stop.target={val/loss: 100}", on=last_step),
    acts("run.stop.bounds={val/loss: {max: 0.0001}}", on=last_step),
]

PLACE_AND_SEED = together(*PLACE, acts("run.log_every_steps=1", on=logged_steps), acts("run.seed=1", on=weights))
EPOCHS = [
    *SAVING,
    *STOPS,
    acts("run.checkpoint.every_epochs=3", on=saved_steps, given=FIRST_IS_BEST),
    acts("run.checkpoint.best.monitor=val/accuracy", on=best_monitor, given=LOSS),
    acts("run.init_from=BASE", on=weights),
]
"""For trainers that learn in epochs: three of them, of several steps each."""

LIMITS = [
    acts("trainer.max_epochs=2", on=last_step),
    acts("trainer.max_steps=2", on=last_step),
    acts("trainer.max_seconds=0.0001", on=last_step),
    acts("trainer.batch_size=4", on=last_step),
]

CALLBACKS = shown(
    "tests/trainers/loops/callbacks/test_worker_callbacks.py::test_a_callback_ends_training_for_good",
    "trainer.callbacks",
)
NEVER_BETTER = "trainer.early_stopping={monitor: val/loss, min_delta: 100, patience: 2}"


def early_stopping(*longer):
    """Return the rows of early stopping; the words ``longer`` leave it time to."""
    return [
        acts(
            "trainer.early_stopping.patience=1",
            on=last_step,
            given=(*longer, NEVER_BETTER),
            axis="trainer.early_stopping.patience=2,1",
        ),
        acts(
            "trainer.early_stopping.min_delta=100",
            on=last_step,
            axis="trainer.early_stopping.min_delta=0,100",
            given=("trainer.early_stopping={monitor: val/loss, patience: 1}",),
        ),
        acts(
            "trainer.early_stopping.mode=max",
            on=last_step,
            axis="trainer.early_stopping.mode=min,max",
            given=("trainer.early_stopping={monitor: val/loss, patience: 1}",),
        ),
        acts(
            "trainer.early_stopping.monitor=val/accuracy",
            on=best_monitor,
            given=("trainer.early_stopping={monitor: val/loss, patience: 1}",),
        ),
    ]


EARLY_STOPPING = early_stopping("trainer.max_epochs=4")
"""Of three epochs in which the loss falls."""
