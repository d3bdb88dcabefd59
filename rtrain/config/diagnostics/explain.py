"""Turn what is wrong with a config into one screen of plain words."""

from __future__ import annotations

import errno
import re
import shlex
from collections.abc import Callable, Sequence
from textwrap import indent

from hydra.errors import HydraException, OverrideParseException
from omegaconf.errors import OmegaConfBaseException

from rtrain.config.compose.aliases import CHOOSABLE, expand_key, split_word
from rtrain.config.compose.request import Request, prepare
from rtrain.config.compose.resolve import MissingValuesError, NoPackageError, UnresolvedError
from rtrain.config.diagnostics.diagnostic import Diagnostic, command, command_with
from rtrain.config.diagnostics.hydra_errors import explain_hydra
from rtrain.config.diagnostics.meant.examples import lacks_example
from rtrain.config.diagnostics.meant.keys.suggest import in_full
from rtrain.config.diagnostics.meant.keys.wrong_keys import Check, WrongKeys
from rtrain.config.diagnostics.meant.lacking_type import without_type
from rtrain.config.diagnostics.meant.unreadable import as_override, closed, readable_words
from rtrain.config.diagnostics.meant.values import Values, named_in
from rtrain.config.diagnostics.omegaconf_messages import missing_reference, of_environment, reference_problem
from rtrain.config.diagnostics.screen import CliWord, FileLocation, render
from rtrain.config.diagnostics.source_map import SourceMap
from rtrain.config.diagnostics.unbuilt_parts import how_to_choose, unbuilt_part
from rtrain.config.did_you_mean import closest, did_you_mean, one_edit, plain, to_try
from rtrain.config.files.locations import builtin_config_dir
from rtrain.config.schema import Schemas
from rtrain.config.validate import InvalidError, Problem
from rtrain.errors import ConfigError

_KEY = re.compile(r"(?:trainer|dataset|run|scaling|cluster|sweep)(?:\.\w+)+")
MOST = 10
"""Most problems that one screen shows."""


def explain(request: Request, schemas: Schemas, error: Exception, check: Check) -> Exception:
    """Return the ConfigError that says what ``error``, raised while composing or checking, means to the user.

    An error that is none of Hydra's, OmegaConf's or ours comes back as it is.

    Args:
        request: What was asked for.
        schemas: Of all plugins.
        error: What was raised.
        check: Composes and checks the config under other overrides.
    """
    if isinstance(error, InvalidError):
        return _invalid(request, error.problems, WrongKeys(request, schemas, check), check)
    if isinstance(error, MissingValuesError):
        return _missing(request, schemas, error.keys)
    if isinstance(error, UnresolvedError):
        return _unresolved(request, error.errors, lambda: WrongKeys(request, schemas, check).keys.known)
    if isinstance(error, NoPackageError):
        return _no_package(request, error)
    if isinstance(error, OverrideParseException) and (quoted := _quoted(request, error)) is not None:
        other = check(quoted.overrides)
        if other is not None and not isinstance(other, OverrideParseException):  # something else is wrong, too
            return explain(quoted, schemas, other, check)
    if isinstance(error, HydraException | OmegaConfBaseException | ValueError | RecursionError | AssertionError):
        return explain_hydra(request, schemas, error, check).as_error()
    if isinstance(error, OSError) and error.errno == errno.ENAMETOOLONG:
        return ConfigError(f"the file name is too long: {error.filename}")
    return error


def _quoted(request: Request, error: OverrideParseException) -> Request | None:
    """Return the request with the value that can't be read as a text; None if it may be something else."""
    place = SourceMap(request).of_word(error.override)
    typed = "" if place is None else request.overrides[place.index - len(request.command) + len(request.overrides)]
    sign, key, value = split_word(typed)
    if not key or value is None or closed(value) is not None or as_override(typed) is not None:
        return None
    *others, quoted = readable_words(sign, key, value)
    if others:
        return None
    words = [quoted if one == typed else one for one in request.overrides]
    other = prepare(request.primary, words, request.config_dir)
    other.typed, other.call = request.typed or ("rtrain", "fit", request.config), request.call
    return other


