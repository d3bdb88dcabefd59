"""The conf dataclasses of all installed plugins; imports no framework, so that ``--cfg`` stays quick."""

from __future__ import annotations

from rtrain.config.schema import Schemas
from rtrain.datasets import registry as datasets
from rtrain.loggers.registry import LOGGERS
from rtrain.schedulers.registry import SCHEDULERS
from rtrain.searches.registry import SEARCHES
from rtrain.trainers import registry as trainers


def schemas() -> Schemas:
    """Return the conf dataclass of every trainer plugin, dataset source, search, scheduler and logger, by name."""
    return Schemas(
        trainer=trainers.confs(),
        dataset=datasets.confs(),
        sweep=SEARCHES.confs(),
        scheduler=SCHEDULERS.confs(),
        logger=LOGGERS.confs(),
        part=datasets.whole_confs(),
    )
