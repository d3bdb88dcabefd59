"""``rtrain.evaluate``, ``rtrain.predict`` and ``rtrain.load_checkpoint``."""

from __future__ import annotations

import os
from typing import Any, overload

import pyarrow as pa

from rtrain.callers_view import CallersView
from rtrain.config.calls.opened import opened_call
from rtrain.config.calls.overrides import Overrides
from rtrain.config.calls.plain import is_frame
from rtrain.errors import ConfigError
from rtrain.evaluation import measure
from rtrain.history.references import find_model
from rtrain.prediction import predicted_table, write_predictions
from rtrain.prediction.loading import Checkpoint, loaded

Place = str | os.PathLike[str]
"""A ``Run``, or a path."""


def evaluate(
    place: Place,
    overrides: Overrides = (),
    *,
    checkpoint: str = "best",
    split: str | None = None,
    trust: bool = False,
    **short: Any,
) -> dict[str, float]:
    """Return the metrics of a checkpoint on the rows of a dataset, by name, and their number as ``num_rows``.

    Args:
        place: A run, its directory, a short name of it (``last``), the folder of a checkpoint, or of a sweep: its best
            trial is taken.
        overrides: Changes of the dataset of training, ``{"dataset.path": "new.parquet"}`` say, in each form that
            ``fit`` takes; and ``"num_workers=4"``: with so many actors of Ray Data. By default, this process predicts.
        checkpoint: Of a run: ``best``, ``latest`` or the name of one.
        split: Evaluate this split of the dataset. None: all rows if the overrides name other data, else the split that
            training did not see.
        trust: Run the code that the checkpoint names, even if another account wrote it.
        short: Overrides whose keys are names: ``num_workers=4``, ``dataset={"path": "new.parquet"}``.

    Raises:
        CheckpointError: There is no such checkpoint.
        ConfigError: An override is wrong, or the data has no labels.
        PredictionError: The model, or a worker, failed.
    """
    with CallersView(os.fspath(place)), opened_call("evaluate", os.fspath(place), overrides, short) as call:
        found = measure(find_model(call.place), call.words, checkpoint=checkpoint, split=split, trust=trust)
    return {"num_rows": float(found.num_rows), **found.metrics}


@overload
def predict(
    place: Place,
    output: None = None,
    overrides: Overrides = (),
    *,
    checkpoint: str = "best",
    split: str | None = None,
    force: bool = False,
    trust: bool = False,
    **short: Any,
) -> pa.Table: ...
@overload
def predict(
    place: Place,
    output: str | os.PathLike[str],
    overrides: Overrides = (),
    *,
    checkpoint: str = "best",
    split: str | None = None,
    force: bool = False,
    trust: bool = False,
    **short: Any,
) -> int: ...
def predict(
    place: Place,
    output: str | os.PathLike[str] | None = None,
    overrides: Overrides = (),
    *,
    checkpoint: str = "best",
    split: str | None = None,
    force: bool = False,
    trust: bool = False,
    **short: Any,
) -> pa.Table | int:
    """Return a prediction for each row, or write them into ``output`` and return the number of rows.

    The table has the columns that the data brought, in the order of its rows, then ``prediction`` and, of classes, a
    column ``probability_<class>`` for each. ``.to_pandas()`` makes a DataFrame of it.

    Args:
        place: A run, its directory, a short name of it (``last``), the folder of a checkpoint, or of a sweep: its best
            trial is taken.
        output: A ``.parquet``, ``.csv`` or ``.jsonl`` file, or a folder for many Parquet files; complete or absent.
            None: return the rows, all of which have to fit into memory.
        overrides: Changes of the dataset of training, ``{"dataset.path": "new.parquet"}`` say, in each form that
            ``fit`` takes; and ``"num_workers=4"``: with so many actors of Ray Data. By default, this process predicts.
        checkpoint: Of a run: ``best``, ``latest`` or the name of one.
        split: Predict the rows of this split of the dataset; None: all rows that ``dataset.path`` names.
        force: Replace ``output`` if it exists.
        trust: Run the code that the checkpoint names, even if another account wrote it.
        short: Overrides whose keys are names: ``num_workers=4``, ``dataset={"path": "new.parquet"}``.

    Raises:
        CheckpointError: There is no such checkpoint.
        ConfigError: An override is wrong, or the data lacks a column.
        PredictionError: The model, or a worker, failed.
    """
    with CallersView(os.fspath(place)), opened_call("predict", os.fspath(place), overrides, short) as call:
        if not isinstance(output, str | os.PathLike | None):
            raise ConfigError(
                f"output must be a path or None, not {'a table' if is_frame(output) else repr(output)}.",
                "Name the overrides: rtrain.predict(run, overrides=...)",
            )
        found = find_model(call.place)
        if output is None:
            return predicted_table(found, call.words, checkpoint=checkpoint, split=split, trust=trust)
        return write_predictions(
            found, os.fspath(output), call.words, checkpoint=checkpoint, split=split, force=force, trust=trust
        )


def load_checkpoint(
    place: Place, overrides: Overrides = (), *, checkpoint: str = "best", trust: bool = False
) -> Checkpoint:
    """Return a checkpoint with its model, to predict in Python.

    Args:
        place: A run, its directory, a short name of it (``last``), the folder of a checkpoint, or of a sweep: its best
            trial is taken.
        overrides: ``["trainer.predictor=my_module:load"]`` for the checkpoint of a loop, where the run names none;
            ``["use_gpu=true"]``.
        checkpoint: Of a run: ``best``, ``latest`` or the name of one.
        trust: Run the code that the checkpoint names, even if another account wrote it.

    Raises:
        CheckpointError: There is no such checkpoint, or nothing says how to predict with it: then the message names its
            folder and the key.
        ConfigError: An override is wrong, or has no effect.
    """
    with CallersView(os.fspath(place)), opened_call("load_checkpoint", os.fspath(place), overrides) as call:
        return loaded(find_model(call.place), call.words, checkpoint=checkpoint, trust=trust)
