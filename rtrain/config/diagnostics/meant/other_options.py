"""Options of config groups that the chosen trainer can't use, and the form that it understands.

The dataclass of a trainer's keys names in its class attribute ``foreign`` the modules whose classes it can't use:
``("torch", "rtrain.trainers.torch")``.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rtrain.config.compose.aliases import GROUPS, expand_key, split_word
from rtrain.config.compose.request import Request
from rtrain.config.diagnostics.diagnostic import Diagnostic, command_with
from rtrain.config.diagnostics.meant.class_names import class_called, homes_of
from rtrain.config.diagnostics.meant.configs import command_of_choice
from rtrain.config.diagnostics.meant.keys.schema_keys import names_of
from rtrain.config.diagnostics.meant.keys.words import Meaning, words_of
from rtrain.config.diagnostics.meant.keys.wrong_keys import Check, WrongKeys
from rtrain.config.diagnostics.screen import CliWord, FileLocation
from rtrain.config.diagnostics.source_map import SourceMap
from rtrain.config.files.locations import builtin_config_dir
from rtrain.config.schema import Schemas
from rtrain.errors import ConfigError


def refuse_foreign_options(request: Request, schemas: Schemas, trainer: Any, check: Check) -> None:
    """Refuse a part of the trainer, typed or of the user's file, that is built by a class that the trainer can't use.

    It comes before the arguments of the class are looked at, which are right for another one.

    Args:
        request: What was asked for.
        schemas: Of all plugins.
        trainer: The composed section ``trainer``.
        check: Composes and checks the config under other overrides.

    Raises:
        ConfigError: Names the choice, and what to type instead.
    """
    for group in GROUPS.values() if isinstance(trainer, Mapping) else ():
        name = group.rpartition("/")[2]
        node = trainer.get(name)
        target = node.get("_target_") if isinstance(node, Mapping) else None
        if not schemas.is_foreign(trainer.get("type"), target):
            continue
        place = _chosen_in(request, f"trainer.{name}")
        if place is None:
            if (written := command_of_choice(request)) is not None:
                raise _of_the_config(request, trainer["type"], name, str(target), written)
            continue
        message = f"trainer={trainer['type']} can't use {target}"
        option = str(target).rpartition(".")[2]
        if isinstance(place, CliWord):
            _, key, value = split_word(place.command[place.index])
            option = option if "_target_" in f"{key}{value}" else value or ""
        form = own_form(WrongKeys(request, schemas, check), schemas, group, option, place, message)
        raise (form or Diagnostic(message, place)).as_error()


def _of_the_config(request: Request, trainer: str, name: str, target: str, written: str) -> ConfigError:
    """Return the error of a config whose parts are those of another trainer than the one that was typed."""
    place = next(SourceMap(request).of_word(word.text) for word in request.words if word.key == "trainer")
    note = f"{request.primary.name} is not written for trainer={trainer}: trainer.{name} is {target}"
    return Diagnostic(f"trainer={trainer} can't use {target}", place, None, written, note).as_error()


def _chosen_in(request: Request, part: str) -> FileLocation | CliWord | None:
    """Return the typed word, or the line of the user's file, that says what builds a part of the trainer."""
    places, keys = SourceMap(request), (part, f"{part}._target_")
    words = [one for one in request.words if one.key.replace("/", ".") in keys and not one.text.endswith("=null")]
    if words:
        return places.of_word(words[-1].text)
    place = places.of(keys[1])
    is_own = isinstance(place, FileLocation) and not Path(place.file).is_relative_to(builtin_config_dir())
    return place if is_own and not any(one.key == "trainer" for one in request.words) else None


def own_form(
    wrong: WrongKeys,
    schemas: Schemas,
    group: str,
    option: str,
    place: FileLocation | CliWord | None,
    message: str,
) -> Diagnostic | None:
    """Return what to type in place of an option of a group of other trainers; None if the trainer's own are there."""
    trainer, name = wrong.chosen["trainer"], group.rpartition("/")[2]
    conf = schemas.trainer.get(trainer or "")
    if group not in GROUPS.values() or conf is None or not getattr(conf, "foreign", ()):
        return None
    meant = _in_its_words(conf, name, option.partition(",")[0])
    if meant is None and name not in names_of(conf):
        return None
    if meant is not None and isinstance(place, FileLocation):
        return Diagnostic(message, place, meant.value or meant.key)
    if meant is None or not isinstance(place, CliWord):
        note = f"the options of '{name}' belong to other trainers; trainer.{name}: rtrain trainers {trainer}"
        return Diagnostic(message, place, note=note)
    key = meant.key if meant.key.partition(".")[0] in GROUPS else f"trainer.{meant.key}"
    word = wrong.checked_word(place, "", key, meant.value or option)
    dropping = changed_target(wrong, expand_key(key), meant.value or "", key)
    if word is not None and f"{{_target_: {meant.value}}}" in word and dropping:
        return Diagnostic(message, place, None, command_with(place, *dropping))
    shown = split_word(word)[1] if word else key
    return Diagnostic(message, place, shown if shown != name else None, command_with(place, word) if word else None)


def changed_target(wrong: WrongKeys, key: str, target: str, shown: str) -> list[str]:
    """Return the words that build another class, without what the files give to the one that was there.

    Args:
        wrong: Knows what the files say.
        key: What is built, in full.
        target: The dotted path of the class.
        shown: The key as the user types it.
    """
    refused = wrong.refused_arguments(key, target)
    return [f"{shown}._target_={target}", *(f"~{key}.{one}" for one in refused)] if refused else []


def _in_its_words(conf: type, name: str, option: str) -> Meaning | None:
    """Return what an option of the group ``name`` is in the words of a trainer."""
    for words in words_of(conf):
        value = words.translated(name, option)
        if value is not None:
            return Meaning(name, value)
        meaning = words.meaning(name, option, "trainer")
        if meaning is not None and meaning.key:
            return Meaning(meaning.key.removeprefix("trainer."), meaning.value)
    named = class_called(option, homes_of(conf, f"trainer.{name}"), misspelt=False)
    return Meaning(name, named) if named is not None else None