def show_place(request: Request, schemas: Schemas, error: ConfigError, check: Check) -> None:
    """Add the typed word, or the line of a file, to an error that names the key that it set; the error changes.

    Where it has no hint, it gets what is known of the typed value: what other tools mean by it.

    Args:
        request: What was asked for.
        schemas: Of all plugins.
        error: Refuses the value of a key.
        check: Composes and checks the config under other overrides.
    """
    named = _KEY.search(error.message)
    if named is None or "\n" in error.message:
        return
    places = SourceMap(request)
    place, below = places.of(named[0]), [one for one in request.words if one.key.startswith(f"{named[0]}.")]
    if not isinstance(place, CliWord) and below:
        place = places.of_word(below[-1].text)
    own = isinstance(place, FileLocation) and not place.file.startswith(str(builtin_config_dir()))
    if error.hint is None and isinstance(place, CliWord) and not below:
        error.hint = _hint_about(named[0], place, WrongKeys(request, schemas, check))
    if isinstance(place, CliWord) or own:
        error.message = render(error.message, place)
        is_flush = error.hint is not None and not error.hint.startswith(" ")
        error.hint = indent(error.hint or "", "  ") if is_flush else error.hint


def _hint_about(key: str, place: CliWord, wrong: WrongKeys) -> str | None:
    """Return what other tools mean by the value of a typed word: ours, or the sentence about it; None for nothing."""
    sign, own_key, value = split_word(place.command[place.index])
    said = next((one.sentence for one in in_full(key, value, wrong.keys.confs) if one.sentence is not None), None)
    meant = wrong.translated(key, value)
    word = wrong.checked_word(place, sign, own_key, meant) if meant is not None else None
    return said if word is None else to_try(command_with(place, word))


def _invalid(request: Request, problems: Sequence[Problem], wrong: WrongKeys, check: Check) -> ConfigError:
    places = SourceMap(request)
    chosen = _chosen_by_type(request, problems, Values(request, wrong.keys, check))
    if chosen is not None:
        return chosen.as_error()
    if len(problems) == 1:
        one = problems[0]
        part = unbuilt_part(one.message)
        if part is not None and (note := how_to_choose(wrong, part)) is not None:
            return Diagnostic(f"{part} is not chosen", places.of(part), note=note).as_error()
        place = _place_of_rule(request, places, one) or places.of(one.key)
        below = [word.text for word in request.words if word.key.startswith(f"{one.key}.")]
        typed = places.of_word(below[0]) if below else None
        if one.owner is not None:
            return wrong.explain(_whole_key(one.key, place), place or typed, one.owner).as_error()
        if typed is not None and one.lacks_type:
            return without_type(wrong, one.key, one.message, typed).as_error()
        word, meant = one.word, _nearest(one, wrong)
        if word is None and isinstance(place, CliWord):
            word = split_word(place.command[place.index])[2]
            meant = wrong.translated(one.key, word) or _choice(word, one.known)
        message = f"{one.key}: {one.message}" if one.key else one.message
        attempt, values = _corrected(place, word, meant), Values(request, wrong.keys, check)
        note = values.said_of(one.key, place, one.message)
        if attempt is None and isinstance(place, CliWord) and one.word is None and place == places.of(one.key):
            attempt = values.corrected(one.key, place)
            if attempt is None and note is None and lacks_example(one.message):
                note = wrong.example(one.key, place)
        shown = place if typed is None or isinstance(place, CliWord) else typed
        return Diagnostic(message, shown, meant, attempt, note).as_error()
    lines = []
    for one in problems[:MOST]:
        meant = _nearest(one, wrong)
        suggestion = f" ({did_you_mean(meant)})" if meant else ""
        lines.append(f"  {one.key}: {one.message}{suggestion}{_at(places.of(one.key))}")
    if len(problems) > MOST:
        lines.append(f"  and {len(problems) - MOST} more")
    return ConfigError("\n".join([f"{len(problems)} keys are wrong", *lines]))


def _nearest(problem: Problem, wrong: WrongKeys) -> str | None:
    """Return the known name that is meant by one that is not: what other tools call so, or the one it misspells."""
    if problem.word is None:
        return None
    where = problem.key.removesuffix(f".{problem.word}")
    return wrong.translated(where, problem.word) or closest(problem.word, problem.known)


