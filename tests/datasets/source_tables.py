"""Rows that several sources share in the table of keys, and the cases of tables in files and databases."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from source_rows import (
    Row,
    acts,
    categories,
    dtype,
    features,
    kept,
    memory,
    num_rows,
    order,
    refused,
    rescues,
    roles,
    scale,
    shape,
    shown,
    task,
    train,
    without,
)


@dataclass(frozen=True)
class Case:
    """A kind of data."""

    source: str
    keys: Mapping[str, Any]
    """What both datasets of each row have."""
    rows: tuple[Row, ...]


STREAM = {"memory": "stream"}
NUMBERS = {"features": ["a", "b"]}
"""A column that decides splits is no feature unless listed as one: so that rows differ by their split only."""

SHARES = (
    acts("split.val", 0.2, on=num_rows),
    acts("split.test", 0.4, on=num_rows),
    acts("seed", 1, on=train),
    acts("sample", 0.5, on=num_rows),
    acts("limit", 10, on=num_rows),
)
NORMALIZED = (*SHARES, acts("normalize", False, on=scale))
IN_ORDER = (
    *without(SHARES, "seed"),
    refused("seed", 1, because=r"dataset\.seed"),
)
"""A language is cut in its order."""

BY_COLUMN = (
    acts("split.by_group", "g", on=train, **NUMBERS),
    acts("split.by_time", "t", on=train, **NUMBERS),
    acts("split.by_hash", "id", on=train, **NUMBERS),
    acts("split.by_column", "s", on=train, **NUMBERS),
)
BY_TEXT_COLUMN = (
    acts("split.by_group", "z", on=train),
    acts("split.by_time", "z", on=train),
    acts("split.by_hash", "other", on=train),
    acts("split.by_column", {"column": "z", "test": [1]}, on=train),
)
SEEN = shown("tests/prediction/test_unseen_categories.py::test_the_largest_share_is_a_key", "max_unseen")
TABLE = {"label": "y", "on_missing": "keep"}
COLUMNS = (
    *NORMALIZED,
    *BY_COLUMN,
    *SEEN,
    acts("label", "z", on=task),
    acts("features", ["a"], on=features),
    acts("drop", ["b"], on=features),
    acts("categorical", ["c", "s", "g"], on=categories),
    acts("ids", ["id"], on=kept, **NUMBERS),
    acts("weight", "w", on=roles),
    acts("group", "h", on=train, task="ranking", **{**NUMBERS, "group": "g"}),
    acts("base_margin", ["w"], on=roles),
    acts("dtype", "float64", on=dtype),
    acts("dtypes", {"g": "category"}, on=categories),
    acts("task", "regression", on=task),
    acts("preprocessors", [{"type": "StandardScaler", "columns": ["a"]}], on=train),
    acts("na_values", ["red"], on=categories),
    acts("on_missing", "mean", on=train),
)
RESIDENT = (acts("memory", "stream", on=memory),)
STREAMED = (
    *without(COLUMNS, "group"),
    refused("group", "g", because=r"dataset\.group", task="regression"),
    acts("memory", "resident", on=memory),
    acts("num_shuffle_rows", 2, on=order),
)

OF_TABLES = (
    *(refused(key, "a", because=rf"dataset\.{key}") for key in ("weight", "group")),
    *(refused(key, ["a"], because=rf"dataset\.{key}") for key in ("drop", "categorical", "ids", "base_margin")),
    refused("dtype", "float64", because=r"dataset\.dtype"),
    refused("dtypes", {"a": "category"}, because=r"dataset\.dtypes"),
    refused("preprocessors", [{"type": "StandardScaler", "columns": ["a"]}], because=r"dataset\.preprocessors"),
    refused("on_missing", "mean", because=r"dataset\.on_missing"),
    refused("na_values", ["?"], because=r"dataset\.na_values"),
    refused("max_unseen", 0.5, because=r"dataset\.max_unseen"),
)
SPLIT_OF_TABLES = tuple(
    refused(f"split.{key}", "g", because=rf"dataset\.split\.{key}")
    for key in ("by_group", "by_time", "by_hash", "by_column")
)
NO_IMAGES = (
    refused("image_size", [4, 5], because=r"dataset\.image_size"),
    refused("channels", 1, because=r"dataset\.channels"),
)
PIXELS = (acts("image_size", [4, 5], on=shape), acts("channels", 1, on=shape))


def files(ending: str, *more: Row) -> dict[str, Case]:
    """Return the cases of a table in files."""
    keys = {"path": f"table.{ending}", **TABLE}
    path = acts("path", f"other.{ending}", on=train)
    source = {"jsonl": "json"}.get(ending, ending)
    return {
        source: Case(source, {**keys, "memory": "resident"}, (*COLUMNS, *RESIDENT, path, *more)),
        f"{source}-streamed": Case(source, {**keys, **STREAM}, (*STREAMED, path, *more)),
    }


TABLES = {
    **files(
        "csv",
        refused("delimiter", ";", because=r"dataset\.delimiter"),
        refused("names", ["one", "two"], because=r"dataset\.names"),
        *shown("tests/datasets/tables/test_na_values.py::test_the_usual_marks_can_be_texts", "keep_default_na"),
        *shown(
            "tests/datasets/sources/test_csv_blanks.py::test_blanks_around_values_and_names_are_left_out",
            "skipinitialspace",
        ),
        *shown("tests/datasets/sources/test_csv_decimal.py::test_commas_before_fractions", "decimal"),
    ),
    **files("jsonl"),
    **files("parquet", rescues("on_error", "skip", because=r"b\.parquet", path="broken")),
    "delta": Case(
        "delta",
        {"path": "delta", **TABLE},
        (
            *COLUMNS,
            acts("path", "delta-other", on=train),
            acts("version", 0, on=num_rows),
            *shown("tests/datasets/sources/test_delta.py::test_options_reach_the_object_store", "storage_options"),
        ),
    ),
    "sql": Case(
        "sql",
        {"url": "sqlite:///table.db", "query": "rows", **TABLE},
        (
            *COLUMNS,
            acts("url", "sqlite:///other.db", on=train),
            acts("query", "SELECT * FROM rows WHERE id < 1040", on=num_rows),
            acts(
                "arguments",
                {"most": 1040},
                on=num_rows,
                query="SELECT * FROM rows WHERE id < :most",
                **{"arguments": {"most": 1030}},
            ),
        ),
    ),
}
