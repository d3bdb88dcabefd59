"""From texts to a dataset: classes, numbers or tags to predict, or a language to model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rtrain.datasets.base import Columns, Dataset, DatasetInfo, ResidentSplit, concatenated, objects
from rtrain.datasets.in_memory import fingerprint
from rtrain.datasets.labels import Labels, LabelScan, Targets
from rtrain.datasets.memory import always_resident
from rtrain.datasets.splitting.by_column import SplitKeys, refuse_keys, split_table
from rtrain.datasets.splitting.left_out import SPLITS, read_for
from rtrain.datasets.splitting.shares import check_not_empty, num_wanted, shares
from rtrain.datasets.tables.spec import check_columns
from rtrain.datasets.texts.conf import TextConf
from rtrain.datasets.texts.read import (
    Texts,
    table_texts,
)
from rtrain.datasets.texts.tokens import Tokens
from rtrain.datasets.without_effect import refuse_idle
from rtrain.errors import DatasetError

IGNORED = -100
"""A tag that PyTorch's losses leave out: no class."""
BYTES_PER_BYTE = {"none": 4, "characters": 24, "bytes": 24}
"""Memory per byte of text: str objects, or tokens and targets of 8 bytes each and the text while it is coded."""


def load_text_tables(source: str, tables: Mapping[str, pa.Table], conf: TextConf, reason: str | None = None) -> Dataset:
    """Return the dataset of the columns ``conf.text`` and ``conf.label`` of a table per split, in memory.

    Args:
        source: Its name.
        tables: By split.
        conf: What is learned from which columns.
        reason: Why they are in memory; None: the source knows no other way.

    Raises:
        DatasetError: A column is missing or unusable.
    """
    if reason is None:
        reason = always_resident(sum(table.nbytes for table in tables.values()) * BYTES_PER_BYTE[conf.tokenizer])
    parts = {
        split: [table_texts(table, f"{conf.path} ({split})", conf.text, conf.label)] for split, table in tables.items()
    }
    dataset = texts_dataset(parts, conf, reason)
    return replace(dataset, info=replace(dataset.info, name=source))


def texts_dataset(parts: Mapping[str, Sequence[Texts]], conf: TextConf, reason: str) -> Dataset:
    """Return the dataset of the texts, with the tasks, tokens and splits of ``conf``."""
    task = _task(parts, conf)
    if task == "language-modeling":
        return _language(parts, conf, reason)
    return _labelled(parts, conf, task, reason)


def _task(parts: Mapping[str, Sequence[Texts]], conf: TextConf) -> str:
    """Return what is learned: what the config says, if the data can do it, else what the data offers."""
    first = parts["train"][0]
    if conf.tokenizer != "none" and conf.task not in ("auto", "language-modeling"):
        message = f"dataset.tokenizer={conf.tokenizer} creates tokens for language modeling, not for {conf.task}."
        raise DatasetError(message, "Use dataset.tokenizer=none, and let the trainer tokenize.")
    if (
        first.are_words
        and conf.tokenizer == "none"
        and (first.labels is not None or conf.task == "token-classification")
    ):
        offered = "token-classification"
    else:
        offered = "language-modeling" if first.labels is None or conf.tokenizer != "none" else "classification"
    if conf.task in ("auto", "language-modeling"):
        return "language-modeling" if conf.task == "language-modeling" else offered
    if first.labels is None:
        raise DatasetError(f"{first.where}: dataset.task={conf.task} needs labels.", "Set their column: dataset.label.")
    if (conf.task == "token-classification") != (offered == "token-classification"):
        kind = "lists of words" if first.are_words else "texts"
        raise DatasetError(f"{first.where}: dataset.task={conf.task}, but '{conf.text}' contains {kind}.")
    return conf.task


@dataclass(frozen=True)
class _Known:
    """What is known of texts in addition to their rows."""

    task: str
    num_classes: int | None
    class_names: tuple[str, ...]
    dtype: str
    input_shape: tuple[int, ...]
    reason: str


