"""Whether a skops file holds nothing but listed types and plain numbers, found out before skops opens it.

skops checks types too, but trusts more than is listed here, lets several kinds of entries call the types that it
trusts, and sets no limits. The format: skops 0.16, protocol 2.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Mapping, Sequence
from math import prod
from typing import Any
from zipfile import ZIP_STORED, ZipFile

import numpy as np

from rtrain.errors import CheckpointError
from rtrain.trainers.sklearn.estimator_file.data_types import TYPES

PROTOCOL = 2
SCHEMA = "schema.json"
HEADERS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}


def check_schema(content: bytes) -> None:
    """Check all entries of a skops file.

    Raises:
        CheckpointError: One is of a type that is not listed, or made to surprise.
    """
    with ZipFile(io.BytesIO(content)) as archive:
        _check_sizes(archive, len(content))
        schema = json.loads(archive.read(SCHEMA))
        if not isinstance(schema, dict) or schema.get("protocol") != PROTOCOL:
            raise _refused("has another version of the skops format")
        nodes = list(_nodes(schema))
        files: dict[str, int] = {}
        _check_types(nodes)
        shapes = {node["file"]: _check_file(archive, node, files) for node in nodes if "file" in node}
        _check_trees(nodes, shapes)


def _check_sizes(archive: ZipFile, size: int) -> None:
    """Refuse what unpacks to more than the file holds."""
    entries = archive.infolist()
    stored = all(one.compress_type == ZIP_STORED and one.file_size == one.compress_size for one in entries)
    unique = len({one.filename for one in entries}) == len(entries)
    if not stored or not unique or sum(one.file_size for one in entries) > size:
        raise _refused("is packed")


def _nodes(value: Any) -> Iterator[Mapping[str, Any]]:
    """Yield all entries at any depth, whichever of their parts skops looks at."""
    if isinstance(value, Mapping):
        if "__loader__" in value:
            yield value
        for one in value.values():
            yield from _nodes(one)
    elif isinstance(value, list):
        for one in value:
            yield from _nodes(one)


def _check_types(nodes: Sequence[Mapping[str, Any]]) -> None:
    """Refuse types that are not listed, and entries of different types that share an id."""
    known: dict[int, tuple[Any, ...]] = {}
    plain: dict[int, bool] = {}
    for node in nodes:
        loader, number = node["__loader__"], node.get("__id__")
        name = (node.get("__module__"), node.get("__class__"))
        if not isinstance(loader, str) or name not in TYPES.get(loader, ()):
            raise _refused(f"contains {name[0]}.{name[1]} ({loader}), which is not listed")
        # skops takes the first entry with an id for all of them.
        if not isinstance(number, int) or known.setdefault(number, (loader, *name)) != (loader, *name):
            raise _refused("has two types for one entry")
        if loader == "PartialNode" and node["content"]["func"]["__loader__"] != "FunctionNode":
            raise _refused("calls something other than a function")
        if loader == "ListNode":
            plain[number] = plain.get(number, True) and all(one["__loader__"] == "TypeNode" for one in node["content"])
    # skops calls what the keys of a mapping are said to be with each key.
    if not all(plain.get(node["key_types"]["__id__"]) for node in nodes if node["__loader__"] == "DictNode"):
        raise _refused("has keys that are not plain")


def _check_trees(nodes: Sequence[Mapping[str, Any]], shapes: Mapping[str, tuple[int, ...]]) -> None:
    """Refuse a tree whose parts are not arrays: scikit-learn copies their memory while skops reads them."""
    same: dict[int, list[Mapping[str, Any]]] = {}
    for node in nodes:
        same.setdefault(node["__id__"], []).append(node)

    def is_array(node: Mapping[str, Any], num_dims: int) -> bool:
        return all(
            one["__class__"] == "ndarray" and one.get("type") == "numpy" and len(shapes[one["file"]]) == num_dims
            for one in same[node["__id__"]]
        )

    for node in (one for one in nodes if one["__loader__"] == "TreeNode"):
        states = [one["content"] for one in same[node["content"]["__id__"]]]
        arguments = [one["content"] for one in same[node["__reduce__"]["args"]["__id__"]]]
        right = all(is_array(one["nodes"], 1) and is_array(one["values"], 3) for one in states)
        if not right or not all(len(one) == 3 and is_array(one[1], 1) for one in arguments):
            raise _refused("contains a tree that does not consist of arrays")


def _check_file(archive: ZipFile, node: Mapping[str, Any], files: dict[str, int]) -> tuple[int, ...]:
    """Return the shape of an array; refuse one of objects, of another size than it says, or that is read many times."""
    name = node["file"]
    if files.setdefault(name, node["__id__"]) != node["__id__"]:
        raise _refused(f"reads {name} twice")
    content = archive.read(name)
    file = io.BytesIO(content)
    read_header = HEADERS.get(np.lib.format.read_magic(file))
    if read_header is None:
        raise _refused(f"contains no array in {name}")
    shape, _, dtype = read_header(file)
    if dtype.hasobject or prod(shape) * dtype.itemsize != len(content) - file.tell():
        raise _refused(f"contains no array of numbers in {name}")
    return tuple(shape)


def _refused(why: str) -> CheckpointError:
    return CheckpointError(f"it {why}.")
