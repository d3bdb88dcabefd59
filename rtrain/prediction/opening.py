"""From a checkpoint's own files and the user's changes to a model and the rows to predict."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, fields, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from rtrain.config.did_you_mean import there_are
from rtrain.config.run_place import check_not_masked
from rtrain.config.schema import RtrainConf
from rtrain.config.secrets.masked import mask_word
from rtrain.config.secrets.redact import Redactor
from rtrain.config.targets.builder import Builder
from rtrain.datasets.base import Dataset, DatasetInfo, RawChunk, RowReader, Source, Split
from rtrain.datasets.conf import ColumnsConf, MemoryConf, PixelsConf
from rtrain.datasets.missing.elsewhere import folder_named
from rtrain.datasets.registry import load_source
from rtrain.datasets.tables.predict_rows import load_as_trained, spec_of
from rtrain.errors import CheckpointError, ConfigError
from rtrain.prediction.opened_model import OWN_COLUMNS, OpenedModel, composed_of, open_model, sections_of
from rtrain.prediction.raw_columns import UNKNOWN, open_raw_rows
from rtrain.prediction.scoring import MAX_BATCH_ROWS, Model
from rtrain.runs.filesystem.files import to_json
from rtrain.trainers.trained import CheckpointMetadata

DATA_KEYS = ("path", "url", "query", "function", "name", "arguments", "version", "subset", "revision")
OTHER_DATA = tuple(f"dataset.{key}" for key in DATA_KEYS)
"""Keys that say which data is read."""
CHOOSING = tuple(f"dataset.{key}" for key in ("seed", "sample", "limit", "split"))
"""Keys that say which of its rows make a split."""
DECIDING = (*CHOOSING, "dataset.memory", "dataset.label")
"""The same, and keys that have a part in it: streamed rows are split in another way, and those of a class alike."""
OF_ROWS = tuple(f"dataset.{key}" for key in ("ids", "max_unseen"))
"""Keys that say something of raw rows, and nothing of a split."""
PREPARING = {f"dataset.{one.name}" for conf in (ColumnsConf, MemoryConf, PixelsConf) for one in fields(conf)} | {
    "dataset.absent",
    "dataset.on_error",
    "dataset.shape",
    "dataset.tokenizer",
}
PREPARING -= {*CHOOSING, *(f"dataset.{key}" for key in OWN_COLUMNS)}
"""Keys that say how raw rows are prepared, which a checkpoint knows by itself."""


@dataclass(frozen=True, kw_only=True)
class Opened:
    """A checkpoint that was found and checked, and the data that it is asked about."""

    model: Model
    conf: RtrainConf
    """Which rows, and what computes: ``dataset``, ``scaling`` and ``cluster``."""
    dataset: dict[str, Any]
    """``conf.dataset`` for the record, secrets masked."""
    command: str
    """To suggest, without ``num_workers``."""
    redact: Redactor
    """Takes the secrets of ``conf`` out of texts."""
    other_data: bool
    """Whether the rows are others than those of training, which holds rows that the model has seen."""
    _split_named: str | None
    """The split that the rows are, if the user names the place of one alone."""
    _read_as_recorded: Callable[[], Dataset] | None
    """Reads the data of training again; None where another account chose it, or where other data is asked about and
    that of training is not local files."""
    _words: Mapping[str, str]
    """The user's words by the key that each of them sets."""
    _source: Source | None
    """None: the model brings its rows."""
    _encoding: Any
    _root: Path | None
    """The folder of the project."""

    @property
    def info(self) -> DatasetInfo:
        """The dataset of training."""
        return self.model.trained.info

    @property
    def source(self) -> Source:
        """What reads the rows, if they are not the model's own."""
        assert self._source is not None, "whoever asks has looked at brings_rows"
        return self._source

    @property
    def brings_rows(self) -> bool:
        """Whether the config of the model has the rows, and not a dataset."""
        return self._source is None

    @cached_property
    def splits(self) -> Dataset:
        """The data that the conf names, read as training reads its data.

        Raises:
            DatasetError: It is missing, or can't be read so.
        """
        with self._folder_named():
            return load_as_trained(self.source, self._conf_of_split(), self._encoding)

    def _folder_named(self) -> AbstractContextManager[None]:
        return folder_named(self._root, self.model.trained.folder)

    def trained_data(self) -> Dataset | None:
        """Return the data that training read, as it is today; None where it can't or must not be read.

        Raises:
            DatasetError: It is missing.
        """
        if not any(key == "dataset" or key.startswith("dataset.") for key in self._words):
            return self.splits
        return None if self._read_as_recorded is None else self._read_as_recorded()

    def rows(self, split: str | None) -> RowReader:
        """Return a reader of all rows that the conf names, or of one split.

        Raises:
            DatasetError: The data is missing, or lacks a column.
            ConfigError: There is no such split, its rows are others than the model takes, or the user's words would
                choose rows for it that training did not keep back.
        """
        if self.info is UNKNOWN and split is not None:
            raise ConfigError("its train loop had no split dataset: there are no splits.", "Leave --split out.")
        if split is not None and self._split_named is not None:
            _check_split(split, [self._split_named])
            split = None
        reader = None if split is not None else self._reader()
        if reader is not None:
            or_choose = ", or choose a split: --split test" if self._split_named is None else "."
            self.refuse(CHOOSING, "has no effect: all rows are read", f"Remove it{or_choose}")
            self.refuse(PREPARING, "has no effect: rows are prepared as in training", "Leave it out.")
            return reader
        if self.info is UNKNOWN:
            what = self._words.get("dataset", "the dataset")
            message = f"{what} has no columns for trainer.predictor, and the train loop had no dataset to read it like."
            raise ConfigError(message, "Set one with columns: dataset=csv dataset.path=new.csv")
        hint = "Leave it out, or set dataset.path to the file of the split."
        self.refuse(OF_ROWS, "has no effect: a split is decoded as in training, without ids", hint)
        if not self.other_data:
            message = "makes different splits than in training: the model may have seen their rows"
            self.refuse(DECIDING, message, "Remove it, or use other data.")
        dataset = self.splits
        _check_same(dataset.info, self.info)
        found = _preparation(dataset.encoding)
        # Of an older checkpoint, what it knows has to agree.
        if any(found.get(key) != value for key, value in _preparation(self._encoding).items()):
            message = f"{dataset.info.name} would be prepared from its own train rows, not as in training."
            raise ConfigError(
                message, "Don't choose a split: then all its rows are read as in training, if its source supports it."
            )
        return _chosen(dataset, split)

    def _conf_of_split(self) -> Any:
        """Return what reads a split with the features of training: others may have come since, or have another role."""
        conf = self.conf.dataset if self.other_data else _as_read_before(self.conf.dataset, self.info)
        if not isinstance(conf, ColumnsConf) or conf.features is not None or "roles" not in self._encoding:
            return conf
        return replace(conf, features=list(spec_of(self._encoding, conf).inputs), drop=[])

    def _reader(self) -> RowReader | None:
        try:
            if self.info is UNKNOWN:
                return open_raw_rows(self.source, self.conf.dataset)
            with self._folder_named():
                return self.source.open_rows(self.conf.dataset, self._encoding)
        except (KeyError, TypeError, ValidationError) as error:
            message = (
                f"about.json in {self.model.trained.folder} has no valid record of how rows were prepared: {error!r}."
            )
            raise CheckpointError(message, "Copy the checkpoint again; it may be from another version.") from error

    def no_rows(self) -> ConfigError:
        """Return the error that the data is there, and has no rows."""
        return ConfigError(f"{self.dataset.get('path', self.dataset['type'])}: there are no rows.")

    def refuse(self, keys: Collection[str], what: str, hint: str) -> None:
        """Refuse words that set one of some keys, or a key below one.

        Raises:
            ConfigError: There is one.
        """
        for key, word in self._words.items():
            if any(key == one or key.startswith(f"{one}.") for one in keys):
                raise ConfigError(f"{word} {what}.", hint)


