"""Options of the config group ``dataset`` for one of several data sets: ``dataset@datasets.train: csv``.

A data set of ``datasets`` has other keys than ``dataset``: none for labels, splits and how rows are prepared. The same
files serve both, so what they say of these keys is left out where it is only the default.
"""

from __future__ import annotations

from dataclasses import replace

from hydra.core.config_store import ConfigStore
from hydra.core.default_element import ResultDefault
from hydra.plugins.config_source import ConfigResult
from omegaconf import DictConfig, OmegaConf

from rtrain.config.compose.nodes import children, plain, unresolved
from rtrain.config.compose.sources.store import SCHEMA_GROUP, knows_plugin
from rtrain.config.files.locations import builtin_config_dir

SEVERAL = "datasets."
SCHEMAS = f"{SCHEMA_GROUP}/dataset/"


def as_part(result: ConfigResult, default: ResultDefault) -> ConfigResult:
    """Return a config as it is to be merged: an option of ``dataset`` without the keys that have no effect there.

    Args:
        result: What the file, or the schema of a source, says, at its place.
        default: The entry of the defaults list.
    """
    path, place = default.config_path or "", default.package or ""
    if not place.startswith(SEVERAL) or not isinstance(result.config, DictConfig):
        return result
    if path.startswith(SCHEMAS):
        return replace(result, config=OmegaConf.create())  # what is checked is the result
    group, _, option = path.removesuffix(".yaml").partition("/")
    config = result.config.copy()
    node = OmegaConf.select(config, place)
    name = node.get("type", option) if isinstance(node, DictConfig) else None
    if group == "dataset" and isinstance(name, str) and knows_plugin("datasets", name):
        _leave_out_defaults(node, _schema("datasets", name), _schema("dataset", name))
        if result.path.endswith(str(builtin_config_dir())):
            node.pop("split", None)  # for sources whose rows have no columns
    return replace(result, config=config)


def _leave_out_defaults(node: DictConfig, known: DictConfig, usual: DictConfig) -> None:
    """Drop the keys that are not among ``known`` and have the values of ``usual``."""
    said, kept, defaults = (plain(one, unresolved) for one in (node, known, usual))
    for _, key, child in children(node):
        if key in defaults and key not in kept and (child._is_missing() or said[key] == defaults[key]):
            del node[key]


def _schema(group: str, name: str) -> DictConfig:
    """Return the schema of a source with its defaults."""
    node = ConfigStore.instance().load(f"{SCHEMA_GROUP}/{group}/{name}.yaml").node
    assert isinstance(node, DictConfig)
    return node
