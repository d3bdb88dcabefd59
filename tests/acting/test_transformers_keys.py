"""Each key that the transformers trainer follows has an effect."""

from types import MappingProxyType

from acting_looks import (
    evaluated_split,
    evaluated_steps,
    files,
    last_step,
    measured,
    names,
    num_trained,
    parameters,
    texts,
    threads,
    weights,
)
from acting_rows import acts, shown, together
from acting_run_rows import EARLY_STOPPING, EPOCHS, LIMITS, NOT_TRAINED, PLACE_AND_SEED
from acting_tables import KeysAct

NOT_FINITE = "tests/trainers/transformers/test_transformers_not_finite.py::TestNotFinite"
MASKED = ("trainer.task=masked-lm", "trainer.model.config.model_type=bert")
LORA = "trainer.lora={r: 2, target_modules: [c_attn]}"

CONTRACT = "tests/trainers/transformers/test_transformers_contract.py::TestTransformers"


def line(row):
    """Return a row of a table: a text that tells its class."""
    return f"{'The quick brown Fox jumps over' if row % 2 else 'a Lazy dog sleeps by'} {row} things,{row % 2}\n"


class TestTransformers(KeysAct):
    trainer = "transformers"
    config = """
defaults: [trainer: transformers, dataset: text, scaling: in_process]
trainer:
  model: {config: {model_type: gpt2, n_embd: 8, n_layer: 1, n_head: 2}}
  tokenizer: {train: wordpiece, vocab_size: 60}
  task: sequence-classification
  max_length: 8
  max_epochs: 3
  batch_size: 16
dataset: {path: rows.csv, label: label, split: {val: 0.1, test: 0.1}}
"""
    options = MappingProxyType({"rows.csv": "text,label\n" + "".join(map(line, range(60)))})
    rows = (
        *PLACE_AND_SEED,
        *EPOCHS,
        *LIMITS,
        *EARLY_STOPPING,
        *NOT_TRAINED,
        *shown(f"{CONTRACT}::test_two_workers_share_the_rows_and_learn_what_one_process_learns", "scaling.num_workers"),
        *shown(f"{NOT_FINITE}::test_weights_that_are_spoilt_are_not_saved", "run.failure.nan_loss"),
        *shown(f"{NOT_FINITE}::test_a_run_that_leaves_out_step_after_step_fails", "run.failure.max_skipped_steps"),
        *together(
            acts("trainer.evaluate_split=test", on=evaluated_split),
            acts("trainer.eval_every_epochs=2", on=evaluated_steps),
            acts("trainer.num_threads=1", on=threads),
            acts("trainer.shuffle=false", on=weights),
        ),
        acts("trainer.eval_every_steps=2", on=evaluated_steps),
        acts("trainer.eval_batch_size=2", on=measured),
        acts("trainer.global_batch_size=4", on=last_step),
        acts("trainer.model.config.n_embd=4", on=parameters),
        acts("trainer.model.pretrained=BASE", "trainer.model.config=null", on=weights),
        acts("trainer.arguments.learning_rate=0.5", on=weights),
        acts("trainer.task=causal-lm", on=names),
        acts("trainer.tokenizer.train=characters", on=parameters),
        acts("trainer.tokenizer.vocab_size=50", on=parameters),
        acts("trainer.tokenizer.lowercase=true", on=texts),
        acts("trainer.tokenizer.pretrained=BASE", "trainer.tokenizer.train=null", on=texts),
        acts("trainer.max_length=4", on=measured),
        acts("trainer.packing=false", on=last_step, given=("trainer.task=causal-lm",)),
        acts("trainer.mask_share=0.5", on=weights, given=MASKED),
        acts(LORA, on=num_trained),
        acts("trainer.merge_lora=true", on=files, given=(LORA,)),
    )
