"""Texts to predict, with labels or without."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from rtrain.config.files.home import expanded
from rtrain.datasets.base import RawChunk
from rtrain.datasets.files import files_by_split, local
from rtrain.datasets.labels import Labels
from rtrain.datasets.tables.kept_columns import bytes_as_text
from rtrain.datasets.texts.conf import TextConf
from rtrain.datasets.texts.from_files import has_class_folders
from rtrain.datasets.texts.load import blocks, coded_texts, joined_text
from rtrain.datasets.texts.read import PLAIN, TABLES, Texts, is_table, read_plain, read_table, table_texts
from rtrain.datasets.texts.tokens import Tokens
from rtrain.datasets.without_effect import check_kind


def open_text_rows(conf: TextConf, encoding: Mapping[str, Any]) -> TextRows:
    """Return a reader of the texts at ``conf.path``, a piece per file."""
    check_kind("column" in encoding or "tokenizer" in encoding, "texts")
    conf = replace(conf, path=local(conf.path, (*PLAIN, *TABLES)))
    files = files_by_split(conf.path, (*PLAIN, *TABLES))
    each = conf.each
    if each == "auto":
        in_folders = encoding["task"] == "classification" and conf.label is None
        each = "file" if in_folders or has_class_folders(expanded(str(conf.path))) else "line"
    return TextRows([str(file) for part in files.values() for file in part], conf, each, encoding)


@dataclass(frozen=True)
class TextRows:
    """Reads files of texts; pickled to the processes that predict."""

    pieces: Sequence[str]
    conf: TextConf
    each: str
    encoding: Mapping[str, Any] = field(repr=False)

    def read(self, piece: str, with_labels: bool = False) -> Iterator[RawChunk]:
        """Yield the texts of a file; of a language model with tokens its blocks, without the rest at the end."""
        file = Path(piece)
        whole = self.encoding.get("tokenizer", "none") != "none"
        if is_table(file):
            texts = read_table(file, self.conf.text, self.conf.label, label_needed=with_labels)
        else:
            texts = read_plain(file, "file" if whole else self.each)
            texts = texts if texts.kept else replace(texts, kept={"text": texts.texts})
        name = None if self.conf.label is not None else self._class_of(file)
        if name is not None:
            texts = replace(texts, labels=pa.array([name] * len(texts.texts)))
        yield _chunk(texts, self.conf, self.encoding, with_labels)

    def _class_of(self, file: Path) -> str | None:
        """Return the outermost folder of a file that has the name of a class, as in training; None if there is none."""
        root = expanded(str(self.conf.path))
        inside = file.relative_to(root).parts[:-1] if file.is_relative_to(root) else ()
        classes = {str(name) for name in self.encoding.get("classes") or ()}
        return next((name for name in (*inside, file.parent.name) if name in classes), None)


def open_text_tables(tables: Mapping[str, pa.Table], conf: TextConf, encoding: Mapping[str, Any]) -> TextTableRows:
    """Return a reader of the texts in Arrow tables, by split."""
    check_kind("column" in encoding or "tokenizer" in encoding, "texts")
    return TextTableRows(tuple((f"{conf.path} ({split})", table) for split, table in tables.items()), conf, encoding)


@dataclass(frozen=True)
class TextTableRows:
    """Texts in Arrow tables in memory; a piece is one of them."""

    pieces: tuple[tuple[str, pa.Table], ...]
    """With what to call them in messages."""
    conf: TextConf
    encoding: Mapping[str, Any] = field(repr=False)

    def read(self, piece: tuple[str, pa.Table], with_labels: bool = False) -> Iterator[RawChunk]:
        """Yield all texts of a table together."""
        where, table = piece
        texts = table_texts(table, where, self.conf.text, self.conf.label, with_labels)
        yield _chunk(texts, self.conf, self.encoding, with_labels)


def _chunk(texts: Texts, conf: TextConf, encoding: Mapping[str, Any], with_labels: bool) -> RawChunk:
    if encoding.get("tokenizer", "none") != "none":
        tokens = Tokens(encoding["characters"])
        columns = blocks(tokens.encode(joined_text([texts]), texts.where), conf.block_size)
        return RawChunk(columns["x"], columns["y"], {})
    x, kept = texts.rows(), {name: bytes_as_text(values) for name, values in texts.kept.items()}
    if encoding["task"] == "language-modeling":
        return RawChunk(x, x, kept)
    if texts.labels is not None and conf.label is not None:
        kept = {**kept, conf.label: texts.labels}
    if not with_labels or texts.labels is None:
        return RawChunk(x, None, kept)
    labels = Labels.stored(encoding["column"], encoding)
    return RawChunk(x, coded_texts(texts, labels, encoding["task"])["y"], kept)
