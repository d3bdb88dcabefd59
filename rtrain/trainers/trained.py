"""The metadata of every checkpoint, whatever the trainer, so that it can predict without its run."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np
from pydantic import TypeAdapter

from rtrain.config.did_you_mean import there_are
from rtrain.config.targets.builder import Builder
from rtrain.datasets.base import DatasetInfo
from rtrain.errors import CheckpointError, ForbiddenFileError, PredictionError
from rtrain.runs.checkpoints import RECORD_NAME, is_signed_list
from rtrain.runs.filesystem.files import to_json, write_atomic
from rtrain.runs.filesystem.plain_files import read_json
from rtrain.runs.manifest import run_near
from rtrain.runs.run import Run
from rtrain.runs.signature import is_own, signature_of
from rtrain.runs.status import Status
from rtrain.trainers.loops.ranking_metrics import Ranking
from rtrain.trainers.number_keys import with_number_keys

FILE_NAME = "about.json"
TRUST = "If you trust its author: --trust"
BROKEN = "Use another checkpoint. If you trust its author: rtrain predict and rtrain evaluate have --trust"


class Predictor(Protocol):
    """A trained model that takes rows as the dataset gives them."""

    def predict(self, x: np.ndarray) -> np.ndarray:
        """Return a prediction for each row, on its own of the others.

        Args:
            x: (rows, *input_shape) of ``DatasetInfo.dtype``, prepared as in training but not standardized; or of
                dtype object, see ``DatasetInfo.original_sizes``.

        Returns:
            float32: (rows, num_classes) probabilities of a classification, (rows,) values of a regression or scores of
            a ranking, (rows, length, num_classes) probabilities where each place of a sequence is predicted,
            (rows, quantiles) values of a ``QuantileModel`` that has several.
        """


def check_shape(x: np.ndarray, info: DatasetInfo) -> None:
    """Refuse rows of another shape than those of training.

    Raises:
        PredictionError: Names both.
    """
    if info.original_sizes:
        channels = info.input_shape[0]
        if x.dtype != object or {one.shape[:1] for one in x} - {(channels,)}:
            raise PredictionError(f"rows must be of dtype object: a ({channels}, height, width) array for each.")
    elif x.shape[1:] != info.input_shape:
        message = f"rows have the shape {x.shape[1:]}, but the model was trained on {info.input_shape}."
        hint = "Rows have a number for each of checkpoint.info.feature_names." if info.feature_names else None
        raise PredictionError(message, hint)


@runtime_checkable
class TextModel(Protocol):
    """What a predictor of the language of texts has in addition: only it knows their tokens."""

    token_names: tuple[str, ...]
    """Of the classes that ``predict`` tells the probabilities of."""

    def measure(self, x: np.ndarray) -> tuple[int, float, int]:
        """Return number, sum of losses, and number of right ones of the tokens that training would have predicted.

        Args:
            x: (rows,) texts, some thousand, as many as there are: short ones may be joined as in training.
        """


@runtime_checkable
class BoundsLosses(Protocol):
    """What a predictor of classes also has if its library bounds the loss of a row."""

    least_probability: float
    """What smaller probabilities count as in the logarithmic loss."""


@runtime_checkable
class QuantileModel(Protocol):
    """What a predictor of a regression also has if it predicts quantiles of the label and not its mean."""

    quantiles: tuple[float, ...]
    """Between 0 and 1, in the order of the predictions; empty: the mean."""


@runtime_checkable
class RankingModel(Protocol):
    """What a predictor of a ranking also has if its run measured rankings in its own way."""

    ranking: Ranking


@runtime_checkable
class StartsFromScores(Protocol):
    """A predictor that adds what it learned to scores that each row brings."""

    def predict_from(self, x: np.ndarray, base_margin: np.ndarray) -> np.ndarray:
        """Return predictions as ``Predictor.predict`` does.

        Args:
            x: As there.
            base_margin: (rows,) or (rows, classes) float32, as in training.
        """


@dataclass(frozen=True)
class Predictions:
    """What a model predicts of some rows."""

    scores: np.ndarray | None
    """What ``Predictor.predict`` returns; or (rows,) int64, classes without probabilities. None: nothing that metrics
    can compare with labels."""
    others: Mapping[str, Any]
    """More columns for the output, (rows, ...)."""


@runtime_checkable
class ColumnsPredictor(Protocol):
    """A predictor that takes rows as named columns: that of a custom train loop."""

    def predict_columns(self, columns: Mapping[str, np.ndarray]) -> Predictions:
        """Return what it predicts.

        Args:
            columns: (rows, ...) by name, as the shards of the loop have them, without labels.
        """

    def measure_columns(self, columns: Mapping[str, np.ndarray]) -> Mapping[str, float]:
        """Return the metrics that it measures itself, means over rows that have labels; none if it measures nothing."""


class OwnRows(Protocol):
    """A model together with rows that its config brings: a Lightning module and its datamodule, say."""

    def evaluate(self, split: str | None) -> tuple[str, int, Mapping[str, float]]:
        """Return which split was measured, how many rows it has, and the metrics; by default the test split's."""

    def predict(self, split: str | None, take: Callable[[Mapping[str, np.ndarray]], None]) -> None:
        """Give ``take`` the predictions as columns of some rows at a time, in the order of the data."""


