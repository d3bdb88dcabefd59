"""What a config may say to the torch trainer; each field's docstring is its documentation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, ClassVar

from pydantic import Field

from rtrain.config.needs import SEVERAL_WORKERS, Need, Rule, Rules, Way
from rtrain.config.value_types.auto import AUTO, whole_or_auto
from rtrain.config.value_types.texts import one_of
from rtrain.datasets.images.conf import ImagesConf
from rtrain.trainers.loops.custom.conf import TrainLoopConf, loop_needs
from rtrain.trainers.loops.epochs.conf import MEASURED, EpochsConf
from rtrain.trainers.loops.epochs.too_late import schedules_of

SCHEDULE = Need(
    met=lambda way: way.trainer.scheduler is not None,
    otherwise="the learning rate has no schedule",
    instead="Choose one: scheduler=cosine",
    keys=("trainer.scheduler",),
)
BY_INTERVAL = Need(
    met=lambda way: not str((way.trainer.scheduler or {}).get("_target_")).endswith("ReduceLROnPlateau"),
    otherwise="a schedule that watches a metric advances at each evaluation",
    instead="Set how often to evaluate: trainer.eval_every_epochs, trainer.eval_every_steps",
    keys=("trainer.scheduler",),
)
BLOCKS = Need(
    met=lambda way: (
        way.trainer.strategy in ("fsdp", "fsdp_tp") or way.trainer.strategy_options.activation_checkpointing is not None
    ),
    otherwise="nothing is applied per block",
    instead="Recompute them: trainer.strategy_options.activation_checkpointing=1; or shard them: trainer.strategy=fsdp",
    keys=("trainer.strategy", "trainer.strategy_options.activation_checkpointing"),
)
PREPARED = Need(
    met=lambda way: bool(way.trainer.transform or way.trainer.eval_transform) or _reads_images(way),
    otherwise="rows are neither transformed nor read from image files in each epoch",
    instead="Set trainer.transform, or leave it out",
    keys=("trainer.transform", "trainer.eval_transform", "dataset"),
    of_rows=True,
)
PREFETCHED = Need(
    met=lambda way: _has_processes(way.trainer.loader.num_workers, way),
    otherwise="the process of training prepares the rows itself",
    instead="Use other processes: trainer.loader.num_workers=2",
    keys=("trainer.loader.num_workers", "scaling.use_gpu"),
)
CHANNELS = Need(
    met=lambda way: way.info is None or len(way.info.input_shape) == 3 or bool(way.trainer.transform),
    otherwise="the rows of the dataset aren't images",
    instead="Leave it out",
    keys=("dataset", "trainer.transform"),
    of_rows=True,
)
SHARING = replace(
    SEVERAL_WORKERS,
    met=lambda way: SEVERAL_WORKERS.met(way) or _acts_alone(way.trainer),
    otherwise="a single process needs no strategy",
    keys=("scaling.num_workers", "trainer.strategy"),
)
SHARDING = replace(SHARING, met=lambda way: SEVERAL_WORKERS.met(way) or way.trainer.strategy not in ("fsdp", "fsdp_tp"))
SPLITTING = replace(SHARING, met=lambda way: SEVERAL_WORKERS.met(way) or way.trainer.strategy not in ("tp", "fsdp_tp"))
STRATEGIES = ("ddp", "fsdp", "tp", "fsdp_tp", "deepspeed", "accelerate")
FOLLOWED_BY = {
    **dict.fromkeys(("reshard_after_forward", "param_dtype", "reduce_dtype"), ("fsdp", "fsdp_tp")),
    "tp_size": ("fsdp_tp",),
    "tp_plan": ("tp", "fsdp_tp"),
    "consolidate": ("fsdp", "tp", "fsdp_tp"),
    "zero_stage": ("deepspeed",),
    "deepspeed": ("deepspeed",),
    "accelerate": ("accelerate",),
}
"""The strategies that follow those of ``strategy_options`` that not all of them follow."""


def _has_processes(num_workers: Any, way: Way) -> bool:
    return bool(way.conf.scaling.use_gpu if num_workers == AUTO else num_workers)


def _reads_images(way: Way) -> bool:
    """Return whether image files are read in each epoch; before that is known, whether they may be."""
    return isinstance(way.conf.dataset, ImagesConf) and (way.info is None or way.info.memory == "stream")


def _acts_alone(conf: Conf) -> bool:
    """Return whether a strategy does something in a single process: computes, steps or saves in another way."""
    options = conf.strategy_options
    computes = conf.strategy in ("fsdp", "fsdp_tp") and (options.param_dtype != "fp32" or options.consolidate)
    return computes or conf.strategy == "deepspeed" or (conf.strategy == "accelerate" and bool(options.accelerate))


def _rule_of_option(name: str) -> Rule:
    """Return the rule of an option that only some strategies follow."""
    strategies = FOLLOWED_BY[name]
    return Need(
        met=lambda way: way.trainer.strategy in strategies,
        otherwise=f"it needs trainer.strategy={' or '.join(strategies)}",
        instead=f"Leave it out, or use that strategy: trainer.strategy={strategies[0]}",
        keys=("trainer.strategy",),
    ).of(name)


@dataclass(kw_only=True)
class StrategyConf:
    """Options of the strategies; each strategy supports some of them and refuses the rest."""

    needs: ClassVar[Rules] = tuple(_rule_of_option(name) for name in FOLLOWED_BY)

    blocks: list[str] = field(default_factory=list)
    """Modules, by patterns of their names, that are sharded and recomputed one by one; empty: the outermost members of
    each ``ModuleList``. A ``*`` stays between two dots: ``layers.*`` names ``layers.0``, but not ``layers.0.attn``."""

    activation_checkpointing: Annotated[int, Field(ge=1)] | None = None
    """Recompute the activations of every n-th block in the backward pass instead of keeping them: 1 for all blocks, 2
    for every second one, null for none."""

    reshard_after_forward: bool = True
    """fsdp: free a block's whole weights between its forward and its backward pass."""

    param_dtype: Annotated[str, *one_of("fp32", "bf16", "fp16")] = "fp32"
    """fsdp: type of the gathered weights and of computations with them; the optimizer's weights stay fp32."""

    reduce_dtype: Annotated[str, *one_of("fp32", "bf16", "fp16")] = "fp32"
    """fsdp: type in which gradients are exchanged."""

    tp_size: Annotated[int, Field(ge=1)] = 2
    """fsdp_tp: workers that split each layer between them and see the same rows."""

    tp_plan: dict[str, str] = field(default_factory=dict)
    """tp: how layers are split, by patterns of their names: ``colwise`` (by outputs, which stay split), ``rowwise`` (by
    inputs, which are split already) or ``colwise_gather`` (by outputs, which are gathered). Empty: the model's own
    ``tensor_parallel_plan``."""

    zero_stage: Annotated[int, Field(ge=1, le=3)] = 2
    """deepspeed: what is sharded: 1 the optimizer's state, 2 also the gradients, 3 also the weights."""

    deepspeed: dict[str, Any] = field(default_factory=dict)
    """deepspeed: more keys of DeepSpeed's config, e.g. ``{zero_optimization: {overlap_comm: true}}``."""

    accelerate: dict[str, Any] = field(default_factory=dict)
    """accelerate: more arguments of its ``Accelerator``, e.g. ``{dynamo_backend: inductor}``."""

    consolidate: bool = False
    """Also write the whole weights into each sharded checkpoint, as ``model.safetensors``; worker 0 gathers them."""


