"""DeepSpeed's ZeRO: ranks share the optimizer's state, the gradients, or the weights as well."""

from __future__ import annotations

import os
import shutil
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from pathlib import Path
from typing import Any, ClassVar

import torch
from safetensors.torch import save_file
from torch import Tensor, nn
from torch.serialization import safe_globals

from rtrain.config.did_you_mean import to_try
from rtrain.errors import CheckpointError, ConfigError
from rtrain.process.variables import variables_set
from rtrain.runs.checkpoints import Writer
from rtrain.trainers.torch.checkpoint.shards import MODEL, model_tensors
from rtrain.trainers.torch.checkpoint.state import TRAINING, WEIGHTS, TrainState
from rtrain.trainers.torch.config import Conf
from rtrain.trainers.torch.ranks import TorchRanks
from rtrain.trainers.torch.strategies.base import Strategy
from rtrain.trainers.torch.strategies.blocks import recompute_activations

TAG = "deepspeed"
"""Folder of DeepSpeed's own files, inside a checkpoint."""
OURS = (
    "bf16",
    "fp16",
    "gradient_accumulation_steps",
    "gradient_clipping",
    "optimizer",
    "scheduler",
    "torch_autocast",
    "train_batch_size",
    "train_micro_batch_size_per_gpu",
)
"""Keys of DeepSpeed's config that follow from other keys of the trainer."""