def _dataset(
    splits: Mapping[str, Columns], known: _Known, encoding: Mapping[str, Any], targets: Targets | None = None
) -> Dataset:
    targets = targets or Targets()
    info = DatasetInfo(
        name="text",
        task=known.task,
        input_shape=known.input_shape,
        dtype=known.dtype,
        num_classes=known.num_classes,
        class_names=known.class_names,
        target_dtype=targets.dtype,
        merged_targets=targets.merged,
        num_rows={name: len(columns["y"]) for name, columns in splits.items()},
        fingerprint=fingerprint(splits, known.class_names),
        memory="resident",
        memory_reason=known.reason,
    )
    return Dataset(info, {name: ResidentSplit(columns) for name, columns in splits.items()}, encoding)


def _labelled(parts: Mapping[str, Sequence[Texts]], conf: TextConf, task: str, reason: str) -> Dataset:
    column = conf.label or "folder"
    # Folders are classes, whatever they are called.
    is_class = task == "token-classification" or (conf.label is None and conf.task == "auto")
    scan = LabelScan(column, "classification" if is_class else conf.task)
    for texts in parts["train"]:
        scan.add(tag_values(texts, column) if task == "token-classification" else texts.labels, texts.where, 0)
    labels = scan.labels()
    if task != "token-classification":
        task = labels.task
    keys = SplitKeys.of(conf.split)
    coded = dict[str, Columns]()
    for split, part in parts.items():
        with read_for(split):
            found = [{**coded_texts(texts, labels, task), **deciding(texts, keys, conf)} for texts in part]
            coded[split] = concatenated(found)
    splits = split_table(coded, keys, conf, task == "classification")
    known = _Known(task, labels.num_classes, labels.class_names, "object", (), reason)
    return _dataset(splits, known, {"task": task, "column": column, **labels.encoding}, labels.targets)


def deciding(texts: Texts, keys: SplitKeys, conf: TextConf) -> Columns:
    """Return what decides the split of each text."""
    if not texts.kept:
        refuse_keys(conf.split, f"the lines of {texts.where}")
    table = pa.table(dict(texts.kept))
    for key, names in keys.names.items():
        check_columns(names, table.schema, texts.where, f"split.{key}")
    return keys.decode(table, texts.where)


def tag_values(texts: Texts, column: str) -> pa.Array:
    """Return the tags of all words one after another.

    Raises:
        DatasetError: A row has more or fewer tags than words, or a word has none; names it.
    """
    tags = texts.labels
    assert tags is not None
    if not (pa.types.is_list(tags.type) or pa.types.is_large_list(tags.type)):
        raise DatasetError(f"{texts.where}: '{column}' is of type {tags.type}; a list of tags per row is needed.")
    for row, (words, count) in enumerate(zip(texts.texts, tags.value_lengths().to_pylist(), strict=True), start=1):
        if len(words) != count:
            raise DatasetError(f"{texts.where}: row {row} has {len(words)} words but {count or 0} tags.")
    flat = tags.flatten()
    missing = pc.is_null(flat)
    if pa.types.is_integer(flat.type):
        missing = pc.or_kleene(missing, pc.equal(flat, IGNORED))
    if pc.any(missing).as_py():
        place = missing.index(True).as_py()
        row = int(np.searchsorted(np.cumsum([len(words) for words in texts.texts]), place, side="right"))
        word = place - sum(len(words) for words in texts.texts[:row])
        raise DatasetError(
            f"{texts.where}: row {row + 1} has no tag for word {word + 1}, {texts.texts[row][word]!r}: '{column}' is "
            f"empty, {IGNORED} or not the number of a class there.",
            "Each word needs a tag: give such words a class for it, or remove them with their tags.",
        )
    return flat


