"""What every config starts from: the schema of the root, the schemas of the plugins, and Hydra's own settings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import MISSING, Field, field, fields, is_dataclass, make_dataclass
from functools import cache, lru_cache
from types import UnionType
from typing import Any, Union, get_args, get_origin

from hydra.core.config_store import ConfigNode, ConfigStore
from hydra.core.object_type import ObjectType
from omegaconf import DictConfig, OmegaConf

from rtrain.config.compose.aliases import GROUPS
from rtrain.config.compose.nodes import children
from rtrain.config.files.locations import builtin_config_dir
from rtrain.config.schema import RtrainConf, Schemas
from rtrain.config.value_types.fields import hints_of, may_be_mapping
from rtrain.config.value_types.flags import with_flags
from rtrain.config.value_types.units import with_units

SCHEMA_GROUP = "rtrain_schema"
PLUGIN_GROUPS = ("trainer", "dataset", "sweep")
DEFAULT_PLUGINS = {"sweep": "grid"}
"""What a section without ``type`` means."""
STAMP = "${now:%Y-%m-%d_%H-%M-%S}-${rtrain_id:}"
BASE: dict[str, Any] = {
    "defaults": [{"override /hydra/job_logging": "none"}, {"override /hydra/hydra_logging": "none"}],
    "hydra": {
        "job": {"chdir": False},
        "run": {"dir": f"${{run.root_dir}}/${{run.name}}/{STAMP}"},
        "sweep": {"dir": f"${{run.root_dir}}/${{run.name}}/{STAMP}", "subdir": "${hydra.job.num}"},
    },
}
"""Hydra's settings under rtrain: where runs go, no change of folder, and the root logger left alone."""


def store_schemas(schemas: Schemas) -> None:
    """Put the base and all schemas into Hydra's store, below ``rtrain_schema``; those of an earlier session go."""
    groups = (*PLUGIN_GROUPS, "datasets")
    plugins = {group: _PluginNodes(schemas.group(group), f"{SCHEMA_GROUP}/{group}") for group in groups}
    repo = ConfigStore.instance().repo
    repo[SCHEMA_GROUP] = {**_root_nodes(), **plugins}
    repo["sweep"] = {"scheduler": _installed_schedulers(tuple(schemas.scheduler))}


@lru_cache(maxsize=10)
def _installed_schedulers(names: tuple[str, ...]) -> dict[str, ConfigNode]:
    """Return the options that choose schedulers of other packages, which have no files in ``configs/``."""
    group, own = "sweep/scheduler", builtin_config_dir() / "sweep" / "scheduler"
    files = [f"{name}.yaml" for name in names if not (own / f"{name}.yaml").is_file()]
    return {file: _node(file, {"type": file.removesuffix(".yaml")}, group, None) for file in files}


@cache
def _root_nodes() -> dict[str, ConfigNode]:
    """Return the nodes of the base and of the root's schema, of which Hydra's store hands out copies."""
    nodes = {"base.yaml": BASE, "config.yaml": RtrainConf}
    return {file: _node(file, node, SCHEMA_GROUP, "_global_") for file, node in nodes.items()}


@lru_cache(maxsize=100)
def _plugin_node(file: str, conf: type, group: str) -> ConfigNode:
    return _node(file, typed_conf(file.removesuffix(".yaml"), conf), group, None)


def _node(file: str, content: Any, group: str, package: str | None) -> ConfigNode:
    node = with_flags(with_units(OmegaConf.structured(content)))
    _open_mappings(node)
    return ConfigNode(name=file, node=node, group=group, package=package, provider="rtrain")


def _open_mappings(node: DictConfig) -> None:
    """Let mappings of dataclasses take plain mappings, key by key too, which OmegaConf refuses; schemas check them."""
    for _, _, child in children(node):
        if isinstance(child, DictConfig):
            if is_dataclass(child._metadata.element_type):
                child._metadata.element_type = Any
            _open_mappings(child)


def open_keys(schemas: Schemas) -> set[str]:
    """Return the keys below which any key may be set without a ``+``.

    They are sections that may be null, mappings whose names the plugin or its library checks, and values that may be a
    mapping, as ``dataset.path``. Two kinds are left out: choices of config groups, where a wrong key is better reported
    immediately, and fields with ``checked`` False in their metadata, where no check would report it.
    """
    own = {"datasets", *(key for key, hint, _ in _own_fields() if _is_free(hint))}
    return own | {
        key
        for key, hint, metadata in _plugin_fields(schemas)
        if key.replace(".", "/") not in GROUPS.values()
        and (_is_section(hint) or (_is_free(hint) and metadata.get("checked", True)))
    }