@dataclass(frozen=True, kw_only=True)
class CheckpointMetadata:
    """What a model was trained by and on. The driver makes it, and each checkpoint holds it as ``about.json``."""

    trainer: Mapping[str, Any]
    """The resolved ``trainer`` section of the config, with ``type``."""
    dataset: Mapping[str, Any] | None
    """The resolved ``dataset`` section."""
    info: DatasetInfo | None
    encoding: Mapping[str, Any] = field(default_factory=dict)
    """``Dataset.encoding``."""
    allow: tuple[str, ...] = ()
    """Modules beyond rtrain's known frameworks that a ``_target_`` may come from."""
    project_root: str = ""
    """Folder of the user's modules."""
    code: Mapping[str, str] = field(default_factory=dict)
    """The sha256 of each of its files that ``trainer`` names, by path; empty in checkpoints of older versions."""
    number_keys: tuple[tuple[str, ...], ...] = ()
    """Paths of keys in ``trainer`` that are numbers: JSON has texts alone."""
    seal: str = ""
    """The mark of the account that made it; of one that was read, empty unless that is this account."""
    signs_files: bool = False
    """Whether the lists of files of its checkpoints are signed. Until rtrain signed them, the mark vouched for all."""

    def sealed(self) -> CheckpointMetadata:
        """Return it with this account's mark, by which its checkpoints may name the user's own code."""
        signing = replace(self, signs_files=True)
        return replace(signing, seal=signature_of(_content(json.loads(to_json(asdict(signing))))))

    def write(self, folder: Path) -> None:
        """Write ``about.json`` into the folder of a checkpoint."""
        write_atomic(folder / FILE_NAME, to_json(asdict(self), indent=2))


def read_about(checkpoint: Path) -> CheckpointMetadata:
    """Return the metadata of the checkpoint; executes nothing.

    Raises:
        CheckpointError: The folder is not a checkpoint of rtrain.
    """
    if (checkpoint / RECORD_NAME).is_file() and not (checkpoint / FILE_NAME).exists():
        raise CheckpointError(
            f"{checkpoint} was written by a train loop with an older version, which did not record the predictor.",
            "Load its files by path, or start a new run of the loop with it: run.init_from.",
        )
    try:
        stored = read_json(checkpoint, FILE_NAME)
        about = TypeAdapter(CheckpointMetadata).validate_python(stored)
    except ForbiddenFileError:
        raise
    except (OSError, ValueError) as error:
        raise CheckpointError(f"{checkpoint} is not a checkpoint to predict with: {error}") from error
    about = replace(about, trainer=with_number_keys(about.trainer, about.number_keys))
    return about if is_own(_content(stored), about.seal) else replace(about, seal="")


def refuse_pickles(checkpoint: Path, pickles: Collection[str]) -> None:
    """Refuse a checkpoint of another account if a trainer would open a pickle in it, which may run anything.

    Args:
        checkpoint: Its folder.
        pickles: ``TrainerPlugin.pickles``.

    Raises:
        CheckpointError: Names the pickle.
    """
    for name in pickles:
        if (checkpoint / name).exists() and not wrote_files(checkpoint):
            raise CheckpointError(
                f"{checkpoint} was written by another account: its {name} could run any code when it is loaded.",
                TRUST,
            )


def wrote_files(checkpoint: Path) -> bool:
    """Return whether this account wrote the files of a checkpoint, all of them, as far as its record says.

    The mark in ``about.json`` covers that file only; the other files could be exchanged.
    """
    try:
        about = read_about(checkpoint)
        return bool(about.seal) and (not about.signs_files or is_signed_list(checkpoint, about.seal))
    except CheckpointError:  # that of a train loop of its author's own, or one that can't be read
        return False


def _content(stored: Mapping[str, Any]) -> str:
    """Return what a seal is put on."""
    return json.dumps({key: value for key, value in stored.items() if key != "seal"}, sort_keys=True)


def find_checkpoint(place: Path, which: str) -> Path:
    """Return the folder of a checkpoint: ``place`` itself, or one of the run there.

    Raises:
        CheckpointError: There is none.
    """
    if (place / FILE_NAME).is_file() or (place / RECORD_NAME).is_file():
        return place
    if place.is_file():
        raise CheckpointError(f"{place} is a file, not the folder of a run or checkpoint.", "Use one of those.")
    if not place.is_dir():
        raise CheckpointError(f"{place} does not exist.", run_near(place) or "Name a run directory or a checkpoint.")
    run = Run.load(place)
    folders = {folder.name: folder for folder in run.checkpoints}
    if which == "best":
        found = run.best_checkpoint
    elif which == "latest":
        found = run.checkpoints[-1] if folders else None
    else:
        found = folders.get(which)
    if found is None:
        there = there_are(["best", "latest", *folders]) if folders else _why_none(run)
        raise CheckpointError(f"{place} has no checkpoint '{which}'.", there)
    return found


def _why_none(run: Run) -> str:
    """Return why a run has no checkpoint."""
    if run.status != Status.SUCCEEDED:
        return "The run ended before the first one."
    if run.manifest.best is not None or run.manifest.config["trainer"].get("train_loop") is None:
        return "They have been removed: rtrain runs rm --checkpoints does that."
    return "Its loop reported none: ray.train.report(metrics, checkpoint=Checkpoint.from_directory(folder))"


@dataclass(frozen=True, kw_only=True)
class LoadedCheckpoint:
    """A checkpoint that a plugin makes a predictor of."""

    folder: Path
    conf: Any
    """The plugin's conf, as in training."""
    info: DatasetInfo
    builder: Builder = field(default_factory=Builder)
    """Builds what the config names."""
    own_files: bool = True
    """This account wrote its files, or the user trusts who did."""

    @property
    def is_own(self) -> bool:
        """Whether code that it names may run, and its files may be more than data."""
        return self.own_files and self.builder.trusted
