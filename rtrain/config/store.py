"""What every config starts from: the schema of the root, the schemas of the plugins, and Hydra's own settings."""

from __future__ import annotations

from dataclasses import MISSING, Field, field, fields, make_dataclass
from typing import Any, Union, get_args, get_origin, get_type_hints

from hydra.core.config_store import ConfigStore
from hydra.core.object_type import ObjectType

from rtrain.config.schema import RtrainConf, Schemas

SCHEMA_GROUP = "rtrain_schema"
PLUGIN_GROUPS = ("trainer", "dataset")
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
    store = ConfigStore.instance()
    store.repo.pop(SCHEMA_GROUP, None)
    store.store(group=SCHEMA_GROUP, name="base", node=BASE, package="_global_", provider="rtrain")
    store.store(group=SCHEMA_GROUP, name="config", node=RtrainConf, package="_global_", provider="rtrain")
    for group in PLUGIN_GROUPS:
        for name, conf in schemas.group(group).items():
            node = typed_conf(name, conf)
            store.store(group=f"{SCHEMA_GROUP}/{group}", name=name, node=node, provider="rtrain")


def knows_plugin(group: str, name: str) -> bool:
    """Return whether the store has the schema of the plugin ``name``."""
    return ConfigStore.instance().get_type(f"{SCHEMA_GROUP}/{group}/{name}.yaml") == ObjectType.CONFIG


def schema_of(group: str, name: str, package: str) -> str:
    """Return the entry of a defaults list that places a plugin's schema at ``package``."""
    return f"/{SCHEMA_GROUP}/{group}/{name}@{package}"


def typed_conf(name: str, conf: type) -> type:
    """Return ``conf`` as Hydra composes it: with the key ``type``, and with free nodes that can be replaced or null."""
    hints = get_type_hints(conf)
    free: list[tuple[str, Any, Any]] = [
        (one.name, Any, _same_default(one)) for one in fields(conf) if one.init and _is_free(hints[one.name])
    ]
    return make_dataclass(conf.__qualname__, [("type", str, name), *free], bases=(conf,), kw_only=True)


def _is_free(hint: Any) -> bool:
    if get_origin(hint) is Union or type(hint).__name__ == "UnionType":
        return all(one is type(None) or _is_free(one) for one in get_args(hint))
    return hint is dict or get_origin(hint) is dict


def _same_default(one: Field[Any]) -> Any:
    if one.default_factory is not MISSING:
        return field(default_factory=one.default_factory)
    return field() if one.default is MISSING else field(default=one.default)
