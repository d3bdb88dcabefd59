"""Hydra's config source of rtrain: YAML files whose defaults lists need no word about schemas or aliases."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlencode

from hydra.core.object_type import ObjectType
from hydra.plugins.config_source import ConfigLoadError, ConfigResult, ConfigSource
from omegaconf import OmegaConf

from rtrain.config.compose.aliases import CHOOSABLE, expand_defaults, expand_keys
from rtrain.config.compose.shapes import check_shape
from rtrain.config.compose.sources.kept import Content
from rtrain.config.compose.sources.store import (
    DEFAULT_PLUGINS,
    PLUGIN_GROUPS,
    SCHEMA_GROUP,
    knows_plugin,
    plugin_names,
    schema_of,
)
from rtrain.config.diagnostics.screen import render
from rtrain.config.did_you_mean import to_try
from rtrain.config.files.home import expanded
from rtrain.config.files.locations import builtin_config_dir, nearest_line, shown
from rtrain.config.files.yaml_file import YamlFile, read_yaml
from rtrain.errors import ConfigError

SCHEME = "rtrain"


def source_uri(
    folder: Path, primary: str | None = None, replaced: tuple[str, ...] = (), overriding: tuple[str, ...] = ()
) -> str:
    """Return the address of ``folder`` on Hydra's search path.

    The settings travel in it, not in a variable: launchers compose again in other processes.

    Args:
        folder: The folder of config files.
        primary: Name of the primary config, if it lies in this folder.
        replaced: Key paths whose inline value gives way to a chosen group option.
        overriding: Groups whose plain entry in the primary's defaults list overrides the one of another file.
    """
    settings = {"primary": primary or (), "replaced": replaced, "overriding": overriding}
    query = urlencode(settings, doseq=True)
    return f"{SCHEME}://{folder}#{query}"  # the last sign of this kind: the folder may have others


class RtrainSource(ConfigSource):
    """A folder of YAML files; rtrain's own has an option for each installed plugin, too, which is its defaults."""

    def __init__(self, provider: str, path: str) -> None:
        super().__init__(provider=provider, path=path)
        self.path, sign, query = self.path.rpartition("#")
        assert sign, f"{path}: made by source_uri"
        settings = parse_qs(query)
        self.folder = Path(self.path)
        self.primary = settings.get("primary", [""])[0]
        self.replaced = tuple(settings.get("replaced", []))
        self.overriding = tuple(settings.get("overriding", []))

    @staticmethod
    def scheme() -> str:
        """Return the scheme of the addresses on the search path."""
        return SCHEME

    def available(self) -> bool:
        """Return whether the folder exists."""
        return self.folder.is_dir()

    def is_group(self, config_path: str) -> bool:
        """Return whether ``config_path`` is a config group here."""
        return (self.folder / config_path).is_dir()

    def is_config(self, config_path: str) -> bool:
        """Return whether ``config_path`` is a config here."""
        group, _, name = config_path.removesuffix(".yaml").rpartition("/")
        return self.file_of(config_path).is_file() or name in self._plugins(group)

    def list(self, config_path: str, results_filter: ObjectType | None) -> list[str]:
        """Return the names of the groups and configs below the group ``config_path``."""
        found: list[str] = []
        for path in (self.folder / config_path).iterdir():
            if path.is_dir() or path.suffix == ".yaml":
                inner = f"{config_path}/{path.name}" if config_path else path.name
                self._list_add_result(found, inner, path.name, results_filter)
        options = [] if results_filter is ObjectType.GROUP else self._plugins(config_path)
        return sorted({*found, *options})

    def _plugins(self, group: str) -> Sequence[str]:
        """Return the plugins that may be chosen here by their names alone."""
        return plugin_names(group) if group in CHOOSABLE and self.folder == builtin_config_dir() else ()

    def file_of(self, config_path: str) -> Path:
        """Return the file that the config ``config_path`` would be."""
        return self.folder / self._normalize_file_name(config_path)

    def load_config(self, config_path: str) -> ConfigResult:
        """Return the config with schemas in its defaults list and aliases spelled out."""
        return self.content(config_path).load()

    def content(self, config_path: str) -> Content:
        """Return what the file says, with schemas in its defaults list and aliases spelled out."""
        name = config_path.removesuffix(".yaml")
        path = self.file_of(name)
        if not path.is_file() and self.is_config(name):
            return self._plugin(*name.split("/"))
        if not path.is_file():
            raise ConfigLoadError(f"Config not found : {path}")
        data, file = read_yaml(path)
        header = _header(file)
        if name == self.primary:
            self._prepare_primary(data, file)
        elif "/" not in name:
            check_shape(data, file)
            expand_keys(data, file)
            self._choose_search(data)
            _inject(data, file, _inline_schemas(data))
        elif header["package"] == "_global_":
            check_shape(data, file, changes_config=True)
            expand_keys(data, file)
            _inject(data, file, [], relative=False)
        else:
            self._prepare_option(name, data, file)
        return self._content(data, header)

    def _plugin(self, group: str, name: str) -> Content:
        """Return the config that chooses an installed plugin."""
        data = {"defaults": [schema_of(group, name, "_here_"), "_self_"], "type": name}
        return self._content(data, {"package": None})

    def _content(self, data: dict[str, Any], header: dict[str, str | None]) -> Content:
        path = f"{SCHEME}://{self.path}"
        return Content(
            (path, self.provider, header["package"], pickle.dumps(data)),
            lambda: ConfigResult(self.provider, path, OmegaConf.create(data), header),
        )

    def _prepare_primary(self, data: dict[str, Any], file: YamlFile) -> None:
        if not data:
            raise ConfigError(f"{shown(file.path)} is empty.", "  " + to_try("put 'trainer: {type: torch}' into it"))
        check_shape(data, file)
        expand_keys(data, file)
        for keys in self.replaced:
            _forget(data, keys.split("."))
        _localize_searchpath(data, file)
        self._choose_search(data, self.overriding)
        base = [f"/{SCHEMA_GROUP}/base", f"/{SCHEMA_GROUP}/config"]
        _inject(data, file, base + _inline_schemas(data), self.overriding)

    def _prepare_option(self, name: str, data: dict[str, Any], file: YamlFile) -> None:
        group, _, stem = name.partition("/")
        if group not in PLUGIN_GROUPS or "/" in stem:
            _inject(data, file, [], relative=False)
            return
        for keys in self.replaced:
            first, _, rest = keys.partition(".")
            if first == group and rest:
                _forget(data, rest.split("."))
        plugin = data.get("type", stem)
        known = isinstance(plugin, str) and knows_plugin(group, plugin)
        _inject(data, file, [schema_of(group, plugin, "_here_")] if known else [], relative=False)

    def _choose_search(self, data: dict[str, Any], overriding: tuple[str, ...] = ()) -> None:
        """Make options in the defaults list of what the section ``sweep`` chooses, so that other ones take their place.

        The section's other keys are those of any search: they stay.
        """
        if "sweep" in self.replaced:
            data.pop("sweep", None)
        node, defaults = data.get("sweep"), data.get("defaults") or []
        if not isinstance(node, dict) or not isinstance(defaults, list):
            return
        chosen = [{"/sweep/scheduler": node.pop("scheduler")}] if isinstance(node.get("scheduler"), str) else []
        keys = {str(key).split(" ")[-1].lstrip("/") for one in defaults if isinstance(one, dict) for key in one}
        name = node.get("type", None if "sweep" in overriding else DEFAULT_PLUGINS["sweep"])
        if "sweep" not in keys and (builtin_config_dir() / "sweep" / f"{name}.yaml").is_file():
            node.pop("type", None)
            chosen = [{"/sweep": name}, *chosen]
        if chosen:
            data["defaults"] = [*chosen, *defaults]


