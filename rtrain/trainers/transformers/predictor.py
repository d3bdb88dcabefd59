"""Predict with the checkpoint of a transformers run, from its files alone."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch.nn import functional

from rtrain.datasets.base import Batch, DatasetInfo
from rtrain.errors import CheckpointError
from rtrain.trainers.trained import LoadedCheckpoint
from rtrain.trainers.transformers import untrusted
from rtrain.trainers.transformers.build import task_of
from rtrain.trainers.transformers.checkpoint.stored_model import load_stored
from rtrain.trainers.transformers.config import Conf
from rtrain.trainers.transformers.inputs import Inputs
from rtrain.trainers.transformers.tokens import IGNORED, encoded_language, first_tokens, load_tokenizer, tokenize


class Predictor:
    """A trained model that takes texts, tokens or images as the dataset gives them."""

    def __init__(self, model: Any, tokenizer: Any, conf: Conf, info: DatasetInfo, device: torch.device) -> None:
        self.info, self._conf, self._task = info, conf, task_of(conf, info)
        self.model, self._tokenizer = model.to(device).eval(), tokenizer
        self._inputs = Inputs(conf, info, self._task, tokenizer, device)

    @torch.no_grad()
    def predict(self, x: np.ndarray, batch_size: int = 64) -> np.ndarray:
        """Return probabilities, or the value of a regression.

        Args:
            x: (rows,) texts or lists of words, (rows, length) tokens, or (rows, channels, height, width) images.
            batch_size: Number of rows that are computed together.

        Returns:
            float32: (rows, num_classes); (rows,) for a regression; (rows, length, num_classes) for words, and
            for tokens of a language, where places that a shorter row doesn't have, or that were cut off, are NaN.
        """
        parts = [self._some(x[start : start + batch_size]) for start in range(0, max(len(x), 1), batch_size)]
        if parts[0].ndim < 3:
            return np.concatenate(parts)
        longest = max(part.shape[1] for part in parts)
        widths = [((0, 0), (0, longest - part.shape[1]), (0, 0)) for part in parts]
        return np.concatenate(
            [np.pad(part, one, constant_values=np.nan) for part, one in zip(parts, widths, strict=True)]
        )

    def _some(self, x: np.ndarray) -> np.ndarray:
        if not len(x):
            return self._some(self._any_row())[:0]
        rows = tokenize(x, self._tokenizer, self._conf.max_length) if self._tokenizer is not None else None
        output = self.model(**self._inputs.of_rows(x if rows is None else rows["input_ids"])).logits.float()
        if self._task == "regression":
            return np.asarray(output.flatten().cpu())
        found = np.asarray(output.softmax(-1).cpu())
        if self._task == "token-classification":
            return _of_words(found, rows, [len(words) for words in x])
        if rows is not None and found.ndim == 3:
            for row, ids in enumerate(rows["input_ids"]):
                found[row, len(ids) :] = np.nan
        return found

    def _any_row(self) -> np.ndarray:
        if self._tokenizer is None:
            return np.zeros((1, *self.info.input_shape), self.info.dtype)
        row = np.empty(1, object)
        row[0] = ["a"] if self._task == "token-classification" else "a"
        return row


class LanguagePredictor(Predictor):
    """A model of the language of texts; a ``TextModel``."""

    @cached_property
    def token_names(self) -> tuple[str, ...]:
        """The vocabulary, in the order of its numbers."""
        return tuple(self._tokenizer.convert_ids_to_tokens(range(self.model.config.vocab_size)))

    @torch.no_grad()
    def measure(self, x: np.ndarray, batch_size: int = 64) -> tuple[int, float, int]:
        """Return number, sum of losses, and number of right ones of the tokens that training would have predicted.

        Args:
            x: (rows,) texts; joined where training packs them.
            batch_size: Number of rows of tokens that are computed together.
        """
        rows = encoded_language(x, self._tokenizer, self._conf, self._task)
        count, loss, right = 0, 0.0, 0
        for start in range(0, len(rows["x"]), batch_size):
            part = slice(start, start + batch_size)
            inputs, target = self._inputs.ready(Batch(rows["x"][part], rows["y"][part], -1), (0,))
            logits, there = self.model(**inputs).logits.float(), target != IGNORED
            count += int(there.sum())
            loss += float(functional.cross_entropy(logits[there], target[there], reduction="sum"))
            right += int((logits.argmax(-1) == target)[there].sum())
        return count, loss, right


def _of_words(found: np.ndarray, rows: Any, lengths: list[int]) -> np.ndarray:
    """Return the prediction at the first token of each word: (rows, most words, classes)."""
    words = np.full((len(found), max(lengths), found.shape[-1]), np.nan, np.float32)
    for row in range(len(found)):
        for word, place in first_tokens(rows, row).items():
            words[row, word] = found[row, place]
    return words


def load_predictor(trained: LoadedCheckpoint, device: str = "cpu") -> Predictor:
    """Build the model of a checkpoint, its adapters around it.

    Raises:
        CheckpointError: The weights are not there, or don't fit the model.
    """
    conf: Conf = trained.conf
    folder, info = trained.folder, trained.info
    try:
        model = load_stored(trained)
    except (OSError, ValueError, RuntimeError) as error:
        raise CheckpointError(f"{folder} does not contain the model: {error}") from error
    tokenizer = None
    if info.dtype == "object":
        found = None if trained.is_own else untrusted.load_tokenizer(folder)
        tokenizer = load_tokenizer(folder, "the checkpoint", found)
    kind = LanguagePredictor if tokenizer is not None and task_of(conf, info).endswith("-lm") else Predictor
    return kind(model, tokenizer, conf, info, torch.device(device))
