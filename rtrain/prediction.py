"""Predict with a checkpoint: model, columns and classes come from its files alone."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from rtrain.config.session import Session
from rtrain.datasets.base import Dataset, DatasetInfo, RawChunk, Split
from rtrain.datasets.registry import load_source
from rtrain.errors import CheckpointError, ConfigError
from rtrain.runs.run import Run
from rtrain.schemas import schemas
from rtrain.scores import OutputFile
from rtrain.trainers.registry import load_trainer
from rtrain.trainers.trained import FILE_NAME, Predictor, Trained, read_about

BATCH_ROWS = 4096
PARTS = ("dataset", "scaling")


def predict(
    place: str | Path,
    output: str | Path,
    overrides: Sequence[str] = (),
    *,
    checkpoint: str = "best",
    split: str | None = None,
    force: bool = False,
) -> int:
    """Write a prediction for each row into ``output`` and return the number of rows.

    Args:
        place: A run directory, or the folder of a checkpoint.
        output: ``.parquet``, ``.csv`` or ``.jsonl``; complete or absent.
        overrides: Changes of the dataset of training: ``["dataset.path=new.parquet"]`` say.
        checkpoint: Of a run: ``best``, ``latest`` or the name of one.
        split: Predict the rows of this split of the dataset; None: all rows that ``dataset.path`` names.
        force: Replace ``output`` if it is there.

    Raises:
        CheckpointError: There is no such checkpoint.
        ConfigError: An override is wrong, or the data lacks a column.
    """
    file = OutputFile(Path(output), force=force)
    with opened(place, overrides, checkpoint) as model, file.writing() as write:
        return sum(write(model.info, *scored) for scored in model.scores(split))


@dataclass(frozen=True)
class Model:
    """A checkpoint that is ready to predict, and the data to predict."""

    predictor: Predictor
    info: DatasetInfo
    """The dataset of training."""
    source: Any
    conf: Any
    """Which rows to predict: the conf of the source."""
    encoding: Any

    def scores(self, split: str | None, with_labels: bool = False) -> Iterator[tuple[RawChunk, np.ndarray]]:
        """Yield rows and their predictions, batch by batch, in the order of the data."""
        for chunk in self._rows(split, with_labels):
            for start in range(0, len(chunk.x), BATCH_ROWS):
                batch = _part(chunk, slice(start, start + BATCH_ROWS))
                yield batch, self.predictor.predict(batch.x)

    def _rows(self, split: str | None, with_labels: bool) -> Iterator[RawChunk]:
        reader = None if split is not None else self.source.open_rows(self.conf, self.encoding)
        if reader is not None:
            for piece in reader.pieces:
                yield from reader.read(piece, with_labels)
            return
        dataset: Dataset = self.source.load(self.conf)
        _check_same(dataset.info, self.info)
        for columns in _chosen(dataset, split).own_rows(0, 1):
            kept = {name: columns[name] for name in ("group",) if name in columns}
            yield RawChunk(columns["x"], columns["y"], kept, columns.get("group"))


@contextmanager
def opened(place: str | Path, overrides: Sequence[str], checkpoint: str) -> Iterator[Model]:
    """Compose what the checkpoint was trained on with the user's changes, and load its model."""
    for word in overrides:
        if word.lstrip("+~").partition("=")[0].partition(".")[0].partition("/")[0] not in PARTS:
            raise ConfigError(f"{word}: a prediction follows dataset.* and scaling.* only.", "The model is what it is.")
    folder = find_checkpoint(Path(place), checkpoint)
    about = read_about(folder)
    if about.info is None or about.dataset is None:
        raise CheckpointError(f"{folder} was trained without a dataset of rtrain's: only its own loop can predict.")
    root = Path(about.project_root)
    with tempfile.TemporaryDirectory() as scratch:
        config = Path(scratch) / "checkpoint.yaml"
        config.write_text(yaml.safe_dump({"trainer": dict(about.trainer), "dataset": dict(about.dataset)}))
        typed = ("rtrain", "predict", str(place))
        with Session(str(config), overrides, schemas(), None, root if root.is_dir() else None, typed) as session:
            composed = session.check()
    plugin = load_trainer(composed.resolved["trainer"]["type"])
    trained = Trained(folder=folder, conf=composed.conf.trainer, info=about.info, allow=composed.allow)
    predictor = plugin.load_predictor(trained, "cuda" if composed.conf.scaling.use_gpu else "cpu")
    source = load_source(composed.resolved["dataset"]["type"], composed.allow)
    yield Model(predictor, about.info, source, composed.conf.dataset, about.encoding)


def find_checkpoint(place: Path, which: str) -> Path:
    """Return the folder of a checkpoint: ``place`` itself, or one of the run there.

    Raises:
        CheckpointError: There is none.
    """
    if (place / FILE_NAME).is_file():
        return place
    if not place.is_dir():
        raise CheckpointError(f"{place} does not exist.", "Name a run directory or the folder of a checkpoint.")
    run = Run.load(place)
    names = [folder.name for folder in run.checkpoints]
    if which == "best":
        found = run.best_checkpoint
    elif which == "latest":
        found = run.checkpoints[-1] if names else None
    else:
        found = next((folder for folder in run.checkpoints if folder.name == which), None)
    if found is None:
        there = f"There are: {', '.join(names)}" if names else "The run ended before the first one."
        raise CheckpointError(f"{place} has no checkpoint '{which}'.", there)
    return found


def _part(chunk: RawChunk, rows: slice) -> RawChunk:
    y, group = (None if values is None else values[rows] for values in (chunk.y, chunk.group))
    return RawChunk(chunk.x[rows], y, {name: values[rows] for name, values in chunk.kept.items()}, group)


def _chosen(dataset: Dataset, split: str | None) -> Split:
    """Return the split to predict: the one that is named, else the one that training did not see."""
    name = split or next(one for one in ("test", "val", "train") if one in dataset.splits)
    if name not in dataset.splits:
        raise ConfigError(f"there is no split '{name}'.", f"There are: {', '.join(dataset.splits)}")
    return dataset.splits[name]


def _check_same(found: DatasetInfo, trained: DatasetInfo) -> None:
    """Refuse rows of another shape or other classes than those of training."""
    if found.input_shape != trained.input_shape or found.dtype != trained.dtype:
        raise ConfigError(
            f"{found.name} has rows of {found.dtype} {found.input_shape}, but the model was trained on "
            f"{trained.dtype} {trained.input_shape}."
        )
    if found.class_names != trained.class_names:
        raise ConfigError(
            f"{found.name} has the classes {', '.join(found.class_names[:10])}, but the model was trained on "
            f"{', '.join(trained.class_names[:10])}."
        )
