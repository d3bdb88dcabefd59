"""Random data that can be learned: for tests, benchmarks and the first try of a config."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, ClassVar

from pydantic import Field

from rtrain.config.needs import Need, Rules
from rtrain.config.value_types.texts import one_of
from rtrain.datasets.base import Columns, Dataset, Source
from rtrain.datasets.conf import RowsConf

if TYPE_CHECKING:
    import numpy as np

CLASSES = Need(
    met=lambda way: way.conf.dataset.task == "classification",
    otherwise="numbers are predicted, not classes",
    instead="Generate classes: dataset.task=classification",
    keys=("dataset.task",),
)


@dataclass(kw_only=True)
class SyntheticConf(RowsConf):
    """Rows drawn by ``seed``: a Gaussian blob per class, or a linear target with noise."""

    needs: ClassVar[Rules] = (CLASSES.of("num_classes"),)

    task: Annotated[str, *one_of("classification", "regression")] = "classification"
    """Whether ``y`` is a class or a number."""

    shape: Annotated[list[Annotated[int, Field(ge=1)]], Field(min_length=1)] = field(default_factory=lambda: [16])
    """Shape of one row: [features] or [channels, height, width]."""

    num_classes: Annotated[int, Field(ge=2)] = 4
    """Number of classes, equally frequent; not for a regression."""

    num_rows: Annotated[int, Field(ge=1)] = 2_000
    """Rows of all splits together."""

    noise: Annotated[float, Field(ge=0)] = 0.1
    """Standard deviation of the noise on a linear target, itself of 1; blobs are 1 + noise wide."""


class Synthetic(Source):
    """Random rows that can be learned, of any shape: blobs to classify or a linear target."""

    Conf = SyntheticConf

    def load(self, conf: SyntheticConf) -> Dataset:
        """Draw the rows."""
        from rtrain.datasets.in_memory import Content, resident_dataset
        from rtrain.datasets.memory import readable
        from rtrain.datasets.splitting.shares import split_parts

        classes = conf.task == "classification"
        columns = _blobs(conf) if classes else _linear(conf)
        splits = split_parts({"train": columns}, conf, stratify=classes)
        content = Content(
            name="synthetic",
            task=conf.task,
            class_names=tuple(map(str, range(conf.num_classes))) if classes else (),
            feature_names=tuple(f"x{i}" for i in range(conf.shape[0])) if len(conf.shape) == 1 else (),
            memory_reason=f"{readable(columns['x'].nbytes)}, always kept in memory",
        )
        return resident_dataset(splits, content, conf)


def _blobs(conf: SyntheticConf) -> Columns:
    """Return blobs whose centres lie 6 apart on average, in as many dimensions as a row has."""
    import numpy as np

    rng = np.random.default_rng(conf.seed)
    size = int(np.prod(conf.shape))
    centres = rng.standard_normal((conf.num_classes, size)) * (6 / np.sqrt(2 * size))
    y = rng.permutation(np.arange(conf.num_rows) % conf.num_classes).astype(np.int64)
    x = _normal(rng, conf.num_rows, size) * np.float32(1 + conf.noise) + centres[y].astype(np.float32)
    return {"x": x.reshape(-1, *conf.shape), "y": y}


def _linear(conf: SyntheticConf) -> Columns:
    import numpy as np

    rng = np.random.default_rng(conf.seed)
    size = int(np.prod(conf.shape))
    weights = rng.standard_normal(size)
    weights = (weights / np.linalg.norm(weights)).astype(np.float32)
    x = _normal(rng, conf.num_rows, size)
    y = x @ weights + np.float32(conf.noise) * _normal(rng, conf.num_rows, 1)[:, 0]
    return {"x": x.reshape(-1, *conf.shape), "y": y.astype(np.float32)}


def _normal(rng: np.random.Generator, num_rows: int, size: int) -> np.ndarray:
    return rng.standard_normal((num_rows, size), dtype="float32")