@dataclass(kw_only=True)
class LoaderConf:
    """What prepares rows for the steps to come."""

    num_workers: Annotated[Any, *whole_or_auto(0)] = AUTO
    """Processes that read image files and transform rows, for each worker, and for each split that needs it; 0: the
    process that trains. auto: 0 on CPUs, on GPUs up to 8, as many as leave a core to each worker. The numbers stay the
    same."""

    prefetch: Annotated[int, Field(ge=1)] = 2
    """Batches that each of these processes prepares ahead."""


@dataclass(kw_only=True)
class Conf(TrainLoopConf, EpochsConf):
    """Trains any torch module, declared or by a loop of your own."""

    exclusive: ClassVar[tuple[tuple[str, ...], ...]] = (*EpochsConf.exclusive, ("clip_norm", "clip_value"))
    homes: ClassVar[Mapping[str, Sequence[str]]] = {
        "model": ("rtrain.models.torch",),
        "optimizer": ("torch.optim",),
        "scheduler": ("torch.optim.lr_scheduler",),
        "loss": ("torch.nn", "torch.nn.functional"),
        "metrics": ("torchmetrics", "torchmetrics.classification", "torchmetrics.regression"),
    }
    """Modules that have what each part may be built of."""
    needs: ClassVar[Rules] = (
        *loop_needs("num_threads"),
        *EpochsConf.needs,
        *MEASURED,
        SCHEDULE.of("scheduler_interval"),
        BY_INTERVAL.of("scheduler_interval"),
        schedules_of("scheduler"),
        BLOCKS.of("strategy_options.blocks"),
        CHANNELS.of("channels_last"),
        PREPARED.of("loader.num_workers"),
        PREFETCHED.of("loader.prefetch"),
        SHARING.of("strategy"),
        SHARDING.of("strategy_options.reshard_after_forward", "strategy_options.reduce_dtype"),
        SPLITTING.of("strategy_options.tp_size", "strategy_options.tp_plan"),
        SEVERAL_WORKERS.of("find_unused_parameters", "sync_batchnorm"),
    )
    follows: ClassVar[Rules] = (
        *TrainLoopConf.follows,
        *EpochsConf.follows,
    )

    model: dict[str, Any] = field(default_factory=dict)
    """The module, by ``_target_``. ``auto`` for in_channels, in_features, input_shape, num_classes, out_features,
    block_size and vocab_size takes the value from the dataset."""

    optimizer: dict[str, Any] = field(default_factory=dict)
    """The optimizer, by ``_target_``; it gets the model's parameters first."""

    scheduler: dict[str, Any] | None = None
    """The learning rate's schedule, by ``_target_``; it gets the optimizer first. ``auto`` for T_max, total_steps,
    total_iters and num_training_steps is the number of its steps in the whole run. Null: a constant rate."""

    scheduler_interval: Annotated[str, *one_of("step", "epoch")] = "step"
    """When the schedule advances. A schedule that monitors a metric (ReduceLROnPlateau) advances at each evaluation,
    by the metric of the best checkpoint, in its direction."""

    loss: dict[str, Any] | None = None
    """The loss of (output, target), by ``_target_``: a module or a function; null: cross entropy, or squared error for
    a regression."""

    metrics: dict[str, Any] = field(default_factory=dict)
    """Metrics of each evaluation in addition to loss and accuracy or errors: name to a torchmetrics class by
    ``_target_``. ``auto`` works as in ``model``."""

    transform: list[dict[str, Any]] = field(default_factory=list)
    """Transforms of each training row, applied again in every epoch: modules or functions by ``_target_``, one after
    the other. They get one row at a time, on the CPU and before standardization, images as float32 from 0 to 1."""

    eval_transform: list[dict[str, Any]] = field(default_factory=list)
    """The same for rows that are evaluated or predicted."""

    loader: LoaderConf = field(default_factory=LoaderConf)
    """Processes that transform rows ahead of training."""

    batch_size: Annotated[int, Field(ge=1)] | None = None
    """Rows per worker and backward pass, workers that split layers (``tp``) counted as one; give this or
    ``global_batch_size``. 32 without either."""

    clip_norm: Annotated[float, Field(gt=0)] | None = None
    """Maximum norm of all gradients together."""

    clip_value: Annotated[float, Field(gt=0)] | None = None
    """Maximum absolute value of each gradient."""

    precision: Annotated[str, *one_of("fp32", "bf16", "fp16")] = "fp32"
    """Type of the forward pass under autocast; fp16 scales the loss."""

    ema_decay: Annotated[float, Field(gt=0, lt=1)] | None = None
    """Decay per step of a moving average of the weights, which evaluations then use; null for none."""

    compile: bool = False
    """Compile the model with ``torch.compile``."""

    channels_last: bool = False
    """Keep images in the channels-last memory format."""

    sync_batchnorm: bool = False
    """Share batch statistics between workers (GPUs only)."""

    deterministic: bool = True
    """Use deterministic algorithms where torch has them, so that the same seed gives the same numbers."""

    float32_matmul_precision: Annotated[str, *one_of("highest", "high", "medium")] = "highest"
    """How exactly float32 matrices are multiplied: ``high`` allows TF32 on GPUs, ``medium`` bfloat16. Both are faster
    where the hardware has them, as ``torch.set_float32_matmul_precision`` describes."""

    num_threads: Annotated[int, Field(ge=1)] | None = None
    """Threads of each worker; null: as many as it has cores."""

    find_unused_parameters: bool = False
    """Allow steps that don't use all weights of the model, at some cost; only needed with several workers."""

    strategy: Annotated[str, *one_of(*STRATEGIES)] = "ddp"
    """How workers share the training: ``ddp`` (each has the whole model), ``fsdp`` (each holds a share of the weights),
    ``tp`` (each computes a part of every layer), ``fsdp_tp`` (both), ``deepspeed`` (ZeRO), ``accelerate``."""

    strategy_options: StrategyConf = field(default_factory=StrategyConf)
    """Options of the strategy."""

    def __post_init__(self) -> None:
        if self.train_loop is not None:
            return
        missing = [name for name in ("model", "optimizer") if "_target_" not in getattr(self, name)]
        if len(missing) > 1:
            raise ValueError("model and optimizer are not chosen: model=mlp optimizer=adam, or give each a _target_")
        for name in missing:
            raise ValueError(f"{name} is not chosen: add `- {name}: ...` to the defaults, or give it a _target_")
        self.check_limits()
        if self.clip_norm is not None and self.clip_value is not None:
            raise ValueError("clip_norm and clip_value contradict each other: set one of them to null")

    def num_with_own_rows(self, world_size: int) -> int:
        """Return the number of workers, those that see the same rows counted as one."""
        if self.strategy == "tp":
            return 1
        return max(1, world_size // self.strategy_options.tp_size) if self.strategy == "fsdp_tp" else world_size
