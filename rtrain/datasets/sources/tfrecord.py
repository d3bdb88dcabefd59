"""TFRecord files of tf.train.Example."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from rtrain.config.did_you_mean import there_are
from rtrain.datasets.base import Dataset, RawChunk, RowReader, Source
from rtrain.datasets.conf import ArraysConf, PixelsConf, TablePath
from rtrain.datasets.without_effect import check_kind, refuse_idle
from rtrain.errors import DatasetError

if TYPE_CHECKING:
    import numpy as np

    from rtrain.datasets.arrays.load import Arrays

ENDINGS = (".tfrecord", ".tfrecords", ".tfrec", ".tfrecord.gz", ".tfrecords.gz")
Rows = list[dict[str, list[Any]]]


@dataclass(kw_only=True)
class TfrecordConf(ArraysConf, PixelsConf):
    """Records that are tf.train.Example; read without TensorFlow, checksums checked, held in memory.

    In a folder, files whose names begin with train, val (validation) or test are that split.
    """

    path: TablePath
    """File, folder or glob, or {train: ..., test: ...}."""

    label: str = "label"
    """Feature to predict: one number or text per record."""

    features: list[str] | None = None
    """Features to predict from, of the same length in all records, one after another; or a single one of encoded
    images. null: all but the label."""

    shape: list[Annotated[int, Field(ge=1)]] | None = None
    """Shape of a row, e.g. [1, 28, 28]; null: as many numbers as the features have, in one row."""


class Tfrecord(Source):
    """TFRecord files of tf.train.Example: numbers or encoded images, without TensorFlow; in memory."""

    Conf = TfrecordConf

    def load(self, conf: TfrecordConf) -> Dataset:
        """Read the files at ``path``."""
        from rtrain.datasets.arrays.load import Names, load_arrays
        from rtrain.datasets.files import shards_by_split
        from rtrain.datasets.splitting.left_out import read_each

        files = shards_by_split(conf.path, ENDINGS, conf.split)
        rows = read_each(files, lambda part: [(file, row) for file in part for row in _examples(file)])
        first_file, first = rows["train"][0]
        features = _features(first, conf, str(first_file))
        size = _image_size(first, features, conf)
        if size is None:
            refuse_idle(conf, ("image_size", "channels"), f"{first_file} contains numbers, not encoded images")
        else:
            refuse_idle(conf, ("shape",), "encoded images have their own", "Their size is dataset.image_size.")
        parts = read_each(rows, lambda part: _arrays(part, features, conf, size))
        flat = parts["train"].x.ndim == 2
        names = Names(source="tfrecord", label=conf.label, features=_column_names(first, features) if flat else ())
        dataset = load_arrays(parts, names, conf, conf.task)
        encoding = {**dataset.encoding, "features": list(features), "image_size": size}
        return Dataset(dataset.info, dataset.splits, encoding)

    def open_rows(self, conf: TfrecordConf, encoding: Mapping[str, Any]) -> RowReader | None:
        """Open the files at ``path``; labels may be missing. Single values of other features are kept."""
        from rtrain.datasets.files import shards_by_split

        check_kind({"features", "image_size"} <= set(encoding), "records of arrays")
        files = [str(file) for part in shards_by_split(conf.path, ENDINGS).values() for file in part]
        return TfrecordRows(files, replace(conf, **_learned(encoding)), encoding)


def _learned(encoding: Mapping[str, Any]) -> dict[str, Any]:
    """Return the keys that say which shape a row has, as in training."""
    shape = encoding["input_shape"]
    return {"shape": None if len(shape) == 1 else shape} if encoding["image_size"] is None else {"channels": shape[0]}


@dataclass(frozen=True)
class TfrecordRows:
    """Reads files to predict; pickled to the processes that predict."""

    pieces: Sequence[str]
    conf: TfrecordConf
    encoding: Mapping[str, Any]

    def read(self, piece: str, with_labels: bool = False) -> Iterator[RawChunk]:
        """Yield the rows of a file."""
        from rtrain.datasets.arrays.predict_rows import array_chunks

        rows = [(Path(piece), row) for row in _examples(Path(piece))]
        label = self.conf.label
        labelled = with_labels and all(label in row for _, row in rows)
        size = self.encoding["image_size"]
        part = _arrays(rows, self.encoding["features"], self.conf, size and (size[0], size[1]), labelled)
        used = {*self.encoding["features"], label}
        kept = {
            name: [row[name][0] for _, row in rows]
            for name in rows[0][1]
            if name not in used and all(len(row.get(name, ())) == 1 for _, row in rows)
        }
        return array_chunks(part, {**self.encoding, "label": label}, with_labels, kept)


def _examples(file: Path) -> Rows:
    from rtrain.datasets.tfrecord_format import read_examples

    rows = list(read_examples(file))
    if not rows:
        raise DatasetError(f"{file}: there are no records.")
    return rows


def _features(first: Mapping[str, Any], conf: TfrecordConf, where: str) -> list[str]:
    names = sorted(name for name in first if name != conf.label) if conf.features is None else conf.features
    for key, name in (("label", conf.label), *(("features", name) for name in names)):
        if name not in first:
            hint = there_are(sorted(first))
            raise DatasetError(f"{where}: dataset.{key} names '{name}', which the first record lacks.", hint)
    encoded = [name for name in names if isinstance(first[name][0] if first[name] else 0, bytes)]
    if encoded and len(names) > 1:
        message = (
            f"{where}: feature '{encoded[0]}' contains bytes, which are read as images and can't be combined "
            "with other features."
        )
        numbers = ",".join(name for name in names if name not in encoded)
        raise DatasetError(message, f"Choose: 'dataset.features=[{encoded[0]}]' or 'dataset.features=[{numbers}]'")
    return names


def _column_names(first: Mapping[str, Any], features: Sequence[str]) -> tuple[str, ...]:
    return tuple(
        name if len(first[name]) == 1 else f"{name}_{index}" for name in features for index in range(len(first[name]))
    )


def _image_size(first: Mapping[str, Any], features: Sequence[str], conf: TfrecordConf) -> tuple[int, int] | None:
    """Return height and width of encoded images; None for numbers."""
    from rtrain.datasets.images.pixels import image_size

    value = first[features[0]][0]
    if not isinstance(value, bytes):
        return None
    return (conf.image_size[0], conf.image_size[1]) if conf.image_size else image_size(value, "record 1")


def _arrays(
    rows: Sequence[tuple[Path, Mapping[str, list[Any]]]],
    features: Sequence[str],
    conf: TfrecordConf,
    size: tuple[int, int] | None,
    labelled: bool = True,
) -> Arrays:
    import numpy as np

    from rtrain.datasets.arrays.load import Arrays
    from rtrain.datasets.images.decoded import ImageReader

    where = str(rows[0][0])
    x: np.ndarray
    if size is not None:
        reader = ImageReader(*size, conf.channels)
        found = [
            reader.decode(_one(row, features[0], f"{file}: record {number}"), f"{file}: record {number}")
            for number, (file, row) in enumerate(rows, start=1)
        ]
        x = np.stack(found)
    else:
        x = _numbers(rows, features, conf)
    y: Any = None
    if labelled:
        values = [_one(row, conf.label, f"{file}: record {number}") for number, (file, row) in enumerate(rows, start=1)]
        y = [value.decode() if isinstance(value, bytes) else value for value in values]
    return Arrays(where=where, x=x, y=y)


def _one(row: Mapping[str, list[Any]], name: str, where: str) -> Any:
    values = row.get(name, [])
    if len(values) != 1:
        raise DatasetError(f"{where} has {len(values)} values of '{name}'; one is needed.")
    return values[0]


def _numbers(rows: Sequence[tuple[Path, Mapping[str, list[Any]]]], features: Sequence[str], conf: TfrecordConf) -> Any:
    """Return the features of all records one after another, in the shape that ``conf`` says."""
    import numpy as np

    from rtrain.datasets.arrays.load import narrowest

    lengths = {name: len(rows[0][1].get(name, ())) for name in features}
    for number, (file, row) in enumerate(rows, start=1):
        for name, length in lengths.items():
            if len(row.get(name, ())) != length:
                found = len(row.get(name, ()))
                raise DatasetError(
                    f"{file}: record {number} has {found} values of '{name}', but the first one has {length}."
                )
    x = narrowest(np.array([[value for name in features for value in row[name]] for _, row in rows], np.float64))
    if conf.shape is None:
        return x
    if np.prod(conf.shape) != x.shape[1]:
        shape = " x ".join(map(str, conf.shape))
        message = f"dataset.shape: {shape} does not match the {x.shape[1]} numbers of a record of {rows[0][0]}."
        raise DatasetError(message)
    return x.reshape(-1, *conf.shape)
