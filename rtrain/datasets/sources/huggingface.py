"""Data sets of Hugging Face: a folder that ``save_to_disk`` wrote, or one of the hub by its id."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from rtrain.config.did_you_mean import there_are
from rtrain.config.value_types.texts import one_of
from rtrain.datasets.base import Dataset, RowReader, Source
from rtrain.datasets.conf import LargeTableConf
from rtrain.datasets.images.conf import OriginalPixelsConf
from rtrain.datasets.whole.conf import WholeConf
from rtrain.errors import DatasetError, first_line

if TYPE_CHECKING:
    from rtrain.datasets.texts.conf import TextConf

OF_HUB, OF_IMAGES = ("subset", "revision"), ("image_size", "channels")
"""Keys that choose from what the hub has, and that say what encoded images become."""
_HUB_ID = re.compile(r"\w[\w.-]*(/\w[\w.-]*)?")
SPLITS_FILE = "dataset_dict.json"
"""What ``save_to_disk`` writes for several splits."""
SAVED = "Use a folder written by save_to_disk, or use dataset=parquet, csv, json or images."
TASKS = ("auto", "classification", "regression", "ranking", "token-classification", "language-modeling")

FITTING = {
    "image": ("auto", "classification", "regression"),
    "table": ("auto", "classification", "regression", "ranking"),
    "text": tuple(task for task in TASKS if task != "ranking"),
}
"""What can be learned from which kind of rows."""


@dataclass(kw_only=True)
class HubConf:
    """Which data set."""

    path: Annotated[str, Field(min_length=1)]
    """Folder that ``save_to_disk`` wrote, or the id of a data set on the hub, which needs the network or its cache."""

    subset: str | None = None
    """Configuration of a data set on the hub that has several."""

    revision: str | None = None
    """Commit, tag or branch on the hub; null: the newest."""


@dataclass(kw_only=True)
class HuggingfaceConf(HubConf, LargeTableConf, OriginalPixelsConf):
    """Tables, images or texts; splits train, validation (or val, valid, dev) and test.

    All but lists of words may be larger than memory. With ``memory: stream``, the shares of ``split`` of a table are
    only about right.
    """

    input: str | None = None
    """Column of images, texts or lists of words. null: the only column of images, else the numbers of the table."""

    label: str = "label"
    """Column to predict; not looked at with ``task: language-modeling``."""

    task: Annotated[str, *one_of(*TASKS)] = "auto"
    """auto: by the label, and whether the input is lists of words. A ``ranking`` needs ``group``."""

    memory: Annotated[str, *one_of("auto", "resident", "stream")] = "auto"
    """``resident`` holds all rows in memory, ``stream`` leaves them in the files; auto: by size against free memory."""

    num_shuffle_rows: Annotated[int, Field(ge=1)] = 10_000
    """Rows of a streamed table held back at a time to shuffle them; images and texts are all shuffled anyway."""


@dataclass(kw_only=True)
class WholeHuggingfaceConf(HubConf, WholeConf):
    """A split of a data set with all its columns, held in memory; images as the bytes of their files."""

    split: str | None = None
    """Which one, where there are several."""


class Huggingface(Source):
    """Hugging Face data sets, from a saved folder or the hub, in memory or on disk."""

    Conf = HuggingfaceConf
    WholeConf = WholeHuggingfaceConf
    requires = ("datasets",)
    extra = "huggingface"
    has_hub = True

    def load(self, conf: HuggingfaceConf) -> Dataset:
        """Read all splits of the data set."""
        from rtrain.datasets.splitting.by_column import refuse_keys
        from rtrain.datasets.tables.column_roles import refuse_table_keys
        from rtrain.datasets.without_effect import check_task, refuse_idle

        parts = _by_split(conf)
        train = parts["train"]
        kind = _kind(train, conf)
        check_task(conf.task, FITTING[kind], f"the {kind}{'' if kind == 'table' else 's'} of {conf.path}")
        if kind != "text" and conf.label not in train.column_names:
            raise _no_column(conf.label, "label", train, conf)
        if kind != "text" or conf.task != "language-modeling":
            _check_labelled(parts, conf)
        if kind == "image":
            refuse_keys(conf.split, "images")
        else:
            refuse_idle(conf, OF_IMAGES, "there are no images to decode")
        if kind == "text":
            refuse_idle(conf, ("normalize",), "texts are not numbers")
        if kind != "table":
            refuse_table_keys(conf, f"{kind}s")
            refuse_idle(conf, ("num_shuffle_rows",), f"all {kind}s are shuffled in each epoch")
        load = {"image": _images, "text": _texts, "table": _table}[kind]
        return _named(load(parts, conf), train.features.get(conf.label))

    def load_whole(self, conf: WholeHuggingfaceConf) -> Dataset:
        """Read all rows and columns of a split."""
        from rtrain.datasets.hub.labels import arrow_columns
        from rtrain.datasets.whole.load import load_table

        found = _opened(conf)
        parts = dict(found) if isinstance(found, Mapping) else {}
        if parts and conf.split is None and len(parts) > 1:
            raise DatasetError(f"{conf.path} has several splits.", f"Choose one: dataset.split={next(iter(parts))}")
        if conf.split is not None and conf.split not in parts:
            raise DatasetError(f"{conf.path}: there is no split '{conf.split}'.", there_are(parts or ["none"]))
        part = parts[conf.split or next(iter(parts))] if parts else found
        return load_table("huggingface", arrow_columns(part, part.column_names), conf, conf.path)

    def open_rows(self, conf: HuggingfaceConf, encoding: Mapping[str, Any]) -> RowReader | None:
        """Open all splits of the data set, whatever they are called; labels may be missing."""
        from rtrain.datasets.hub.labels import check_feature_classes, classes_of, named_labels
        from rtrain.datasets.labels import trained_classes
        from rtrain.datasets.tables.column_roles import refuse_table_keys

        parts = _parts(conf)
        if not any(map(len, parts.values())):
            raise DatasetError(f"dataset.path: {conf.path} has no rows.")
        kind = _kind(next(iter(parts.values())), conf)
        names = encoding.get("label_names")
        if names:
            encoding = {**encoding, "classes": list(trained_classes(encoding))}
        elif "channels" in encoding:  # of training on folders of images, which are named as classes
            names = encoding["classes"]
        if kind == "image":
            refuse_table_keys(conf, "images")
            return _image_rows(parts, conf, encoding, names)
        tables = {split: named_labels(part, conf, names) for split, part in parts.items()}
        if kind == "text":
            from rtrain.datasets.texts.predict_rows import open_text_tables

            return open_text_tables(tables, _text_conf(conf), encoding)
        from rtrain.datasets.tables.predict_rows import open_arrow_rows

        known = encoding.get("feature_classes", {})  # not in checkpoints of before
        for part in parts.values():
            check_feature_classes(classes_of(part), known, conf.path, "the data set of training")
        return open_arrow_rows(tables, conf, encoding, conf.path)


def _opened(conf: HubConf) -> Any:
    """Return the data set, or its splits by name.

    Raises:
        DatasetError: The folder or id does not exist, or the hub can't be reached.
    """
    import datasets

    from rtrain.datasets.files import existing_path
    from rtrain.datasets.without_effect import refuse_idle

    may_be_id = _HUB_ID.fullmatch(conf.path) is not None and not Path(conf.path).is_file()
    folder = Path(conf.path) if may_be_id else existing_path(conf.path)
    if not folder.is_dir() and not may_be_id:
        raise DatasetError(f"dataset.path: {conf.path} is a file, not a folder.", SAVED)
    if not folder.is_dir() and conf.path in (one.name for one in iter_modules(datasets.packaged_modules.__path__)):
        message = (
            f"dataset.path: {conf.path} is the name of a file format: datasets would read the files of this folder."
        )
        raise DatasetError(message, "Use a data set of the hub, or use dataset=parquet, csv, json or images.")
    datasets.disable_progress_bars()
    try:
        if folder.is_dir():
            refuse_idle(conf, OF_HUB, f"{conf.path} is a folder, not a data set of the hub")
            return datasets.load_from_disk(str(folder))
        return datasets.load_dataset(conf.path, conf.subset, revision=conf.revision)
    except IndexError as error:  # what datasets raises where a split has no file
        if not (folder / SPLITS_FILE).is_file():
            raise DatasetError(f"dataset.path: {conf.path} has no rows.") from error
        splits = json.loads((folder / SPLITS_FILE).read_bytes())["splits"]
        return {split: _loaded(folder / split) for split in splits}
    except (OSError, ValueError, ImportError, RuntimeError) as error:
        if folder.is_dir():
            raise DatasetError(f"dataset.path: {folder} can't be opened: {error}", SAVED) from error
        why = first_line(error)[:200]
        message = f"dataset.path: {conf.path} is not a local folder, and the hub has no such data set: {why}"
        hint = "Check the id and the network; or save it on a machine with network: load_dataset(...).save_to_disk(DIR)"
        raise DatasetError(message, hint) from error


def _loaded(folder: Path) -> Any:
    """Return a split that was saved, which may be empty."""
    import datasets

    if json.loads((folder / "state.json").read_bytes())["_data_files"]:
        return datasets.load_from_disk(str(folder))
    info = datasets.DatasetInfo.from_directory(str(folder))
    return datasets.Dataset(datasets.table.InMemoryTable(info.features.arrow_schema.empty_table()), info=info)


def _parts(conf: HubConf) -> dict[str, Any]:
    """Return the splits by the names that the data set has for them; one without splits is train."""
    found = _opened(conf)
    return dict(found) if isinstance(found, Mapping) else {"train": found}


def _by_split(conf: HuggingfaceConf) -> dict[str, Any]:
    """Return the splits by our names."""
    from rtrain.datasets.files import SPLIT_NAMES
    from rtrain.datasets.splitting.left_out import or_leave_out, to_read

    names = {**SPLIT_NAMES, "dev": "val"}
    found = _parts(conf)
    parts = to_read({names[name]: part for name, part in found.items() if name in names}, conf.split)
    if "train" not in parts:
        message = f"{conf.path}: there is no split 'train'; available: {', '.join(found)}."
        raise DatasetError(message, "Save only the split to train on: dataset['...'].save_to_disk(DIR)")
    for split, part in parts.items():
        if not len(part):
            raise or_leave_out(split, DatasetError(f"{conf.path}: split '{split}' has no rows."))
    return parts


def _kind(train: Any, conf: HuggingfaceConf) -> str:
    """Return whether the input is an ``image``, a ``text`` or the numbers of a ``table``."""
    import datasets

    if conf.input is None:
        images = [name for name, kind in train.features.items() if isinstance(kind, datasets.Image)]
        return "image" if len(images) == 1 and conf.features is None else "table"
    if conf.input not in train.features:
        raise _no_column(conf.input, "input", train, conf)
    return "image" if isinstance(train.features[conf.input], datasets.Image) else "text"


def _no_column(name: str, key: str, train: Any, conf: HuggingfaceConf) -> DatasetError:
    message = f"{conf.path}: dataset.{key} names '{name}', which is not a column."
    return DatasetError(message, there_are(train.column_names))


def _check_labelled(parts: Mapping[str, Any], conf: HuggingfaceConf) -> None:
    """Raise a DatasetError if a split lacks the label that train has."""
    from rtrain.datasets.splitting.left_out import or_leave_out

    for split, part in parts.items():
        if conf.label in parts["train"].column_names and conf.label not in part.column_names:
            message = f"{conf.path} ({split}): there is no column '{conf.label}', which train has."
            raise or_leave_out(split, DatasetError(message, there_are(part.column_names)))


def _table(parts: Mapping[str, Any], conf: HuggingfaceConf) -> Dataset:
    from rtrain.datasets.hub.tables import load_hub_table

    return load_hub_table(parts, conf)


def _texts(parts: Mapping[str, Any], conf: HuggingfaceConf) -> Dataset:
    from rtrain.datasets.hub.texts import load_hub_texts

    return load_hub_texts(parts, _text_conf(conf), conf.memory)


def _text_conf(conf: HuggingfaceConf) -> TextConf:
    from rtrain.datasets.texts.conf import TextConf

    label = None if conf.task == "language-modeling" else conf.label
    shares = {name: getattr(conf, name) for name in ("split", "seed", "sample", "limit")}
    return TextConf(path=conf.path, task=conf.task, text=str(conf.input), label=label, **shares)


def _images(parts: Mapping[str, Any], conf: HuggingfaceConf) -> Dataset:
    from rtrain.datasets.hub.images import load_hub_images
    from rtrain.datasets.hub.labels import labelled

    labels = {split: table[conf.label].to_numpy() for split, table in labelled(parts, conf, others=()).items()}
    return load_hub_images(parts, _image_column(parts["train"], conf), labels, conf)


def _image_rows(
    parts: Mapping[str, Any], conf: HuggingfaceConf, encoding: Mapping[str, Any], names: Sequence[str] | None
) -> RowReader:
    from rtrain.datasets.hub.images import open_hub_images
    from rtrain.datasets.hub.labels import named_labels

    others = {split: named_labels(_without_images(part), conf, names) for split, part in parts.items()}
    return open_hub_images(parts, _image_column(next(iter(parts.values())), conf), others, conf, encoding)


def _without_images(part: Any) -> Any:
    import datasets

    return part.remove_columns([name for name, kind in part.features.items() if isinstance(kind, datasets.Image)])


def _image_column(part: Any, conf: HuggingfaceConf) -> str:
    import datasets

    return conf.input or next(name for name, kind in part.features.items() if isinstance(kind, datasets.Image))


def _named(dataset: Dataset, kind: Any) -> Dataset:
    """Return the dataset with the class names that the label's type has, also for new rows, which may number others."""
    from rtrain.datasets.hub.labels import class_names

    names = class_names(kind)
    if not names or not dataset.info.class_names:
        return dataset
    known = tuple(names[int(one)] for one in dataset.info.class_names)
    encoding = {**dataset.encoding, "label_names": list(names)}
    return replace(dataset, info=replace(dataset.info, class_names=known), encoding=encoding)
