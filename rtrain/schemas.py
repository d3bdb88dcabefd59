"""The conf dataclasses of all installed plugins; imports no framework, so that ``--cfg`` stays quick."""

from __future__ import annotations

from rtrain.config.schema import Schemas
from rtrain.datasets import registry as datasets
from rtrain.trainers import registry as trainers


def schemas() -> Schemas:
    """Return the conf dataclass of every trainer plugin and dataset source, by name."""
    return Schemas(trainer=trainers.confs(), dataset=datasets.confs())
