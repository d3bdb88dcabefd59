"""From rows to predictions: what every process that predicts does, whatever reads the rows and takes the results."""

from __future__ import annotations

import math
import traceback
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Generic, TypeVar

import numpy as np

from rtrain.config.diagnostics.own_lines import own_lines, render_lines
from rtrain.config.targets.allow_list import use_project_root
from rtrain.datasets.base import DatasetInfo, RawChunk, RowReader
from rtrain.errors import CheckpointError, DatasetError, PredictionError, RtrainError
from rtrain.prediction.refused_values import check_values
from rtrain.trainers.base import TrainerPlugin
from rtrain.trainers.checkpoint_errors import reading
from rtrain.trainers.loops.tasks import CLASSES, PLACES
from rtrain.trainers.registry import load_trainer
from rtrain.trainers.trained import LoadedCheckpoint, OwnRows, Predictor, QuantileModel, StartsFromScores

BATCH_BYTES = 32 << 20
"""Approximate size of the inputs and predictions in memory."""
MAX_BATCH_ROWS = 65_536
TEXT_PLACES, TEXT_TOKENS = 512, 32_768
"""What a text is guessed to have, and a tokenizer to know, where only the trainer knows better."""

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Model:
    """A checkpoint that can predict; small, and pickled to the processes that do."""

    trainer_name: str
    trained: LoadedCheckpoint
    device: str
    """``cpu`` or ``cuda``."""
    project_root: str
    """Folder of the user's modules; empty if it no longer exists."""
    keeps_missing: bool
    """Training was asked to keep missing values, or met some."""

    @property
    def takes_missing(self) -> bool:
        """Whether it predicts rows with missing values: of networks, one that was trained on such rows."""
        return self.keeps_missing or load_trainer(self.trainer_name, self.trained.conf).takes_missing

    def load(self) -> Predictor:
        """Return the predictor.

        Raises:
            CheckpointError: The checkpoint is not here, or doesn't hold what it should.
        """
        with self._reading() as plugin:
            return plugin.load_predictor(self.trained, self.device)

    def load_own_rows(self) -> OwnRows:
        """Return the model together with the rows that its config brings.

        Raises:
            CheckpointError: The checkpoint doesn't hold what it should.
        """
        with self._reading() as plugin:
            return plugin.load_own_rows(self.trained, self.device)

    @contextmanager
    def _reading(self) -> Iterator[TrainerPlugin]:
        if self.project_root:
            use_project_root(Path(self.project_root))
        with reading(self.trained.folder):
            yield load_trainer(self.trainer_name, self.trained.conf)


@dataclass(frozen=True)
class Prediction(Generic[T]):
    """What is known of some rows; pickled to the process that asked."""

    num_rows: int
    made: T
    categories: Mapping[str, tuple[int, int]]
    """Of these rows and maybe of those that come next, as ``RawChunk`` counts them; no row counts twice."""


@dataclass(frozen=True)
class PredictionTask(Generic[T]):
    """What is asked of a model; pickled to the processes that answer."""

    model: Model
    make: Callable[[Predictor, DatasetInfo, RawChunk], T]
    """Makes of some rows what the asker wants to know; a module-level function."""
    with_labels: bool = False
    """Rows come with their labels, to evaluate."""

    def predictions(self, predictor: Predictor, chunk: RawChunk) -> Iterator[Prediction[T]]:
        """Yield what ``make`` makes of some rows, batch by batch.

        Raises:
            PredictionError: A value is infinite, or missing and needed.
        """
        info = self.model.trained.info
        if chunk.raw is None:
            check_values(chunk.x, info, partial(_name_of_row, chunk), lambda: self.model.takes_missing)
        size = len(chunk.x) if self._measures_texts(info) else batch_rows(info)
        for start in range(0, len(chunk.x), size):
            batch = _part(chunk, slice(start, start + size))
            yield Prediction(len(batch.x), self.make(predictor, info, batch), {} if start else chunk.categories)

    def _measures_texts(self, info: DatasetInfo) -> bool:
        """Return whether rows are texts that the model packs into its own rows, and measures without much memory."""
        return self.with_labels and info.dtype == "object" and info.task == "language-modeling"


