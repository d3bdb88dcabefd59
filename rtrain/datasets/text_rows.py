"""Texts to predict, with labels or without."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from rtrain.datasets.base import RawChunk
from rtrain.datasets.files import files_by_split, local
from rtrain.datasets.labels import Labels
from rtrain.datasets.sources.text import TextConf
from rtrain.datasets.text_source import blocks, coded_texts, has_class_folders, joined_text, objects
from rtrain.datasets.texts import PLAIN, TABLES, Texts, is_table, read_plain, read_table
from rtrain.datasets.tokens import Tokens


def open_text_rows(conf: TextConf, encoding: Mapping[str, Any]) -> TextRows:
    """Return a reader of the texts at ``conf.path``, a piece per file."""
    conf = replace(conf, path=local(conf.path, (*PLAIN, *TABLES)))
    files = files_by_split(conf.path, (*PLAIN, *TABLES))
    each = conf.each
    if each == "auto":
        in_folders = encoding["task"] == "classification" and conf.label is None
        each = "file" if in_folders or has_class_folders(Path(str(conf.path)).expanduser()) else "line"
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
        yield self._blocks(texts) if whole else self._rows(texts, file, with_labels)

    def _rows(self, texts: Texts, file: Path, with_labels: bool) -> RawChunk:
        import pyarrow as pa

        x = objects(texts.texts)
        if self.encoding["task"] == "language-modeling":
            return RawChunk(x, x, texts.kept)
        if not with_labels:
            return RawChunk(x, None, texts.kept)
        classes = self.encoding["classes"]
        labels = Labels(self.encoding["column"], None if classes is None else tuple(classes))
        if self.conf.label is None and file.parent.name in labels.class_names:
            texts = Texts(texts.where, texts.texts, pa.array([file.parent.name] * len(x)), texts.kept)
        y = None if texts.labels is None else coded_texts(texts, labels, self.encoding["task"])["y"]
        return RawChunk(x, y, texts.kept)

    def _blocks(self, texts: Texts) -> RawChunk:
        tokens = Tokens(self.encoding["characters"])
        columns = blocks(tokens.encode(joined_text([texts]), texts.where), self.conf.block_size)
        return RawChunk(columns["x"], columns["y"], {})
