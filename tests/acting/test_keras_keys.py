"""Each key that the tensorflow trainer follows in this process has an effect."""

from acting_looks import ending, evaluated_split, evaluated_steps, last_step, measured, names, parameters, weights
from acting_rows import acts, shown, slow, together
from acting_run_rows import EARLY_STOPPING, EPOCHS, LIMITS, NOT_TRAINED, OWN_LOOP, PLACE_AND_SEED
from acting_tables import KeysAct

NOT_FINITE = "tests/trainers/tensorflow/test_keras_not_finite.py::TestNotFinite"

CONTRACT = "tests/trainers/tensorflow/test_keras_contract.py::TestTensorflow"


class TestTensorflow(KeysAct):
    trainer = "tensorflow"
    workers = ("scaling.num_workers=1",)
    """Two would be new processes for each row: they join one world only."""
    config = """
defaults: [trainer: tensorflow, dataset: sklearn, scaling: in_process]
trainer:
  model: {_target_: rtrain.models.keras.mlp, input_shape: auto, num_classes: auto, hidden: [8]}
  optimizer: {_target_: keras.optimizers.Adam, learning_rate: 0.01}
  max_epochs: 3
  batch_size: 16
dataset: {limit: 60, split: {val: 0.1, test: 0.1}}
allow: [acting_keras_probes]
"""
    rows = (
        *(row for row in NOT_TRAINED if row.key != "scaling.use_gpu"),
        *OWN_LOOP,
        acts("scaling.use_gpu=true", on=ending, on_workers=None),
        *shown(f"{CONTRACT}::test_two_workers_share_the_rows_and_learn_what_one_process_learns", "scaling.num_workers"),
        *shown(f"{NOT_FINITE}::test_weights_that_are_spoilt_are_not_saved", "run.failure.nan_loss"),
        *shown(f"{NOT_FINITE}::test_a_run_that_leaves_out_step_after_step_fails", "run.failure.max_skipped_steps"),
        *PLACE_AND_SEED,
        *together(
            acts("trainer.evaluate_split=test", on=evaluated_split),
            acts("trainer.eval_every_epochs=2", on=evaluated_steps),
            acts("trainer.shuffle=false", on=weights),
            acts("trainer.metrics={batches: {_target_: acting_keras_probes.NumBatches}}", on=names),
        ),
        *slow(
            [
                *EPOCHS,
                *LIMITS,
                *EARLY_STOPPING,
                acts("trainer.global_batch_size=4", on=last_step),
                acts("trainer.accumulate_steps=2", on=last_step),
                acts("trainer.eval_every_steps=2", on=evaluated_steps, on_workers=("trainer.eval_every_steps=1",)),
                acts(
                    "trainer.eval_batch_size=2",
                    on=measured,
                    given=("trainer.metrics={batches: {_target_: acting_keras_probes.NumBatches}}",),
                ),
                acts("trainer.model.hidden=[4]", on=parameters),
                acts("trainer.optimizer.learning_rate=0.5", on=weights),
                acts("trainer.loss={_target_: keras.losses.SparseCategoricalCrossentropy}", on=weights),
                acts("trainer.callbacks=[{_target_: acting_keras_probes.LargeRate}]", on=weights),
                acts(
                    "trainer.deterministic=false",
                    on=weights,
                    given=("trainer.loss={_target_: acting_keras_probes.Strict}",),
                ),
            ]
        ),
    )
