"""Texts of files in Arrow files, from where they can be mapped into memory: each machine writes them once."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from itertools import groupby
from pathlib import Path

import numpy as np
import pyarrow as pa

from rtrain.datasets.files import files_fingerprint
from rtrain.datasets.on_disk.arrow_column import ArrowColumn, mapped_table
from rtrain.datasets.on_disk.made_once import identity, made_once, not_written
from rtrain.datasets.splitting.by_column import SplitKeys
from rtrain.datasets.splitting.left_out import read_for
from rtrain.datasets.texts.conf import TextConf
from rtrain.datasets.texts.mapped import TextFiles
from rtrain.datasets.texts.read import Texts

VERSION = 1
"""Of what is written; raise it with every change of what is made of the same files."""
TEXT, LABEL, KEPT = "text", "label", "kept:"
"""Columns; the name of another one follows on ``KEPT``."""
SOURCES = "sources.json"
"""For messages: the files that were read, and how many rows each gave."""

CHUNK_ROWS = 1_000
"""Rows that a piece of a file has, and that are written at a time."""

Read = Callable[[Path], Iterator[Texts]]


def written_texts(files: Mapping[str, Sequence[Path]], conf: TextConf, read: Read) -> dict[str, TextFiles]:
    """Return the texts of files by split, after each other.

    Args:
        files: By split.
        conf: Its columns decide what is kept of tables.
        read: Yields the texts of a file, some at a time.

    Raises:
        DatasetError: A file can't be read, or Arrow files can't be written.
    """
    every, columns = [file for part in files.values() for file in part], SplitKeys.of(conf.split).columns
    asked = [str(conf.path), conf.text, conf.label, conf.each, conf.task, columns]
    of = [VERSION, {split: [str(file) for file in part] for split, part in files.items()}, asked]
    name = sha256(f"{json.dumps(of)} {identity(every)}".encode()).hexdigest()[:32]

    def write(folder: Path) -> None:
        for split, part in files.items():
            with read_for(split):
                _write(folder / split, (texts for file in part for texts in read(file)), columns)

    try:
        folder = made_once("texts", name, write)
    except OSError as error:
        raise not_written("texts", error) from error
    return {split: _opened(folder / split, files_fingerprint(files[split]), name) for split in files}


def _write(folder: Path, every: Iterable[Texts], columns: Sequence[str]) -> None:
    """Write texts, in their order; another file begins where a column has another type, as it may in CSV files."""
    sources: list[tuple[str, int]] = []

    def tables() -> Iterator[pa.Table]:
        for texts in every:
            if len(texts.texts):
                sources.append((texts.where, len(texts.texts)))
                yield _table(texts, columns)

    folder.mkdir()
    for number, (schema, alike) in enumerate(groupby(tables(), key=lambda table: table.schema)):
        with pa.ipc.new_stream(str(folder / f"{number:06}.arrow"), schema) as writer:
            for part in _large(alike):
                writer.write_table(part, max_chunksize=CHUNK_ROWS)
    (folder / SOURCES).write_text(json.dumps(sources))


def _table(texts: Texts, columns: Sequence[str]) -> pa.Table:
    kept = {f"{KEPT}{name}": values for name, values in texts.kept.items() if name in columns}
    labels = {} if texts.labels is None else {LABEL: texts.labels}
    return pa.table({TEXT: pa.array(texts.texts, pa.large_string()), **labels, **kept})


def _large(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """Yield the rows of tables, which may have a single one each, at least ``CHUNK_ROWS`` at a time."""
    some: list[pa.Table] = []
    count = 0
    for table in tables:
        some.append(table)
        count += table.num_rows
        if count >= CHUNK_ROWS:
            yield pa.concat_tables(some).combine_chunks()
            some, count = [], 0
    if some:
        yield pa.concat_tables(some).combine_chunks()


def _opened(folder: Path, fingerprint: str, identity: str) -> TextFiles:
    files, texts, first = sorted(map(str, folder.glob("*.arrow"))), [], 0
    sources = iter(json.loads((folder / SOURCES).read_text()))
    for file in files:
        rest = mapped_table(file)
        while rest.num_rows:
            where, count = next(sources)
            part, rest = rest.slice(0, count), rest.slice(count)
            labels = part[LABEL].combine_chunks() if LABEL in part.column_names else None
            kept = {name.removeprefix(KEPT): part[name] for name in part.column_names if name.startswith(KEPT)}
            texts.append(Texts(where, np.arange(first, first + count), labels, kept))
            first += count
    return TextFiles(ArrowColumn(tuple(files), TEXT), texts, fingerprint, identity)
