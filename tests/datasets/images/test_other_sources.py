"""A model of images predicts images of any source alike: folders, loose files, Hugging Face data sets."""

from __future__ import annotations

import datasets
import numpy as np
import pytest
from PIL import Image
from PIL.ExifTags import Base
from pydantic import TypeAdapter

from rtrain.datasets.registry import confs, load_source
from rtrain.errors import DatasetError

NAMES = ("ant", "zebra")


@pytest.fixture
def places(tmp_path):
    """The same images, of two classes, several sizes and all orientations, as each source has them."""
    rng = np.random.default_rng(0)
    files, labels = [], [n // 6 for n in range(12)]
    for number, label in enumerate(labels):
        folder = tmp_path / "folders" / NAMES[label]
        folder.mkdir(parents=True, exist_ok=True)
        turned = Image.Exif()
        turned[Base.Orientation] = 1 + number % 8
        image = Image.fromarray(rng.integers(0, 256, (6 + number % 3, 8, 3), dtype=np.uint8))
        image.save(folder / f"{number:02}.png", exif=turned)
        files.append({"bytes": (folder / f"{number:02}.png").read_bytes(), "path": None})
    kinds = datasets.Features({"image": datasets.Image(), "label": datasets.ClassLabel(names=list(NAMES))})
    made = datasets.Dataset.from_dict({"image": files, "label": labels}, features=kinds)
    datasets.DatasetDict({"train": made}).save_to_disk(str(tmp_path / "hub"))
    return {"images": tmp_path / "folders", "huggingface": tmp_path / "hub"}


KEYS = {"images": {}, "huggingface": {"input": "image", "label": "label"}}


def conf_of(source, path, **keys):
    given = {"path": str(path), **KEYS[source], **keys}
    return TypeAdapter(confs()[source]).validate_python(given)


def rows(source, path, encoding):
    reader = load_source(source).open_rows(conf_of(source, path), encoding)
    chunks = [chunk for piece in reader.pieces for chunk in reader.read(piece, with_labels=True)]
    return np.concatenate([one.x for one in chunks]), np.concatenate([one.y for one in chunks])


@pytest.mark.parametrize("size", [None, [5, 7], "original"], ids=str)
@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("new", KEYS)
@pytest.mark.parametrize("trained", KEYS)
def test_pixels_and_classes_are_those_of_training(trained, new, channels, size, places):
    conf = conf_of(trained, places[trained], channels=channels, image_size=size, split={"test": 0}, normalize=False)
    dataset = load_source(trained).load(conf)
    (own, labels), (other, same) = (rows(one, places[one], dataset.encoding) for one in (trained, new))
    assert labels.tolist() == same.tolist()
    assert len(own) == len(other) == 12
    for one, two in zip(own, other, strict=True):
        np.testing.assert_array_equal(one, two)


OTHERS = [{}, {"input_shape": [3], "dtype": "float32"}, {"input_shape": [4], "dtype": "uint8"}]


@pytest.mark.parametrize("encoding", OTHERS, ids=str)
def test_files_for_a_model_of_other_rows_are_refused(places, encoding):
    with pytest.raises(DatasetError, match="this source gives images"):
        rows("images", places["images"], encoding)
