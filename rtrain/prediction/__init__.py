"""Predict with a checkpoint: model, columns and classes come from its files alone."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import closing
from pathlib import Path
from typing import TypeVar

from rtrain.callers_view import CallersView
from rtrain.prediction.opening import Opened, open_checkpoint
from rtrain.prediction.output import Output, prediction_table
from rtrain.prediction.own_rows import write_predicted
from rtrain.prediction.raw_columns import UNKNOWN
from rtrain.prediction.scoring import Failure, PredictionTask, answers_here, scores_of
from rtrain.prediction.unseen import Unseen

__all__ = ["Opened", "PredictionTask", "answers", "open_checkpoint", "predict", "scores_of", "write_predictions"]

T = TypeVar("T")


def predict(
    place: str | Path,
    output: str | Path,
    overrides: Sequence[str] = (),
    *,
    checkpoint: str = "best",
    split: str | None = None,
    force: bool = False,
    trust: bool = False,
) -> int:
    """Write a prediction for each row into ``output`` and return the number of rows.

    Args:
        place: A run directory, or the folder of a checkpoint.
        output: A ``.parquet``, ``.csv`` or ``.jsonl`` file, or a folder for many Parquet files; complete or absent.
        overrides: Changes of the dataset of training, ``["dataset.path=new.parquet"]`` say; and ``num_workers=4``:
            with so many actors of Ray Data. By default, this process predicts.
        checkpoint: Of a run: ``best``, ``latest`` or the name of one.
        split: Predict the rows of this split of the dataset; None: all rows that ``dataset.path`` names.
        force: Replace ``output`` if it is there.
        trust: Run the code that the checkpoint names, even if another account wrote it.

    Raises:
        CheckpointError: There is no such checkpoint.
        ConfigError: An override is wrong, or the data lacks a column.
        PredictionError: The model, or a worker, failed.
    """
    with CallersView(place):
        return write_predictions(place, output, overrides, checkpoint=checkpoint, split=split, force=force, trust=trust)


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
    """Predict as ``predict`` does; an error keeps its causes, and the frames within rtrain."""
    file = Output.at(str(output), force=force)
    opened = open_checkpoint(place, overrides, checkpoint, trust=trust)
    if opened.info is UNKNOWN:
        what = "has no effect: what predicts gets every column"
        opened.refuse({"dataset.label"}, what, "Leave it out; rtrain evaluate compares predictions with that column.")
    with file.writing() as write:
        if opened.brings_rows:
            return write_predicted(opened, split, write)
        num_rows = 0
        with closing(answers(opened, PredictionTask(opened.model, prediction_table), split)) as tables:
            for count, table in tables:
                write(table)
                num_rows += count
        return num_rows


def answers(opened: Opened, question: PredictionTask[T], split: str | None) -> Generator[tuple[int, T]]:
    """Yield numbers of rows and the answers for them, in the order of the data, whatever computes them.

    Raises:
        RtrainError: The first failure in the order of the data; later rows may have been answered in vain.
    """
    with opened.scrub.cleaning():
        yield from _answers(opened, question, split)


def _answers(opened: Opened, question: PredictionTask[T], split: str | None) -> Generator[tuple[int, T]]:
    reader = opened.rows(split)
    if opened.conf.scaling.num_workers:
        from rtrain.prediction.on_ray import answers_on_ray

        found = answers_on_ray(question, reader, opened.conf, opened.command)
    else:
        found = answers_here(question, reader)
    num_done, unseen = 0, Unseen()
    with closing(found):
        for answer in found:
            if isinstance(answer, Failure):
                raise answer.raised(num_done)
            num_done += answer.num_rows
            unseen.add(answer.categories)
            yield answer.num_rows, answer.made
    unseen.check(opened.info, opened.conf.dataset)
