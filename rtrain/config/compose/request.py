"""What one command line asks for, in the words that Hydra needs to do it."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from hydra.core.default_element import GroupDefault
from hydra.errors import ConfigCompositionException, HydraException
from hydra.types import RunMode
from omegaconf import DictConfig
from omegaconf.errors import OmegaConfBaseException

from rtrain.config.compose.aliases import GROUPS, Word, chosen_at, expand, split_word
from rtrain.config.compose.hydra_app import Choices, HydraApp
from rtrain.config.compose.nodes import words_of
from rtrain.config.compose.search_space import read_space
from rtrain.config.compose.sources.config_source import localize
from rtrain.config.compose.sources.store import DEFAULT_PLUGINS
from rtrain.config.files.locations import Primary, find_primary, search_folders
from rtrain.config.files.yaml_file import read_yaml
from rtrain.config.targets.gate import leaves
from rtrain.errors import ConfigError

if TYPE_CHECKING:
    from rtrain.config.calls.call import Call

MAX_REPAIRS = 20
NOT_IN_DEFAULTS = r"Could not override '([\w/@.]+)'\.(?: No match in the defaults list|\nDid you )"
TWO_CHOICES = (r"Multiple values for ([\w/@.]+)\. ", r"([\w/@.]+) appears more than once in the final defaults list")
LIMITED = ("hydra", "cluster", "run", "dataset", "datasets")
"""Sections of which a file may not set everything."""
R = TypeVar("R")


@dataclass(kw_only=True)
class Request:
    """A config, the user's overrides, and what became of them."""

    config: str
    overrides: tuple[str, ...]
    primary: Primary
    folders: list[tuple[str, Path]]
    words: tuple[Word, ...]
    choices: Choices = field(default_factory=Choices)
    config_dir: str | None = None
    """One more folder of config groups."""
    typed: tuple[str, ...] = ()
    """What the user typed before the overrides, where it is not ``rtrain fit CONFIG``."""
    call: Call | None = None
    """The call from Python that asks for it; None: a command does."""
    of_file: bool = False
    """The overrides are those of a file, too: they may do what a file may."""
    swept: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Keys that the config varies in a sweep, and the path of each in the config: ``(sweep, params, lr)``."""
    opened: Callable[[], Collection[str]] = tuple
    """Returns the keys below which any key may be set, whether it is there or not."""
    of_users: Callable[[], Collection[str]] = tuple
    """Returns the keys below which a file may add any key, too: only the user's own code knows the names there."""
    app: HydraApp = field(init=False)
    _lacking: set[str] = field(default_factory=set)
    """Groups that the words of trials choose, and no defaults list has."""

    def __post_init__(self) -> None:
        self.app = HydraApp(self.primary, self.folders, self.choices)

    @property
    def texts(self) -> list[str]:
        """The overrides as Hydra gets them."""
        return [word.text for word in self.words]

    @property
    def set_keys(self) -> set[str]:
        """The keys that the user sets on the command line, or in a mapping; those of mappings one by one."""
        if self.of_file:
            return set()
        own = read_yaml(self.primary.path)[0] if self.primary.given else {}
        given = {leaf for section in LIMITED if section in own for leaf in leaves(section, own[section])}
        named = [(word.key.replace("/", "."), word) for word in self.words]
        words = [(key, word) for key, word in named if key.split(".")[0] in LIMITED]
        return given | {
            leaf for key, word in words for leaf in leaves(key, self.app.parser.parse_override(word.text).value())
        }

    @property
    def command(self) -> list[str]:
        """The command as the user typed it."""
        return [*(self.typed or ("rtrain", "fit", self.config)), *self.overrides]

    @property
    def searched(self) -> list[str]:
        """The folders of ``hydra.searchpath``, of the command or the primary config."""
        words = [word.text for word in self.words if word.key == "hydra.searchpath"]
        text = words[0] if words else self._primary_searchpath()
        return re.findall(r"rtrain://([^'\",\]]+)#", text)

    @property
    def own_options(self) -> list[str]:
        """The configs that the words choose in groups that only the user has: ``experiment/wide``."""
        words = [word for word in self.words if chosen_at(word.key) is None and self.is_choice(word)]
        values = {word.key: split_word(word.text)[2] or "" for word in words}
        return [f"{group}/{name}" for group, value in values.items() for name in re.findall(r"[\w.\-/]+", value)]

    def is_choice(self, word: Word) -> bool:
        """Return whether ``word`` chooses an option of a config group."""
        return any(source.is_group(word.key.partition("@")[0]) for source in self.app.sources)

    def compose(self) -> DictConfig:
        """Return the composed config of the one job."""
        return _repairing(lambda: self.app.compose(self.texts), self._repair)

    def compose_multirun(self) -> tuple[DictConfig, DictConfig]:
        """Return the composed config of the sweep as a whole, and that of a trial with the first value of each axis."""

        def attempt() -> tuple[DictConfig, DictConfig]:
            cfg = self.app.compose(self.texts, RunMode.MULTIRUN)
            words = words_of(cfg.hydra.overrides.task)
            return cfg, self.app.load_trial(cfg, read_space(self.app.loader, words, 0).probe)

        return _repairing(attempt, self._repair)

    def load_trial(self, sweep: DictConfig, words: Sequence[str]) -> DictConfig:
        """Return the config of one trial, whose words may come from a file as well as from the command.

        Args:
            sweep: The composed config of the sweep as a whole.
            words: The overrides of the trial.
        """
        return _repairing(lambda: self.app.load_trial(sweep, self.spelled(words)), self._note_lacking)

    def _note_lacking(self, error: str) -> bool:
        """Remember a group that no defaults list has: trials append it."""
        match = re.match(NOT_IN_DEFAULTS, error)
        if match is None or match[1] in self._lacking:
            return False
        self._lacking.add(match[1])
        return True

    def spelled(self, words: Sequence[str]) -> list[str]:
        """Return the overrides of a trial with the signs that Hydra wants; those of the command have them.

        Those that the config varies may add what its other sections may.
        """
        opened = self._opened if any(map(_is_deep, words)) else ()
        of_users = self.of_users() if self.swept else ()
        forced = [
            _forced(word, (*opened, *of_users) if split_word(word)[1] in self.swept else opened) for word in words
        ]
        return [f"+{word}" if split_word(word)[1] in self._lacking and word[0] != "+" else word for word in forced]

    @cached_property
    def _opened(self) -> Collection[str]:
        return self.opened()

    def _repair(self, error: str) -> bool:
        """Change the words so that a choice of a group works whether or not a defaults list has the group."""
        for pattern, change in (
            (NOT_IN_DEFAULTS, self._append),
            *((pattern, self._override) for pattern in TWO_CHOICES),
            (r"force-add of config groups is not supported: '\+\+([\w/@.]+)=", self._choose),
            (r"Could not delete '([\w/@.]+)(?:=[^']*)?'\. No match", self._drop),
            (r"Could not override '(sweep)\.", self._add_default),
        ):
            match = re.match(pattern, error)
            if match and change(match[1]):
                self.app = HydraApp(self.primary, self.folders, self.choices)
                return True
        return False

    def _append(self, group: str) -> bool:
        """Append the group, since no defaults list has it; groups inside another one come after it."""
        changed = self._reword(group, "", "+")
        for whole in (group.rpartition("/")[0], group):
            outer = next((word for word in self.words if split_word(word.text)[:2] == ("+", whole)), None)
            inner = [word for word in self.words if word.key.startswith(f"{whole}/")]
            if outer is not None:
                rest = [word for word in self.words if word not in inner]
                position = rest.index(outer) + 1
                self.words = (*rest[:position], *inner, *rest[position:])
        return changed

    def _add_default(self, group: str) -> bool:
        """Choose the default of a group, since a key of it is set and no config has it."""
        word = Word(f"+{group}={DEFAULT_PLUGINS[group]}", 0)
        missing = not any(one.key == group for one in self.words) and not self._is_in_a_file(group)
        if missing:
            self.words = (word, *self.words)
        return missing

    def _is_in_a_file(self, section: str) -> bool:
        """Return whether the files say something of a section."""
        others = [word for word in self.words if word.key.partition("/")[0] != section]
        choices = [word.text for word in others if self.is_choice(word)]
        try:
            return self.app.compose(choices).get(section) is not None
        except (HydraException, OmegaConfBaseException, ConfigError):
            return False

    def _choose(self, group: str) -> bool:
        """Choose the group as if it had been typed without ``++``."""
        return self._reword(group, "++", "")

    def _override(self, group: str) -> bool:
        """Override the group instead of appending it, since a defaults list has it."""
        if self._reword(group, "+", ""):
            return True
        before = self.choices
        if not self._collide_by_themselves(group):
            return False
        self.choices = replace(before, overriding=_with(before.overriding, group))
        return self.choices != before

    def _collide_by_themselves(self, group: str) -> bool:
        """Return whether files choose a group twice even without the user's own options, as ``experiment=wide``."""
        if any(group in self._plain_choices(config) for config in self.options_after(group)):
            return False
        if not self.own_options:
            return True
        words = [word.text for word in self.words if not self.is_choice(word)]
        try:
            self.app.compose(words)
        except ConfigCompositionException as error:
            return any((match := re.match(pattern, str(error))) and match[1] == group for pattern in TWO_CHOICES)
        return False

    def options_after(self, group: str) -> Iterator[str]:
        """Yield ``own_options``, and those that the primary lists after its entry of ``group``: they come later."""
        yield from self.own_options
        defaults, is_after = read_yaml(self.primary.path)[0].get("defaults"), False
        pairs = [pair for entry in defaults or [] if isinstance(entry, dict) for pair in entry.items()]
        for key, option in pairs:
            name = str(key).split(" ")[-1].lstrip("/")
            if GROUPS.get(name, name) == group:
                is_after = True
            elif is_after and chosen_at(name) is None:
                yield f"{name}/{option}"

    def _plain_choices(self, config: str) -> set[str]:
        """Return the groups that the defaults list of a config chooses without ``override``."""
        found = self.app.loader.repository.load_config(config)
        entries = [] if found is None else found.defaults_list or []
        return {str(one.group).lstrip("/") for one in entries if isinstance(one, GroupDefault) and not one.override}

    def _drop(self, group: str) -> bool:
        """Leave it at dropping the inline value, since no defaults list has the group; others have no such value."""
        if chosen_at(group) is None:
            return False
        kept = tuple(word for word in self.words if split_word(word.text)[:2] != ("~", group))
        changed = len(kept) < len(self.words)
        self.words = kept
        return changed

    def _reword(self, group: str, sign: str, new_sign: str) -> bool:
        before = self.words
        self.words = tuple(
            replace(word, text=new_sign + word.text[len(sign) :])
            if split_word(word.text)[:2] == (sign, group)
            else word
            for word in before
        )
        return self.words != before

    def _primary_searchpath(self) -> str:
        try:
            data, _ = read_yaml(self.primary.path)
        except ConfigError:
            return ""
        hydra = data.get("hydra")
        paths = hydra.get("searchpath") if isinstance(hydra, dict) else None
        return str([localize(str(path), self.primary.folder) for path in paths]) if isinstance(paths, list) else ""


