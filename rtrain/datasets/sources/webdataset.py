"""WebDataset shards: tar files whose members make a row by their common name."""

from __future__ import annotations

import json
import re
import tarfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rtrain.datasets.base import Dataset, RawChunk, RowReader, Source
from rtrain.datasets.conf import ArraysConf, PixelsConf, TablePath
from rtrain.datasets.without_effect import check_kind, refuse_idle
from rtrain.errors import DatasetError
from rtrain.text.enumeration import few

if TYPE_CHECKING:
    import numpy as np

    from rtrain.datasets.arrays.load import Arrays

ENDINGS = (".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz")
IMAGES = ("png", "jpg", "jpeg", "webp", "bmp", "ppm", "pgm", "tif", "tiff", "gif")
CHUNK_ROWS = 256
MOST_ENDINGS = 10
"""So many endings of a row are listed in an error."""

NEIGHBOURS = "The files of a row have to be next to each other in the archive: make it with tar --sort=name"
_WHOLE = re.compile(r"-?[0-9]+")
_FRACTION = re.compile(r"-?([0-9]+\.[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?|-?[0-9]+[eE][-+][0-9]+")
"""Numbers as programs write them; ``12e4`` is a name, of four hexadecimal digits say."""

Sample = dict[str, bytes]
"""The members of a row by their endings, and its name as ``__key__``."""


@dataclass(kw_only=True)
class WebdatasetConf(ArraysConf, PixelsConf):
    """Tar files whose members ``<name>.<ending>`` of equal name make a row; images or arrays, held in memory.

    In a folder, shards whose names begin with train, val (validation) or test are that split.
    """

    path: TablePath
    """Tar file, folder or glob, or {train: ..., test: ...}; ``shard-{000..007}.tar`` is written ``shard-*.tar``."""

    input: str | None = None
    """Ending of the input: an image or ``npy``. null: the first of png, jpg, ..., npy that the first row has."""

    label: str = "cls"
    """Ending of the label: a text file with a number or a name; or ``json.<key>`` for a key of a JSON object."""


class Webdataset(Source):
    """WebDataset shards: tar files of images or arrays, each with a cls or json member; in memory."""

    Conf = WebdatasetConf

    def load(self, conf: WebdatasetConf) -> Dataset:
        """Read the shards at ``path``."""
        from rtrain.datasets.arrays.load import Names, load_arrays
        from rtrain.datasets.files import shards_by_split
        from rtrain.datasets.images.pixels import image_size
        from rtrain.datasets.splitting.left_out import read_each

        files = shards_by_split(conf.path, ENDINGS, conf.split)
        first = next(_samples(files["train"][0]), None)
        if first is None:
            raise DatasetError(f"{files['train'][0]}: the shard is empty.")
        ending = _input(first, conf, str(files["train"][0]))
        if ending == "npy":
            refuse_idle(conf, ("image_size", "channels"), f"{files['train'][0]} contains arrays, not encoded images")
        size = conf.image_size
        if size is None and ending != "npy":
            size = list(image_size(first[ending], _where(files["train"][0], first)))
        rows = _Rows(ending, conf, None if ending == "npy" else size)
        parts = read_each(files, rows.arrays)
        dataset = load_arrays(parts, Names(source="webdataset", label=conf.label), conf, conf.task)
        encoding = {**dataset.encoding, "input": ending, "image_size": rows.size}
        return Dataset(dataset.info, dataset.splits, encoding)

    def open_rows(self, conf: WebdatasetConf, encoding: Mapping[str, Any]) -> RowReader | None:
        """Open the shards at ``path``; labels may be missing. The rows' names are kept."""
        from rtrain.datasets.files import shards_by_split

        check_kind({"input", "image_size"} <= set(encoding), "samples of shards")
        files = [str(file) for part in shards_by_split(conf.path, ENDINGS).values() for file in part]
        size = encoding["image_size"]
        conf = conf if size is None else replace(conf, channels=encoding["input_shape"][0])
        return WebdatasetRows(files, _Rows(encoding["input"], conf, size), encoding)


@dataclass(frozen=True)
class _Rows:
    """Makes samples into arrays."""

    ending: str
    conf: WebdatasetConf
    size: list[int] | None
    """Height and width of images; None for arrays."""

    def arrays(self, files: Sequence[Path]) -> Arrays:
        from rtrain.datasets.arrays.load import Arrays

        x, y = [], []
        for file in files:
            for sample in _samples(file):
                x.append(self.x(sample, file))
                y.append(_label(sample, self.conf.label, _where(file, sample)))
        if not x:
            raise DatasetError(f"{files[0]}: the shard is empty.")
        return Arrays(where=str(files[0]), x=_stacked(x, files[0]), y=y)

    def x(self, sample: Sample, file: Path) -> np.ndarray:
        """Return the input of a row."""
        from rtrain.datasets.images.decoded import ImageReader

        where = _where(file, sample)
        if self.ending not in sample:
            raise DatasetError(f"{where} has no .{self.ending}.", f"It has: {_endings(sample)}. {NEIGHBOURS}")
        if self.size is None:
            return _array(sample[self.ending], where)
        return ImageReader(self.size[0], self.size[1], self.conf.channels).decode(sample[self.ending], where)