def free_keys(schemas: Schemas) -> set[str]:
    """Return the keys of plugins whose values are mappings with any keys, some of which want a ``+``."""
    return {key for key, hint, _ in _plugin_fields(schemas) if _is_free(hint) and not _is_section(hint)}


def users_keys(schemas: Schemas) -> set[str]:
    """Return the keys of plugins whose values are mappings with names that only the user's own code knows."""
    return {key for key, _, metadata in _plugin_fields(schemas) if not metadata.get("checked", True)}


def _own_fields() -> Iterator[tuple[str, Any, Mapping[Any, Any]]]:
    """Yield the fields of the sections that no plugin owns."""
    hints = hints_of(RtrainConf)
    for one in fields(RtrainConf):
        if is_dataclass(hints[one.name]):
            yield from _fields(hints[one.name], one.name)


def _plugin_fields(schemas: Schemas) -> Iterator[tuple[str, Any, Mapping[Any, Any]]]:
    for group in PLUGIN_GROUPS:
        for conf in schemas.group(group).values():
            yield from _fields(conf, group)


def _fields(conf: type, where: str) -> Iterator[tuple[str, Any, Mapping[Any, Any]]]:
    """Yield key, type and metadata of each field of a dataclass and those in it."""
    hints = hints_of(conf)
    for one in fields(conf):
        key, hint = f"{where}.{one.name}", dict if may_be_mapping(conf, one.name) else hints[one.name]
        if isinstance(hint, type) and is_dataclass(hint):
            yield from _fields(hint, key)
        else:
            yield key, hint, one.metadata


def knows_plugin(group: str, name: str) -> bool:
    """Return whether the store has the schema of the plugin ``name``."""
    return ConfigStore.instance().get_type(f"{SCHEMA_GROUP}/{group}/{name}.yaml") == ObjectType.CONFIG


def plugin_names(group: str) -> list[str]:
    """Return the plugins of a group whose schemas the store has; none before it has any."""
    return [file.removesuffix(".yaml") for file in ConfigStore.instance().repo.get(SCHEMA_GROUP, {}).get(group, {})]


def schema_of(group: str, name: str, package: str) -> str:
    """Return the entry of a defaults list that places a plugin's schema at ``package``."""
    return f"/{SCHEMA_GROUP}/{group}/{name}@{package}"


class _PluginNodes(dict[str, Any]):
    """A folder of Hydra's store that makes the node of a plugin when it is first asked for it."""

    def __init__(self, confs: Mapping[str, type], group: str) -> None:
        super().__init__({f"{name}.yaml": None for name in confs})
        self._confs, self._group = confs, group

    def __getitem__(self, file: str) -> Any:
        if super().__getitem__(file) is None:
            self[file] = _plugin_node(file, self._confs[file.removesuffix(".yaml")], self._group)
        return super().__getitem__(file)


def typed_conf(name: str, conf: type) -> type:
    """Return ``conf`` as Hydra composes it: with the key ``type``, and with free nodes that can be replaced or null."""
    hints = hints_of(conf)
    free: list[tuple[str, Any, Any]] = [
        (one.name, Any, _same_default(one)) for one in fields(conf) if one.init and _is_free(hints[one.name])
    ]
    return make_dataclass(conf.__qualname__, [("type", str, name), *free], bases=(conf,), kw_only=True)


def _is_free(hint: Any) -> bool:
    if _is_union(hint):
        return _is_section(hint) or all(one is type(None) or _is_free(one) for one in get_args(hint))
    return hint is dict or get_origin(hint) is dict


def _is_section(hint: Any) -> bool:
    """Return whether ``hint`` is a dataclass or null; OmegaConf can't merge keys into such a node while it is null."""
    return _is_union(hint) and any(is_dataclass(one) for one in get_args(hint))


def _is_union(hint: Any) -> bool:
    return get_origin(hint) in (Union, UnionType)


def _same_default(one: Field[Any]) -> Any:
    if one.default_factory is not MISSING:
        return field(default_factory=one.default_factory)
    return field() if one.default is MISSING else field(default=one.default)