def open_checkpoint(
    place: str | Path, overrides: Sequence[str], checkpoint: str, *, verb: str = "predict", trust: bool = False
) -> Opened:
    """Compose the checkpoint's dataset and settings with the user's changes.

    Args:
        place: A run directory, or the folder of a checkpoint.
        overrides: Changes of ``dataset``, ``scaling`` and ``cluster``; of these two, training left nothing behind.
        checkpoint: Checkpoint of a run: ``best``, ``latest`` or its name.
        verb: The user's command, for messages.
        trust: Run the code that the checkpoint names, even if another account wrote it.

    Raises:
        CheckpointError: There is no such checkpoint, it is damaged, only its own loop can predict, or it is another
                user's and names code.
        ConfigError: An override is wrong.
    """
    checked = open_model(place, overrides, checkpoint, verb=verb, trust=trust, needs_rows=True)
    about, composed, own = checked.about, checked.composed, checked.own
    dataset, builder = composed.resolved["dataset"], checked.model.trained.builder
    if dataset is not None:
        check_not_masked({"dataset": asdict(composed.conf.dataset)}, of_run=True)
    others = [word for key, word in checked.words.items() if key != "scaling.num_workers"]
    other_data = any(key == "dataset" or key.startswith(OTHER_DATA) for key in checked.words)
    may_read = own and (not other_data or _has_local_files(about))
    return Opened(
        model=checked.model,
        conf=composed.conf,
        dataset={"type": "trainer.datamodule"} if dataset is None else dataset,
        command=shlex.join(["rtrain", verb, str(place), *map(mask_word, dict.fromkeys(others))]),
        redact=composed.redact,
        other_data=other_data,
        _split_named=checked.split_named,
        _read_as_recorded=partial(_read_as_recorded, about, checked, builder) if may_read else None,
        _words=checked.words,
        _source=None if dataset is None else load_source(dataset["type"], builder),
        _encoding=about.encoding,
        _root=checked.root,
    )


