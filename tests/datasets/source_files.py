"""The files that the table of keys reads, of each kind that a source may read; all are written within a second."""

from __future__ import annotations

import io
import json
import sqlite3
from pathlib import Path

import datasets
import deltalake
import numpy as np
import pyarrow as pa
from PIL import Image
from pyarrow import csv, parquet
from record_files import DIGITS, example, npy, png, write_records, write_shard
from test_mnist import write_all

ROWS = 60
PICTURES = {"image": 0, "later": 60}
"""Columns of images, and the digit that each begins with."""


def table(shift=0):
    """Numbers, a category, a column with a missing value, and what decides splits and queries."""
    number = np.arange(ROWS)
    rng = np.random.default_rng(shift)
    missing = [None if row == 7 else float(row % 9) for row in number]
    return pa.table(
        {
            "id": number + 1000,
            "a": rng.normal(size=ROWS),
            "b": rng.normal(size=ROWS) + 5,
            "c": np.where(number % 3, "red", "blue"),
            "m": missing,
            "y": number % 4,
            "z": number % 5 / 2 + 0.1,
            "g": number // 6,
            "h": number // 10,
            "t": (number * 7) % ROWS,
            "w": number % 3 + 1.0,
            "s": np.where(number % 5, "train", "test"),
        }
    )


def write_files(folder: Path) -> None:
    """Write all of them."""
    for name, one in {"table": table(), "other": table(1)}.items():
        csv.write_csv(one, folder / f"{name}.csv")
        parquet.write_table(one, folder / f"{name}.parquet")
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in one.to_pylist()))
        write_database(folder / f"{name}.db", one)
    (folder / "broken").mkdir()
    parquet.write_table(table(), folder / "broken" / "a.parquet")
    (folder / "broken" / "b.parquet").write_bytes(b"nothing")
    for name, shift in {"delta": 0, "delta-other": 1}.items():
        for first in (0, 40):
            deltalake.write_deltalake(str(folder / name), table(shift).slice(first, 40 - first // 2), mode="append")
    write_texts(folder)
    write_images(folder)
    write_saved(folder)
    write_arrays(folder)
    for name, more in {"mnist": 0, "mnist-other": 1}.items():
        pixels = np.random.default_rng(more).integers(0, 255, (60, 28, 28), dtype=np.uint8)
        write_all(folder / name, {"train": pixels, "t10k": pixels[:20]})


def write_database(file: Path, one: pa.Table) -> None:
    """Write the rows as the table ``rows``."""
    with sqlite3.connect(file) as database:
        database.execute(f"CREATE TABLE rows ({', '.join(one.column_names)})")
        places = ", ".join("?" * one.num_columns)
        database.executemany(f"INSERT INTO rows VALUES ({places})", [tuple(row.values()) for row in one.to_pylist()])
    database.close()


def write_texts(folder: Path) -> None:
    """Write a table of texts, folders of them, and texts without columns."""
    rows = [f"{row},{'good' if row % 2 else 'bad'} film {row},text {row},{row % 2},{row % 3}\n" for row in range(ROWS)]
    (folder / "texts.csv").write_text("id,text,other,y,z\n" + "".join(rows))
    for split in ("train", "test"):
        for kind in ("good", "bad"):
            (folder / "classes" / split / kind).mkdir(parents=True)
            for number in range(5):
                (folder / "classes" / split / kind / f"{number}.txt").write_text(f"{kind} {number}\nmore\n")
    for name in ("plain", "more"):
        (folder / f"{name}.txt").write_text("".join(f"{name} line {row}\n" for row in range(ROWS)))


def write_images(folder: Path) -> None:
    """Write a folder per class, and the same with a file that is no image."""
    for place in ("images", "spoilt"):
        for row in range(ROWS):
            file = folder / place / f"digit-{DIGITS.target[row]}" / f"{row:03}.png"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(png(row))
    (folder / "spoilt" / "digit-0" / "broken.png").write_bytes(b"nothing")


def write_saved(folder: Path) -> None:
    """Write what ``save_to_disk`` of datasets writes: tables, texts and images."""
    texts = {**csv.read_csv(folder / "texts.csv").to_pydict()}
    images = {
        **{name: [Image.open(io.BytesIO(png(row + more))) for row in range(ROWS)] for name, more in PICTURES.items()},
        "y": (DIGITS.target[:ROWS] % 4).tolist(),
        "z": (DIGITS.target[:ROWS] % 3).tolist(),
    }
    for name, columns in {"table": table(), "other": table(1), "texts": texts, "images": images}.items():
        given = columns.to_pydict() if isinstance(columns, pa.Table) else columns
        datasets.Dataset.from_dict(given).save_to_disk(str(folder / f"saved-{name}"))


def write_arrays(folder: Path) -> None:
    """Write arrays, records and shards of them, and sparse and dense lines of numbers."""
    x, y = DIGITS.data[:ROWS].astype("float32"), DIGITS.target[:ROWS] % 4
    arrays = {"x": x, "y": y, "u": x + 1, "v": y / 2 + 0.1}
    for place, more in {"arrays": 0, "other": 9}.items():
        np.savez(folder / f"{place}.npz", **{**arrays, "x": x + more})
        (folder / place).mkdir()
        for name, values in arrays.items():
            np.save(folder / place / f"{name}.npy", values + more * (name == "x"))
    numbers = [
        example(a=x[row, :4].tolist(), b=x[row, 4:8].tolist(), y=[int(y[row])], z=[int(row % 3)]) for row in range(ROWS)
    ]
    write_records(folder / "numbers.tfrecord", numbers)
    write_records(folder / "other.tfrecord", numbers[::-1])
    pictures = [
        example(image=[png(row)], later=[png(row + 60)], y=[int(y[row])], z=[int(row % 3)]) for row in range(ROWS)
    ]
    write_records(folder / "images.tfrecord", pictures)
    for name, endings in {
        "images": ("png", "later.png", "cls", "json"),
        "arrays": ("npy", "u.npy", "cls", "json"),
    }.items():
        members = [(f"{row}.{one}", member(one, row, x, y)) for row in range(ROWS) for one in endings]
        write_shard(folder / f"{name}.tar", members)
    sparse = [f"{y[row]} 1:{row % 3} 3:{row % 7} 5:{row}\n" for row in range(ROWS)]
    (folder / "sparse.libsvm").write_text("".join(sparse))
    (folder / "dense.tsv").write_text("".join(f"{y[row]}\t{row}\t{row % 7}\n" for row in range(ROWS)))


def member(ending, row, x, y):
    """Return the content of a file in a shard."""
    values = {"npy": npy(x[row]), "u.npy": npy(x[row] + 1), "json": json.dumps({"z": int(row % 3)}).encode()}
    if ending.endswith("png"):
        return png(row + PICTURES["image" if ending == "png" else "later"])
    return values.get(ending, str(y[row]).encode())