def coded_texts(texts: Texts, labels: Labels, task: str) -> Columns:
    """Return ``x``, (rows,) str or lists of words, and ``y``, (rows,) classes, numbers or int64 arrays of tags."""
    if task == "token-classification":
        flat = labels.encode(tag_values(texts, labels.column), texts.where, 0)
        ends = np.cumsum([len(words) for words in texts.texts])
        y = objects(np.split(flat, ends[:-1]))
    else:
        y = labels.encode(texts.labels, texts.where, 0)
    return {"x": texts.rows(), "y": y}


def _language(parts: Mapping[str, Sequence[Texts]], conf: TextConf, reason: str) -> Dataset:
    refuse_idle(conf, ("seed",), "texts for language modeling are split in order, and the first ones are used")
    refuse_keys(conf.split, "texts for language modeling, which are split in order,")
    if conf.tokenizer == "none":
        all_rows = {split: np.concatenate([texts.rows() for texts in part]) for split, part in parts.items()}
        limited = {split: part[: num_wanted(len(part), conf)] for split, part in all_rows.items()}
        splits = {split: {"x": part, "y": part} for split, part in contiguous(limited, conf).items()}
        known = _Known("language-modeling", None, (), "object", (), reason)
        return _dataset(splits, known, {"task": known.task, "tokenizer": "none"})
    texts = {split: joined_text(part) for split, part in parts.items()}
    tokens = Tokens.of(conf.tokenizer, texts.values())
    coded = contiguous({split: _first(tokens.encode(text), conf) for split, text in texts.items()}, conf)
    for split, part in coded.items():
        if len(part) <= conf.block_size:
            message = (
                f"split '{split}' has {len(part)} tokens: too few for a row of {conf.block_size} and the next one."
            )
            raise DatasetError(message, "Lower dataset.block_size, or add more text.")
    rows = {split: blocks(part, conf.block_size) for split, part in coded.items()}
    known = _Known("language-modeling", tokens.count, tokens.names, "int64", (conf.block_size,), reason)
    return _dataset(rows, known, {"task": known.task, "tokenizer": conf.tokenizer, "characters": tokens.characters})


def _first(tokens: np.ndarray, conf: TextConf) -> np.ndarray:
    """Return the tokens of as many rows as ``limit`` and ``sample`` leave."""
    num_rows = (len(tokens) - 1) // conf.block_size
    wanted = num_wanted(num_rows, conf)
    return tokens if wanted == num_rows else tokens[: wanted * conf.block_size + 1]


def joined_text(texts: Sequence[Texts]) -> str:
    """Return the texts of all files as one: those of plain files as they are, rows of tables on a line each."""
    return "".join(
        part.texts[0] if "file" in part.kept else "".join(f"{_sentence(row)}\n" for row in part.texts) for part in texts
    )


def _sentence(row: Any) -> str:
    return row if isinstance(row, str) else " ".join(row)


def contiguous(parts: Mapping[str, np.ndarray], conf: TextConf) -> dict[str, np.ndarray]:
    """Return the splits: of the train part, its beginning stays train, then comes val, and its end is test.

    With ``split.val`` of 0.1 and n rows or tokens, train are the first ``int(0.9 * n)`` as in nanoGPT.
    """
    taken = shares(conf.split, parts)
    found = {name: part for name, part in parts.items() if name not in taken}
    train = found["train"]
    test, val = taken.get("test") or 0.0, taken.get("val") or 0.0
    ends = int(len(train) * (1 - val - test)), int(len(train) * (1 - test))
    found["train"] = train[: ends[0]]
    found |= {"val": train[ends[0] : ends[1]]} if val else {}
    found |= {"test": train[ends[1] :]} if test else {}
    check_not_empty({name: len(part) for name, part in found.items()}, taken, f"{len(train)} rows")
    return {name: found[name] for name in SPLITS if name in found}


def blocks(tokens: np.ndarray, size: int) -> Columns:
    """Return ``x``, (rows, size), and ``y``, the tokens after them, as views of ``tokens``, (n,) int64."""
    count = (len(tokens) - 1) // size
    return {key: tokens[shift : shift + count * size].reshape(count, size) for key, shift in (("x", 0), ("y", 1))}
