"""Text files of numbers with the label first: libsvm's sparse ones, or dense ones without a header."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from rtrain.config.value_types.texts import one_of
from rtrain.datasets.base import Dataset, RawChunk, RowReader, Source
from rtrain.datasets.conf import ArraysConf, SplitConf, TablePath
from rtrain.datasets.without_effect import check_kind, refuse_idle

if TYPE_CHECKING:
    from rtrain.datasets.arrays.libsvm_text import Files, SparseColumns
    from rtrain.datasets.arrays.load import Arrays


log = logging.getLogger(__name__)

ENDINGS = (".libsvm", ".svmlight", ".svm", ".train", ".test", ".tsv")


@dataclass(kw_only=True)
class LibsvmConf(ArraysConf):
    """``label [qid:query] column:value ...`` per line; or ``label value value ...``, by tab, comma or blank.

    Next to a file ``x``, ``x.weight`` has a weight per row, ``x.query`` (or ``x.group``) the rows of each query and
    ``x.init`` (or ``x.base_margin``) a score to start from per row, as LightGBM and XGBoost have them.
    """

    path: TablePath
    """File, folder or glob, or {train: ..., test: ...}."""

    absent: Annotated[str, *one_of("zero", "missing")] = "zero"
    """What a column is that a line doesn't name: 0, as LightGBM takes it, or NaN, as XGBoost takes it."""

    num_features: Annotated[int, Field(ge=1)] | None = None
    """Columns; null: as many as the files name."""

    first_column: Annotated[str, *one_of("auto", "0", "1")] = "auto"
    """Number of the first column; auto: 0 if any line names column 0, else 1. New files are read as in training."""


class Libsvm(Source):
    """Text files of numbers, label first, sparse (libsvm, svmlight) or dense, with LightGBM's side files; in memory."""

    Conf = LibsvmConf
    requires = ("sklearn",)

    def load(self, conf: LibsvmConf) -> Dataset:
        """Read the files at ``path`` as dense rows of float32."""
        from rtrain.datasets.arrays.libsvm_text import is_sparse, joined, read_dense, read_sparse
        from rtrain.datasets.arrays.load import Names, feature_names, load_arrays
        from rtrain.datasets.splitting.left_out import read_for

        files = _files(conf, conf.split)
        for file in (file for _, file in files if file.with_name(f"{file.name}.position").exists()):
            log.warning("%s.position is not read: no trainer takes the positions of a ranking", file)
        first: int | None = None
        absent: str | None = None
        if is_sparse(files[0][1]):
            absent = conf.absent
            read, first = read_sparse(files, _columns(conf))
        else:
            because = f"{files[0][1]} has the number of each column on each line"
            refuse_idle(conf, ("absent", "num_features", "first_column"), because)
            read = []
            for split, file in files:
                with read_for(split):
                    read.append(read_dense(file))
        parts = {
            split: joined([rows for rows, (one, _) in zip(read, files, strict=True) if one == split])
            for split in dict.fromkeys(split for split, _ in files)
        }
        names = Names(source="libsvm", label="label", features=feature_names(parts["train"].x.shape[1]))
        dataset = load_arrays(parts, names, conf, conf.task)
        return Dataset(dataset.info, dataset.splits, {**dataset.encoding, "first_column": first, "absent": absent})

    def open_rows(self, conf: LibsvmConf, encoding: Mapping[str, Any]) -> RowReader | None:
        """Open the files at ``path``; labels may be missing. Columns are numbered as in training."""
        check_kind(len(encoding.get("input_shape", ())) == 1, "rows of numbers")
        return LibsvmRows(tuple(enumerate(file for _, file in _files(conf))), conf, encoding)


def _files(conf: LibsvmConf, split: SplitConf | None = None) -> Files:
    """Return the files of rows, without side files, and the split of each."""
    from rtrain.datasets.arrays.libsvm_text import SIDE_ENDINGS
    from rtrain.datasets.files import files_by_split

    found = files_by_split(conf.path, ENDINGS, split, SIDE_ENDINGS)
    return [(split, file) for split, part in found.items() for file in part if not file.name.endswith(SIDE_ENDINGS)]


def _columns(conf: LibsvmConf) -> SparseColumns:
    from rtrain.datasets.arrays.libsvm_text import SparseColumns

    first = None if conf.first_column == "auto" else int(conf.first_column)
    return SparseColumns(first=first, count=conf.num_features, absent=conf.absent)


@dataclass(frozen=True)
class LibsvmRows:
    """Reads files to predict; pickled to the processes that predict. A piece is a file and its place."""

    pieces: Sequence[tuple[int, Path]]
    conf: LibsvmConf
    encoding: Mapping[str, Any]

    def read(self, piece: tuple[int, Path], with_labels: bool = False) -> Iterator[RawChunk]:
        """Yield the rows of a file, some at a time; those of a ranking with their queries, which span no two files."""
        import numpy as np

        from rtrain.datasets.arrays.predict_rows import array_chunks

        place, file = piece
        part = self._arrays(file, with_labels)
        queries = part.more.get("group")
        if queries is None:
            return array_chunks(part, self.encoding, with_labels)
        unique = np.unique(queries, return_inverse=True)[1] + (place << 32)
        part = replace(part, more={**part.more, "group": unique})
        return array_chunks(part, self.encoding, with_labels, {"group": queries})

    def _arrays(self, file: Path, with_labels: bool) -> Arrays:
        from rtrain.datasets.arrays.libsvm_text import has_labels, is_sparse, read_dense, read_sparse

        count = self.encoding["input_shape"][0]
        if not is_sparse(file):
            return read_dense(file, count, with_labels=with_labels)
        columns = _columns(self.conf)
        first = self.encoding.get("first_column") if columns.first is None else columns.first
        absent = self.encoding.get("absent") or columns.absent
        columns = replace(columns, first=first, count=columns.count or count, absent=absent)
        (part,), _ = read_sparse([("train", file)], columns, with_labels=with_labels and has_labels(file))
        return part
