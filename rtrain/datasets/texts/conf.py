"""What a config may say of texts; each field's docstring is its documentation."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, ClassVar

from pydantic import Field

from rtrain.config.needs import Need, Rules
from rtrain.config.value_types.texts import one_of
from rtrain.datasets.conf import SharesConf, TablePath, TableSplitConf

TASKS = ("auto", "classification", "regression", "token-classification", "language-modeling")

CODED = Need(
    met=lambda way: way.conf.dataset.tokenizer != "none",
    otherwise="dataset.tokenizer=none creates no rows of tokens",
    instead="Create some: dataset.tokenizer=characters; the transformers trainer has trainer.max_length",
    keys=("dataset.tokenizer",),
)
APART = Need(
    met=lambda way: way.conf.dataset.tokenizer == "none",
    otherwise="dataset.tokenizer joins all texts",
    instead="Pass the texts to the trainer: dataset.tokenizer=none",
    keys=("dataset.tokenizer",),
)


@dataclass(kw_only=True)
class TextConf(SharesConf):
    """Texts in UTF-8; ``.gz``, ``.bz2`` and ``.zst`` are unpacked while reading.

    What is learned follows from what is there: a folder per class or a ``label`` column makes classification (or
    regression), lists of words with lists of tags make token classification, and anything else is a language to model,
    whose splits are contiguous: the first rows train, then come those of val, then those of test.
    """

    needs: ClassVar[Rules] = (CODED.of("block_size"), APART.of("each"))

    split: TableSplitConf = field(default_factory=TableSplitConf)
    """Shares of the train rows for ``val`` and ``test``, and columns of tables that decide."""

    path: TablePath
    """File, folder, glob, or {train: ..., val: ...}: plain texts, a folder of them per class, or csv, tsv (without
    quotes), jsonl and parquet files with a column of texts."""

    task: Annotated[str, *one_of(*TASKS)] = "auto"
    """What is learned; auto: what the data offers, see above."""

    text: str = "text"
    """Column of the texts, or of lists of words. Plain files have none."""

    label: str | None = None
    """Column of the classes or numbers, or of lists of tags. null: the folders are the classes, or there are none."""

    each: Annotated[str, *one_of("auto", "line", "file")] = "auto"
    """What a row is in plain files; auto: a file in a folder per class, else a line that is not blank."""

    tokenizer: Annotated[str, *one_of("none", "characters", "bytes")] = "none"
    """``none`` leaves texts to the trainer; the others make rows of ``block_size`` tokens to model the language."""

    memory: Annotated[str, *one_of("auto", "resident", "stream")] = "auto"
    """``resident`` holds all rows in memory; ``stream`` writes texts to the cache once, and maps that file; auto: by
    size against free memory. Lists of words, and what ``tokenizer`` joins, are always in memory."""

    block_size: Annotated[int, Field(ge=1)] = 64
    """Tokens per row. Row i has tokens i * block_size to (i + 1) * block_size - 1 of the split, its targets are the
    next tokens; what doesn't fill a row at the end is left out. Texts of several files or rows follow on each other."""
