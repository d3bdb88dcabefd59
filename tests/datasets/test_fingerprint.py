"""The fingerprint of rows in memory stays what it was: runs of older versions are resumed by it."""

import json
from hashlib import sha256

import numpy as np
import pytest

from rtrain.datasets.base import objects
from rtrain.datasets.in_memory import fingerprint

ROWS = {
    "texts": objects(["a", "ü\n", "", "a"]),
    "texts of numpy": objects([np.str_("a"), "b"]),
    "words": objects([["a", "b"], [], ["c"]]),
    "tags": objects([np.asarray([1, 2]), np.asarray([], np.int64)]),
    "none": objects([]),
    "mixed": objects(["a", ["b"]]),
}


def by_each_row(values):
    return json.dumps([getattr(row, "tolist", lambda row=row: row)() for row in values]).encode()


@pytest.mark.parametrize("values", ROWS.values(), ids=ROWS)
def test_rows_of_objects_count_as_their_json(values):
    expected = sha256(b"('b',)" + f"train/x object {values.shape}".encode() + by_each_row(values))
    assert fingerprint({"train": {"x": values}}, ("b",)) == expected.hexdigest()


def test_every_value_counts():
    found = {fingerprint({"train": {"x": values}}, ()) for values in ROWS.values()}
    assert len(found) == len(ROWS)
