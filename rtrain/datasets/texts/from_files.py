"""Texts of files: plain ones and tables, in memory or on disk."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow as pa

from rtrain.config.files.home import expanded
from rtrain.datasets.base import Dataset
from rtrain.datasets.class_folders import class_folders
from rtrain.datasets.files import SPLIT_NAMES, files_below, files_by_split, is_data_file, local
from rtrain.datasets.memory import choose_memory
from rtrain.datasets.splitting.by_column import SplitKeys
from rtrain.datasets.splitting.left_out import or_leave_out, read_each
from rtrain.datasets.texts.conf import TextConf
from rtrain.datasets.texts.load import BYTES_PER_BYTE, deciding, texts_dataset
from rtrain.datasets.texts.mapped import load_mapped_texts
from rtrain.datasets.texts.read import PLAIN, TABLES, Texts, has_words, is_table, read_lines, read_plain, read_table
from rtrain.datasets.texts.written import written_texts
from rtrain.datasets.without_effect import refuse_idle
from rtrain.errors import DatasetError


def load_text(conf: TextConf) -> Dataset:
    """Return the dataset that ``conf`` describes.

    Raises:
        DatasetError: Something is missing, unreadable or unusable; names the file, row or column.
    """
    conf = replace(conf, path=local(conf.path, (*PLAIN, *TABLES), conf.split))
    files = _files(conf)
    _check_keys([file for part in files.values() for file in part], conf)
    size = sum(file.stat().st_size for part in files.values() for file in part) * BYTES_PER_BYTE[conf.tokenizer]
    choice = choose_memory(conf.memory, size, _why_resident(files["train"][0], conf))
    if choice.memory == "stream":
        return _on_disk(files, conf, choice.reason)
    parts = read_each(files, lambda part: [_read(file, conf) for file in part])
    _check_some_text({split: sum(len(texts.texts) for texts in part) for split, part in parts.items()}, files)
    return texts_dataset(parts, conf, choice.reason)


def _why_resident(file: Path, conf: TextConf) -> str:
    """Return why texts have to be held in memory; an empty string if they may stay on disk."""
    if conf.tokenizer != "none":
        return f"dataset.tokenizer={conf.tokenizer} holds all tokens in memory"
    if is_table(file) and has_words(file, conf.text):
        return f"'{conf.text}' has lists of words, which are held in memory"
    return ""


def _on_disk(files: Mapping[str, Sequence[Path]], conf: TextConf, reason: str) -> Dataset:
    keys = SplitKeys.of(conf.split)

    def read(file: Path) -> Iterator[Texts]:
        lines = not is_table(file) and not _are_class_folders(conf) and conf.each != "file" and conf.label is None
        for texts in read_lines(file) if lines else [_read(file, conf)]:
            if conf.label is not None:
                deciding(texts, keys, conf)  # names the file of a value that can't be used
            yield texts

    parts = written_texts(files, conf, read)
    _check_some_text({split: sum(len(one.texts) for one in part.texts) for split, part in parts.items()}, files)
    return load_mapped_texts("text", parts, conf, reason)


def _check_some_text(num_rows: Mapping[str, int], files: Mapping[str, Sequence[Path]]) -> None:
    for split, count in num_rows.items():
        if not count:
            place = files[split][0] if files[split] else split
            message = f"{place}: there is no text for the split '{split}'."
            raise or_leave_out(split, DatasetError(message, "Check dataset.path."))


def _check_keys(files: Sequence[Path], conf: TextConf) -> None:
    """Refuse keys of tables where there are plain texts alone, and the other way round."""
    if not any(is_table(file) for file in files):
        refuse_idle(conf, ("text",), f"{files[0]} is a plain text without columns")
    elif all(is_table(file) for file in files):
        refuse_idle(conf, ("each",), f"{files[0]} is a table, which has a text per row")


def has_class_folders(path: Path) -> bool:
    """Return whether two or more folders, not counting those of splits, each hold the texts of one class."""
    if not path.is_dir():
        return False
    names = [one.name for one in path.iterdir() if one.is_dir() and not one.name.startswith((".", "_"))]
    if any(name in SPLIT_NAMES for name in names):
        return any(has_class_folders(path / name) for name in names if SPLIT_NAMES.get(name) == "train")
    return len(names) > 1 and not any(one.is_file() and one.name.endswith((*PLAIN, *TABLES)) for one in path.iterdir())


def _files(conf: TextConf) -> dict[str, list[Path]]:
    """Return the files of each split; in folders of classes, class after class."""
    if not _are_class_folders(conf):
        return files_by_split(conf.path, (*PLAIN, *TABLES), conf.split)
    folders = class_folders(expanded(str(conf.path)), conf.split)
    return {split: [file for one in classes.values() for file in _plain(one)] for split, classes in folders.items()}


def _are_class_folders(conf: TextConf) -> bool:
    """Return whether the folder of a text is its class: where that is asked for, or nothing speaks against it."""
    if conf.label is not None or conf.tokenizer != "none" or not isinstance(conf.path, str):
        return False
    folder = expanded(conf.path)
    return folder.is_dir() if conf.task == "classification" else conf.task == "auto" and has_class_folders(folder)


def _plain(folder: Path) -> list[Path]:
    files = [file for file in files_below(folder) if file.name.lower().endswith(PLAIN) and is_data_file(file)]
    if not files:
        message = f"{folder}: the class folder contains no {' or '.join(PLAIN[:2])} file."
        raise DatasetError(message, "Remove the folder, or put texts there.")
    return sorted(files)


def _read(file: Path, conf: TextConf) -> Texts:
    if is_table(file):
        return read_table(file, conf.text, conf.label)
    if conf.label is not None:
        message = f"dataset.label names '{conf.label}', but {file} is a plain text without columns."
        raise DatasetError(
            message, "Use csv, tsv, jsonl or parquet files, or a folder per class without dataset.label."
        )
    if conf.tokenizer != "none":
        return read_plain(file, "file")
    if _are_class_folders(conf):
        texts = read_plain(file, "line" if conf.each == "line" else "file")
        parts = file.relative_to(expanded(str(conf.path))).parts
        name = parts[1] if parts[0] in SPLIT_NAMES else parts[0]
        return Texts(texts.where, texts.texts, pa.array([name] * len(texts.texts)), texts.kept)
    return read_plain(file, "file" if conf.each == "file" else "line")
