"""Keys that a table has shown to do nothing in some way of running are declared, and refused when typed there."""

import pytest

from rtrain.config.session import Session
from rtrain.errors import ConfigError
from rtrain.schemas import schemas

FUNCTION = "trainer.train_function=optax:adam"
STREAM = ("dataset=csv", "dataset.path=a.csv", "dataset.label=y", "dataset.memory=stream")
CASES = [
    ("keras", ("trainer.num_threads=2",), "num_workers=0"),
    ("mlp", ("run.resume_data=changed",), "a new run has no earlier data"),
    ("mlp", ("trainer.max_seconds=9", "run.checkpoint.every_seconds=10"), "before that many seconds"),
    ("lightning", ("+trainer.trainer_args.check_val_every_n_epoch=11",), "before that many epochs"),
    ("lightning", ("+trainer.trainer_args.gradient_clip_algorithm=value",), "no gradients are clipped"),
    ("mlp", ("trainer.strategy=fsdp",), "needs no strategy"),
    ("mlp", ("trainer.strategy=ddp",), "needs no strategy"),
    ("mlp", ("trainer.strategy=accelerate",), "needs no strategy"),
    (
        "mlp",
        ("trainer.strategy=fsdp", "trainer.strategy_options={param_dtype: bf16, reduce_dtype: bf16}"),
        "needs no strategy",
    ),
    ("mlp", ("trainer.strategy_options.tp_size=2",), "it needs trainer.strategy=fsdp_tp"),
    ("mlp", ("trainer.strategy_options.tp_plan={a: rowwise}",), "it needs trainer.strategy=tp or fsdp_tp"),
    ("mlp", ("trainer.strategy_options.zero_stage=2",), "it needs trainer.strategy=deepspeed"),
    ("mlp", ("trainer.strategy_options.accelerate={a: 1}",), "trainer.strategy=accelerate"),
    *(
        ("mlp", (f"trainer.strategy_options.{word}",), "it needs trainer.strategy=fsdp or")
        for word in ("reshard_after_forward=true", "param_dtype=fp32", "reduce_dtype=bf16")
    ),
    ("mlp", ("trainer.strategy_options.consolidate=false",), "it needs trainer.strategy=fsdp or tp or fsdp_tp"),
    ("mlp", ("trainer.strategy_options.deepspeed={a: 1}",), "it needs trainer.strategy=deepspeed"),
    ("mlp", ("dataset.seed=0", "dataset.split={val: 0, test: 0}"), "no rows are drawn"),
    ("mlp", ("trainer.max_seconds=9", "run.stop.max_seconds=10"), "trainer.max_seconds ends the run earlier"),
    ("xgboost", ("trainer.max_seconds=9", "run.stop.max_seconds=8"), "run.stop.max_seconds ends the run earlier"),
    *(
        (name, ("trainer.evaluate_split=none", f"++trainer.metrics.f1._target_={target}"), "evaluates nothing")
        for name, target in {"mlp": "torchmetrics.F1Score", "keras": "keras.metrics.F1Score", "jax": "optax.l2"}.items()
    ),
    ("mlp", ("trainer/scheduler=plateau", "trainer.scheduler_interval=step"), "advances at each evaluation"),
    ("mlp", ("num_workers=1", "scaling.placement_strategy=PACK"), "a single worker needs no placement"),
    ("mlp", ("num_workers=1", "cluster.address=auto", "cluster.object_store_bytes=80000000"), "is already running"),
    ("mlp", (*STREAM, "trainer.shuffle=false", "dataset.num_shuffle_rows=10000"), "trainer.shuffle=false uses"),
    ("xgboost", (*STREAM, "dataset.num_shuffle_rows=10000"), "in the order of the data"),
    ("xgboost", ("trainer.num_boost_round=9", "trainer.early_stopping_rounds=9"), "before that many rounds"),
    ("xgboost", ("trainer.early_stopping_min_delta=0",), "nothing stops the run early"),
    ("lightgbm", ("trainer.eval_splits=[]", "trainer.metric_functions=[a:b]"), "evaluates nothing"),
    ("transformers", ("++trainer.arguments.ddp_bucket_cap_mb=25",), "several workers"),
    ("transformers", ("trainer.mask_share=0.5",), "masks no tokens"),
    ("lightning", ("+trainer.trainer_args.sync_batchnorm=true",), "several workers"),
    ("lightning", ("trainer.early_stopping.patience=9",), "before that many evaluations"),
    ("lightning", ("trainer.early_stopping.monitor=a", "trainer.max_epochs=5"), "before that many evaluations"),
    ("sklearn", ("trainer.early_stopping.monitor=a", "trainer.max_epochs=5"), "before that many evaluations"),
    ("xgboost", ("trainer.num_boost_round=9", "trainer.early_stopping={patience: 8}"), "before that many rounds"),
    ("sklearn", ("trainer.max_epochs=9", "trainer.early_stopping.patience=8"), "before that many evaluations"),
    ("mlp", ("trainer.strategy_options.blocks=[layers.*]",), "nothing is applied per block"),
    ("mlp", ("trainer.train_loop=a:b", "scaling.use_gpu=true"), "uses the GPU it finds"),
    ("sklearn", ("run.checkpoint.best.keep=3",), "fitted in one call"),
    ("sklearn", ("run.failure.max_skipped_steps=3",), "skips no steps"),
    ("xgboost", ("run.failure.max_skipped_steps=3",), "skips no steps"),
    ("xgboost", ("run.failure.max_skipped_steps=3", "run.failure.nan_loss=skip"), "skips no steps"),
    ("jax", (FUNCTION, "trainer.eval_batch_size=3"), "train_function does the training"),
    ("jax", (FUNCTION, "run.log_every_steps=3"), "train_function does the training"),
    ("jax", ("+trainer.train_function_config.lr=3",), "no custom train function"),
]


