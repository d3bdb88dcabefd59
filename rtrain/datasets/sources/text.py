"""Texts: documents with classes, sentences with tagged words, or a text to learn as a language."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rtrain.datasets.base import Dataset, RowReader, Source
from rtrain.datasets.texts.conf import TextConf


class Text(Source):
    """Texts or tokens: a folder per class, tables with a text column, or plain files to model."""

    Conf = TextConf

    def load(self, conf: TextConf) -> Dataset:
        """Read the texts at ``path``."""
        from rtrain.datasets.texts.from_files import load_text

        return load_text(conf)

    def open_rows(self, conf: TextConf, encoding: Mapping[str, Any]) -> RowReader | None:
        """Open the texts at ``path``; without labels too. All columns of tables, and names of files, are kept."""
        from rtrain.datasets.texts.predict_rows import open_text_rows

        return open_text_rows(conf, encoding)
