"""Each key that the transformers trainer follows has an effect."""

from types import MappingProxyType

from acting_looks import (
    evaluated_split,
    evaluated_steps,
    files,
    last_step,
    num_trained,
    parameters,
    texts,
    threads,
    weights,
)
from acting_rows import acts, shown, slow, together
from acting_run_rows import CALLBACKS, EARLY_STOPPING, EPOCHS, LIMITS, NOT_TRAINED, OWN_LOOP, PLACE_AND_SEED
from acting_tables import KeysAct

NOT_FINITE = "tests/trainers/transformers/test_transformers_not_finite.py::TestNotFinite"
CONTRACT = "tests/trainers/transformers/test_transformers_contract.py::TestTransformers"

GOOD, BAD, THINGS = ("good", "great", "Fine"), ("bad", "awful", "Poor"), ("film", "book", "song", "play")
TABLE = "\n".join(
    ["text,label"]
    + [
        f"the {THINGS[row % 4]} of {THINGS[row // 4 % 4]} is {'very ' * (row % 3)}{words[row % 3]},{label}"
        for row in range(30)
        for label, words in enumerate((GOOD, BAD))
    ]
)
TRAINED = "BASE/checkpoints/epoch-0003-step-00000009"
LANGUAGE = ("dataset.label=null",)
LORA = ("trainer.lora={r: 2, target_modules: [query]}",)

ARGUMENTS = (
    *("weight_decay=0,0.5", "adam_beta1=0.9,0.5", "adam_beta2=0.999,0.5", "adam_epsilon=1e-8,0.1"),
    *("optim=adamw_torch,adafactor", "lr_scheduler_type=linear,constant", "warmup_steps=0,2", "max_grad_norm=1,0.01"),
    *("bf16=false,true", "label_smoothing_factor=0,0.1"),
)
"""Of those that rtrain follows, the ones that another test doesn't show: the usual value, and another one."""


def argument(name, values):
    key = f"trainer.arguments.{name}"
    return acts(f"{key}={values.partition(',')[2]}", on=weights, axis=f"{key}={values}")


class TestTransformers(KeysAct):
    trainer = "transformers"
    workers = ("scaling.num_workers=2", "trainer.batch_size=8")
    """They take the steps of one process: with fewer, the loss does not fall from epoch to epoch."""
    config = """
defaults: [trainer: transformers, dataset: text, scaling: in_process]
trainer:
  model:
    config:
      model_type: bert
      hidden_size: 8
      num_hidden_layers: 1
      num_attention_heads: 1
      intermediate_size: 8
  tokenizer: {train: wordpiece, vocab_size: 60}
  arguments: {learning_rate: 0.02}
  max_length: 12
  num_threads: 1
  max_epochs: 3
  batch_size: 16
dataset: {path: table.csv, label: label, split: {val: 0.1, test: 0.1}}
"""
    options = MappingProxyType({"table.csv": TABLE})
    rows = (
        *NOT_TRAINED,
        *OWN_LOOP,
        *CALLBACKS,
        *shown(f"{CONTRACT}::test_two_workers_share_the_rows_and_learn_what_one_process_learns", "scaling.num_workers"),
        *shown(f"{NOT_FINITE}::test_weights_that_are_spoilt_are_not_saved", "run.failure.nan_loss"),
        *shown(f"{NOT_FINITE}::test_a_run_that_leaves_out_step_after_step_fails", "run.failure.max_skipped_steps"),
        *shown(
            "tests/trainers/loops/epochs/test_epochs.py::test_an_evaluation_takes_so_many_rows_of_each_worker_at_a_time",
            "trainer.eval_batch_size",
        ),
        *PLACE_AND_SEED,
        *together(
            acts("trainer.evaluate_split=test", on=evaluated_split),
            acts("trainer.num_threads=2", on=threads),
            acts("trainer.eval_every_epochs=2", on=evaluated_steps),
        ),
        acts("trainer.shuffle=false", on=weights),
        acts("trainer.task=masked-lm", on=weights, given=LANGUAGE),
        acts("trainer.mask_share=0.5", on=weights, given=(*LANGUAGE, "trainer.task=masked-lm")),
        acts("trainer.accumulate_steps=2", on=last_step),
        acts("trainer.packing=false", on=last_step, given=LANGUAGE),
        acts("trainer.model.config.hidden_size=4", on=parameters),
        acts(f"trainer.model.pretrained={TRAINED}", on=weights),
        acts(
            f"trainer.tokenizer.pretrained={TRAINED}",
            on=texts,
            given=("dataset.limit=20",),
            on_workers=None,  # beside vocab_size of the file it has to be typed, or varied
        ),
        acts("trainer.tokenizer.train=characters", on=texts),
        acts("trainer.tokenizer.vocab_size=40", on=texts),
        acts("trainer.tokenizer.lowercase=true", on=texts),
        acts("trainer.max_length=4", on=weights),
        acts("trainer.arguments.learning_rate=0.5", on=weights),
        acts(*LORA, on=num_trained),
        acts("trainer.merge_lora=true", on=files, given=LORA),
        *slow(
            [
                *EPOCHS,
                *LIMITS,
                *EARLY_STOPPING,
                acts(
                    "trainer.global_batch_size=4",
                    on=last_step,
                    on_workers=("trainer.batch_size=null", "trainer.global_batch_size=4"),
                ),
                acts("trainer.eval_every_steps=2", on=evaluated_steps, on_workers=("trainer.eval_every_steps=1",)),
                *(argument(*word.split("=")) for word in ARGUMENTS),
            ]
        ),
    )
