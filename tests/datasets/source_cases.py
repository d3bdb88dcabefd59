"""The table: each kind of data that a source reads, and a row for each key of the source."""

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
    num_classes,
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
SEEN = shown("tests/test_unseen_categories.py::test_the_largest_share_is_a_key", "max_unseen")
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
    **files("csv", refused("delimiter", ";", because=r"dataset\.delimiter")),
    **files("jsonl"),
    **files("parquet", rescues("on_error", "skip", because=r"b\.parquet", path="broken")),
    "delta": Case(
        "delta",
        {"path": "delta", **TABLE},
        (
            *COLUMNS,
            acts("path", "delta-other", on=train),
            acts("version", 0, on=num_rows),
            *shown("tests/datasets/test_delta.py::test_options_reach_the_object_store", "storage_options"),
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
PYTHON = {
    "python-table": Case(
        "python",
        {"function": "source_functions:rows", **TABLE},
        (
            refused("task", "language-modeling", because=r"dataset\.task"),
            *COLUMNS,
            acts("function", "source_functions:other_rows", on=train),
            acts("arguments", {"shift": 1}, on=train),
            refused("text", "c", because=r"dataset\.on_missing"),
        ),
    ),
    "python-arrays": Case(
        "python",
        {"function": "source_functions:arrays"},
        (
            refused("task", "token-classification", because=r"dataset\.task"),
            *NORMALIZED,
            *OF_TABLES,
            *SPLIT_OF_TABLES,
            refused("features", ["a"], because=r"dataset\.features"),
            refused("text", "x", because=r"dataset\.text"),
            acts("function", "source_functions:other_arrays", on=train),
            acts("arguments", {"shift": 1}, on=train),
            acts("label", "z", on=num_classes),
            acts("task", "regression", on=task),
        ),
    ),
    "python-texts": Case(
        "python",
        {"function": "source_functions:texts", "text": "text"},
        (
            refused("task", "ranking", because=r"dataset\.task"),
            *SHARES,
            *BY_TEXT_COLUMN,
            *OF_TABLES,
            refused("features", ["a"], because=r"dataset\.features"),
            refused("normalize", False, because=r"dataset\.normalize"),
            acts("function", "source_functions:other_texts", on=train),
            acts("arguments", {"shift": 1}, on=train),
            acts("text", "other", on=train),
            acts("label", "z", on=num_classes),
            acts("task", "regression", on=task),
        ),
    ),
}
LOCAL = (
    refused("subset", "some", because=r"dataset\.subset"),
    refused("revision", "some", because=r"dataset\.revision"),
)
HUGGINGFACE = {
    "huggingface-table": Case(
        "huggingface",
        {"path": "saved-table", **TABLE},
        (
            refused("task", "language-modeling", because=r"dataset\.task"),
            *COLUMNS,
            *LOCAL,
            *NO_IMAGES,
            acts("path", "saved-other", on=train),
            refused("input", "c", because=r"dataset\.on_missing"),
        ),
    ),
    "huggingface-texts": Case(
        "huggingface",
        {"path": "saved-texts", "input": "text", "label": "y"},
        (
            refused("task", "ranking", because=r"dataset\.task"),
            *SHARES,
            *BY_TEXT_COLUMN,
            *OF_TABLES,
            *LOCAL,
            *NO_IMAGES,
            refused("features", ["a"], because=r"dataset\.features"),
            refused("normalize", False, because=r"dataset\.normalize"),
            refused("path", "saved-other", because="text"),
            acts("input", "other", on=train),
            acts("label", "z", on=num_classes),
            acts("task", "regression", on=task),
        ),
    ),
    "huggingface-images": Case(
        "huggingface",
        {"path": "saved-images", "input": "image", "label": "y"},
        (
            refused("task", "token-classification", because=r"dataset\.task"),
            *NORMALIZED,
            *SPLIT_OF_TABLES,
            *OF_TABLES,
            *LOCAL,
            *PIXELS,
            refused("features", ["a"], because=r"dataset\.features"),
            refused("path", "saved-other", because="image"),
            acts("input", "later", on=train),
            acts("label", "z", on=num_classes),
            acts("task", "regression", on=task),
        ),
    ),
}
TEXTS = {
    "text-table": Case(
        "text",
        {"path": "texts.csv", "label": "y"},
        (
            *SHARES,
            *BY_TEXT_COLUMN,
            refused("path", "plain.txt", because=r"dataset\.label"),
            acts("task", "regression", on=task),
            acts("text", "other", on=train),
            acts("label", "z", on=num_classes),
            refused("each", "file", because=r"dataset\.each"),
            refused("tokenizer", "bytes", because=r"dataset\.tokenizer", task="classification"),
        ),
    ),
    "text-classes": Case(
        "text",
        {"path": "classes"},
        (
            *without(SHARES, "split.test", "limit", "seed"),
            acts("split.test", 0, on=num_rows),
            acts("limit", 4, on=num_rows),
            acts("seed", 3, on=train, sample=0.5),
            *SPLIT_OF_TABLES,
            refused("path", "plain.txt", because="labels", task="classification"),
            acts("task", "language-modeling", on=task),
            refused("text", "other", because=r"dataset\.text"),
            refused("label", "y", because=r"dataset\.label"),
            acts("each", "line", on=num_rows),
            acts("tokenizer", "characters", on=dtype, block_size=4),
        ),
    ),
    "text-language": Case(
        "text",
        {"path": "plain.txt"},
        (
            *IN_ORDER,
            *SPLIT_OF_TABLES,
            acts("path", "more.txt", on=train),
            refused("task", "classification", because=r"dataset\.task"),
            refused("text", "other", because=r"dataset\.text"),
            refused("label", "y", because=r"dataset\.label"),
            acts("each", "file", on=train, path="classes", task="language-modeling"),
            acts("tokenizer", "characters", on=dtype),
        ),
    ),
    "text-tokens": Case(
        "text",
        {"path": "plain.txt", "tokenizer": "characters", "block_size": 16},
        (
            *IN_ORDER,
            *SPLIT_OF_TABLES,
            acts("path", "more.txt", on=train),
            refused("task", "classification", because=r"dataset\.task|dataset\.tokenizer"),
            refused("text", "other", because=r"dataset\.text"),
            refused("label", "y", because=r"dataset\.label"),
            acts("tokenizer", "bytes", on=num_classes),
            acts("block_size", 8, on=shape),
        ),
    ),
}
IMAGES = (
    *NORMALIZED,
    *PIXELS,
    refused("path", "table.csv", because=r"dataset\.path"),
    rescues("on_error", "skip", because=r"broken\.png", path="spoilt"),
)
ARRAYS = (*NORMALIZED, acts("task", "regression", on=task))
RECORDS = {
    "images": Case("images", {"path": "images", "memory": "resident"}, (*IMAGES, *RESIDENT)),
    "images-streamed": Case("images", {"path": "images", **STREAM}, (*IMAGES, acts("memory", "resident", on=memory))),
    "numpy": Case(
        "numpy",
        {"path": "arrays.npz"},
        (
            *ARRAYS,
            acts("path", "other.npz", on=train),
            acts("x", "u", on=train),
            acts("y", "v", on=task),
            refused("memory", "stream", because=r"dataset\.memory"),
        ),
    ),
    "numpy-mapped": Case(
        "numpy",
        {"path": "arrays", **STREAM},
        (
            *ARRAYS,
            acts("path", "other", on=order),
            acts("x", "u", on=order),
            acts("y", "v", on=task),
            acts("memory", "resident", on=memory),
        ),
    ),
    "tfrecord": Case(
        "tfrecord",
        {"path": "numbers.tfrecord", "label": "y", "features": ["a", "b"]},
        (
            *ARRAYS,
            *NO_IMAGES,
            acts("path", "other.tfrecord", on=train),
            acts("label", "z", on=num_classes),
            acts("features", ["a"], on=features),
            acts("shape", [2, 2, 2], on=shape),
        ),
    ),
    "tfrecord-images": Case(
        "tfrecord",
        {"path": "images.tfrecord", "label": "y", "features": ["image"]},
        (
            *ARRAYS,
            *PIXELS,
            refused("path", "numbers.tfrecord", because=r"dataset\.features"),
            acts("label", "z", on=num_classes),
            acts("features", ["later"], on=train),
            refused("shape", [3, 8, 8], because=r"dataset\.shape"),
        ),
    ),
    "webdataset": Case(
        "webdataset",
        {"path": "images.tar"},
        (
            *ARRAYS,
            *PIXELS,
            acts("path", "arrays.tar", on=shape),
            acts("input", "later.png", on=train),
            acts("label", "json.z", on=num_classes),
        ),
    ),
    "webdataset-arrays": Case(
        "webdataset",
        {"path": "arrays.tar"},
        (
            *ARRAYS,
            *NO_IMAGES,
            acts("path", "images.tar", on=shape),
            refused("input", "png", because=r"has no png"),
            acts("label", "json.z", on=num_classes),
        ),
    ),
    "libsvm": Case(
        "libsvm",
        {"path": "sparse.libsvm"},
        (
            *ARRAYS,
            acts("path", "dense.tsv", on=shape),
            acts("absent", "missing", on=train),
            acts("num_features", 9, on=shape),
            acts("first_column", "0", on=shape),
        ),
    ),
    "libsvm-dense": Case(
        "libsvm",
        {"path": "dense.tsv"},
        (
            *ARRAYS,
            acts("path", "sparse.libsvm", on=shape),
            refused("absent", "missing", because=r"dataset\.absent"),
            refused("num_features", 9, because=r"dataset\.num_features"),
            refused("first_column", "0", because=r"dataset\.first_column"),
        ),
    ),
}
BUILT_IN = {
    "mnist": Case(
        "mnist",
        {"path": "mnist", "split.val": 0.1},
        (
            *without(NORMALIZED, "split.test"),
            acts("path", "mnist-other", on=train),
            acts("split.test", 0, on=num_rows),
        ),
    ),
    "digits": Case("digits", {"sample": 0.1}, (*NORMALIZED, acts("dtype", "uint8", on=dtype))),
    "sklearn": Case(
        "sklearn",
        {"name": "iris"},
        (
            *ARRAYS,
            acts("name", "wine", on=shape),
            refused("arguments", {"n_samples": 10}, because=r"dataset\.arguments"),
            acts("target", "Pulse", on=train, name="linnerud", **{"target": "Waist"}),
        ),
    ),
    "sklearn-made": Case(
        "sklearn",
        {"name": "make_moons"},
        (
            *ARRAYS,
            acts("name", "make_circles", on=train),
            acts("arguments", {"n_samples": 40}, on=num_rows),
            refused("target", "y", because=r"dataset\.target"),
        ),
    ),
    "synthetic": Case(
        "synthetic",
        {"num_rows": 80},
        (
            *NORMALIZED,
            acts("task", "regression", on=task),
            acts("shape", [3], on=shape),
            acts("num_classes", 3, on=num_classes),
            acts("num_rows", 40, on=num_rows),
            acts("noise", 0.5, on=train),
        ),
    ),
    "synthetic-regression": Case(
        "synthetic",
        {"num_rows": 80, "task": "regression"},
        (
            *NORMALIZED,
            acts("task", "classification", on=task),
            acts("shape", [3], on=shape),
            acts("num_rows", 40, on=num_rows),
            acts("noise", 0.5, on=train),
        ),
    ),
}
CASES = {**TABLES, **PYTHON, **HUGGINGFACE, **TEXTS, **RECORDS, **BUILT_IN}
