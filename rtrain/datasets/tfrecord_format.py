"""Reads TFRecord files of tf.train.Example without TensorFlow.

A record is its length (8 bytes), the masked CRC-32C of those, the data, and the masked CRC-32C of the data; all numbers
little-endian: https://www.tensorflow.org/tutorials/load_data/tfrecord. The messages are those of
``tensorflow/core/example/{example,feature}.proto``.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rtrain.errors import DatasetError

if TYPE_CHECKING:
    import numpy as np

POLYNOMIAL = 0x82F63B78
"""Of CRC-32C (Castagnoli), bits reversed."""
BATCH_BYTES = 16 << 20
HEADER, FOOTER = 12, 4


def read_records(file: Path) -> Iterator[list[bytes]]:
    """Yield the records of a file, some at a time, with their checksums checked; ``.gz`` is unpacked.

    Raises:
        DatasetError: The file can't be read, is cut off, or a checksum is wrong; names the record.
    """
    import pyarrow as pa

    number = 0
    held: list[bytes] = []
    size = 0
    try:
        with pa.input_stream(str(file), compression="detect") as stream:
            while header := stream.read(HEADER):
                _check(file, number, [header[:8]], [header[8:]], "length")
                (length,) = struct.unpack("<Q", header[:8])
                body = stream.read(length + FOOTER)
                if len(body) < length + FOOTER:
                    raise DatasetError(f"{file}: record {number + len(held) + 1} is cut off.", "Copy the file again.")
                held.append(body)
                size += length
                if size >= BATCH_BYTES:
                    yield _checked(file, number, held)
                    number, held, size = number + len(held), [], 0
            if held:
                yield _checked(file, number, held)
    except (OSError, pa.ArrowException) as error:
        raise DatasetError(f"{file}: can't be read ({error}).") from error


def _checked(file: Path, first: int, bodies: Sequence[bytes]) -> list[bytes]:
    records = [body[:-FOOTER] for body in bodies]
    _check(file, first, records, [body[-FOOTER:] for body in bodies], "data")
    return records


def _check(file: Path, first: int, data: Sequence[bytes], sums: Sequence[bytes], what: str) -> None:
    import numpy as np

    if len(sums[0]) < FOOTER:
        raise DatasetError(f"{file}: record {first + 1} is cut off.", "Copy the file again.")
    wrong = np.flatnonzero(masked(crc32c(data)) != np.frombuffer(b"".join(sums), "<u4"))
    if wrong.size:
        message = f"{file}: the checksum of the {what} of record {first + wrong[0] + 1} is wrong."
        raise DatasetError(message, "Is it a TFRecord file? If so, it is damaged: copy it again.")


def masked(sums: np.ndarray) -> np.ndarray:
    """Return checksums as TFRecord stores them: rotated by 15 bits, plus a constant."""
    import numpy as np

    return ((sums >> np.uint32(15)) | (sums << np.uint32(17))) + np.uint32(0xA282EAD8)


def crc32c(data: Sequence[bytes]) -> np.ndarray:
    """Return the CRC-32C of each of ``data``, (n,) uint32; all are worked on at the same time, byte by byte."""
    import numpy as np

    lengths = np.array([len(one) for one in data])
    order = np.argsort(-lengths, kind="stable")
    table = _table()
    sums = np.full(len(data), 0xFFFFFFFF, np.uint32)
    content = np.frombuffer(b"".join(data), np.uint8)
    starts = np.concatenate([[0], np.cumsum(lengths)[:-1]])[order]
    lengths = lengths[order]
    counts = len(data) - np.searchsorted(lengths[::-1], np.arange(lengths[0] if len(data) else 0), side="right")
    for place, count in enumerate(counts.tolist()):
        here = sums[:count]
        sums[:count] = table[(here ^ content[starts[:count] + place]) & np.uint32(0xFF)] ^ (here >> np.uint32(8))
    found = np.empty_like(sums)
    found[order] = ~sums
    return found


@cache
def _table() -> np.ndarray:
    import numpy as np

    table = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        table = np.where(table & 1, (table >> 1) ^ np.uint32(POLYNOMIAL), table >> 1).astype(np.uint32)
    return table


def read_examples(file: Path) -> Iterator[dict[str, list[Any]]]:
    """Yield the features of each tf.train.Example of a file by name: bytes, floats or integers.

    Raises:
        DatasetError: A record is none; names it.
    """
    from google.protobuf.message import DecodeError

    example = _example_class()
    number = 0
    for records in read_records(file):
        for record in records:
            number += 1
            try:
                features = example.FromString(record).features.feature
            except DecodeError as error:
                raise DatasetError(f"{file}: record {number} is no tf.train.Example.") from error
            yield {name: _values(feature) for name, feature in features.items()}


def _values(feature: Any) -> list[Any]:
    kind = feature.WhichOneof("kind")
    return list(getattr(feature, kind).value) if kind else []


@cache
def _example_class() -> Any:
    """Return the class of tf.train.Example, made in a pool of its own beside TensorFlow's."""
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

    kinds = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(name="rtrain/example.proto", package="rtrain", syntax="proto3")

    def message(name: str, parent: Any = file.message_type) -> Any:
        return parent.add(name=name)

    def field(owner: Any, name: str, number: int, kind: Any, of: str = "", repeated: bool = False) -> Any:
        label = kinds.LABEL_REPEATED if repeated else kinds.LABEL_OPTIONAL
        return owner.field.add(name=name, number=number, type=kind, label=label, **({"type_name": of} if of else {}))

    for name, kind in (
        ("BytesList", kinds.TYPE_BYTES),
        ("FloatList", kinds.TYPE_FLOAT),
        ("Int64List", kinds.TYPE_INT64),
    ):
        field(message(name), "value", 1, kind, repeated=True)
    feature = message("Feature")
    feature.oneof_decl.add(name="kind")
    for number, name in enumerate(("bytes_list", "float_list", "int64_list"), start=1):
        of = ".rtrain." + name.title().replace("_", "")
        field(feature, name, number, kinds.TYPE_MESSAGE, of).oneof_index = 0
    features = message("Features")
    entry = message("FeatureEntry", features.nested_type)
    entry.options.map_entry = True
    field(entry, "key", 1, kinds.TYPE_STRING)
    field(entry, "value", 2, kinds.TYPE_MESSAGE, ".rtrain.Feature")
    field(features, "feature", 1, kinds.TYPE_MESSAGE, ".rtrain.Features.FeatureEntry", repeated=True)
    field(message("Example"), "features", 1, kinds.TYPE_MESSAGE, ".rtrain.Features")
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("rtrain.Example"))
