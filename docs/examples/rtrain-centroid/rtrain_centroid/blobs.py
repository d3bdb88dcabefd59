"""A custom dataset: two clouds of points, whose distance is a key."""

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from rtrain.datasets.base import Dataset, Source
from rtrain.datasets.conf import RowsConf


@dataclass(kw_only=True)
class Conf(RowsConf):
    """The keys below ``dataset:``; ``split``, ``limit``, ``normalize`` and the like come with ``RowsConf``."""

    num_rows: Annotated[int, Field(ge=2)] = 200
    """How many points there are."""

    distance: Annotated[float, Field(gt=0)] = 3.0
    """Between the middles of the clouds, in standard deviations."""


class Blobs(Source):
    """Two clouds of points in the plane, one class each."""

    Conf = Conf

    def load(self, conf: Conf) -> Dataset:
        """Return the points and their classes, split as ``conf.split`` says."""
        import numpy as np

        from rtrain.datasets.in_memory import Content, resident_dataset
        from rtrain.datasets.splitting.shares import split_parts

        rng = np.random.default_rng(conf.seed)
        y = np.arange(conf.num_rows) % 2
        x = (rng.normal(size=(conf.num_rows, 2)) + conf.distance * y[:, None]).astype("float32")
        splits = split_parts({"train": {"x": x, "y": y.astype("int64")}}, conf, stratify=True)
        content = Content(
            name="blobs",
            task="classification",
            class_names=("near", "far"),
            feature_names=("x", "y"),
            memory_reason="made in memory",
        )
        return resident_dataset(splits, content, conf)
