"""The keys that a config may have, as far as its plugins tell them: known ones, and where any may be added."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

from omegaconf import DictConfig

from rtrain.config.compose.aliases import CHOOSABLE, GROUPS, KEYS, expand_key, split_word
from rtrain.config.compose.request import Request
from rtrain.config.compose.sources.store import free_keys, users_keys
from rtrain.config.diagnostics.meant.composition import Composition, leaves
from rtrain.config.diagnostics.meant.keys.schema_keys import all_confs, all_keys, group_and_name, names_of, plugins_with
from rtrain.config.diagnostics.meant.keys.suggest import Keys, elsewhere
from rtrain.config.schema import Schemas
from rtrain.config.targets.parameters import arguments_of, library_of, targets_of

SCHEDULER = "sweep.scheduler"
FREE_OF_HYDRA = ("hydra.job.env_set", "hydra.callbacks")
"""Settings of Hydra's whose names are the user's."""
UNLISTED = ("defaults", "hydra", "sweep")
"""Sections of a file whose keys are not all known: those of Hydra, and of the search that a sweep chooses."""


class KnownKeys:
    """The keys of one config.

    Args:
        request: What was asked for.
        schemas: Of all plugins.
        composition: The config without the user's values.
    """

    def __init__(self, request: Request, schemas: Schemas, composition: Composition) -> None:
        self._request, self._schemas, self._composition = request, schemas, composition

    def other_plugin(self, key: str) -> str | None:
        """Return the line that says that the user has chosen a plugin for which the config is not written."""
        (group, name), words = group_and_name(key), (word for word in self._request.words if "{" not in word.text)
        chosen = next((word.text for word in words if word.key == key.partition(".")[0]), None)
        own = self._schemas.group(group).get(split_word(chosen)[2] or "") if group and chosen else None
        known = plugins_with(key, self._schemas) if name not in names_of(own) else None
        return f"{self._request.primary.name} is not written for {chosen}: {known}" if chosen and known else None

    def of_other_plugins(self, key: str) -> str | None:
        """Return the line that names the plugins that have ``key``, if the chosen one lacks it."""
        group, name = group_and_name(key)
        own = self._conf(group) if group in CHOOSABLE else self._scheduler
        if group and name in names_of(own):
            return None
        return plugins_with(key, self._schemas)

    def list_of_keys(self, key: str, own: Sequence[str] = ()) -> str:
        """Return the line that says which keys there are, where ``key`` was set."""
        if own:
            return f"available: {', '.join(sorted(own))}"
        parent = key.rpartition(".")[0]
        section, there = key.partition(".")[0], self.below(parent)
        name = self._composition.chosen.get(section)
        if section in ("trainer", "dataset") and name and (parent == section or not there):
            return f"all its keys: rtrain {section}s {name}"
        while parent and not there:
            parent = parent.rpartition(".")[0]
            there = self.below(parent)
        trainer = self._composition.chosen["trainer"] if not parent else None
        return f"available: {', '.join(there)}" + (f"; below trainer: rtrain trainers {trainer}" if trainer else "")

    def below(self, parent: str) -> list[str]:
        """Return the names of the keys right below one, or of the sections."""
        known = self._composition.keys_of_hydra if parent.partition(".")[0] == "hydra" else self.keys.known
        names = {key.rpartition(".")[2] for key in known if key.rpartition(".")[0] == parent}
        return sorted(names - ({"hydra", *KEYS, *GROUPS} if not parent else set()))

    def knows(self, key: str) -> bool:
        """Return whether there is a key, or any may be added there."""
        return self.is_free(key) or any(f"{one}.".startswith(f"{key}.") for one in self.keys.known)

    @property
    def unknown(self) -> Iterator[str]:
        """The unknown keys of the primary config."""
        return self.unknown_in(self._composition.files[0])

    def unknown_in(self, data: Mapping[str, Any], parent: str = "") -> Iterator[str]:
        """Yield the unknown keys of a file that has the keys of a whole config; of an unknown section the section."""
        for name, value in data.items():
            key = expand_key(str(name)) if not parent else f"{parent}.{name}"
            if key in UNLISTED:
                continue
            if not self.knows(key):
                yield key
            elif isinstance(value, Mapping) and self.below(key) and not self._has_any_names(key):
                yield from self.unknown_in(value, key)

    def _has_any_names(self, key: str) -> bool:
        return self.is_free(key) or self.keys.has_any_names(key)

    def is_free(self, parent: str) -> bool:
        """Return whether any key may be added below ``parent``."""
        return any(f"{parent}.".startswith(f"{key}.") for key in self.free)

    def is_users(self, parent: str) -> bool:
        """Return whether only the user's own code knows the keys below ``parent``."""
        return any(f"{parent}.".startswith(f"{one}.") for one in ("vars", *users_keys(self._schemas)))

    @cached_property
    def free(self) -> tuple[str, ...]:
        """The keys below which any may be added."""
        return ("vars", *FREE_OF_HYDRA, *free_keys(self._schemas))

    @cached_property
    def keys(self) -> Keys:
        """What could have been meant: keys of the schemas, and of the config without the user's values."""
        chosen, nodes = self._composition.chosen, self._composition.nodes or {}
        found = [*all_keys(self._schemas, chosen["trainer"], chosen["dataset"]), *leaves(nodes)]
        there = set(found)
        known = [key for key in found if expand_key(key) in there]
        trainer, conf = nodes.get("trainer"), self._conf("trainer")
        confs, scheduler = all_confs(self._schemas, chosen), self._scheduler
        return Keys(
            [*known, *(f"{SCHEDULER}.{name}" for name in names_of(scheduler))],
            confs if scheduler is None else [*confs, (SCHEDULER, scheduler)],
            targets_of(trainer),
            lambda: library_of(conf),
            lambda: arguments_of(trainer),
            [
                f"{one}.{name}"
                for one in CHOOSABLE
                for conf in self._schemas.group(one).values()
                for name in names_of(conf)
            ],
            lambda key: elsewhere(key, None, self._schemas) is not None,
        )

    def _conf(self, group: str) -> type | None:
        """The dataclass of keys of the plugin that is chosen."""
        return self._schemas.group(group).get(self._composition.chosen[group] or "")

    @property
    def _scheduler(self) -> type | None:
        """The dataclass of keys of the scheduler that a sweep has chosen."""
        typed = [split_word(word.text)[2] or "" for word in self._request.words if word.key == "sweep/scheduler"]
        if typed:
            return self._schemas.scheduler.get(typed[-1])
        sweep = (self._composition.nodes or {}).get("sweep")
        node = sweep.get("scheduler") if isinstance(sweep, DictConfig) else None
        return self._schemas.scheduler.get(node.get("type", "")) if isinstance(node, DictConfig) else None