def _preparation(encoding: Any) -> dict[str, Any]:
    """Return how rows become what the model takes, as plain data, without the weight of rows."""
    found: dict[str, Any] = json.loads(to_json(encoding))
    roles = found.get("roles")
    return {**found, "roles": {**roles, "weight": None}} if isinstance(roles, dict) else found


def _has_local_files(about: CheckpointMetadata) -> bool:
    path = (about.dataset or {}).get("path")
    places = path.values() if isinstance(path, Mapping) else [path]
    return all(isinstance(one, str) and "://" not in one for one in places)


def _as_read_before(conf: Any, info: DatasetInfo) -> Any:
    """Return what reads the data of training as it was read then: what ``auto`` chooses depends on free memory."""
    chooses = getattr(conf, "memory", None) == "auto" and info.memory in ("resident", "stream")
    return replace(conf, memory=info.memory) if chooses else conf


def _read_as_recorded(about: CheckpointMetadata, checked: OpenedModel, builder: Builder) -> Dataset:
    """Read the data that a checkpoint names.

    Raises:
        DatasetError: It is missing, or can't be read as in training.
    """
    sections, _ = sections_of(about, ())
    sections["allow"] = list(about.allow)
    composed = composed_of(sections, checked.root, (), ("rtrain", "evaluate"))
    conf = _as_read_before(composed.conf.dataset, checked.model.trained.info)
    return load_as_trained(load_source(composed.resolved["dataset"]["type"], builder), conf, about.encoding)


@dataclass(frozen=True)
class SplitRows:
    """Reads the rows of a loaded split."""

    split: Split
    where: str
    """For messages."""
    pieces: Sequence[int] = (0,)

    def read(self, piece: int, with_labels: bool = False) -> Iterator[RawChunk]:
        """Yield the rows in the order of the data, some at a time; they always have labels."""
        num_before = 0
        for columns in self.split.own_rows(piece, 1):
            for start in range(0, len(columns["y"]), MAX_BATCH_ROWS):
                part = {name: values[start : start + MAX_BATCH_ROWS] for name, values in columns.items()}
                kept = {name: part[name] for name in ("group",) if name in part}
                more = (part.get(name) for name in ("group", "base_margin", "weight"))
                yield RawChunk(part["x"], part["y"], kept, *more, place=(self.where, num_before + start))
            num_before += len(columns["y"])


def _chosen(dataset: Dataset, split: str | None) -> SplitRows:
    """Return the rows of the split to predict: the one that is named, else the one that training did not see."""
    name = split or next(one for one in ("test", "val", "train") if one in dataset.splits)
    _check_split(name, dataset.splits)
    return SplitRows(dataset.splits[name], f"the split '{name}'")


def _check_split(name: str, splits: Collection[str]) -> None:
    if name not in splits:
        raise ConfigError(f"there is no split '{name}'.", there_are(splits))


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
