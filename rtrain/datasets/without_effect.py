"""Refuses keys and tasks that one kind of rows can't follow, where only the rows tell which kind they are."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import fields
from typing import Any

from rtrain.errors import DatasetError

_recorded: ContextVar[bool] = ContextVar("recorded", default=False)
_typed: ContextVar[frozenset[str]] = ContextVar("typed", default=frozenset())


@contextmanager
def as_recorded(is_recorded: bool = True) -> Iterator[None]:
    """Let keys without an effect pass in the block: earlier versions trained with them, and their runs can resume."""
    before = _recorded.set(is_recorded)
    try:
        yield
    finally:
        _recorded.reset(before)


@contextmanager
def with_typed(keys: Collection[str]) -> Iterator[None]:
    """Count keys as set in the block, whatever their values: the user has typed them, ``dataset.seed`` say."""
    before = _typed.set(frozenset(keys))
    try:
        yield
    finally:
        _typed.reset(before)


def changed(conf: Any, keys: Iterable[str]) -> list[str]:
    """Return those of ``keys`` that are typed or don't have their default values; none where they were recorded."""
    if _recorded.get():
        return []
    usual = {one.name: one.default_factory() if callable(one.default_factory) else one.default for one in fields(conf)}
    return [key for key in keys if getattr(conf, key) != usual[key] or _is_typed(f"dataset.{key}")]


def _is_typed(key: str) -> bool:
    return any(f"{one}.".startswith(f"{key}.") for one in _typed.get())


def refuse_idle(conf: Any, keys: Iterable[str], because: str, instead: str | None = None) -> None:
    """Raise a DatasetError if the config sets one of ``keys``, which have no effect ``because`` of the rows."""
    for key in changed(conf, keys):
        raise DatasetError(f"dataset.{key} has no effect: {because}.", instead or f"Leave dataset.{key} out.")


def check_task(task: str, fitting: Collection[str], rows: str) -> None:
    """Raise a DatasetError if ``rows`` can't be used to learn what the config says."""
    if task not in fitting and not _recorded.get():
        raise DatasetError(f"dataset.task={task} can't be learned from {rows}.", f"Choose: {', '.join(fitting)}")


def check_kind(known: bool, rows: str) -> None:
    """Raise a DatasetError if a source gives ``rows`` to a model that was trained on rows of another kind."""
    if not known:
        message = f"the model was trained on another kind of rows, and this source gives {rows}."
        raise DatasetError(message, "Choose a source like the one of training: dataset=<type>")
