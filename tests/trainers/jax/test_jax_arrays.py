"""Arrays in a file are those that the model has, by name, shape and type, or the file is refused."""

import json
import struct

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from safetensors.numpy import save_file

from rtrain.errors import CheckpointError
from rtrain.trainers.jax import arrays

LIKE = {"kernel": jnp.zeros((2, 3)), "count": jnp.zeros((), jnp.int32)}


def stored(**changes):
    return {"kernel": np.ones((2, 3), "float32"), "count": np.ones((), "int32")} | changes


def test_what_was_written_comes_back(tmp_path):
    save_file(stored(), tmp_path / "a")
    found = arrays.load(tmp_path / "a", LIKE)
    assert float(found["kernel"].sum()) == 6
    assert found["count"].dtype == jnp.int32


@pytest.mark.parametrize("kind", ["float16", "int32", "bool", "complex64"])
def test_arrays_of_another_type_are_refused(tmp_path, kind):
    save_file(stored(kernel=np.ones((2, 3), kind)), tmp_path / "a")
    with pytest.raises(CheckpointError, match="kernel"):
        arrays.load(tmp_path / "a", LIKE)


def test_other_names_are_found_before_an_array_is_read(tmp_path):
    # No array of this type can be read here, so that reading it would be another error.
    header = {"kernel": {"dtype": "F8_E8M0", "shape": [2], "data_offsets": [0, 2]}}
    text = json.dumps(header).encode()
    (tmp_path / "a").write_bytes(struct.pack("<Q", len(text)) + text + b"\0\0")
    with pytest.raises(CheckpointError, match="count, kernel"):
        arrays.load(tmp_path / "a", LIKE)


def test_a_long_name_or_one_with_control_characters_makes_no_long_error(tmp_path):
    save_file(stored(**{"\x1b]0;title\x07\nnew line" + "n" * 100_000: np.ones(1, "float32")}), tmp_path / "a")
    with pytest.raises(CheckpointError) as raised:
        arrays.load(tmp_path / "a", LIKE)
    assert len(raised.value.message) < 1000
    assert raised.value.message.isprintable()


@pytest.mark.parametrize("kind", ["threefry2x32", "rbg"])
@pytest.mark.parametrize("shape", [(), (3,)])
def test_keys_of_random_numbers_come_back_as_keys(tmp_path, kind, shape):
    key = jax.random.key(7, impl=kind)
    tree = {**LIKE, "key": key if shape == () else jax.random.split(key, shape[0])}
    save_file(arrays.copied(tree), tmp_path / "a")
    found = arrays.load(tmp_path / "a", tree)
    assert found["key"].dtype == tree["key"].dtype
    first = found["key"] if shape == () else found["key"][0]
    expected = tree["key"] if shape == () else tree["key"][0]
    np.testing.assert_array_equal(jax.random.normal(first, 5), jax.random.normal(expected, 5))
