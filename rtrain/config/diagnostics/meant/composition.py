"""What a config is without the user's values: the plugins that it chooses, its nodes, its files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any

from hydra.errors import HydraException
from omegaconf import DictConfig
from omegaconf.errors import OmegaConfBaseException

from rtrain.config.compose.aliases import CHOOSABLE
from rtrain.config.compose.nodes import Container, children, full_key
from rtrain.config.compose.request import Request, prepare
from rtrain.config.compose.sources.store import DEFAULT_PLUGINS
from rtrain.config.files.yaml_file import read_yaml
from rtrain.errors import ConfigError


class Composition:
    """A config with the options that the user chose, and none of their values.

    Args:
        request: What was asked for.
    """

    def __init__(self, request: Request) -> None:
        self._request = request

    @cached_property
    def chosen(self) -> dict[str, str | None]:
        """The plugin of each group."""
        found: dict[str, str | None] = {}
        for group in CHOOSABLE:
            node = self.nodes.get(group) if self.nodes is not None else None
            usual = DEFAULT_PLUGINS.get(group)
            if isinstance(node, DictConfig):
                found[group] = node.get("type", usual)
            else:
                is_left_out = self.nodes is not None and group not in self.nodes
                found[group] = usual if is_left_out else self._declared(group)
        return found

    def _declared(self, group: str) -> str | None:
        """Return the plugin that the files name, where they can't be composed."""
        sections, options = self.files
        node = sections.get(group)
        named = [path.partition("/")[2] for path in options if path.startswith(f"{group}/") and path.count("/") == 1]
        own = str(node["type"]) if isinstance(node, dict) and "type" in node else None
        return own or next(iter(named), DEFAULT_PLUGINS.get(group))

    @cached_property
    def files(self) -> tuple[Mapping[str, Any], list[str]]:
        """What the primary config says, and the paths of the options that it chooses; nothing if it can't be read."""
        try:
            sections = read_yaml(self._request.primary.path)[0]
            return sections, [one.config_path or "" for one in self._request.app.defaults([])]
        except (HydraException, OmegaConfBaseException, ValueError, ConfigError):
            return {}, []

    @cached_property
    def nodes(self) -> Mapping[str, Any] | None:
        """The nodes of the config without the user's values; None if it can't be composed."""
        return (
            None if self._cfg is None else {str(key): self._cfg._get_node(key) for key in self._cfg if key != "hydra"}
        )

    @cached_property
    def own_nodes(self) -> Mapping[str, Any]:
        """The nodes of the files alone, without the options that the user chose; none if they can't be composed."""
        try:
            cfg = prepare(self._request.config, (), self._request.config_dir).app.compose([])
        except (HydraException, OmegaConfBaseException, ValueError, ConfigError):
            return {}
        return {str(key): cfg._get_node(key) for key in cfg if key != "hydra"}

    @cached_property
    def keys_of_hydra(self) -> list[str]:
        """The full keys of Hydra's own settings."""
        return [] if self._cfg is None else list(leaves(self._cfg.hydra, "hydra"))

    @cached_property
    def _cfg(self) -> DictConfig | None:
        choices = [word.text for word in self._request.words if self._request.is_choice(word)]
        for words in (choices, []) if choices else ([],):
            try:
                return self._request.app.compose(words)
            except (HydraException, OmegaConfBaseException, ValueError, ConfigError):
                continue
        return None


def leaves(nodes: Any, path: str = "") -> Iterator[str]:
    """Yield the full keys of nodes, and of all that is in them."""
    pairs = nodes.items() if isinstance(nodes, dict) else ((name, child) for name, _, child in children(nodes))
    for name, child in pairs:
        full = full_key(path, str(name))
        yield full
        if isinstance(child, Container):
            yield from leaves(child, full)