class DeepSpeed(Strategy):
    """``deepspeed.initialize`` around model and optimizer; batches, evaluations and schedules are rtrain's.

    Rajbhandari et al., "ZeRO: memory optimizations toward training trillion parameter models" (2019).
    """

    refused: ClassVar[dict[str, Any]] = {
        "channels_last": False,
        "clip_value": None,
        "compile": False,
        "ema_decay": None,
        "find_unused_parameters": False,
        "sync_batchnorm": False,
    }
    requires = ("deepspeed",)
    install = "pip install --no-build-isolation 'rtrain[deepspeed]'"
    sharded = True

    def __init__(self, conf: Conf, ranks: TorchRanks) -> None:
        super().__init__(conf, ranks)
        with _environment(DS_ACCELERATOR=ranks.device.type):
            import deepspeed
        self._deepspeed, self._held = deepspeed, ExitStack()
        # ZeRO 3 reads it in each step. Ray Train sets it for its workers, but not for a single process.
        self._held.enter_context(_environment(LOCAL_RANK="0"))

    @classmethod
    def check_model(cls, model: nn.Module, conf: Conf, num_workers: int) -> None:
        """Check that DeepSpeed's own config leaves alone what rtrain sets."""
        super().check_model(model, conf, num_workers)
        for name in conf.strategy_options.deepspeed:
            if name in OURS:
                raise ConfigError(
                    f"trainer.strategy_options.deepspeed.{name}: rtrain sets it.",
                    "It is derived from trainer.precision, batch_size, accumulate_steps, clip_norm and optimizer.",
                )

    def place(self, model: nn.Module) -> nn.Module:
        """Put the whole model on this rank's device; ``wrap`` partitions it."""
        recompute_activations(model, self.conf.strategy_options)
        self._num_parameters = super().num_parameters(model)
        return model.to(self.ranks.device)

    def num_parameters(self, model: nn.Module) -> int:
        """Return what was counted before weights were partitioned."""
        return self._num_parameters

    def wrap(self, state: TrainState) -> nn.Module:
        """Return DeepSpeed's engine."""
        with _quiet():
            self._engine, *_ = self._deepspeed.initialize(
                model=state.model, optimizer=state.optimizer, config=self._config(), dist_init_required=False
            )
        self._engine.set_gradient_accumulation_boundary(True)
        engine: nn.Module = self._engine
        return engine

    def _config(self) -> dict[str, Any]:
        own = self.conf.strategy_options.deepspeed
        return {
            "zero_allow_untested_optimizer": True,
            "zero_force_ds_cpu_optimizer": False,
            **own,
            "gradient_accumulation_steps": 1,
            "gradient_clipping": self.conf.clip_norm or 0.0,
            "torch_autocast": {"enabled": self.conf.precision == "bf16", "dtype": "bfloat16"},
            # rtrain makes the batches; DeepSpeed only wants to know some number.
            "train_micro_batch_size_per_gpu": 1,
            "zero_optimization": {**own.get("zero_optimization", {}), "stage": self.conf.strategy_options.zero_stage},
        }

    @contextmanager
    def hold(self) -> Iterator[None]:
        """Add up gradients until the last pass."""
        self._engine.set_gradient_accumulation_boundary(False)
        try:
            yield
        finally:
            self._engine.set_gradient_accumulation_boundary(True)

    def backward(self, state: TrainState, loss: Tensor) -> None:
        """Add gradients as DeepSpeed does."""
        with _quiet():
            self._engine.backward(loss)

    def update(self, state: TrainState, *, skips: bool = False) -> bool:
        """Let DeepSpeed clip the gradients, move the weights on, and forget the gradients; it never ``skips``."""
        with _quiet():
            self._engine.step()
        return True

    def snapshot(self, state: TrainState) -> Writer:
        """Copy what DeepSpeed would write of this rank, and on rank 0 the whole weights and the rest."""
        aside, first = tempfile.TemporaryDirectory(prefix="rtrain-"), self.ranks.rank == 0
        with _quiet(), self._held_back() as files:
            self._engine.save_checkpoint(aside.name, tag=TAG, save_latest=False)
        with self._whole(state.model):
            weights = model_tensors(state.model) if first else {}
            files, weights, rest = state.stager.take((files, weights, {**state.rest(), "rates": _rates(state)}))

        def write(folder: Path) -> None:
            with aside:  # small scripts, and what was offloaded to a disk
                shutil.copytree(aside.name, folder, dirs_exist_ok=True)
            for path, content in files.items():
                self._engine.checkpoint_engine.save(content, str(folder / Path(path).relative_to(aside.name)))
            if first:
                save_file({name.removeprefix(MODEL): copy for name, copy in weights.items()}, str(folder / WEIGHTS))
                torch.save(rest, folder / TRAINING)

        return write

    @contextmanager
    def _held_back(self) -> Iterator[dict[str, Any]]:
        """Yield the contents of files, by path, that DeepSpeed would write in the block."""
        files: dict[str, Any] = {}
        own = self._engine.checkpoint_engine
        own.save = lambda state_dict, path: files.update({path: state_dict})
        try:
            yield files
        finally:
            del own.save  # that of its class again

    def init(self, state: TrainState, folder: Path) -> None:
        """Refuse: DeepSpeed has partitioned the weights by then."""
        raise CheckpointError(
            "run.init_from does not work with trainer.strategy=deepspeed.", "Train with fsdp, or ddp."
        )

    def load(self, state: TrainState, folder: Path) -> None:
        """Take a checkpoint back; executes nothing that is in it.

        Raises:
            CheckpointError: Another number of ranks wrote it.
        """
        before = len(list((folder / TAG).glob("*_optim_states.pt")))
        if before != self.ranks.size:
            raise CheckpointError(
                f"{folder} was written by {before} workers; DeepSpeed can't load it with {self.ranks.size}.",
                to_try(f"num_workers={before}", "or use trainer.strategy=fsdp, which can"),
            )
        # DeepSpeed unpickles its files; like this torch makes tensors, plain data and these classes of them only.
        with _quiet(), _environment(TORCH_FORCE_WEIGHTS_ONLY_LOAD="1"), safe_globals(_classes()):
            self._engine.load_checkpoint(str(folder), tag=TAG, load_lr_scheduler_states=False)
        stored = torch.load(folder / TRAINING, map_location="cpu", weights_only=True)
        state.take_rest(stored)
        for group, rate in zip(state.optimizer.param_groups, stored["rates"], strict=True):
            group["lr"] = rate

    def _whole(self, model: nn.Module) -> Any:
        """Return a context in which rank 0 has the whole weights."""
        if self.conf.strategy_options.zero_stage < 3:
            return nullcontext()
        return self._deepspeed.zero.GatheredParameters(list(model.parameters()))

    def close(self) -> None:
        """Let go of the engine, and of the process group that DeepSpeed knows."""
        super().close()
        if hasattr(self, "_engine"):
            self._engine.destroy()
        self._held.close()
        # Both would outlive the process group of a run in this process.
        self._deepspeed.comm.comm.cdb = None
        self._deepspeed.utils.groups._WORLD_GROUP = None


def _classes() -> list[Any]:
    """Return the classes in DeepSpeed's files other than tensors and plain data."""
    from deepspeed.runtime.fp16.loss_scaler import DynamicLossScaler, LossScaler
    from deepspeed.runtime.zero.config import ZeroStageEnum
    from deepspeed.utils.tensor_fragment import fragment_address

    return [LossScaler, DynamicLossScaler, ZeroStageEnum, fragment_address]


def _rates(state: TrainState) -> list[float]:
    return [float(group["lr"]) for group in state.optimizer.param_groups]


@contextmanager
def _environment(**values: str) -> Iterator[None]:
    """Set the environment variables that DeepSpeed reads; those that are already set stay."""
    with variables_set({name: value for name, value in values.items() if name not in os.environ}):
        yield


@contextmanager
def _quiet() -> Iterator[None]:
    """Leave out torch's warnings about what DeepSpeed calls."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        warnings.simplefilter("ignore", UserWarning)
        yield


STRATEGY = DeepSpeed
