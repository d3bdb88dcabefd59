"""Rows of a dataset as a model of transformers takes them."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from rtrain.datasets.base import Batch, DatasetInfo
from rtrain.trainers.torch.inputs.standardize import Standardizer
from rtrain.trainers.transformers.config import Conf
from rtrain.trainers.transformers.tokens import IGNORED, masked, padded


class Inputs:
    """Makes batches of equal length, on the device; images are float32 and standardized."""

    def __init__(self, conf: Conf, info: DatasetInfo, task: str, tokenizer: Any, device: torch.device) -> None:
        self._conf, self._task, self._tokenizer, self._device = conf, task, tokenizer, device
        self._standardized = Standardizer(info, device)

    def ready(self, batch: Batch, seed: tuple[int, ...]) -> tuple[dict[str, Tensor], Tensor]:
        """Return the arguments of the model and the target.

        Args:
            batch: At least one row.
            seed: Decides which tokens are masked.
        """
        rows, target = batch.x, batch.y
        if self._task == "masked-lm":
            rows, target = masked(list(rows), self._tokenizer, self._conf.mask_share, seed)
        if not isinstance(target, np.ndarray) or target.dtype == object:
            target = padded(list(target), IGNORED)
        wanted = torch.tensor(target, device=self._device)
        return self.of_rows(rows), wanted.float() if self._task == "regression" else wanted

    def of_rows(self, rows: Any) -> dict[str, Tensor]:
        """Return the arguments of the model for rows of tokens, or images (rows, channels, height, width)."""
        if self._task == "image-classification":
            return {"pixel_values": self._standardized(torch.tensor(rows, device=self._device))}
        if self._tokenizer is None:
            return {"input_ids": torch.tensor(np.asarray(rows, np.int64), device=self._device)}
        ids = [np.asarray(row) for row in rows]
        there = padded([np.ones(len(row), np.int64) for row in ids], 0)
        tokens = padded(ids, self._tokenizer.pad_token_id or 0)
        return {
            "input_ids": torch.tensor(tokens, device=self._device),
            "attention_mask": torch.tensor(there, device=self._device),
        }
