"""A part of the config that can't be built: the place that names it, and what was meant."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress

from hydra.errors import HydraException

from rtrain.config.compose.aliases import expand_key, split_word
from rtrain.config.compose.request import Request
from rtrain.config.diagnostics.diagnostic import Diagnostic, command_with
from rtrain.config.diagnostics.meant.class_names import class_called, homes_of
from rtrain.config.diagnostics.meant.examples import first_of, node_at
from rtrain.config.diagnostics.meant.keys.words import sentence_about
from rtrain.config.diagnostics.meant.keys.wrong_keys import Check, WrongKeys
from rtrain.config.diagnostics.meant.other_options import changed_target
from rtrain.config.diagnostics.meant.rewritten import rewritten
from rtrain.config.diagnostics.meant.values import Values, in_brackets
from rtrain.config.diagnostics.screen import CliWord
from rtrain.config.diagnostics.source_map import SourceMap
from rtrain.config.diagnostics.unbuilt_parts import NAMES, how_to_choose, unbuilt_part
from rtrain.config.did_you_mean import closest, plain
from rtrain.config.schema import Schemas
from rtrain.config.targets.arguments import DEFAULT
from rtrain.errors import ConfigError, TargetError


def place_target(request: Request, schemas: Schemas, error: TargetError, check: Check) -> ConfigError:
    """Return ``error`` with the place that names the target or the argument, and what was meant by it.

    Args:
        request: What was asked for.
        schemas: Of all plugins.
        error: What was raised.
        check: Composes and checks the config under other overrides.
    """
    places, note, wrong = SourceMap(request), error.hint and error.hint.strip(), WrongKeys(request, schemas, check)
    part, _, name = error.key.rpartition(".")
    unbuilt = unbuilt_part(error.message) or (part if name in NAMES and "has no argument" in error.message else None)
    if unbuilt is not None:
        note = how_to_choose(wrong, unbuilt) or note
    below = [word.text for word in request.words if word.key.startswith(f"{error.key}.")]
    place = places.of_word(below[0]) if len(below) == 1 else places.of(error.key)
    if not isinstance(place, CliWord):
        typed = places.of(f"{part}._target_") if "has no argument" in error.message else None
        target = split_word(typed.command[typed.index]) if isinstance(typed, CliWord) else ("", "", None)
        words = changed_target(wrong, part, target[2] or "", target[1].removesuffix("._target_"))
        attempt = command_with(typed, *words) if isinstance(typed, CliWord) and words and "{" not in words[0] else None
        note = note or in_brackets(place.value if place is not None else None)
        return Diagnostic(error.message, place, None, attempt, note).as_error()
    if unbuilt is not None and (chosen := wrong.chosen_by_name(place)) is not None:
        return Diagnostic(error.message, place, None, chosen).as_error()
    _, key, value = split_word(place.command[place.index])
    if not error.key.endswith("._target_") or not key.endswith("._target_") or value is None:
        attempt, is_default = _fitting(wrong, error, place), note is None or note.startswith(DEFAULT)
        whole = _without_places(error.key)
        if attempt is None and is_default and expand_key(key) == whole:
            said = sentence_about(whole, value, wrong.keys.confs)
            note = said or wrong.example(whole, place) or note  # it is in force, and may differ from the default
        return Diagnostic(error.message, place, None, attempt, note).as_error()
    values = Values(request, wrong.keys, check)
    for word in _targets(wrong, error.key.removesuffix("._target_"), key, value):
        attempt = values.checked(place, word)
        if attempt is not None:
            return Diagnostic(error.message, place, word, attempt).as_error()
    return Diagnostic(error.message, place, note=note).as_error()


def _targets(wrong: WrongKeys, part: str, key: str, name: str) -> Iterator[str]:
    """Yield the words that may be meant by a bare name of a class: an option of that name, the class, a similar one."""
    options = wrong.request.app.loader.get_group_options(part.replace(".", "/"))
    choice = key.removesuffix("._target_")
    yield from (f"{choice}={one}" for one in options if plain(one) == plain(name))
    homes = homes_of(dict(wrong.keys.confs).get("trainer"), part)
    for misspelt in (False, True):
        named = class_called(name, homes, misspelt=misspelt, like=dict(wrong.keys.targets).get(part, ""))
        yield from [f"{key}={named}"] if named is not None else []
    similar = closest(name, options)
    yield from [f"{choice}={similar}"] if similar is not None else []


def _without_places(key: str) -> str:
    """Return the key of a list of which an item is named: ``betas`` for ``betas[1]`` and ``betas.1``."""
    return re.sub(r"(\.\d+|\[\d+\])+$", "", key)


def _fitting(wrong: WrongKeys, error: TargetError, place: CliWord) -> str | None:
    """Return the command with what was probably meant by an argument that can't be; None if nothing like it may be."""
    sign, key, value = split_word(place.command[place.index])
    whole = _without_places(error.key)
    if error.fits is None or value is None or expand_key(key).replace("/", ".") != whole:
        return None
    named = class_called(value, homes_of(dict(wrong.keys.confs).get("trainer"), error.key))
    begun = first_of(node_at(wrong.composed, whole), value)
    others = [one for one in rewritten(value) if one != f"[{value}]" or not value.isidentifier()]  # no list of a word
    for meant in (*([begun] if begun else []), *others, f"{{_target_: {named or value}}}"):
        with suppress(HydraException):
            found = wrong.request.app.parser.parse_override(f"x={meant}").value()
            if error.fits(found) and (meant[0] != "{" or named is not None or re.fullmatch(r"[\w.]+\.\w+", value)):
                return command_with(place, f"{sign}{key}={meant}")
    return None
