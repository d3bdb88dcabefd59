"""Reads TFRecord files of tf.train.Example without TensorFlow.

A record is its length (8 bytes), the masked CRC-32C of those, the data, and the masked CRC-32C of the data; all numbers
little-endian: https://www.tensorflow.org/tutorials/load_data/tfrecord. The messages are those of
``tensorflow/core/example/{example,feature}.proto``.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any

import google_crc32c
import pyarrow as pa

from rtrain.errors import DatasetError

HEADER, FOOTER = 12, 4
GZIP, ZLIB = b"\x1f\x8b", (b"\x78\x01", b"\x78\x5e", b"\x78\x9c", b"\x78\xda")
"""How packed files begin: RFC 1952, RFC 1950."""


def read_records(file: Path) -> Iterator[bytes]:
    """Yield the records of a file, with their checksums checked; one that gzip has packed is unpacked.

    Raises:
        DatasetError: The file can't be read, is cut off, or a checksum is wrong; names the record.
    """
    try:
        with pa.input_stream(str(file), compression=_compression(file)) as stream:
            for number in count(1):
                header = stream.read(HEADER)
                if not header:
                    return
                yield _record(stream, header, file, number)
    except (OSError, pa.ArrowException) as error:
        raise DatasetError(f"{file}: can't be read ({error}).") from error


def _compression(file: Path) -> str:
    """Return how a file is packed: TensorFlow's ``TFRecordWriter`` gives it no other name then.

    Raises:
        DatasetError: It is packed with zlib.
    """
    with file.open("rb") as stream:
        header = stream.read(HEADER)
    if len(header) < HEADER or _has_right_length(header):
        return "detect"
    if header.startswith(GZIP):
        return "gzip"
    if header.startswith(ZLIB):
        raise DatasetError(f"{file}: is compressed with zlib, which can't be read.", 'Write it with options="GZIP".')
    return "detect"


def _has_right_length(header: bytes) -> bool:
    length_sum: int = struct.unpack("<I", header[8:])[0]
    return length_sum == checksum(header[:8])


def _record(stream: Any, header: bytes, file: Path, number: int) -> bytes:
    """Return the record that follows a header."""
    cut_off = DatasetError(f"{file}: record {number} is cut off.", "Copy the file again.")
    if len(header) < HEADER:
        raise cut_off
    if not _has_right_length(header):
        raise _wrong_sum(file, number, "length")
    (length,) = struct.unpack("<Q", header[:8])
    body: bytes = stream.read(length + FOOTER)
    if len(body) < length + FOOTER:
        raise cut_off
    record = body[:-FOOTER]
    if checksum(record) != int.from_bytes(body[-FOOTER:], "little"):
        raise _wrong_sum(file, number, "data")
    return record


def _wrong_sum(file: Path, number: int, what: str) -> DatasetError:
    message = f"{file}: the checksum of the {what} of record {number} is wrong."
    return DatasetError(message, "Is it a TFRecord file? If so, it is damaged: copy it again.")


def checksum(data: bytes) -> int:
    """Return the CRC-32C of ``data`` as TFRecord stores it: rotated by 15 bits, plus a constant."""
    found: int = google_crc32c.value(data)
    return (((found >> 15) | (found << 17)) + 0xA282EAD8) & 0xFFFFFFFF


def read_examples(file: Path) -> Iterator[dict[str, list[Any]]]:
    """Yield the features of each tf.train.Example of a file by name: bytes, floats or integers.

    Raises:
        DatasetError: A record is none; names it.
    """
    from google.protobuf.message import DecodeError

    example = _example_class()
    for number, record in enumerate(read_records(file), start=1):
        try:
            features = example.FromString(record).features.feature
        except DecodeError as error:
            raise DatasetError(f"{file}: record {number} is not a tf.train.Example.") from error
        yield {name: _values(feature) for name, feature in features.items()}


def _values(feature: Any) -> list[Any]:
    kind = feature.WhichOneof("kind")
    return list(getattr(feature, kind).value) if kind else []


@cache
def _example_class() -> Any:
    """Return the class of tf.train.Example, made in a pool separate from TensorFlow's."""
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
