"""Texts of which only some are values of a key: choices, folders, stores."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pydantic import AfterValidator, WithJsonSchema


class ChoiceError(ValueError):
    """A text is none of those that a key takes."""

    def __init__(self, choices: Sequence[str]) -> None:
        super().__init__(f"must be one of: {', '.join(choices)}")
        self.choices = tuple(choices)


def one_of(*choices: str) -> Any:
    """Return the annotations that restrict a ``str`` field to ``choices`` (OmegaConf 2.3 knows no ``Literal``)."""

    def check(value: str) -> str:
        if value not in choices:
            raise ChoiceError(choices)
        return value

    return AfterValidator(check), WithJsonSchema({"type": "string", "enum": list(choices)})


def folder(value: str) -> str:
    """Refuse the URL of a store where a folder is wanted."""
    if "://" in value:
        raise ValueError("must be a local folder, not a URL; for a copy in an object store: run.storage")
    return value


def store(value: str) -> str:
    """Refuse what is not the URL of a store."""
    scheme, separator, rest = value.partition("://")
    if not separator or not rest:
        raise ValueError("must be a URL, such as s3://bucket/runs; for a network folder: file:///mnt/runs")
    if scheme.lower() in ("http", "https"):
        raise ValueError("must be the URL of an object store (s3, gs, az, abfs, file), not of a web page")
    return value
