"""The conf dataclasses of all installed plugins; imports no framework, so that ``--cfg`` stays quick."""

from __future__ import annotations

from rtrain.config.schema import Schemas
from rtrain.datasets import registry as datasets
from rtrain.schedulers.registry import SCHEDULERS
from rtrain.searches.registry import SEARCHES
from rtrain.trainers import registry as trainers


def schemas() -> Schemas:
    """Return the conf dataclass of every trainer plugin, dataset source, search and scheduler, by name."""
    return Schemas(
        trainer=trainers.confs(),
        dataset=datasets.confs(),
        sweep=SEARCHES.confs(),
        scheduler=SCHEDULERS.confs(),
        part=datasets.whole_confs(),
    )
