"""Predict with a checkpoint: model, columns and classes come from its files alone."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from pathlib import Path
from typing import TypeVar

import pyarrow as pa

from rtrain.prediction.opening import Opened, open_checkpoint
from rtrain.prediction.output import Output, Tables, prediction_table
from rtrain.prediction.own_rows import write_predicted
from rtrain.prediction.places import check_not_read
from rtrain.prediction.raw_columns import UNKNOWN
from rtrain.prediction.scoring import Failure, PredictionTask, predictions_here, scores_of
from rtrain.prediction.seen import unchanged_data
from rtrain.prediction.unseen import Unseen

__all__ = [
    "Opened",
    "PredictionTask",
    "open_checkpoint",
    "predicted_table",
    "predictions",
    "scores_of",
    "write_predictions",
]

T = TypeVar("T")


def write_predictions(
    place: str | Path,
    output: str | Path,
    overrides: Sequence[str],
    *,
    checkpoint: str,
    split: str | None,
    force: bool,
    trust: bool,
) -> int:
    """Write a prediction for each row and return the number of rows; see ``rtrain.predict``."""
    file = Output.at(str(output), force=force)
    opened = _opened(place, overrides, checkpoint, trust=trust)
    check_not_read(file.path, opened.dataset)
    with file.writing() as write:
        return _predict(opened, split, write)


def predicted_table(
    place: str | Path, overrides: Sequence[str], *, checkpoint: str, split: str | None, trust: bool
) -> pa.Table:
    """Return a prediction for each row; see ``rtrain.predict``."""
    opened = _opened(place, overrides, checkpoint, trust=trust)
    tables = Tables()
    _predict(opened, split, tables.write_table)
    return tables.joined()


def _opened(place: str | Path, overrides: Sequence[str], checkpoint: str, *, trust: bool) -> Opened:
    opened = open_checkpoint(place, overrides, checkpoint, trust=trust)
    if opened.info is UNKNOWN:
        what = "has no effect: the predictor gets every column"
        opened.refuse({"dataset.label"}, what, "Remove it; rtrain evaluate compares predictions with that column.")
    return opened


def _predict(opened: Opened, split: str | None, write: Callable[[pa.Table], None]) -> int:
    """Hand over the predictions, some rows at a time, and return the number of rows."""
    predict = write_predicted if opened.brings_rows else _predict_dataset
    num_rows = predict(opened, split, write)
    if not num_rows:
        raise opened.no_rows()
    return num_rows


def _predict_dataset(opened: Opened, split: str | None, write: Callable[[pa.Table], None]) -> int:
    num_rows = 0
    with closing(predictions(opened, PredictionTask(opened.model, prediction_table), split)) as tables:
        for count, table in tables:
            write(table)
            num_rows += count
    if split is not None and not opened.other_data:
        unchanged_data(opened)  # or says so
    return num_rows


def predictions(opened: Opened, task: PredictionTask[T], split: str | None) -> Generator[tuple[int, T]]:
    """Yield numbers of rows and the answers for them, in the order of the data, whatever computes them.

    Raises:
        RtrainError: The first failure in the order of the data; later rows may have been answered in vain.
    """
    with opened.redact.cleaning():
        yield from _predictions(opened, task, split)


def _predictions(opened: Opened, task: PredictionTask[T], split: str | None) -> Generator[tuple[int, T]]:
    reader = opened.rows(split)
    if opened.conf.scaling.num_workers:
        from rtrain.prediction.on_ray import predictions_on_ray

        found = predictions_on_ray(task, reader, opened.conf, opened.command)
    else:
        found = predictions_here(task, reader)
    num_done, unseen = 0, Unseen()
    with closing(found):
        for one in found:
            if isinstance(one, Failure):
                raise one.raised(num_done)
            num_done += one.num_rows
            unseen.add(one.categories)
            yield one.num_rows, one.made
    unseen.check(opened.info, opened.conf.dataset, num_done)
