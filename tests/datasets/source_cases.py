"""The table: each kind of data that a source reads, and a row for each key of the source."""

from __future__ import annotations

from source_rows import (
    acts,
    dtype,
    features,
    memory,
    num_classes,
    num_rows,
    order,
    refused,
    rescues,
    shape,
    task,
    train,
    without,
)
from source_tables import (
    BY_TEXT_COLUMN,
    COLUMNS,
    IN_ORDER,
    NO_IMAGES,
    NORMALIZED,
    OF_TABLES,
    PIXELS,
    RESIDENT,
    SHARES,
    SPLIT_OF_TABLES,
    STREAM,
    STREAMED,
    TABLE,
    TABLES,
    Case,
)

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
OF_HUB_TABLE = (
    *LOCAL,
    *NO_IMAGES,
    refused("task", "language-modeling", because=r"dataset\.task"),
    acts("path", "saved-other", on=train),
    refused("input", "c", because=r"dataset\.on_missing"),
)
SHUFFLED = (refused("num_shuffle_rows", 5, because=r"dataset\.num_shuffle_rows"),)
HUGGINGFACE = {
    "huggingface-table": Case(
        "huggingface", {"path": "saved-table", **TABLE, "memory": "resident"}, (*COLUMNS, *RESIDENT, *OF_HUB_TABLE)
    ),
    "huggingface-table-streamed": Case(
        "huggingface", {"path": "saved-table", **TABLE, **STREAM}, (*STREAMED, *OF_HUB_TABLE)
    ),
    "huggingface-texts": Case(
        "huggingface",
        {"path": "saved-texts", "input": "text", "label": "y"},
        (
            refused("task", "ranking", because=r"dataset\.task"),
            acts("memory", "stream", on=memory),
            *SHARES,
            *BY_TEXT_COLUMN,
            *OF_TABLES,
            *SHUFFLED,
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
            acts("memory", "stream", on=memory),
            *NORMALIZED,
            *SPLIT_OF_TABLES,
            *OF_TABLES,
            *SHUFFLED,
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
            acts("memory", "stream", on=memory),
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
            acts("memory", "stream", on=memory),
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
            acts("memory", "stream", on=memory),
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
            refused("memory", "stream", because=r"dataset\.memory"),
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
