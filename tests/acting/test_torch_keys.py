"""Each key that the torch trainer follows when it trains a declared model has an effect."""

from types import MappingProxyType

from acting_looks import (
    evaluated_split,
    evaluated_steps,
    last_step,
    measured,
    names,
    parameters,
    threads,
    weights,
)
from acting_rows import acts, refused, shown, together
from acting_run_rows import CALLBACKS, EARLY_STOPPING, EPOCHS, LIMITS, NOT_TRAINED, PLACE_AND_SEED
from acting_tables import KeysAct

PROCESSES = "tests/trainers/torch/test_row_processes.py"
NOT_FINITE = "tests/trainers/torch/test_torch_not_finite.py::TestNotFinite"
BATCHES = ("allow=[acting_probes]", "+trainer.metrics.batches._target_=acting_probes.NumBatches")
IMAGES = ("allow=[acting_probes]", "dataset=digits", "trainer/model=layout")

CONTRACT = "tests/trainers/torch/test_torch_contract.py::TestTorch"


class TestTorch(KeysAct):
    trainer = "torch"
    decided = KeysAct.decided | {"trainer.strategy"}  # tests/trainers/torch/test_torch_strategies.py has its ways
    config = """
defaults: [trainer: torch, model: mlp, optimizer: sgd, dataset: sklearn, scaling: in_process]
trainer: {model: {hidden: [8], dropout: 0.1}, max_epochs: 3, batch_size: 16}
dataset: {limit: 60, split: {val: 0.1, test: 0.1}}
"""
    options = MappingProxyType({"trainer/model/layout.yaml": "_target_: acting_probes.Layout\nnum_classes: auto\n"})
    rows = (
        *PLACE_AND_SEED,
        *EPOCHS,
        *CALLBACKS,
        *LIMITS,
        *EARLY_STOPPING,
        *NOT_TRAINED,
        *shown(f"{CONTRACT}::test_two_workers_share_the_rows_and_learn_what_one_process_learns", "scaling.num_workers"),
        *shown(f"{NOT_FINITE}::test_weights_that_are_spoilt_are_not_saved", "run.failure.nan_loss"),
        *shown(f"{NOT_FINITE}::test_a_run_that_leaves_out_step_after_step_fails", "run.failure.max_skipped_steps"),
        *shown(
            f"{PROCESSES}::test_the_config_says_how_many_processes_prepare_how_many_batches",
            "trainer.loader.num_workers",
            "trainer.loader.prefetch",
        ),
        acts("trainer.global_batch_size=4", on=last_step),
        acts("trainer.accumulate_steps=2", on=last_step),
        *together(
            acts("trainer.evaluate_split=test", on=evaluated_split),
            acts("trainer.num_threads=1", on=threads, on_workers=("trainer.num_threads=2",)),
            acts("trainer.eval_every_epochs=2", on=evaluated_steps),
            acts("trainer.shuffle=false", on=weights),
            acts(
                "trainer.metrics={f1: {_target_: torchmetrics.F1Score, task: multiclass, num_classes: auto}}", on=names
            ),
        ),
        acts("trainer.eval_every_steps=2", on=evaluated_steps, on_workers=("trainer.eval_every_steps=1",)),
        acts("trainer.eval_batch_size=2", on=measured, given=BATCHES),
        acts("trainer.model.hidden=[4]", on=parameters),
        acts("trainer.optimizer.lr=0.5", on=weights),
        acts("trainer/scheduler=cosine", on=weights, axis="trainer/scheduler=linear,cosine"),
        acts("trainer.scheduler_interval=epoch", on=weights, given=("trainer/scheduler=cosine",)),
        acts("trainer.loss={_target_: torch.nn.MultiMarginLoss}", on=weights),
        acts("trainer.transform=[{_target_: torch.nn.Sigmoid}]", on=weights),
        acts("trainer.eval_transform=[{_target_: torch.nn.Sigmoid}]", on=measured),
        acts("trainer.clip_norm=0.01", on=weights),
        acts("trainer.clip_value=0.01", on=weights),
        acts("trainer.precision=bf16", on=weights),
        acts("trainer.ema_decay=0.5", on=measured),
        acts("trainer.channels_last=true", on=weights, given=IMAGES),
        acts(
            "trainer.deterministic=false",
            on=weights,
            given=("allow=[acting_probes]", "trainer.loss={_target_: acting_probes.stricter_loss}"),
        ),
        acts(
            "trainer.float32_matmul_precision=high",
            on=weights,
            given=("allow=[acting_probes]", "trainer.loss={_target_: acting_probes.looser_loss}"),
        ),
        # The loop has a table of its own, on workers too.
        acts(
            "trainer.train_loop=acting_probes:other_loop",
            on=names,
            given=("allow=[acting_probes]",),
            on_workers=None,
        ),
        refused("trainer.compile=true", "trainer.strategy=deepspeed", because="trainer.compile"),
        refused(
            "trainer.strategy_options.blocks=[nothing]",
            "trainer.strategy_options.activation_checkpointing=1",
            because="strategy_options.blocks",
        ),
        refused("trainer.strategy_options.activation_checkpointing=1", because="activation_checkpointing|blocks"),
    )