def _inject(
    data: dict[str, Any], file: YamlFile, entries: list[str], overriding: tuple[str, ...] = (), *, relative: bool = True
) -> None:
    """Put ``entries`` in front of the defaults list, and ``_self_`` behind all but the overrides if absent."""
    defaults = data.get("defaults")
    if defaults is not None and not isinstance(defaults, list):
        message = render("defaults must be a list", spot=file.spot(["defaults"]))
        entries = [f"{key}: {value}, " for key, value in defaults.items()] if isinstance(defaults, dict) else []
        raise ConfigError(message, "  " + to_try(f"defaults: [{''.join(entries)}_self_]"))
    defaults = expand_defaults(defaults or [], relative=relative)
    defaults = [_as_override(one, overriding) for one in defaults]
    if not entries and not defaults:
        data.pop("defaults", None)
        return
    if "_self_" not in defaults:
        defaults = [*defaults, "_self_"]
    plain = [one for one in defaults if not _is_override(one)]
    data["defaults"] = [*entries, *plain, *(one for one in defaults if _is_override(one))]


def _inline_schemas(data: dict[str, Any]) -> list[str]:
    """Return the schemas of the plugins that ``data`` names by ``trainer.type``, ``dataset.type``, ``sweep.type``."""
    found = []
    for group in PLUGIN_GROUPS:
        node = data.get(group)
        plugin = node.get("type") if isinstance(node, dict) else None
        if isinstance(plugin, str) and knows_plugin(group, plugin):
            found.append(schema_of(group, plugin, f"_global_.{group}"))
    return found