def _repairing(attempt: Callable[[], R], repair: Callable[[str], bool]) -> R:
    """Return what ``attempt`` does, once ``repair`` has changed what an error of composing names."""
    for _ in range(MAX_REPAIRS):
        try:
            return attempt()
        except ConfigCompositionException as error:
            if not repair(str(error)):
                raise
    return attempt()


def prepare(
    config: str | Primary,
    overrides: Sequence[str],
    config_dir: str | None,
    opened: Callable[[], Collection[str]] = tuple,
    of_users: Callable[[], Collection[str]] = tuple,
) -> Request:
    """Find the config and spell out the overrides.

    Args:
        config: Path or name of the config, or the config itself.
        overrides: The user's overrides.
        config_dir: One more folder of config groups.
        opened: Returns the keys below which any key may be set, whether it is there or not.
        of_users: Returns those below which a file may add any key, too.

    Raises:
        ConfigError: There is no such config.
    """
    primary = config if isinstance(config, Primary) else find_primary(config, overrides)
    keys = opened() if any(map(_is_deep, overrides)) else ()
    words = tuple(
        replace(word, text=_forced(_localized(word.text, primary.folder), keys)) for word in expand(overrides)
    )
    replaced = {place: None for place in (chosen_at(word.key) for word in words) if place is not None}
    if not any(word.text == "~sweep" for word in words):
        replaced.pop("sweep", None)  # what is varied stays, whatever searches
    return Request(
        config=str(primary.path) if isinstance(config, Primary) else config,
        overrides=tuple(overrides),
        primary=primary,
        folders=search_folders(primary, config_dir),
        words=words,
        choices=Choices(replaced=tuple(replaced)),
        config_dir=None if config_dir is None else str(Path(config_dir).absolute()),
        opened=opened,
        of_users=of_users,
    )


def _localized(word: str, folder: Path) -> str:
    """Return ``hydra.searchpath=[...]`` with the addresses of rtrain's config source. Other words are unchanged."""
    sign, key, value = split_word(word)
    if key != "hydra.searchpath" or not value or not value.startswith("["):
        return word
    paths = [path.strip().strip("'\"") for path in value[1:].rstrip("]").split(",")]
    return f"{sign}{key}=[{','.join(repr(localize(path, folder)) for path in paths if path)}]"


def _is_deep(word: str) -> bool:
    """Tell whether a word may set a key below one where any may be set: to know those takes all plugins."""
    return word.partition("=")[0].count(".") > 1 or "={" in word


def _forced(word: str, opened: Collection[str]) -> str:
    sign, key, value = split_word(word)
    if value is None or sign not in ("", "+"):
        return word
    around = value.startswith("{") and any(f"{one}.".startswith(f"{key}.") for one in opened)
    inside = around or any(key.startswith(f"{one}.") for one in opened)
    return f"++{key}={value}" if inside else word


def _with(names: tuple[str, ...], name: str) -> tuple[str, ...]:
    return names if name in names else (*names, name)
