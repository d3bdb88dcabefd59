"""What configs say, kept for the next composition: a process reads the same text once and merges the same configs once.

Explaining an error, a sweep and a program that trains several times compose much the same config many times.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from copy import deepcopy
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, Protocol, runtime_checkable

from hydra._internal.config_repository import CachingConfigRepository, ConfigRepository, IConfigRepository
from hydra.core.default_element import ResultDefault
from hydra.core.object_type import ObjectType
from hydra.plugins.config_source import ConfigResult
from omegaconf import DictConfig, flag_override
from omegaconf.errors import OmegaConfBaseException

from rtrain.config.compose.sources.part_options import SEVERAL
from rtrain.config.compose.template import Template


@dataclass(frozen=True)
class Content:
    """What a config is made of."""

    of: Hashable
    """Equal for equal configs."""
    load: Callable[[], ConfigResult] = field(compare=False)
    """Makes the config."""


@dataclass(frozen=True)
class Same:
    """An object that is equal to itself alone."""

    it: Any

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Same) and other.it is self.it

    def __hash__(self) -> int:
        return id(self.it)


@runtime_checkable
class HasContent(Protocol):
    """A source that tells what a config is made of."""

    def content(self, config_path: str) -> Content:
        """Return what the config ``config_path`` is made of as of now."""


class KeptRepository(ConfigRepository):
    """Hands out a config again as long as its content stays the same. Who changes it needs a copy."""

    def load_config(self, config_path: str) -> ConfigResult | None:
        """Return a config; None if no source has it."""
        found = self._find_object_source(config_path, ObjectType.CONFIG)
        source: object = found
        if not isinstance(source, HasContent):
            return super().load_config(config_path)
        content, is_schema = source.content(config_path), found is self.sources[-1]

        def load() -> ConfigResult:
            result = content.load()
            defaults = self._create_defaults_list(config_path, self._extract_defaults_list(config_path, result.config))
            return replace(result, defaults_list=defaults, is_schema_source=is_schema)

        return _loaded(Content((config_path, content.of, is_schema), load))


Merge = Callable[[list[ResultDefault], IConfigRepository], DictConfig]
"""Merges configs, which a repository loads, in order. It may change them."""


def merged(defaults: list[ResultDefault], repo: IConfigRepository, merge: Merge) -> DictConfig:
    """Return what ``merge`` makes of configs, or made of the same ones before.

    The last config is that of the user, as a rule, and the others are the same for many.
    """
    results = {one.config_path or "": repo.load_config(one.config_path or "") for one in defaults}
    copies = _Copies(results, repo)
    if any(_depends_on_more(one, results, copies) for one in defaults):
        return merge(defaults, copies)
    of = tuple((one.config_path, one.package, one.primary, Same(results[one.config_path or ""])) for one in defaults)

    def whole() -> DictConfig:
        before = _template(_Merge(of[:-1], lambda: merge(defaults[:-1], copies)))
        cfg = _with_last(before.copy(), merge(defaults[-1:], copies))
        return merge(defaults, copies) if cfg is None else cfg

    return _template(_Merge(of, whole)).copy()


def _with_last(cfg: DictConfig, last: DictConfig) -> DictConfig | None:
    """Return both merged; None if they can't be, of which Hydra says why."""
    try:
        with flag_override(cfg, "no_deepcopy_set_nodes", True):
            cfg.merge_with(last)
    except OmegaConfBaseException:
        return None
    return cfg


def _depends_on_more(one: ResultDefault, results: dict[str, ConfigResult | None], repo: _Copies) -> bool:
    """Tell whether more than a config itself counts: the schema of a data set, or one that has the config's name."""
    result = results[one.config_path or ""]
    has_schema = result is not None and not result.is_schema_source
    named = has_schema and repo.get_schema_source().is_config(one.config_path or "")
    return named or (one.package or "").startswith(SEVERAL)


@dataclass(frozen=True)
class _Merge:
    of: Hashable
    merge: Callable[[], DictConfig] = field(compare=False)


@lru_cache(maxsize=1000)
def _loaded(content: Content) -> ConfigResult:
    return content.load()


@lru_cache(maxsize=100)
def _template(asked: _Merge) -> Template:
    return Template(asked.merge())


class _Copies(CachingConfigRepository):
    """Hands out copies of configs that are loaded."""

    def __init__(self, results: dict[str, ConfigResult | None], repo: IConfigRepository) -> None:
        self.delegate, self.cache = repo, {}
        self._results = results

    def load_config(self, config_path: str) -> ConfigResult | None:
        """Return a copy of a config."""
        result = self._results[config_path]
        return None if result is None else replace(result, config=deepcopy(result.config))