def _is_override(entry: Any) -> bool:
    return isinstance(entry, dict) and any(str(key).split(" ")[0] == "override" for key in entry)


def _forget(data: dict[str, Any], keys: list[str]) -> None:
    """Drop the value at ``keys`` if it says by itself what it is, so that a group option can take its place."""
    node: Any = data
    for key in keys[:-1]:
        node = node.get(key) if isinstance(node, dict) else None
    value = node.get(keys[-1]) if isinstance(node, dict) else None
    if isinstance(value, dict) and ("type" in value or "_target_" in value):
        del node[keys[-1]]


def _as_override(entry: Any, groups: tuple[str, ...]) -> Any:
    if isinstance(entry, dict) and len(entry) == 1:
        key, value = next(iter(entry.items()))
        if str(key).lstrip("/") in groups:
            return {f"override {key}": value}
    return entry


def _header(file: YamlFile) -> dict[str, str | None]:
    try:
        return ConfigSource._get_header_dict(file.text[:512])
    except ValueError as error:
        raise ConfigError(f"{shown(file.path)}: {error}", "  " + to_try("# @package _global_")) from None


def _localize_searchpath(data: dict[str, Any], file: YamlFile) -> None:
    """Give folders in ``hydra.searchpath`` the address of this source, so that schemas are injected there too."""
    hydra = data.get("hydra")
    paths = hydra.get("searchpath") if isinstance(hydra, dict) else None
    if isinstance(hydra, dict) and isinstance(paths, list):
        hydra["searchpath"] = [localize(one, file.path.parent) if isinstance(one, str) else one for one in paths]


def localize(path: str, folder: Path) -> str:
    """Return the address of a folder on the search path, which may be relative to here or to ``folder``."""
    bare = path.removeprefix("file://")
    if "://" in bare or "${" in bare:
        return path
    here = expanded(bare)
    found = next((one for one in (Path.cwd() / here, folder / here) if one.is_dir()), None)
    if found is None:
        names = [one.name for one in here.parent.iterdir() if one.is_dir()] if here.parent.is_dir() else []
        raise ConfigError(f"hydra.searchpath: there is no folder {bare}.", nearest_line(here.name, names))
    return source_uri(found.resolve())
