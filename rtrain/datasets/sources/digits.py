"""Handwritten digits that come with scikit-learn: the dataset that is always there."""

from __future__ import annotations

import gzip
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from rtrain.config.value_types.texts import one_of
from rtrain.datasets.base import Dataset, Source
from rtrain.datasets.conf import RowsConf

if TYPE_CHECKING:
    import numpy as np


@dataclass(kw_only=True)
class DigitsConf(RowsConf):
    """1,797 grey images of 8 x 8 pixels in 10 classes; 20 % are the test split unless ``split`` says otherwise."""

    dtype: Annotated[str, *one_of("float32", "uint8")] = "float32"
    """``float32`` from 0 to 1, or ``uint8`` from 0 to 255."""


class Digits(Source):
    """scikit-learn's 1,797 handwritten digits, (1, 8, 8) in 10 classes; nothing to download."""

    Conf = DigitsConf
    requires = ("sklearn",)

    def load(self, conf: DigitsConf) -> Dataset:
        """Read the digits that scikit-learn carries."""
        from rtrain.datasets.in_memory import Content, resident_dataset
        from rtrain.datasets.memory import readable
        from rtrain.datasets.splitting.shares import split_parts

        table = _table()
        x = _images(table[:, :-1].reshape(-1, 8, 8), conf.dtype)
        splits = split_parts({"train": {"x": x, "y": table[:, -1].astype("int64")}}, conf, stratify=True)
        content = Content(
            name="digits",
            task="classification",
            class_names=tuple(map(str, range(10))),
            memory_reason=f"{readable(x.nbytes)}, always kept in memory",
        )
        return resident_dataset(splits, content, conf)


def _table() -> np.ndarray:
    """Return (1797, 65): the pixels and the class of each digit, from the file that scikit-learn brings.

    scikit-learn itself is not imported: that takes over a second, the file a few milliseconds.
    """
    import numpy as np

    package = find_spec("sklearn")
    assert package is not None
    assert package.submodule_search_locations is not None
    file = Path(package.submodule_search_locations[0]) / "datasets" / "data" / "digits.csv.gz"
    with gzip.open(file, "rt") as lines:
        return np.loadtxt(lines, delimiter=",")


def _images(images: np.ndarray, dtype: str) -> np.ndarray:
    """Return (rows, 1, 8, 8) pixels of the wanted type from (rows, 8, 8) pixels from 0 to 16."""
    scaled = images[:, None] / 16
    return (scaled * 255).round().astype("uint8") if dtype == "uint8" else scaled.astype("float32")
