"""A model of transformers as the loop of epochs sees it."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_model, save_file
from torch import Tensor
from torch.nn import functional
from torch.nn.parallel import DistributedDataParallel

from rtrain.datasets.base import Batch, Dataset
from rtrain.runs.checkpoints import Writer
from rtrain.trainers.loops.callbacks.base import WorkerCallback
from rtrain.trainers.loops.callbacks.build import build_callbacks
from rtrain.trainers.loops.epochs.learner import Learner
from rtrain.trainers.loops.epochs.loader import slices
from rtrain.trainers.loops.tasks import TINY, derived_metrics, mean_names
from rtrain.trainers.torch.checkpoint.optimizer_state import checked_state
from rtrain.trainers.torch.checkpoint.staging import Stager, save_tensors
from rtrain.trainers.torch.optimization.finite import are_finite, non_finite, weights_of
from rtrain.trainers.torch.optimization.frozen import Frozen
from rtrain.trainers.torch.ranks import TorchRanks
from rtrain.trainers.trained import wrote_files
from rtrain.trainers.transformers.arguments import make_arguments
from rtrain.trainers.transformers.build import build_model, build_optimizer, build_schedule, task_of
from rtrain.trainers.transformers.callbacks import CALLBACK_TYPES, OfTransformers, shown_arguments
from rtrain.trainers.transformers.checkpoint import adapted
from rtrain.trainers.transformers.checkpoint.adapted import Adapted
from rtrain.trainers.transformers.checkpoint.base import Base, read_base
from rtrain.trainers.transformers.checkpoint.whole_model import MERGED
from rtrain.trainers.transformers.inputs import Inputs
from rtrain.trainers.transformers.tokens import IGNORED
from rtrain.trainers.worker import Worker

WEIGHTS, TRAINING = "model.safetensors", "training.pt"
UNUSED = "trainer.arguments.ddp_find_unused_parameters"
"""The key that allows steps that leave weights out."""


class TransformersLearner(Learner):
    """Model, optimizer and schedule on one rank; ranks average gradients by the weight of the places they predicted."""

    def __init__(self, worker: Worker, ranks: TorchRanks, dataset: Dataset, tokenizer: Any) -> None:
        conf, info = worker.conf, dataset.info
        self._conf, self._info, self._ranks, self._seed = conf, info, ranks, worker.run.seed
        self._args = make_arguments(conf.arguments, type(conf))
        self._tokenizer, self._task = tokenizer, task_of(conf, info)
        revision, pretrained = _revision(worker), conf.model.pretrained
        self.model, lent = build_model(conf, info, tokenizer, revision=revision)
        self.model.to(ranks.device)
        if self._args.gradient_checkpointing:
            self.model.gradient_checkpointing_enable(self._args.gradient_checkpointing_kwargs)
            self.model.enable_input_require_grads()
        self._optimizer = build_optimizer(self.model, self._args)
        steps_per_epoch = -(-dataset.splits["train"].num_rows // conf.rows_per_step(ranks.size))
        self._schedule = build_schedule(self._optimizer, self._args, conf.num_steps(steps_per_epoch))
        self._inputs = Inputs(conf, info, self._task, tokenizer, ranks.device)
        row = next(iter(dataset.splits["train"].own_rows(0, 1)))
        self._spare = Batch(row["x"][:1], row["y"][:1], 1)
        self._worker = worker
        self._stager, self._skips = Stager(), worker.run.failure.nan_loss == "skip"
        self._frozen = Frozen(self.model, UNUSED)
        self._wrapped = self.model if ranks.size == 1 else self._distributed()
        base = None if pretrained is None else Base.of(pretrained, revision)
        self._adapted = None if conf.lora is None else Adapted(self.model, base, lent)

    def _distributed(self) -> DistributedDataParallel:
        return DistributedDataParallel(
            self.model,
            device_ids=[self._ranks.device] if self._ranks.device.type == "cuda" else None,
            gradient_as_bucket_view=True,
            find_unused_parameters=bool(self._args.ddp_find_unused_parameters),
            bucket_cap_mb=self._args.ddp_bucket_cap_mb,
        )

    def seed(self, number: int) -> None:
        """Seed torch, on the device too."""
        self._ranks.seed(number)

    def train_step(self, batch: Batch, step: int) -> Any:
        """Do one step; a rank without rows computes one that counts nothing, so that the others need not wait."""
        self._wrapped.train()
        rows = batch if len(batch.y) else self._spare
        inputs, target = self._inputs.ready(rows, (self._seed, step))
        if not len(batch.y):
            target = torch.full_like(target, IGNORED if target.dtype == torch.int64 else torch.nan)
        weight = _weight(rows, target)
        total = self._ranks.sum([float(weight.sum())])[0]
        mean = self._backward(inputs, target, weight.reshape(len(target), -1) / max(total, TINY))
        is_finite = not self._skips or math.isfinite(self._ranks.sum([float(mean)])[0])
        taken = is_finite and self._clip()
        if taken:
            self._optimizer.step()
            self._schedule.step()
        self._optimizer.zero_grad(set_to_none=True)
        return mean if taken else torch.full_like(mean, math.nan), total

    def _backward(self, inputs: Mapping[str, Tensor], target: Tensor, share: Tensor) -> Tensor:
        """Go through the rows in parts; ranks exchange gradients at the last one. Return the rank's part of the loss.

        Args:
            inputs: Arguments of the model, all rows of the step.
            target: Theirs.
            share: (rows, places) that each place has in the loss of all ranks.
        """
        mean, parts = torch.zeros((), device=target.device), slices(len(target), self._conf.accumulate_steps)
        for rows in parts:
            with self._wrapped.no_sync() if self._ranks.size > 1 and rows is not parts[-1] else nullcontext():
                output = self._forward(self._wrapped, {name: values[rows] for name, values in inputs.items()})
                losses = self._losses(output, target[rows], self._args.label_smoothing_factor)
                loss = (losses * share[rows].flatten()).sum()
                torch.autograd.backward(loss * self._ranks.size)
            mean += loss.detach()
        self._frozen.check(self._optimizer if self._ranks.size == 1 else None)
        return mean

    def _clip(self) -> bool:
        """Bring the norm of all gradients into its limit; return false if they are not finite and steps may be skipped.

        All ranks have the same gradients.
        """
        if self._args.max_grad_norm:
            norm = torch.nn.utils.clip_grad_norm_(self.model.parameters(), self._args.max_grad_norm)
            return not self._skips or math.isfinite(norm)
        gradients = (one.grad for one in self.model.parameters() if one.grad is not None)
        return not self._skips or are_finite(gradients)

    def step_losses(self, taken: Sequence[Any]) -> list[tuple[float, float]]:
        """Return for each step the sum over the places of all ranks, by weight."""
        means = self._ranks.sum([float(mean) for mean, _ in taken])
        return [(mean * total, total) for mean, (_, total) in zip(means, taken, strict=True)]

    @torch.no_grad()
    def evaluate(self, batches: Iterable[Batch]) -> dict[str, float]:
        """Return each metric over all places of all rows, each counted once."""
        self.model.eval()
        sums = torch.zeros(4, dtype=torch.float64)
        for batch in batches:
            if len(batch.y):
                inputs, target = self._inputs.ready(batch, (0,))
                sums += self._counted(self._forward(self.model, inputs), target, _weight(batch, target))
        count, loss, second, third = self._ranks.sum(sums.tolist())
        names = mean_names(self._info.task)
        means = {name: value / max(count, TINY) for name, value in zip(names, (loss, second, third), strict=False)}
        return derived_metrics(self._info.task, means)

    def _counted(self, output: Tensor, target: Tensor, weight: Tensor) -> Tensor:
        """Return the sums over places, by their weights, of 1, losses, and what else is counted: (4,) float64."""
        losses = (self._losses(output, target, 0.0).double() * weight).sum()
        if self._task == "regression":
            error = output.double().flatten() - target.double()
            beside = [(error.abs() * weight).sum(), (error.square() * weight).sum()]
        else:
            beside = [((output.argmax(-1) == target).flatten() * weight).sum(), torch.zeros(())]
        return torch.stack([one.double().cpu() for one in (weight.double().sum(), losses, *beside)])

    def _forward(self, model: Any, inputs: Mapping[str, Tensor]) -> Tensor:
        with torch.autocast(self._ranks.device.type, torch.bfloat16, enabled=self._args.bf16):
            output: Tensor = model(**inputs).logits
        return output.float()

    def _losses(self, output: Tensor, target: Tensor, smoothing: float) -> Tensor:
        """Return the loss of each place, (places,); 0 where nothing is predicted."""
        if self._task == "regression":
            there = _present(target)
            return torch.where(there, (output.flatten() - target.nan_to_num()).square(), output.flatten() * 0)
        return functional.cross_entropy(
            output.flatten(0, -2),
            target.flatten(),
            ignore_index=IGNORED,
            reduction="none",
            label_smoothing=smoothing,
        )

    def callbacks(self) -> list[WorkerCallback]:
        """Build the callbacks of the config, those of transformers too."""
        worker, arguments = self._worker, shown_arguments(self._args, self._conf, str(self._worker.run_dir))
        model, optimizer = self.learned()
        parts = {"model": model, "processing_class": self._tokenizer, "optimizer": optimizer}
        parts["lr_scheduler"] = self._schedule
        made = build_callbacks(self._conf.callbacks, worker.builder, CALLBACK_TYPES)
        return [
            one if isinstance(one, WorkerCallback) else OfTransformers(one, arguments, parts, worker.notice)
            for one in made
        ]

    def learned(self) -> tuple[Any, torch.optim.Optimizer]:
        """Return model and optimizer."""
        return self.model, self._optimizer

    def non_finite(self) -> set[str]:
        """Return the names of weights that are not finite."""
        return non_finite(weights_of(self.model))

    def snapshot(self) -> Writer:
        """Copy what goes into a folder that transformers can open, and the optimizer next to it."""
        training = {"optimizer": self._optimizer.state_dict(), "schedule": self._schedule.state_dict()}
        kept, base = (self.model.state_dict(), None) if self._adapted is None else self._adapted.kept()
        weights, training = self._stager.take((kept, training))
        merged = copy.deepcopy(self.model) if self._conf.merge_lora else None

        def write(folder: Path) -> None:
            self._write_model(folder, weights)
            if base is not None:
                base.write(folder)
            if merged is not None:
                merged.merge_and_unload().save_pretrained(folder / MERGED)
                self._write_tokenizer(folder / MERGED)
            torch.save(training, folder / TRAINING)

        return write

    def _write_model(self, folder: Path, weights: Mapping[str, Tensor]) -> None:
        """Write config, tokenizer and weights; adapters in ``adapter/``, as peft does."""
        self._write_tokenizer(folder)
        self.model.config.save_pretrained(folder)
        if self._adapted is None:
            # Of weights that two parts share, the one that every model of the family has, and not its head alone.
            tied = self.model.all_tied_weights_keys
            named = {name: one for name, one in weights.items() if name not in tied}
            save_file(named, str(folder / WEIGHTS), metadata={"format": "pt"})
        else:
            save_tensors(weights, folder / adapted.FILE_NAME, metadata={"format": "pt"})
            self.model.save_pretrained(folder / "adapter", safe_serialization=True, state_dict=weights)

    def _write_tokenizer(self, folder: Path) -> None:
        if self._tokenizer is not None:
            self._tokenizer.save_pretrained(folder)

    def load(self, folder: Path) -> None:
        """Take everything from a checkpoint; executes nothing that is in it."""
        self.load_weights(folder)
        # The optimizer sends each tensor where it needs it; numbers of steps stay in main memory.
        state = torch.load(folder / TRAINING, map_location="cpu", weights_only=True)
        self._optimizer.load_state_dict(checked_state(self._optimizer, state["optimizer"]))
        self._schedule.load_state_dict(state["schedule"])

    def load_weights(self, folder: Path) -> None:
        """Take the weights, adapters included."""
        if self._adapted is None:
            load_model(self.model, str(folder / WEIGHTS))
        else:
            self._adapted.load(folder)

    def describe(self) -> Mapping[str, Any]:
        """Return device, threads and the size of the model."""
        parameters = list(self.model.parameters())
        return {
            "device": str(self._ranks.device),
            "num_threads": torch.get_num_threads(),
            "num_parameters": sum(one.numel() for one in parameters),
            "num_trained_parameters": sum(one.numel() for one in parameters if one.requires_grad),
        }

    def learning_rate(self) -> float:
        """Return the learning rate of the next step."""
        return float(self._schedule.get_last_lr()[0])


def _revision(worker: Worker) -> str | None:
    """Return the commit of the pretrained model on the hub that the run's first weights belong to; None: the newest.

    A checkpoint chooses none if another account may have written its files.
    """
    resumed, folder = worker.resume_dir(), worker.resume_dir() or worker.init_dir()
    base = None if folder is None else read_base(folder)
    if folder is None or base is None or base.pretrained != worker.conf.model.pretrained:
        return None
    own = worker.resumes_own if resumed is not None else wrote_files(folder)
    return base.revision if own else None


def _weight(batch: Batch, target: Tensor) -> Tensor:
    """Return the weight of each place, (places,): that of its row; 0 where nothing is predicted."""
    there = _present(target).float()
    if batch.weight is not None:
        there *= torch.tensor(batch.weight, device=target.device).reshape(-1, *[1] * (target.ndim - 1))
    return there.flatten()


def _present(target: Tensor) -> Tensor:
    """Tell at which places something is predicted."""
    return target != IGNORED if target.dtype == torch.int64 else ~target.isnan()
