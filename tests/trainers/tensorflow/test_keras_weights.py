"""Weights lie in the file of the checkpoint, and are not put together from others of this machine."""

import types
from itertools import pairwise

import h5py
import numpy as np
import pytest

from rtrain.errors import CheckpointError
from rtrain.trainers.tensorflow.checkpoint.weights import FILE_NAME, load_weights


def external_link(file, other):
    file["layers/dense"] = h5py.ExternalLink(str(other), "/secret")


def soft_link(file, other):
    file["layers/dense"] = h5py.SoftLink("/vars")


def external_storage(file, other):
    file.create_dataset("layers/dense/vars/0", (2,), "float32", external=[(str(other), 0, 8)])


def virtual(file, other):
    layout = h5py.VirtualLayout(shape=(2,), dtype="float32")
    layout[:] = h5py.VirtualSource(str(other), "secret", shape=(2,))
    file.create_virtual_dataset("layers/dense/vars/0", layout)


@pytest.mark.parametrize("make", [external_link, soft_link, external_storage, virtual])
def test_what_lies_in_another_file_is_not_loaded(tmp_path, make):
    other, loaded = tmp_path / "other.h5", []
    with h5py.File(other, "w") as file:
        file["secret"] = np.ones(2, "float32")
    model = types.SimpleNamespace(load_weights=lambda *args, **kwargs: loaded.append(args))
    with h5py.File(tmp_path / FILE_NAME, "w") as file:
        file["layers/dense_1/vars/0"] = np.ones(2, "float32")
    load_weights(model, tmp_path)
    assert len(loaded) == 1
    with h5py.File(tmp_path / FILE_NAME, "a") as file:
        make(file, other)
    with pytest.raises(CheckpointError):
        load_weights(model, tmp_path)
    assert len(loaded) == 1


def to_the_root(file):
    file["loop"] = file["/"]


def ladder(file):
    groups = [file.create_group(f"g{place}") for place in range(30)]
    for one, following in pairwise(groups):
        one["left"] = one["right"] = following


def two_names(file):
    file["layers/dense_2/vars/0"] = file["layers/dense_1/vars/0"]


def deep(file):
    for _ in range(1100):
        file = file.create_group("a")


@pytest.mark.parametrize("make", [to_the_root, ladder, two_names, deep])
def test_a_file_of_many_paths_is_refused_and_each_part_visited_once(tmp_path, make):
    loaded = []
    model = types.SimpleNamespace(load_weights=lambda *args, **kwargs: loaded.append(args))
    with h5py.File(tmp_path / FILE_NAME, "w") as file:
        file["layers/dense_1/vars/0"] = np.ones(2, "float32")
        make(file)
    with pytest.raises(CheckpointError):
        load_weights(model, tmp_path)
    assert loaded == []


def test_a_file_of_very_many_parts_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("rtrain.trainers.tensorflow.checkpoint.weights.MAX_PARTS", 3)
    with h5py.File(tmp_path / FILE_NAME, "w") as file:
        file["layers/dense_1/vars/0"] = np.ones(2, "float32")
    with pytest.raises(CheckpointError):
        load_weights(types.SimpleNamespace(), tmp_path)


def packed(file):
    file.create_dataset("layers/dense/vars/0", data=np.zeros(10_000, "float32"), compression="gzip")


def unwritten(file):
    file.create_dataset("layers/dense/vars/0", (10**11,), "float32", chunks=(10**6,))


def texts(file):
    file["layers/dense/vars/0"] = ["a", "b"]


def nothing(file):
    file["layers/dense/vars/0"] = h5py.Empty("float32")


@pytest.mark.parametrize("make", [packed, unwritten, texts, nothing])
def test_nothing_unpacks_to_more_than_the_file_holds(tmp_path, make):
    with h5py.File(tmp_path / FILE_NAME, "w") as file:
        make(file)
    with pytest.raises(CheckpointError, match="/layers/dense/vars/0"):
        load_weights(types.SimpleNamespace(), tmp_path)


@pytest.mark.parametrize("kind", ["bfloat16", "float16", "float64", "bool", "uint32"])
def test_arrays_as_keras_writes_them_are_read(tmp_path, kind):
    import ml_dtypes  # makes bfloat16 known to NumPy

    loaded = []
    model = types.SimpleNamespace(load_weights=lambda *args, **kwargs: loaded.append(args))
    kind = ml_dtypes.bfloat16 if kind == "bfloat16" else kind
    with h5py.File(tmp_path / FILE_NAME, "w") as file:
        for name, shape in {"0": (3, 2), "1": (), "2": (0, 4)}.items():
            file.create_dataset(f"vars/{name}", data=np.ones(shape, kind))
    load_weights(model, tmp_path)
    assert loaded
