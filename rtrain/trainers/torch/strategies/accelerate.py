"""Hugging Face Accelerate wraps the model and optimizer of rtrain's loop."""

from __future__ import annotations

import inspect
from contextlib import AbstractContextManager
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from rtrain.config.did_you_mean import nearest_or_all, use_instead
from rtrain.errors import ConfigError, TrainingError
from rtrain.trainers.torch.checkpoint.state import TrainState
from rtrain.trainers.torch.config import Conf
from rtrain.trainers.torch.ranks import TorchRanks
from rtrain.trainers.torch.strategies.base import Strategy

OURS = {
    "cpu": "scaling.use_gpu",
    "mixed_precision": "trainer.precision",
    "gradient_accumulation_steps": "trainer.accumulate_steps",
    "kwargs_handlers": "trainer.find_unused_parameters",
}
"""Arguments of ``Accelerator``, and the keys that they follow from."""
OBJECTS = ("_plugin", "_plugins", "_config")
"""How the names of those arguments end that take objects of Accelerate's."""
PLAIN = (str, int, float, type(None))
WHOLE_MODELS = ("NO", "MULTI_CPU", "MULTI_GPU")
"""Kinds of distributed training in which each worker has the whole model."""


class Accelerate(Strategy):
    """Data parallelism by ``Accelerator.prepare``; batches, evaluations and checkpoints are rtrain's."""

    refused: ClassVar[dict[str, Any]] = {"compile": False, "sync_batchnorm": False}
    requires = ("accelerate",)
    install = "pip install 'rtrain[accelerate]'"

    def __init__(self, conf: Conf, ranks: TorchRanks) -> None:
        super().__init__(conf, ranks)
        from accelerate import Accelerator, DistributedDataParallelKwargs

        threads = torch.get_num_threads()
        self._accelerator = Accelerator(
            cpu=ranks.device.type == "cpu",
            mixed_precision="no" if conf.precision == "fp32" else conf.precision,
            kwargs_handlers=[DistributedDataParallelKwargs(find_unused_parameters=conf.find_unused_parameters)],
            **conf.strategy_options.accelerate,
        )
        # Where OMP_NUM_THREADS is not set, Accelerate changes the number of threads.
        torch.set_num_threads(threads)
        self._check_world()

    def _check_world(self) -> None:
        kind, size = self._accelerator.distributed_type.value, self._accelerator.num_processes
        if kind not in WHOLE_MODELS:
            raise TrainingError(
                f"the environment sets Accelerate to {kind}, which rtrain's checkpoints don't support.",
                "Unset the ACCELERATE_USE_* variables, and use trainer.strategy=fsdp.",
            )
        if size != self.ranks.size:
            raise TrainingError(f"Accelerate sees {size} processes, but there are {self.ranks.size} workers.")

    @classmethod
    def check_model(cls, model: nn.Module, conf: Conf, num_workers: int) -> None:
        """Check the names of the options against the arguments of ``Accelerator``."""
        super().check_model(model, conf, num_workers)
        from accelerate import Accelerator

        known = [name for name in inspect.signature(Accelerator).parameters if name not in OURS]
        for name, value in conf.strategy_options.accelerate.items():
            where = f"trainer.strategy_options.accelerate.{name}"
            if name in OURS:
                raise ConfigError(f"{where}: rtrain sets it from {OURS[name]}.", use_instead(OURS[name]))
            if name not in known:
                raise ConfigError(f"{where}: Accelerator has no such argument.", nearest_or_all(name, known))
            if name.endswith(OBJECTS) or not all(
                isinstance(one, PLAIN) for one in (value if isinstance(value, list) else [value])
            ):
                raise ConfigError(
                    f"{where}: rtrain builds no objects for Accelerator.",
                    "Remove it: only arguments whose values are texts, numbers, true or false can be set.",
                )

    def wrap(self, state: TrainState) -> nn.Module:
        """Return what Accelerate makes of the model."""
        self._wrapped, self._optimizer = self._accelerator.prepare(state.model, state.optimizer)
        wrapped: nn.Module = self._wrapped
        return wrapped

    def hold(self) -> AbstractContextManager[Any]:
        """Leave the exchange of gradients out."""
        held: AbstractContextManager[Any] = self._accelerator.no_sync(self._wrapped)
        return held

    def backward(self, state: TrainState, loss: Tensor) -> None:
        """Add gradients as Accelerate does."""
        self._accelerator.backward(loss)

    def step(self, state: TrainState) -> bool:
        """Move the weights on."""
        self._optimizer.step()
        return True

    def close(self) -> None:
        """Let another Accelerator start afresh in this process."""
        from accelerate.state import AcceleratorState, GradientState

        AcceleratorState._reset_state(reset_partial_state=True)
        GradientState._reset_state()


STRATEGY = Accelerate
