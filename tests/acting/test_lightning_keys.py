"""Each key that the lightning trainer follows has an effect."""

from acting_looks import evaluated_split, last_step, measured, parameters, threads, weights
from acting_rows import acts, shown, together
from acting_run_rows import EARLY_STOPPING, EPOCHS, LIMITS, NOT_TRAINED, OWN_LOOP, PLACE_AND_SEED
from acting_tables import KeysAct

NOT_FINITE = "tests/trainers/lightning/test_lightning_not_finite.py::TestNotFinite"

LOOP = "tests/trainers/lightning/test_lightning_loop.py"
CONTRACT = "tests/trainers/lightning/test_lightning_contract.py::TestLightning"


class TestLightning(KeysAct):
    trainer = "lightning"
    config = """
defaults: [trainer: lightning, dataset: sklearn, scaling: in_process]
trainer:
  module: {_target_: acting_probes.RowsPerBatch, in_features: auto, num_classes: auto, hidden: [8], lr: 0.003}
  max_epochs: 3
  batch_size: 16
dataset: {limit: 60, split: {val: 0.1, test: 0.1}}
allow: [acting_probes]
"""
    rows = (
        *PLACE_AND_SEED,
        *EPOCHS,
        *LIMITS,
        *EARLY_STOPPING,
        *NOT_TRAINED,
        *OWN_LOOP,
        *shown(f"{CONTRACT}::test_two_workers_share_the_rows_and_learn_what_one_process_learns", "scaling.num_workers"),
        *shown(f"{NOT_FINITE}::test_weights_that_are_spoilt_are_not_saved", "run.failure.nan_loss"),
        *shown(f"{NOT_FINITE}::test_a_run_that_leaves_out_step_after_step_fails", "run.failure.max_skipped_steps"),
        *together(
            acts("trainer.eval_batch_size=2", on=measured),
            acts("trainer.num_threads=1", on=threads, on_workers=("trainer.num_threads=2",)),
        ),
        *together(
            acts("trainer.evaluate_split=test", on=evaluated_split),
            acts("trainer.trainer_args={gradient_clip_val: 0.01}", on=weights),
        ),
        acts("trainer.global_batch_size=4", on=last_step),
        acts("trainer.module.hidden=[4]", on=parameters),
        *shown(f"{LOOP}::test_a_datamodule_trains_without_a_dataset", "trainer.datamodule"),
    )