def _chosen_by_type(request: Request, problems: Sequence[Problem], values: Values) -> Diagnostic | None:
    """Return what to type in place of the ``type`` of a plugin, which leaves the keys of another; None if none is."""
    for word in request.words:
        group, dot, name = word.key.rpartition(".")
        typed = split_word(word.text)[2]
        blamed = {one.key for one in problems if one.key.startswith(f"{group}{dot}")}
        if name == "type" and group in CHOOSABLE and blamed and word.key not in blamed:
            place = SourceMap(request).of_word(word.text)
            message = f"with {word.key}={typed}, the config still has keys of another {group}"
            note = f"{group}={typed} works in a config written for it"
            attempt = values.checked(place, f"{group}={typed}") if isinstance(place, CliWord) else None
            return Diagnostic(message, place, group if attempt else None, attempt, None if attempt else note)
    return None


def _choice(word: str | None, choices: Sequence[str]) -> str | None:
    """Return the one of the choices that a word abbreviates, or writes in other letters; None if it is none."""
    if not word:
        return None
    near = [one for one in choices if plain(one) == plain(word) or one_edit(one, word)]
    stem = plain(word)[:5]
    return next(iter(near or [one for one in choices if len(stem) == 5 and plain(one).startswith(stem)]), None)


def _whole_key(key: str, place: FileLocation | CliWord | None) -> str:
    """Return the unknown key with what was typed below it: ``trainer.lora.rank`` where there is no ``trainer.lora``."""
    typed = expand_key(split_word(place.command[place.index])[1]) if isinstance(place, CliWord) else ""
    return typed if typed.startswith(f"{key}.") else key


def _place_of_rule(request: Request, places: SourceMap, problem: Problem) -> CliWord | None:
    """Return the typed word that breaks a rule about several keys of a section: the last one that the rule names."""
    below = {word.key: word for word in request.words if word.key.startswith(f"{problem.key}.")}
    key = named_in(problem.message, below) if problem.word is None else None
    return None if key is None else places.of_word(below[key].text)


def _missing(request: Request, schemas: Schemas, keys: Sequence[str]) -> ConfigError:
    if "trainer" in keys:
        names = ", ".join(schemas.trainer)
        attempt = command(request, f"trainer={next(iter(schemas.trainer), '...')}")
        return ConfigError(f"no trainer is chosen; available: {names}", "  " + to_try(attempt))
    places = SourceMap(request)
    lines = [f"  {key}{_at(places.of(key))}" for key in keys[:MOST]]
    if len(keys) > MOST:
        lines.append(f"  and {len(keys) - MOST} more")
    message = "a required value is missing" if len(keys) == 1 else f"{len(keys)} required values are missing"
    attempt = command(request, *(f"{key}=..." for key in keys[:MOST]))
    return ConfigError("\n".join([message, *lines]), "  " + to_try(attempt))


def _unresolved(request: Request, errors: dict[str, Exception], known: Callable[[], Sequence[str]]) -> ConfigError:
    places = SourceMap(request)
    if len(errors) == 1:
        key, error = next(iter(errors.items()))
        problem = reference_problem(error)
        meant, note = None, of_environment(problem)
        missing = missing_reference(error) if note is None else None
        if missing is not None:
            full = expand_key(missing)
            found = full if full != missing else closest(missing, known())
            meant = f"${{{found}}}" if found is not None else None
            note = None if meant else "define your own values under vars: vars: {width: 64}, ${vars.width}"
        return Diagnostic(f"{key}: {problem}", places.of(key), meant, note=note).as_error()
    lines = [f"  {key}: {reference_problem(error)}{_at(places.of(key))}" for key, error in list(errors.items())[:MOST]]
    return ConfigError("\n".join([f"{len(errors)} references can't be resolved", *lines]))


def _no_package(request: Request, error: NoPackageError) -> ConfigError:
    first = error.package.split(".")[0]
    meant = closest(first, error.known)
    return Diagnostic(f"--package {error.package}: the config has no such part", None, meant).as_error()


def _corrected(place: FileLocation | CliWord | None, word: str | None, meant: str | None) -> str | None:
    """Return the typed command with ``meant`` instead of ``word``."""
    if not isinstance(place, CliWord) or word is None or meant is None:
        return None
    words = list(place.command)
    head, found, tail = words[place.index].rpartition(word)
    words[place.index] = f"{head}{meant}{tail}" if found else words[place.index]
    return shlex.join(words) if found else None


def _at(place: FileLocation | CliWord | None) -> str:
    if isinstance(place, FileLocation):
        return f"  ({place.file}:{place.line + 1})"
    return f"  ({place.command[place.index]})" if isinstance(place, CliWord) else ""
