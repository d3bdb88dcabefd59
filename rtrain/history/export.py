"""All events of runs as one table, for spreadsheets, pandas and notebooks: CSV or Parquet."""

from __future__ import annotations

import csv
import os
import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from rtrain.errors import ConfigError
from rtrain.history.rows import Row
from rtrain.runs.events import events_file, named_apart, read_events
from rtrain.runs.filesystem.files import named_output, to_json

PLACE = ("run", "path", "step", "epoch", "time")
"""What stands in front of the metrics."""
FORMATS = (".parquet", ".csv")


def export_events(rows: Sequence[Row], output: Path, *, force: bool = False) -> int:
    """Write a table with a row for each event of each run, each step as it was done last; return the number of rows.

    Args:
        rows: Runs and trials; sweeps have no events.
        output: A ``.parquet`` or ``.csv`` file, which is complete or does not exist.
        force: Replace the file if it exists.

    Raises:
        ConfigError: The file exists, or has another ending.
        RtrainError: It can't be written.
    """
    if output.suffix not in FORMATS:
        raise ConfigError(
            f"{output}: events can be written only as Parquet or CSV.",
            f"Use a file name that ends in {' or '.join(FORMATS)}.",
        )
    if output.exists() and not force:
        raise ConfigError(f"{output} exists.", "To replace it: --force")
    runs = [row for row in rows if row.kind != "sweep"]
    metrics = sorted({name for row in runs for entry in _entries(row) for name in entry[1]})
    values = sorted({name for row in runs for entry in _entries(row) for name in entry[2]})
    tables = (_table(row, metrics, values) for row in runs)
    write = _write_parquet if output.suffix == ".parquet" else _write_csv
    with named_output(output), _replacing(output) as temporary:
        return write(tables, temporary, metrics, values)


def _entries(row: Row) -> Iterator[tuple[dict[str, Any], Mapping[str, Any], Mapping[str, Any]]]:
    """Yield place, metrics and other values of each event; none of a run whose events can't be read."""
    try:
        for event in read_events(events_file(row.path)):
            place = {"run": row.id, "path": row.place, "step": event.step, "epoch": event.epoch, "time": event.time}
            yield place, named_apart(event.metrics, PLACE), named_apart(event.values, PLACE)
    except (OSError, ConfigError):
        return


def _table(row: Row, metrics: Sequence[str], values: Sequence[str]) -> list[dict[str, Any]]:
    return [
        {
            **place,
            **{name: numbers.get(name) for name in metrics},
            **{_text_column(name, metrics): to_json(others[name]) if name in others else None for name in values},
        }
        for place, numbers, others in _entries(row)
    ]


@contextmanager
def _replacing(output: Path) -> Iterator[Path]:
    """Give the path of a file that takes the place of ``output`` if the block ends well."""
    temporary = output.with_name(f".{output.name}.{os.getpid()}-{secrets.token_hex(3)}.tmp")
    try:
        yield temporary
        temporary.replace(output)
    finally:
        temporary.unlink(missing_ok=True)


def _write_csv(
    tables: Iterator[list[dict[str, Any]]], path: Path, metrics: Sequence[str], values: Sequence[str]
) -> int:
    count = 0
    with path.open("x", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, _columns(metrics, values))
        writer.writeheader()
        for table in tables:
            writer.writerows(table)
            count += len(table)
    return count


def _write_parquet(
    tables: Iterator[list[dict[str, Any]]], path: Path, metrics: Sequence[str], values: Sequence[str]
) -> int:
    kinds = {"step": pa.int64(), "epoch": pa.int64(), **dict.fromkeys(metrics, pa.float64())}
    schema = pa.schema([(name, kinds.get(name, pa.string())) for name in _columns(metrics, values)])
    count = 0
    with pq.ParquetWriter(path, schema) as writer:
        for table in tables:
            writer.write_table(pa.Table.from_pylist(table, schema))
            count += len(table)
    return count


def _columns(metrics: Sequence[str], values: Sequence[str]) -> list[str]:
    return [*PLACE, *metrics, *(_text_column(name, metrics) for name in values)]


def _text_column(name: str, metrics: Sequence[str]) -> str:
    """Return the column of texts and lists; a metric of other reports may have the same name."""
    return f"{name}/text" if name in metrics else name
