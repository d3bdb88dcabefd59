"""Which dataset sources there are: the files in ``sources/``, and the entry points ``rtrain.datasets``."""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from importlib import import_module, metadata, util
from pathlib import Path

from rtrain.datasets.base import Source
from rtrain.errors import ConfigError

ENTRY_POINTS = "rtrain.datasets"


@dataclass(frozen=True)
class SourceInfo:
    """One line of ``rtrain datasets``."""

    name: str
    summary: str
    missing: tuple[str, ...]
    """Modules that have to be installed first."""
    extra: str | None
    """The pip extra that brings them."""

    @property
    def installed(self) -> bool:
        """Whether the source can be used as things are."""
        return not self.missing


@cache
def modules() -> dict[str, str]:
    """Return the module of each source by name; an entry point's value is the dotted path of its module."""
    files = (Path(__file__).parent / "sources").glob("[!_]*.py")
    here = {path.stem: f"{__package__}.sources.{path.stem}" for path in files}
    others = {point.name: point.value for point in metadata.entry_points(group=ENTRY_POINTS)}
    return dict(sorted({**others, **here}.items()))


def source_names() -> tuple[str, ...]:
    """Return what ``dataset.type`` may be."""
    return tuple(modules())


def confs() -> dict[str, type]:
    """Return the ``Conf`` dataclass of each source by name; imports no reader library."""
    return {name: _source_class(name).Conf for name in modules()}


def load_source(name: str) -> Source:
    """Return the source called ``name``.

    Raises:
        ConfigError: There is none of that name, or it needs a module that is not installed.
    """
    if name not in modules():
        close = get_close_matches(name, modules(), 1)
        hint = f"Did you mean '{close[0]}'?" if close else f"There are: {', '.join(modules())}"
        raise ConfigError(f"there is no dataset source '{name}'.", hint)
    source = _source_class(name)()
    missing = _missing(source)
    if missing:
        package = f"'rtrain[{source.extra}]'" if source.extra else " ".join(missing)
        raise ConfigError(f"dataset '{name}' needs {', '.join(missing)}.", f"Try: pip install {package}")
    return source


def describe() -> list[SourceInfo]:
    """Return what ``rtrain datasets`` lists."""
    found = []
    for name in modules():
        source = _source_class(name)()
        summary = (type(source).__doc__ or "").partition("\n")[0]
        found.append(SourceInfo(name, summary, _missing(source), source.extra))
    return found


def _source_class(name: str) -> type[Source]:
    """Return the one subclass of ``Source`` that the module of ``name`` defines."""
    module = import_module(modules()[name])
    for value in vars(module).values():
        if isinstance(value, type) and issubclass(value, Source) and value.__module__ == module.__name__:
            return value
    raise ConfigError(f"dataset '{name}': {module.__name__} defines no subclass of rtrain.datasets.base.Source.")


def _missing(source: Source) -> tuple[str, ...]:
    return tuple(module for module in source.requires if util.find_spec(module) is None)
