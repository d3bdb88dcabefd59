"""Writes the files whose rows are records: TFRecord files, and WebDataset's shards."""

from __future__ import annotations

import gzip
import io
import struct
import tarfile

import numpy as np
from PIL import Image
from sklearn.datasets import load_digits

from rtrain.datasets.tfrecord_format import _example_class, checksum

DIGITS = load_digits()


def example(**features):
    message = _example_class()()
    for name, values in features.items():
        kind = {bytes: "bytes_list", float: "float_list", int: "int64_list"}[type(values[0])]
        getattr(message.features.feature[name], kind).value.extend(values)
    return message.SerializeToString()


def framed(record):
    length = struct.pack("<Q", len(record))
    sums = [checksum(one) for one in (length, record)]
    return length + struct.pack("<I", sums[0]) + record + struct.pack("<I", sums[1])


def write_records(path, records):
    content = b"".join(framed(record) for record in records)
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return str(path)


def png(row):
    stream = io.BytesIO()
    Image.fromarray((DIGITS.images[row] * 15).astype(np.uint8)).save(stream, "png")
    return stream.getvalue()


def npy(values):
    stream = io.BytesIO()
    np.save(stream, values)
    return stream.getvalue()


def write_shard(path, members):
    with tarfile.open(path, "w:gz" if path.suffix == ".tgz" else "w") as shard:
        for name, content in members:
            info = tarfile.TarInfo(name)
            info.size = len(content)
            shard.addfile(info, io.BytesIO(content))
    return str(path)


def images(rows):
    for row in rows:
        yield f"data/{row:03}.png", png(row)
        yield f"data/{row:03}.cls", str(DIGITS.target[row]).encode()
