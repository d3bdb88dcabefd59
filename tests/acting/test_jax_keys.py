"""Each key that the jax trainer follows has an effect."""

from acting_looks import ending, evaluated_split, evaluated_steps, last_step, measured, names, parameters, weights
from acting_rows import acts, shown, slow, together
from acting_run_rows import CALLBACKS, EARLY_STOPPING, EPOCHS, LIMITS, NOT_TRAINED, OWN_LOOP, PLACE_AND_SEED
from acting_tables import KeysAct

NOT_FINITE = "tests/trainers/jax/test_jax_not_finite.py::TestNotFinite"
METRIC = "trainer.metrics={rows: {_target_: acting_jax_probes.rows_per_batch}}"
FUNCTION = ("trainer.train_function=acting_jax_probes:function", "+trainer.train_function_config.value=1")

CONTRACT = "tests/trainers/jax/test_jax_contract.py::TestJax"


class TestJax(KeysAct):
    trainer = "jax"
    config = """
defaults: [trainer: jax, dataset: sklearn, scaling: in_process]
trainer:
  model: {_target_: rtrain.models.jax.MLP, num_classes: auto, hidden: [8]}
  optimizer: {_target_: optax.adam, learning_rate: 0.01}
  max_epochs: 3
  batch_size: 16
dataset: {limit: 60, split: {val: 0.1, test: 0.1}}
allow: [acting_jax_probes]
"""
    rows = (
        *(row for row in NOT_TRAINED if row.key != "scaling.use_gpu"),
        *OWN_LOOP,
        *CALLBACKS,
        acts("scaling.use_gpu=true", on=ending, on_workers=None),
        *shown(f"{CONTRACT}::test_two_workers_share_the_rows_and_learn_what_one_process_learns", "scaling.num_workers"),
        *shown(f"{NOT_FINITE}::test_weights_that_are_spoilt_are_not_saved", "run.failure.nan_loss"),
        *shown(f"{NOT_FINITE}::test_a_run_that_leaves_out_step_after_step_fails", "run.failure.max_skipped_steps"),
        *PLACE_AND_SEED,
        *together(
            acts("trainer.evaluate_split=test", on=evaluated_split),
            acts("trainer.eval_every_epochs=2", on=evaluated_steps),
            acts("trainer.shuffle=false", on=weights),
            acts(METRIC, on=names),
        ),
        acts("trainer.train_function=acting_jax_probes:other_function", on=names, given=FUNCTION, on_workers=None),
        acts("trainer.train_function_config.value=2", on=measured, given=FUNCTION, on_workers=None),
        *slow(
            [
                *EPOCHS,
                *LIMITS,
                *EARLY_STOPPING,
                acts("trainer.global_batch_size=4", on=last_step),
                acts("trainer.accumulate_steps=2", on=last_step),
                acts("trainer.eval_every_steps=2", on=evaluated_steps, on_workers=("trainer.eval_every_steps=1",)),
                acts("trainer.eval_batch_size=2", on=measured, given=(METRIC,)),
                acts("trainer.model.hidden=[4]", on=parameters),
                acts("trainer.optimizer.learning_rate=0.5", on=weights),
                acts("trainer.loss={_target_: acting_jax_probes.hinge}", on=weights),
            ]
        ),
    )
