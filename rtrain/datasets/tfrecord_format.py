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
LANES, LONG_BYTES = (64, 256), 10_000
"""Bytes of a lane of short records, and of those from ``LONG_BYTES`` on."""


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
                if len(header) < HEADER:
                    raise DatasetError(f"{file}: record {number + len(held) + 1} is cut off.", "Copy the file again.")
                length, length_sum = struct.unpack("<QI", header)
                if length_sum != _length_sum(header[:8]):
                    raise _wrong_sum(file, number + len(held) + 1, "length")
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
    import numpy as np

    records = [body[:-FOOTER] for body in bodies]
    sums = np.frombuffer(b"".join(body[-FOOTER:] for body in bodies), "<u4")
    wrong = np.flatnonzero(masked(crc32c(records)) != sums)
    if wrong.size:
        raise _wrong_sum(file, first + int(wrong[0]) + 1, "data")
    return records


def _wrong_sum(file: Path, number: int, what: str) -> DatasetError:
    message = f"{file}: the checksum of the {what} of record {number} is wrong."
    return DatasetError(message, "Is it a TFRecord file? If so, it is damaged: copy it again.")


def masked(sums: np.ndarray) -> np.ndarray:
    """Return checksums as TFRecord stores them: rotated by 15 bits, plus a constant."""
    import numpy as np

    return ((sums >> np.uint32(15)) | (sums << np.uint32(17))) + np.uint32(0xA282EAD8)


def crc32c(data: Sequence[bytes]) -> np.ndarray:
    """Return the CRC-32C of each of ``data``, (n,) uint32.

    Each is cut into lanes of equal length, with zeros in front. All lanes are worked on at the same time, byte by byte,
    as if each began with a register of 0; then those of each of ``data`` are added up: the register is linear in what
    it began with, and in the bytes.
    """
    import numpy as np

    lengths = np.array([len(one) for one in data], np.int64)
    size = LANES[0] if lengths.max(initial=0) < LONG_BYTES else LANES[1]
    lanes = np.maximum(1, -(-lengths // size))
    ends = np.cumsum(lanes) * size
    content = np.zeros(int(lanes.sum()) * size, np.uint8)
    for one, end in zip(data, ends.tolist(), strict=True):
        content[end - len(one) : end] = np.frombuffer(one, np.uint8)
    sums = np.zeros(len(content) // size, np.uint32)
    table = _table()
    for place in np.ascontiguousarray(content.reshape(-1, size).T):
        sums = table[(sums ^ place) & np.uint32(0xFF)] ^ (sums >> np.uint32(8))
    found: np.ndarray = ~(_added(sums, lanes, size) ^ _beginning(lengths))
    return found


def _added(sums: np.ndarray, lanes: np.ndarray, size: int) -> np.ndarray:
    """Return the register after all lanes of each, (n,), of that after each lane; there are ``lanes`` of each."""
    import numpy as np

    order = np.argsort(-lanes, kind="stable")
    first = (np.cumsum(lanes) - lanes)[order]
    found = np.zeros(len(lanes), np.uint32)
    counts = len(lanes) - np.searchsorted(np.sort(lanes), np.arange(lanes.max(initial=0)), side="right")
    for step, count in enumerate(counts.tolist()):
        found[:count] = _moved(found[:count], size) ^ sums[first[:count] + step]
    returned = np.empty_like(found)
    returned[order] = found
    return returned


def _beginning(lengths: np.ndarray) -> np.ndarray:
    """Return what a register that began with ones adds after each number of bytes, (n,)."""
    import numpy as np

    found = np.full(len(lengths), 0xFFFFFFFF, np.uint32)
    for bit in range(int(lengths.max(initial=0)).bit_length()):
        longer = (lengths >> bit) & 1 == 1
        found[longer] = _moved(found[longer], 1 << bit)
    return found


def _moved(sums: np.ndarray, num_bytes: int) -> np.ndarray:
    """Return registers after so many bytes of 0: a power of 2."""
    import numpy as np

    low, second, third, high = _moves(num_bytes)
    byte, eight = np.uint32(0xFF), np.uint32(8)
    moved = low[sums & byte] ^ second[(sums >> eight) & byte]
    found: np.ndarray = moved ^ third[(sums >> (eight + eight)) & byte] ^ high[sums >> np.uint32(24)]
    return found


@cache
def _moves(num_bytes: int) -> np.ndarray:
    """Return what becomes of each value of each byte of a register, (4, 256), after so many bytes of 0."""
    import numpy as np

    if num_bytes > 1:
        return _moved(_moves(num_bytes // 2), num_bytes // 2)
    values = np.arange(256, dtype=np.uint32) << (np.arange(4, dtype=np.uint32) * np.uint32(8))[:, None]
    moved: np.ndarray = _table()[values & np.uint32(0xFF)] ^ (values >> np.uint32(8))
    return moved


def _length_sum(header: bytes) -> int:
    """Return the masked CRC-32C of the length of a record, without the overhead of arrays."""
    found, table = 0xFFFFFFFF, _plain_table()
    for one in header:
        found = table[(found ^ one) & 0xFF] ^ (found >> 8)
    found ^= 0xFFFFFFFF
    return (((found >> 15) | (found << 17)) + 0xA282EAD8) & 0xFFFFFFFF


@cache
def _plain_table() -> tuple[int, ...]:
    return tuple(_table().tolist())


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