@dataclass(frozen=True)
class WebdatasetRows:
    """Reads shards to predict; pickled to the processes that predict."""

    pieces: Sequence[str]
    rows: _Rows
    encoding: Mapping[str, Any]

    def read(self, piece: str, with_labels: bool = False) -> Iterator[RawChunk]:
        """Yield the rows of a shard, some at a time."""
        samples = _samples(Path(piece))
        first_row = 0
        while held := list(islice(samples, CHUNK_ROWS)):
            yield from self._chunks(held, Path(piece), with_labels, first_row)
            first_row += len(held)

    def _chunks(self, samples: Sequence[Sample], file: Path, with_labels: bool, first_row: int) -> Iterator[RawChunk]:
        from rtrain.datasets.arrays.load import Arrays
        from rtrain.datasets.arrays.predict_rows import array_chunks

        label = self.rows.conf.label
        y = None
        if with_labels and all(label.partition(".")[0] in sample for sample in samples):
            y = [_label(sample, label, _where(file, sample)) for sample in samples]
        x = _stacked([self.rows.x(sample, file) for sample in samples], file, first_row)
        keys = {"key": [sample["__key__"].decode() for sample in samples]}
        part = Arrays(where=str(file), x=x, y=y)
        return array_chunks(part, {**self.encoding, "label": label}, with_labels, keys, first_row)


def _samples(file: Path) -> Iterator[Sample]:
    """Yield the rows of a shard: neighbours of equal name, cut at the first dot after the folder, make one.

    Raises:
        DatasetError: The file is not a tar file, or is truncated.
    """
    sample: Sample = {}
    try:
        with tarfile.open(file) as members:
            for member in members:
                name = member.name.rpartition("/")[2]
                if not member.isfile() or name.startswith((".", "__")) or "." not in name:
                    continue
                stem, _, ending = name.partition(".")
                key = (member.name[: -len(name)] + stem).encode()
                if sample.get("__key__", key) != key:
                    yield sample
                    sample = {}
                content = members.extractfile(member)
                assert content is not None
                sample |= {"__key__": key, ending.lower(): content.read()}
    except (tarfile.TarError, OSError, EOFError) as error:
        raise DatasetError(f"{file}: can't be read as a tar file ({error}).", "Check that it is complete.") from error
    if sample:
        yield sample


def _where(file: Path, sample: Sample) -> str:
    return f"{file}: row '{sample['__key__'].decode()}'"


def _endings(sample: Sample) -> str:
    return few(sorted(set(sample) - {"__key__"}), MOST_ENDINGS)


def _input(first: Sample, conf: WebdatasetConf, where: str) -> str:
    wanted = (*IMAGES, "npy") if conf.input is None else (conf.input,)
    found = next((one for one in wanted if one in first), None)
    if found is None:
        row = first["__key__"].decode()
        message = f"{where}: the first row, '{row}', has no {conf.input or 'image or npy'}; it has: {_endings(first)}."
        hint = "Set the extension of the input: dataset.input=... A row's name ends at the first dot of its file names."
        raise DatasetError(message, f"{hint} {NEIGHBOURS}")
    return found


def _array(content: bytes, where: str) -> np.ndarray:
    import io

    import numpy as np

    try:
        return np.load(io.BytesIO(content), allow_pickle=False)  # type: ignore[no-any-return]
    except (ValueError, OSError, EOFError) as error:
        raise DatasetError(f"{where}: its .npy can't be read ({error}).") from error


def _stacked(x: Sequence[np.ndarray], file: Path, first_row: int = 0) -> np.ndarray:
    import numpy as np

    for number, one in enumerate(x, start=first_row + 1):
        if one.shape != x[0].shape or not one.ndim:
            other = "the first one" if not first_row else f"row {first_row + 1}"
            message = f"{file}: row {number} is of shape {list(one.shape)}, but {other} is of {list(x[0].shape)}."
            raise DatasetError(message, "All rows must be arrays of the same shape.")
    return np.stack(x)


def _label(sample: Sample, label: str, where: str) -> Any:
    ending, _, key = label.partition(".")
    if ending not in sample:
        raise DatasetError(f"{where} has no .{ending}.", f"It has: {_endings(sample)}. Set dataset.label. {NEIGHBOURS}")
    try:
        text = sample[ending].decode().strip()
        if not key:
            return int(text) if _WHOLE.fullmatch(text) else float(text) if _FRACTION.fullmatch(text) else text
        found = json.loads(text)
    except ValueError as error:
        raise DatasetError(f"{where}: its .{ending} can't be read ({error}).") from error
    if not isinstance(found, Mapping) or key not in found:
        raise DatasetError(f"{where}: its .{ending} has no key '{key}'.")
    return found[key]
