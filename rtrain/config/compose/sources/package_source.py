"""Hydra's sources ``pkg://`` and ``structured://``, which import no module because a config names it.

They have the names of the classes that they replace: Hydra tells its sources by these.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

from hydra._internal.core_plugins import importlib_resources_config_source, structured_config_source
from hydra._internal.sources_registry import SourcesRegistry
from hydra.core.object_type import ObjectType
from hydra.plugins.config_source import ConfigLoadError, ConfigResult

from rtrain.config.compose.sources.kept import Content, Same
from rtrain.config.did_you_mean import to_try
from rtrain.errors import ConfigError

_CONFIGS = "hydra.searchpath"
"""How Hydra's names of the sources begin that a config or a command line adds."""


def use_package_sources() -> None:
    """Have Hydra use the sources of this module; a second call changes nothing."""
    types = SourcesRegistry.instance().types
    types.update({one.scheme(): one for one in (ImportlibResourcesConfigSource, StructuredConfigSource)})


class ImportlibResourcesConfigSource(importlib_resources_config_source.ImportlibResourcesConfigSource):
    """The YAML files of a package, read in its folder; Hydra's own source imports the package to find it."""

    def __init__(self, provider: str, path: str) -> None:
        super().__init__(provider=provider, path=path)
        self.folders = package_folders(self.path)

    def available(self) -> bool:
        """Return whether there is such a package."""
        return any((folder / "__init__.py").is_file() for folder in self.folders)

    def is_group(self, config_path: str) -> bool:
        """Return whether ``config_path`` is a config group here."""
        return any((folder / config_path).is_dir() for folder in self.folders)

    def is_config(self, config_path: str) -> bool:
        """Return whether ``config_path`` is a config here."""
        return self._file(config_path) is not None

    def load_config(self, config_path: str) -> ConfigResult:
        """Return a config."""
        return self.content(config_path).load()

    def content(self, config_path: str) -> Content:
        """Return what the file of a config says."""
        file = self._file(config_path)
        if file is None:
            raise ConfigLoadError(f"Config not found : {self._normalize_file_name(config_path)}")
        of = (self.path, self.provider, file, file.read_bytes())
        return Content(of, lambda: self._read_config(file))

    def list(self, config_path: str, results_filter: ObjectType | None) -> list[str]:
        """Return the names of the groups and configs below the group ``config_path``."""
        found: list[str] = []
        for folder in self.folders:
            for path in (folder / config_path).iterdir() if (folder / config_path).is_dir() else ():
                inner = f"{config_path}/{path.name}" if config_path else path.name
                self._list_add_result(found, inner, path.name, results_filter)
        return sorted(set(found))

    def _file(self, config_path: str) -> Path | None:
        name = self._normalize_file_name(config_path)
        return next((folder / name for folder in self.folders if (folder / name).is_file()), None)


class StructuredConfigSource(structured_config_source.StructuredConfigSource):
    """The configs that code has stored, without a module that would have to be imported first."""

    def __init__(self, provider: str, path: str) -> None:
        if provider.startswith(_CONFIGS) and path.partition("://")[2]:
            raise ConfigError(
                f"hydra.searchpath: {path} would import a module.",
                "  " + to_try("a folder of YAML files, or pkg://PACKAGE"),
            )
        super().__init__(provider=provider, path=path)

    def content(self, config_path: str) -> Content:
        """Return what the stored node of a config is."""
        name = self._normalize_file_name(config_path)
        stored = self.store._load(name)
        of = (self.path, self.provider, stored.provider, stored.package, Same(stored.node))
        return Content(of, lambda: self.load_config(config_path))

    def __deepcopy__(self, memo: dict[int, Any]) -> StructuredConfigSource:
        """Return the source itself, which never changes: Hydra copies its sources, all stored configs with them."""
        return self


def package_folders(name: str) -> list[Path]:
    """Return the folders of the package with a dotted name; none if there is no such package."""
    top, *inner = name.split(".")
    try:
        spec = find_spec(top)  # of a name without dots: nothing is imported
    except (ValueError, ImportError):
        return []
    roots = (spec.submodule_search_locations if spec else None) or []
    return [folder for folder in (Path(root, *inner) for root in roots) if folder.is_dir()]
