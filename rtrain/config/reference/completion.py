"""Tab completion of overrides: groups, options, keys, values and short names."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import is_dataclass
from typing import Any, get_args, get_type_hints

from hydra.errors import HydraException
from omegaconf import DictConfig, ListConfig
from omegaconf.errors import OmegaConfBaseException
from pydantic import WithJsonSchema

from rtrain.config.compose.aliases import GROUPS, KEYS, expand_key, split_word
from rtrain.config.compose.nodes import Container, children, joined
from rtrain.config.compose.request import Request
from rtrain.config.schema import RtrainConf, Schemas
from rtrain.config.session import Session
from rtrain.errors import ConfigError

HIDDEN = ("hydra", "rtrain_schema")


def complete(words: Sequence[str], incomplete: str, schemas: Schemas) -> list[str]:
    """Return what may stand where ``incomplete`` stands.

    Args:
        words: The config and the overrides typed so far.
        incomplete: The beginning of the word at the cursor.
        schemas: The plugins' dataclasses.
    """
    if not words:
        return []
    try:
        with Session(words[0], [word for word in words[1:] if "=" in word], schemas) as session:
            found = sorted(set(_candidates(session.request, schemas, incomplete)))
    except ConfigError:
        return []
    return [one for one in found if one.startswith(incomplete)]


def _candidates(request: Request, schemas: Schemas, incomplete: str) -> Iterator[str]:
    sign, key, value = split_word(incomplete)
    groups = [one for one in request.app.groups() if not one.startswith(HIDDEN)]
    cfg = _composed(request)
    if value is not None:
        head = incomplete[: len(incomplete) - len(value)]
        yield from (f"{head}{one}" for one in _values(request, cfg, schemas, key))
        return
    for group in groups:
        yield f"{sign}{group}="
    for short in (*KEYS, *(short for short, group in GROUPS.items() if group in groups)):
        yield f"{sign}{short}="
    if cfg is not None:
        yield from (f"{sign}{one}" for one in _keys(cfg, key))


def _composed(request: Request) -> DictConfig | None:
    try:
        return request.compose()
    except (HydraException, OmegaConfBaseException, ConfigError, ValueError):
        request.words = ()
    try:
        return request.compose()
    except (HydraException, OmegaConfBaseException, ConfigError, ValueError):
        return None


def _keys(cfg: DictConfig, typed: str) -> Iterator[str]:
    """Yield the keys one level below what is typed, and the same under their short names."""
    parent = typed.rpartition(".")[0]
    node: Any = cfg
    for part in [one for one in expand_key(parent).split(".") if one]:
        node = node._get_node(part) if isinstance(node, DictConfig) else None
    if not isinstance(node, DictConfig):
        return
    for name, _, child in children(node):
        if parent or name != "hydra":
            inner = isinstance(child, Container) and not child._is_none() and not child._is_missing()
            yield joined(parent, name) + ("." if inner and not isinstance(child, ListConfig) else "=")


def _values(request: Request, cfg: DictConfig | None, schemas: Schemas, key: str) -> Iterable[str]:
    """Return the options of a group, or the values that a key can have."""
    group = GROUPS.get(key, key)
    options = request.app.loader.get_group_options(group)
    if options:
        return options
    full = expand_key(key)
    trainers = {"trainer.type": schemas.trainer, "dataset.type": schemas.dataset}
    return trainers[full] if full in trainers else _literal_values(cfg, schemas, full.split("."))


def _literal_values(cfg: DictConfig | None, schemas: Schemas, keys: Sequence[str]) -> Iterable[str]:
    conf: Any = RtrainConf
    hint: Any = None
    for depth, part in enumerate(keys):
        if depth == 1 and keys[0] in ("trainer", "dataset") and cfg is not None:
            node = cfg._get_node(keys[0])
            conf = schemas.group(keys[0]).get(node.get("type") if isinstance(node, DictConfig) else "")
        hints = get_type_hints(conf, include_extras=True) if is_dataclass(conf) else {}
        hint = hints.get(part)
        conf = next((one for one in (hint, *get_args(hint)) if is_dataclass(one)), None)
    if hint is bool:
        return ("true", "false")
    return _choices(hint)


def _choices(hint: Any) -> list[str]:
    """Return the values that ``one_of`` allows."""
    for one in get_args(hint):
        if isinstance(one, WithJsonSchema) and one.json_schema is not None:
            return [value for value in one.json_schema.get("enum", []) if re.fullmatch(r"\S+", value)]
    return []