@pytest.mark.parametrize(("config", "words", "because"), CASES, ids=lambda one: str(one).strip("()"))
def test_what_does_nothing_is_refused_by_name(config, words, because):
    with Session(config, ("num_workers=0", *words), schemas()) as session, pytest.raises(ConfigError) as raised:
        session.check()
    assert "has no effect" in str(raised.value)
    assert because in str(raised.value)


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ("mlp", ("trainer.train_loop=a:b", "scaling.use_gpu=true", "num_workers=1")),
        ("keras", ("trainer.num_threads=2", "num_workers=1")),
        ("mlp", ("num_workers=0", "run.resume=auto", "run.resume_data=changed")),
        ("mlp", ("trainer.strategy=fsdp", "trainer.strategy_options.blocks=[layers.*]", "num_workers=2")),
        ("mlp", ("trainer.strategy=fsdp", "trainer.strategy_options.param_dtype=bf16")),
        ("mlp", ("trainer.strategy=deepspeed", "trainer.strategy_options.zero_stage=2")),
        ("mlp", ("dataset.seed=0",)),
        ("mlp", ("dataset.seed=1", "dataset.split={val: 0, test: 0}", "dataset.limit=99")),
        ("sklearn", ("dataset=sklearn", "dataset.name=make_moons", "dataset.seed=1", "dataset.split={test: 0}")),
        ("mlp", ("trainer.max_seconds=10", "run.stop.max_seconds=10")),
        ("mlp", ("num_workers=2", "scaling.placement_strategy=PACK", "cluster.object_store_bytes=80000000")),
        ("mlp", (*STREAM, "dataset.num_shuffle_rows=10000")),
        ("mlp", ("trainer.strategy=accelerate", "+trainer.strategy_options.accelerate.dynamo_backend=inductor")),
        ("xgboost", ("trainer.num_boost_round=9", "trainer.early_stopping={patience: 7}")),
        ("sklearn", ("trainer.max_epochs=9", "trainer.early_stopping.patience=7")),
        ("lightning", ("trainer.early_stopping.patience=8",)),
        ("lightning", ("trainer.early_stopping.patience=9", "+trainer.trainer_args.val_check_interval=0.5")),
        ("sklearn", ("run.checkpoint.best.keep=3", "trainer.max_epochs=2")),
        ("jax", (FUNCTION, "+trainer.train_function_config.lr=3")),
    ],
)
def test_where_it_acts_it_is_taken(config, words):
    with Session(config, words, schemas()) as session:
        session.check()