def batch_rows(info: DatasetInfo) -> int:
    """Return the batch size in rows, so that neither the rows nor their predictions need much memory."""
    places = info.input_shape or (TEXT_PLACES,)
    row_bytes = math.prod(places) * (8 if info.dtype == "object" else np.dtype(info.dtype).itemsize)
    if info.task in ("language-modeling", "token-classification"):
        row_bytes = max(row_bytes, 4 * places[0] * (info.num_classes or TEXT_TOKENS))
    return min(MAX_BATCH_ROWS, max(1, BATCH_BYTES // max(row_bytes, 4 * (info.num_classes or 1))))


@dataclass(frozen=True)
class Failure:
    """What went wrong in some process; small, and pickled to the one that tells the user."""

    error: RtrainError | None
    """The error itself, where it is one of rtrain's."""
    text: str
    """In one line."""
    details: str = field(repr=False)
    """The traceback."""
    hint: str = ""
    """The user's own lines, and how to see all of them."""

    @classmethod
    def of(cls, error: Exception) -> Failure:
        """Return what to report of an exception."""
        own = error if isinstance(error, RtrainError) else None
        text = f"{type(error).__name__}: {str(error).strip()}"
        found = own_lines(error)
        lines = render_lines(found, folded=False) if found["own"] else []
        hint = "\n".join([*lines, "RTRAIN_TRACEBACK=1 shows where it was raised."])
        return cls(own, text, "".join(traceback.format_exception(error)), hint)

    def raised(self, num_done: int) -> RtrainError:
        """Return the error to raise after ``num_done`` rows have been answered."""
        error = self.error or PredictionError(f"{self.text} (in the rows after row {num_done:,})", self.hint)
        error.__cause__ = TracebackError(self.details)
        return error


class TracebackError(Exception):
    """Shows a traceback that belongs to another process, or to another time."""

    def __str__(self) -> str:
        return f"\n{self.args[0]}"


def predictions_here(task: PredictionTask[T], reader: RowReader) -> Generator[Prediction[T] | Failure]:
    """Predict all rows in this process, in the order of the data; a failure is the last one."""
    try:
        predictor = task.model.load()
        for chunk in read_chunks(reader, reader.pieces, task.with_labels):
            yield from task.predictions(predictor, chunk)
    except Exception as error:
        yield Failure.of(error)


def scores_of(predictor: Predictor, info: DatasetInfo, chunk: RawChunk) -> np.ndarray:
    """Return the predictions for some rows, which bring the scores to start from where the model needs them.

    Raises:
        CheckpointError: They are not what the task needs.
        PredictionError: Some rows have none.
    """
    scores = _scores_of(predictor, info, chunk)
    if not isinstance(scores, np.ndarray) or len(scores) != len(chunk.x):
        what = f"{len(scores):,} predictions" if isinstance(scores, np.ndarray) else f"a {type(scores).__name__}"
        raise PredictionError(
            f"the model returns {what} for {len(chunk.x):,} rows.", "predict(x) must return an array of as many rows."
        )
    quantiles = predictor.quantiles if isinstance(predictor, QuantileModel) else ()
    last = info.num_classes if info.task in CLASSES else len(quantiles) if len(quantiles) > 1 else None
    num_axes = 1 + (info.task in CLASSES or len(quantiles) > 1) + (info.task in PLACES)
    fits = scores.ndim == num_axes and (last is None or scores.shape[-1] == last)
    if not fits or (quantiles and info.task in CLASSES):
        raise CheckpointError(
            f"the model outputs shape {scores.shape[1:]} per row, which does not fit {info.task} on {info.name}.",
            "Give the model one output per class, or copy the checkpoint again if its files belong to different "
            "models.",
        )
    return scores


def _scores_of(predictor: Predictor, info: DatasetInfo, chunk: RawChunk) -> np.ndarray:
    if "base_margin" not in info.columns or not isinstance(predictor, StartsFromScores):
        return predictor.predict(chunk.x)
    if chunk.base_margin is None:
        message = "the model was trained to start from scores ('base_margin'), but these rows have none."
        raise DatasetError(message, "Add them as in training.")
    return predictor.predict_from(chunk.x, chunk.base_margin)


def _name_of_row(chunk: RawChunk, row: int) -> str:
    where, before = chunk.place
    return f"{where}: row {before + row + 1}" if where else "a row"


def read_chunks(reader: RowReader, pieces: Iterable[object], with_labels: bool) -> Iterator[RawChunk]:
    """Yield the rows of some pieces."""
    for piece in pieces:
        yield from reader.read(piece, with_labels)


def _part(chunk: RawChunk, rows: slice) -> RawChunk:
    parts = (chunk.y, chunk.group, chunk.base_margin, chunk.weight)
    y, *more = (None if values is None else values[rows] for values in parts)
    kept = {name: values[rows] for name, values in chunk.kept.items()}
    raw = None if chunk.raw is None else {name: values[rows] for name, values in chunk.raw.items()}
    return RawChunk(chunk.x[rows], y, kept, *more, raw=raw)
