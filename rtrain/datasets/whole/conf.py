"""The keys of sources in ``datasets``: all rows are read, with the columns that the data has."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from rtrain.config.value_types.texts import one_of
from rtrain.datasets.conf import DTYPES


@dataclass(kw_only=True)
class WholeConf:
    """Which columns a train loop gets."""

    columns: list[str] | None = None
    """Columns to read; null: all."""

    dtypes: dict[str, Annotated[str, *one_of(*DTYPES)]] | None = None
    """Columns to take as another type: {zip: string, size: float32}."""


@dataclass(kw_only=True)
class WholeFilesConf(WholeConf):
    """Which files of a table a train loop reads."""

    path: Annotated[str, Field(min_length=1)]
    """File, folder or glob."""

    memory: Annotated[str, *one_of("auto", "resident", "stream")] = "auto"
    """``resident`` holds all rows in memory, ``stream`` reads files each epoch; auto: by size against free memory."""
