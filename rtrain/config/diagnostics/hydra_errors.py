"""Errors that Hydra and OmegaConf raise while composing, with their location and a hint."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cached_property
from typing import Any

from hydra.errors import MissingConfigException, OverrideParseException
from omegaconf import ListConfig
from omegaconf.errors import ConfigAttributeError, ConfigKeyError, OmegaConfBaseException

from rtrain.config.compose.aliases import CHOOSABLE, GROUPS, chosen_at, expand_key, split_word
from rtrain.config.compose.request import Request
from rtrain.config.diagnostics.defaults_lists import DefaultsLists
from rtrain.config.diagnostics.diagnostic import Diagnostic, can_sweep, command, command_with
from rtrain.config.diagnostics.meant.class_names import by_name, homes_of
from rtrain.config.diagnostics.meant.configs import command_for, command_of_choice
from rtrain.config.diagnostics.meant.examples import lacks_example, node_at
from rtrain.config.diagnostics.meant.keys.refusals import omegaconf_error
from rtrain.config.diagnostics.meant.keys.schema_keys import key_of_class, names_of
from rtrain.config.diagnostics.meant.keys.suggest import closest_group, closest_key, in_full
from rtrain.config.diagnostics.meant.keys.wrong_keys import Check, WrongKeys
from rtrain.config.diagnostics.meant.other_options import own_form
from rtrain.config.diagnostics.meant.rewritten import with_point
from rtrain.config.diagnostics.meant.spelled import of_sweeper
from rtrain.config.diagnostics.meant.unmerged import UNMERGED, unmerged
from rtrain.config.diagnostics.meant.values import Values
from rtrain.config.diagnostics.omegaconf_messages import MIXED, NO_MAPPING, merged_keys, plain_words
from rtrain.config.diagnostics.screen import CliWord, FileLocation
from rtrain.config.diagnostics.source_map import SourceMap
from rtrain.config.diagnostics.unreadable_words import WHOLE, UnreadableWords, varies_within
from rtrain.config.did_you_mean import closest, there_are
from rtrain.config.files.locations import shown
from rtrain.config.schema import Schemas
from rtrain.config.secrets.masked import mask_word


def explain_hydra(request: Request, schemas: Schemas, error: Exception, check: Check) -> Diagnostic:
    """Return what ``error``, raised by Hydra or OmegaConf for ``request``, means to the user.

    Args:
        request: What was asked for.
        schemas: Of all plugins.
        error: What was raised.
        check: Composes and checks the config under other overrides.
    """
    explainer = _Explainer(request, schemas, check)
    if isinstance(error, OverrideParseException):
        return UnreadableWords(explainer.wrong_keys, explainer.values, explainer.places).explain(error.override)
    if isinstance(error, MissingConfigException):
        return explainer.no_option(error)
    return explainer.composition(error)


MOST_OTHERS = 10
"""Unknown keys that an error names after the first one."""
WITH_COMMA = re.compile(r"-?0,\d+|-?\d+,0\d+")
"""A number with a comma for its point; others may be two numbers."""


class _Explainer:
    def __init__(self, request: Request, schemas: Schemas, check: Check) -> None:
        self.request, self.schemas = request, schemas
        self.wrong_keys = WrongKeys(request, schemas, check)
        self.places = SourceMap(request)
        self.lists = DefaultsLists(request, self.places)
        self._check = check

    @cached_property
    def values(self) -> Values:
        """Finds what was meant by wrong values."""
        return Values(self.request, self.wrong_keys.keys, self._check)

    def no_option(self, error: MissingConfigException) -> Diagnostic:
        """Explain an option or a group that no config folder has."""
        missing = error.missing_cfg_file or ""
        group, _, option = missing.rpartition("/")
        parent = re.match(r"In '([^']*)'", str(error))
        place: FileLocation | CliWord | None = self._place_of_choice(group, option)
        if place is None and group.replace("/", ".") in self.request.swept:
            place = self.places.of(group.replace("/", "."))
        if place is None and parent:
            place = self.places.word_in(parent[1], option if error.options else group.rpartition("/")[2] or option)
        options = [one for one in error.options or [] if not one.startswith("_")]
        if not options:
            return self._no_group(group, option, place)
        yml = [path for path in self._folders_of(group) if (path / f"{option}.yml").exists()]
        if yml:
            file = yml[0] / f"{option}.yml"
            return Diagnostic(
                f"{group}/{option}.yml ends in .yml; configs end in .yaml",
                place,
                None,
                shlex.join(["mv", shown(file), shown(file.with_suffix(".yaml"))]),
            )
        message = f"there is no '{option}' in config group '{group}'"
        typed = place if isinstance(place, CliWord) else None
        said = next(in_full(group.rpartition("/")[2], option, self.wrong_keys.keys.confs), None)
        if said is not None and said.sentence is not None:
            return Diagnostic(message, place, note=said.sentence)
        form = own_form(self.wrong_keys, self.schemas, group, option, typed, message)
        if form is not None:
            return replace(form, place=place)
        key = group.replace("/", ".")
        trainer = dict(self.wrong_keys.keys.confs).get("trainer")
        if group in GROUPS.values() and trainer is not None and key.rpartition(".")[2] not in names_of(trainer):
            other = self._of_other_tools(group, option, place) if isinstance(place, CliWord) else None
            if other is not None:
                return Diagnostic(message, place, None, other)
            return self.wrong_keys.explain(key, place, trainer)
        named = [self.wrong_keys.translated(one, option) for one in (f"{key}.type", key)]
        meant = next((one for one in named if one in options), None) or closest(option, options)
        note = there_are(options, most=len(options))
        if group in GROUPS.values():
            note += f"; or a class: {group.rpartition('/')[2]}={{_target_: package.Class}}"
        other = None
        if isinstance(place, CliWord) and not (meant in options and meant in named):
            short = split_word(place.command[place.index])[1]
            forms = [f"{short}={one}" for one in named if one is not None and one not in options]
            other = self.values.checked(place, *forms) or self.values.for_option(group, option, place)
            other = other or self._of_other_tools(group, option, place)
        if other is not None:
            return Diagnostic(message, place, None, other, note)
        is_trainer = group == "trainer" and self.request.primary.builtin
        written = command_for(meant, self.request) if is_trainer and meant else None
        return Diagnostic(message, place, meant, written or self._swapped(place, option, meant), note)

    def _of_other_tools(self, group: str, option: str, place: CliWord) -> str | None:
        """Return the command for a choice that has another name here: ``scheduler=asha``, ``dataset=iris``."""
        for name in (group, group.rpartition("/")[2]):
            for meaning in in_full(name, option, self.wrong_keys.keys.confs):
                word = self.wrong_keys.checked_word(place, "", meaning.key, meaning.value or option)
                if word is not None:
                    return command_with(place, word)
        for plugin, conf in self.schemas.group(group).items() if group in CHOOSABLE else ():
            for meaning in in_full(group, option, [(group, conf)]):
                return self.values.checked(place, [f"{group}={plugin}", f"{meaning.key}={option}"])
        return None

    def composition(self, error: Exception) -> Diagnostic:
        """Explain what went wrong while configs and overrides were merged."""
        text = str(error)
        nameless = next((word for word in self.request.texts if not split_word(word)[1]), None)
        if nameless is not None:
            return Diagnostic(f"'{nameless}' has no key: an override is key=value", self.places.of_word(nameless))
        nested = next((word for word in self.request.texts if varies_within(self.request.app.parser, word)), None)
        if nested is not None:
            key = split_word(nested)[1]
            return Diagnostic(f"{key}: only a part of the value is varied", self.places.of_word(nested), note=WHOLE)
        for pattern, explain in self._known_messages():
            match = re.search(pattern, text, re.DOTALL)
            if match:
                return explain(match, error)
        cause = omegaconf_error(error)
        if cause is not None:
            key = cause.full_key or ""
            return self._bad_value(key, cause, self.places.of(key) if key else None)
        return Diagnostic(plain_words(text) or f"the config can't be composed: {type(error).__name__}")

    def _known_messages(self) -> Iterator[tuple[str, Callable[[re.Match[str], Exception], Diagnostic]]]:
        yield r"^Could not override '([^']*)'\.\s*(?:To append|No match|Did you mean)", self._unknown_word
        yield r"^Error merging override (.*)$", self._bad_word
        yield r"^In '([^']*)': \w+ raised while composing config", self._bad_file
        yield r"^Could not append to config\. An item is already at '([^']*)'", self._already_there
        yield r"^Could not delete from config\. '([^']*)' does not exist", self._nothing_to_delete
        yield r"^Could not delete from config\. The value of '([^']*)' is", self._in_every_config
        yield r"^Could not delete '([^'=]*)", self._nothing_to_delete
        yield r"^Override (\S+) looks like a config group override, but config group '([^']*)'", self._unknown_group
        yield r"^Ambiguous value for argument '(.*?)'\n", self._sweep_without_multirun
        yield r"^Sweep parameters '(.*)' requires", self._sweep_without_multirun
        yield r"^Sweeping over Hydra's configuration is not supported : '(.*)'", self._hydra_sweep
        yield r"^In '([^']*)': Could not override '([^']*)'", self.lists.unused_override
        yield r"^Multiple values for (\S+)\. To override a value use '(.*)'", self.lists.two_choices
        yield r"^(\S+) appears more than once in the final defaults list", self.lists.two_choices
        yield (
            r"^In '?([^':]*)'?: (Override '.*' is defined before|Too many keys|Missing group name)",
            self.lists.bad,
        )
        yield r"^Config group override (?:must be|deletion)", self._group_needs_name

    def _unknown_word(self, match: re.Match[str], error: Exception) -> Diagnostic:
        key = match[1]
        place = self.places.of_word(key) or self.places.of(key)
        if "/" in key:
            return self._no_group(key, "", place)
        cause = omegaconf_error(error)
        inner = cause.full_key or "" if cause is not None else ""
        if cause is not None and inner.startswith(f"{key}."):  # the value is a mapping
            return self._wrong_key(inner, place, cause.object_type)
        return self._wrong_key(key, place)

    def _wrong_key(self, key: str, place: FileLocation | CliWord | None, owner: Any = None) -> Diagnostic:
        found = self.wrong_keys.explain(key, place, owner)
        of_trainer = key.startswith("trainer.") and not isinstance(place, CliWord) and found.note
        written = command_of_choice(self.request) if of_trainer else None
        return found if written is None else replace(found, attempt=written)

    def _bad_word(self, match: re.Match[str], error: Exception) -> Diagnostic:
        key = split_word(match[1])[1]
        place = self.places.of_word(match[1]) or (self.places.of(key) if key in self.request.swept else None)
        cause = omegaconf_error(error)
        if match[1].startswith("~") and "does not support deletion" in str(cause):
            return self._in_every_config(match, error)
        if cause is None:
            return Diagnostic(f"'{match[1]}' can't be set", place)
        if isinstance(cause, ConfigKeyError | ConfigAttributeError):
            return self._wrong_key(cause.full_key or key, place, cause.object_type)
        if place is not None and str(cause.full_key or "").startswith(f"{expand_key(key)}."):  # inside of its mapping
            return Diagnostic(f"{cause.full_key}: {plain_words(cause.msg or str(cause))}", place)
        return self._bad_value(key, cause, place)

    def _bad_file(self, match: re.Match[str], error: Exception) -> Diagnostic:
        cause = omegaconf_error(error)
        if cause is None:
            return Diagnostic(plain_words(str(error)))
        if (twice := self.lists.two_types(match[1], cause)) is not None:
            return twice
        section = re.search(r"is not a subclass of (\w+)", str(cause))
        key = cause.full_key or (key_of_class(section[1], self.schemas) if section else None) or ""
        key = key or ".".join(name for name, _ in merged_keys(cause))
        if (unplaced := self.lists.without_package(key)) is not None:
            return unplaced
        place = self.places.in_config(match[1], key)
        if isinstance(cause, ConfigKeyError | ConfigAttributeError):
            return replace(self._wrong_key(key, place, cause.object_type), others=self._other_unknown(match[1], key))
        return self._bad_value(key, cause, place)

    def _other_unknown(self, config: str, first: str) -> str | None:
        """Return the line that names the other unknown keys of a config, each with its line; None if there are none."""
        if config != self.request.primary.name:
            return None
        found = [key for key in self.wrong_keys.known.unknown if key != first]
        places = {key: self.places.in_config(config, key) for key in found}
        named = [f"{key} (line {place.line + 1})" for key, place in places.items() if place is not None]
        return f"also unknown: {', '.join(named[:MOST_OTHERS])}" if named else None

    def _bad_value(self, key: str, cause: OmegaConfBaseException, place: FileLocation | CliWord | None) -> Diagnostic:
        if isinstance(cause, ConfigKeyError | ConfigAttributeError):
            return self._wrong_key(key, place, cause.object_type)
        problem = plain_words(cause.msg or str(cause))
        if isinstance(place, CliWord):
            if problem.endswith("not {}") and not place.command[place.index].endswith("{}"):  # it has no key below it
                return self._wrong_key(expand_key(split_word(place.command[place.index])[1]), place)
            problem = _of_value(problem, split_word(place.command[place.index])[2] or "")
        if problem == MIXED:
            problem = unmerged(key, place, cause, self.wrong_keys.known, self.request.app)
        note, attempt = self.values.said_of(key, place, problem), None
        if isinstance(place, CliWord) and key:
            attempt = self.values.emptied(key, place) if UNMERGED in problem else self.values.corrected(key, place)
            if attempt is None and note is None and lacks_example(problem):
                note = self.wrong_keys.example(key, place)
        if note is None and attempt is None and problem.startswith("must be a list"):
            note = self.values.list_at(key)
        return Diagnostic(f"{key}: {problem}" if key else problem, place, None, attempt, note)

    def _already_there(self, match: re.Match[str], _: Exception) -> Diagnostic:
        place = self.places.of_word(match[1])
        attempt = command_with(place, place.command[place.index].lstrip("+")) if place else None
        return Diagnostic(f"'{match[1]}' already exists, so + can't add it", place, None, attempt)

    def _nothing_to_delete(self, match: re.Match[str], _: Exception) -> Diagnostic:
        key = match[1]
        place = self.places.of_word(f"~{key}") or self.places.of_word(key)  # another word may set it
        meant = closest_key(key, self.wrong_keys.keys.known)
        attempt = command_with(place, *([f"~{meant}"] if meant else [])) if place else None
        return Diagnostic(f"there is no '{key}' to remove", place, meant, attempt)

    def _in_every_config(self, match: re.Match[str], _: Exception) -> Diagnostic:
        """Explain that ~ cannot remove a key that every config has: it may be null, or have its default."""
        key = expand_key(split_word(match[1].lstrip("~"))[1])
        place = self.places.of_word(f"~{key}") or self.places.of_word(match[1])
        attempt = self.values.checked(place, f"{key}=null") if isinstance(place, CliWord) else None
        note = None if attempt else "remove this override, or set the key to another value"
        return Diagnostic(f"{key}: every config has this key, so ~ can't remove it", place, None, attempt, note)

    def _unknown_group(self, match: re.Match[str], _: Exception) -> Diagnostic:
        word, group = match[1], match[2]
        place = self.places.of_word(word)
        meant = closest_group(group, self.request.app.groups())
        return Diagnostic(f"there is no config group '{group}'", place, meant, self._swapped(place, group, meant))

    def _no_group(self, group: str, option: str, place: FileLocation | CliWord | None) -> Diagnostic:
        if not group:
            meant = closest(option, [path.stem for folder in self._folders_of("") for path in folder.glob("*.yaml")])
            return Diagnostic(f"there is no config '{option}'", place, meant, self._swapped(place, option, meant))
        if group in GROUPS.values() and isinstance(place, CliWord):
            return self._no_options(group.replace("/", "."), place)
        groups = [one for one in self.request.app.groups() if not one.startswith("rtrain_schema")]
        hydra = "hydra/" if group.startswith("hydra/") else ""
        groups = [one for one in groups if one.startswith("hydra/") == bool(hydra) and one != "hydra"]
        near = closest_group(group.removeprefix(hydra), [one.removeprefix(hydra) for one in groups])
        meant = None if near is None else f"{hydra}{near}"
        there = there_are(sorted(groups)) if meant is None else None
        message = f"there is no config group '{group}'"
        return Diagnostic(message, place, meant, self._swapped(place, group, meant), there)

    def _no_options(self, key: str, place: CliWord) -> Diagnostic:
        """Explain a choice where several parts are built, each with a name."""
        value = split_word(place.command[place.index])[2]
        homes = homes_of(dict(self.wrong_keys.keys.confs).get("trainer"), f"{key}.NAME")
        said = self.values.said_of(key, place, "")
        meant = self.wrong_keys.translated(key, value)
        forms = [meant] if meant is not None else by_name(value or "", homes)
        attempt = self.values.checked(place, *(f"{key}={one}" for one in forms)) if said is None else None
        note = said or f"add each by name: +{key}.NAME={{_target_: {next(iter(homes), 'package')}.CLASS}}"
        message = f"{key}: there are no options to choose from"
        return Diagnostic(message, place, None, attempt, note if attempt is None else None)

    def _sweep_without_multirun(self, match: re.Match[str], _: Exception) -> Diagnostic:
        place = self.places.of_word(match[1])
        value = split_word(match[1])[2] or ""
        word = match[1] if place is None else place.command[place.index]
        message, key = f"'{word}' has several values", split_word(word)[1]
        is_choice = chosen_at(split_word(match[1])[1]) is not None
        if place is not None and not is_choice and "/" not in key and not self.wrong_keys.known.knows(expand_key(key)):
            return self._several_of_unknown(key, value, place)
        number = self.values.checked(place, *(f"{key}={one}" for one in with_point(value))) if place else None
        several = command(self.request, "--multirun") if can_sweep(self.request.command) else None
        if number is not None and WITH_COMMA.fullmatch(value):
            note = None if several is None else f"or train with each: {several}"
            return Diagnostic(f"{message}; a number can't contain a comma", place, None, number, note)
        note = f"or, for a single value, a list: [{value}]" + (f", or a number: {number}" if number else "")
        listed = self.values.checked(place, f"{key}=[{value}]") if place else None
        is_list = isinstance(node_at(self.wrong_keys.composed, expand_key(key)), ListConfig)
        if listed is not None and (is_list or self.values.list_at(expand_key(key)) is not None):
            note = "put a list in brackets" + ("" if several is None else "; or train with each value: --multirun")
            return Diagnostic(message, place, None, listed, note)
        first = f"{key}={value.partition(',')[0]}"
        may_be = place is None or re.search(r"[\[({]", value) or self.values.checked(place, first)
        return Diagnostic(message, place, None, several if may_be else None, note)

    def _several_of_unknown(self, key: str, value: str, place: CliWord) -> Diagnostic:
        """Explain an unknown key by the first of its values, and sweep over all of them."""
        if (own := of_sweeper(f"{key}={value}")) is not None:
            attempt = f"{command_with(place, own)} --multirun" if can_sweep(place.command) else None
            return Diagnostic(f"there is no key '{key}'", place, None, attempt)
        number = next(iter(with_point(value)), None) if WITH_COMMA.fullmatch(value) else None
        word = f"{key}={number or value.partition(',')[0]}"
        asked = replace(place, command=[*place.command[: place.index], word, *place.command[place.index + 1 :]])
        found = replace(self.wrong_keys.explain(expand_key(key), asked), place=place)
        if number is not None or found.meant is None or found.attempt is None:
            return found
        if not can_sweep(place.command):
            return replace(found, attempt=None)
        return replace(found, attempt=f"{command_with(place, f'{found.meant}={value}')} --multirun")

    def _hydra_sweep(self, match: re.Match[str], _: Exception) -> Diagnostic:
        place = self.places.of_word(match[1])
        own = of_sweeper(place.command[place.index]) if place is not None else None
        attempt = command_with(place, own) if place is not None and own is not None else None
        return Diagnostic("Hydra's settings can't be swept", place, None, attempt)

    def _group_needs_name(self, _: re.Match[str], __: Exception) -> Diagnostic:
        words = [word for word in self.request.texts if self._is_group_with_value(word)]
        place = self.places.of_word(words[0]) if words else None
        group = split_word(words[0])[1] if words else "a config group"
        options = self.request.app.loader.get_group_options(group) if words else []
        note = f"available: {', '.join(options)}" if options else None
        option = split_word(words[0])[2] or "" if words else ""
        attempt = self.values.for_option(group, option, place) if place is not None else None
        return Diagnostic(f"'{group}' must be set to the name of an option", place, None, attempt, note)

    def _is_group_with_value(self, word: str) -> bool:
        _, key, value = split_word(word)
        is_name = re.fullmatch(r"[A-Za-z_][\w/.\-]*", value or "") and value not in ("true", "false", "null")
        return any(source.is_group(key) for source in self.request.app.sources) and not is_name

    def _place_of_choice(self, group: str, option: str) -> CliWord | None:
        for word in self.request.words:
            value = split_word(word.text)[2] or ""
            if word.key == group and option in re.split(r"[,\[\]() ]+", value):
                return self.places.of_word(word.text)
        return None

    def _folders_of(self, group: str) -> list[Any]:
        return [folder / group for _, folder in self.request.folders]

    @staticmethod
    def _swapped(place: FileLocation | CliWord | None, wrong: str, meant: str | None) -> str | None:
        if not isinstance(place, CliWord) or meant is None:
            return None
        typed = place.command[place.index]
        head, found, tail = typed.rpartition(wrong)
        return command_with(place, f"{head}{meant}{tail}") if found else None


def _of_value(problem: str, value: str) -> str:
    """Return a problem in the words for a typed value, whose kind the message leaves open."""
    if problem == "can't be null" and value.startswith("{"):
        return "can't be a mapping"
    if problem == NO_MAPPING:
        return "must be a list of mappings" if value.startswith("[") else f"{problem}, not {mask_word(value)}"
    return problem
