"""A value that can't be: the words that may have been meant by it, each checked before it is shown.

A dataclass of keys says three things that its types do not tell: ``scalar``, the key that is meant where the section
itself is given one value, ``shares``, the keys that are meant where it is given several shares, of which the first is
what is left, and ``counterparts``, which key takes a share of what another one counts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from itertools import chain
from typing import Any, get_args, get_origin

from rtrain.config.compose.aliases import LOGGERS, expand_key, split_word
from rtrain.config.compose.request import Request
from rtrain.config.diagnostics.diagnostic import can_sweep, command_with
from rtrain.config.diagnostics.meant.class_names import SEVERAL, by_name, class_called, class_in, homes_of
from rtrain.config.diagnostics.meant.keys.suggest import Keys
from rtrain.config.diagnostics.meant.keys.words import sentence_about, translated
from rtrain.config.diagnostics.meant.keys.wrong_keys import Check
from rtrain.config.diagnostics.meant.rewritten import OFF, as_name, number_in, rewritten, shares_in, with_unit
from rtrain.config.diagnostics.omegaconf_messages import of_environment
from rtrain.config.diagnostics.screen import CliWord, FileLocation
from rtrain.config.did_you_mean import closest, plain
from rtrain.config.files.data_files import words_for
from rtrain.config.value_types.fields import hints_of, kinds_of
from rtrain.config.value_types.units import unit_of

_CLASS = re.compile(r"[^\W\d]\w*([.:][^\W\d]\w*)+")
_SEVERAL = re.compile(r"([^\s;,=]+)[\s;,]+([A-Za-z_][\w./]*=\S+)")
"""The rest of two overrides that are typed as one word: ``epochs=3 lr=0.1``."""
_LIST = re.compile(r"\[([^\[\]{}]+,[^\[\]{}]+)\]")
_NUMBERS = re.compile(r"-?[\d.e-]+(, *-?[\d.e-]+)+")
MOST_LISTED = 8
"""Most keys of a section that a message lists."""
MOST_TRIED = 6
"""Most words that are checked, each by composing the config once."""


class Values:
    """Finds what was meant by a wrong value.

    Args:
        request: What was asked for.
        keys: What can be meant in the config.
        check: Composes and checks the config under other overrides.
    """

    def __init__(self, request: Request, keys: Keys, check: Check) -> None:
        self._request, self._confs, self._check, self._known = request, keys.confs, check, keys.known
        self._targets = dict(keys.targets)

    def corrected(self, key: str, place: CliWord) -> str | None:
        """Return the user's command with the value that was probably meant for ``key``; None if there is none.

        Args:
            key: With dots, from the root.
            place: The word that sets it.
        """
        typed = place.command[place.index]
        sign, own_key, value = split_word(typed)
        is_whole = expand_key(own_key).replace("/", ".") == key
        if value is None or not is_whole or typed != self._request.overrides[self._position(place)]:
            return None  # one of several values of a word, or a secret
        several = _SEVERAL.fullmatch(value.strip('"'))
        if several is not None:
            return self.checked(place, [f"{sign}{own_key}={several[1]}", several[2]])
        words = [f"{sign}{word}" for word in self._words(key, own_key, value)]
        return self.checked(place, *words[:MOST_TRIED]) or self._swept(place, f"{sign}{own_key}", value)

    def emptied(self, key: str, place: CliWord) -> str | None:
        """Return the user's command with a word whose value doesn't merge, once ``key`` is cleared.

        None if the checks refuse that, too, or the value is a secret.
        """
        typed = place.command[place.index]
        is_shown = typed == self._request.overrides[self._position(place)]
        return self.checked(place, [f"{key}=null", typed]) if is_shown else None

    def _swept(self, place: CliWord, key: str, value: str) -> str | None:
        """Return the command that trains with each value of a list; None where a key can't have them."""
        may_be = can_sweep(place.command) and not key.lstrip("+").startswith("sweep.")
        inside = _LIST.fullmatch(value) if may_be else None
        if inside is None or self.checked(place, f"{key}={inside[1].partition(',')[0]}") is None:
            return None
        return command_with(place, f"{key}={inside[1]}", "--multirun")

    def checked(self, place: CliWord, *words: str | Sequence[str]) -> str | None:
        """Return the user's command with the first of ``words`` that passes the checks; None if none does.

        Args:
            place: The wrong word.
            words: Each may come in its place; also several together.
        """
        position = self._position(place)
        for one in words:
            new = [one] if isinstance(one, str) else list(one)
            overrides = list(self._request.overrides)
            overrides[position : position + 1] = new
            if self.passes(overrides):
                return command_with(place, *new)
        return None

    def passes(self, overrides: Sequence[str]) -> bool:
        """Return whether the config passes the checks under other overrides."""
        return self._check(overrides) is None

    def for_option(self, group: str, option: str, place: CliWord) -> str | None:
        """Return the command for what is not an option of a config group: a class, a data file, or one value of it."""
        own_key = split_word(place.command[place.index])[1]
        has_label = any(word.key == "dataset.label" for word in self._request.words)
        data = words_for(option, has_label) if group == "dataset" else None
        if data is not None:
            return self.checked(place, data, data[:2])
        if option in OFF:
            return self.checked(place, f"{own_key}=null")
        named = self._class_for(group.replace("/", "."), option)
        if named is not None:
            return self.checked(place, f"{own_key}={{_target_: {named}}}")  # without arguments of what was there
        return self.corrected(group.replace("/", "."), place) if number_in(option) is not None else None

    def said_of(self, key: str, place: FileLocation | CliWord | None, problem: str) -> str | None:
        """Return the line that says what a wrong value should be: the words for it, or the keys of a section."""
        value = (
            split_word(place.command[place.index])[2] if isinstance(place, CliWord) else getattr(place, "value", None)
        )
        if (sentence := sentence_about(key, value, self._confs)) is not None:
            return sentence
        if value is not None and (note := of_environment(value)) is not None:
            return note
        if isinstance(place, FileLocation) and (note := in_brackets(value)) is not None:
            return note
        if isinstance(place, FileLocation) and value in ("None", "nil"):
            return "write null for no value: in YAML, None is text"
        if isinstance(place, FileLocation) and (number := _number_of_file(key, value, problem)) is not None:
            return f"in a file: {key.rpartition('.')[2]}: {number}"
        wants_keys = problem.startswith(("must be a mapping", "can't be null"))
        if wants_keys and isinstance(place, FileLocation) and (form := self._form_in_file(key, value)) is not None:
            return form
        return self.keys_of(key) or self.built_at(key) or self.names_at(key, value) if wants_keys else None

    def _form_in_file(self, key: str, value: str | None) -> str | None:
        """Return the line of a file that builds the part of the trainer that a name means; None if it means none."""
        homes, short = homes_of(dict(self._confs).get("trainer"), key), key.rpartition(".")[2]
        if not homes or value is None:
            return None
        name = translated(key, value, self._confs) or value
        options = self._request.app.loader.get_group_options(key.replace(".", "/"))
        option = next((one for one in options if plain(one) == plain(name)), None)
        if option is not None and not getattr(dict(self._confs)["trainer"], "foreign", ()):
            return f"the defaults list chooses it: - {short}: {option}"
        if name.startswith("{"):
            return f"in a file: {short}: {name}"
        if short in SEVERAL:
            return next((f"in a file: {short}: {one}" for one in by_name(name, homes)), None)
        named = class_called(name.rpartition(".")[2], homes)
        return f"in a file: {short}: {{_target_: {named}}}" if named is not None else None

    def names_at(self, key: str, value: str | None) -> str | None:
        """Return the line that shows the form of the mapping at ``key``, whose names are the user's own."""
        section, _, name = key.rpartition(".")
        is_mapping = any(get_origin(one) is dict for one in kinds_of(dict(self._confs).get(section), name))
        number = value if value is not None and number_in(value) is not None else "VALUE"
        return f"names and values: {key}={{NAME: {number}}}" if is_mapping else None

    def built_at(self, key: str) -> str | None:
        """Return the line that says how a part of the trainer is built; None if it is no such part."""
        homes = homes_of(dict(self._confs).get("trainer"), key)
        if not homes:
            return None
        options = self._request.app.loader.get_group_options(key.replace(".", "/"))
        foreign = getattr(dict(self._confs)["trainer"], "foreign", ())
        chosen = f"{key.rpartition('.')[2]}={'|'.join(options)}, or " if options and not foreign else ""
        node = f"{{_target_: {homes[0]}.NAME}}"
        if key.rpartition(".")[2] in SEVERAL:
            return f"name each and give its class: {key}={{NAME: {node}}}"
        return f"give its class: {chosen}{key}={node}"

    def _class_for(self, key: str, value: str) -> str | None:
        """Return the class that ``value`` names for a part of the trainer; None if an option of that name is there."""
        if value.endswith(".py"):
            return class_in(value)
        if _CLASS.fullmatch(value):
            return value
        options = self._request.app.loader.get_group_options(key.replace(".", "/"))
        if plain(value) in map(plain, options):
            return None
        homes, like = homes_of(dict(self._confs).get("trainer"), key), self._targets.get(key, "")
        misspelt = closest(value, options) is None
        return class_called(value, homes, misspelt=misspelt, like=like)

    def list_at(self, key: str) -> str | None:
        """Return the line that shows the form of the list at ``key``; None for another type."""
        section, _, name = key.rpartition(".")
        owner = dict(self._confs).get(section)
        inside = [get_args(one) for one in kinds_of(owner, name) if get_origin(one) is list]
        if not inside:
            return None
        if not any(get_origin(one) is dict for one in inside[0]):
            return "a list is [1, 2]" if inside[0][0] in (int, float) else "a list is [a, b]"
        return f"a list is [{{{'_target_: package.Class' if section == 'trainer' else 'type: NAME'}}}]"

    def keys_of(self, section: str) -> str | None:
        """Return the line that says which keys a section has, for a value in its place; None if it is not a section."""
        conf = dict(self._confs).get(section)
        if conf is None:
            return None
        names = _names(conf)
        return f"its keys: {', '.join(names[:MOST_LISTED])}{', ...' if len(names) > MOST_LISTED else ''}"

    def _position(self, place: CliWord) -> int:
        return place.index - (len(self._request.command) - len(self._request.overrides))

    def _words(self, key: str, shown: str, value: str) -> Iterator[str]:
        conf = dict(self._confs).get(key)
        if conf is not None:
            yield from _for_section(conf, shown, value)
            return
        if value in OFF and (names := self._taken_back(key)):
            yield f"{shown}={{{', '.join(f'{name}: null' for name in names)}}}"
        if homes_of(dict(self._confs).get("trainer"), key) and (named := self._class_for(key, value)) is not None:
            yield f"{shown}={{_target_: {named}}}"
        section, _, name = shown.rpartition(".")
        owner = dict(self._confs).get(key.rpartition(".")[0])
        other = getattr(owner, "counterparts", {}).get(key.rpartition(".")[2])
        share = next((one for one in (value, *rewritten(value)) if number_in(one) is not None), None)
        if other is not None and name and share is not None:
            yield f"{section}.{other}={share}" if section else f"{other}={share}"
        may_be_off = type(None) in kinds_of(owner, key.rpartition(".")[2]) and not key.endswith("batch_size")
        if may_be_off and number_in(value) in (0, -1):  # off in other tools
            yield f"{shown}=null"
        meant = rewritten(value) if unit_of(key) is None else with_unit(value)
        kinds = kinds_of(owner, key.rpartition(".")[2])
        listed = key == LOGGERS or Any in kinds or any(get_origin(one) is list for one in kinds)
        unfit = [] if _may_be_none(owner, key) else ["none", *(["false"] if str in kinds else [])]
        if {str} <= set(kinds) <= {str, type(None)}:  # a share or a quantity means nothing to a text
            meant = chain(as_name(value), (one for one in meant if number_in(one) is None))
        meant = (one for one in meant if one not in unfit)
        yield from (f"{shown}={one}" for one in meant if listed or one[0] not in "[{" or one in ("[]", "{}"))

    def _taken_back(self, key: str) -> list[str]:
        """Return the names that the config has in the mapping at ``key``, if null takes one of them back."""
        section, _, name = key.rpartition(".")
        hint = kinds_of(dict(self._confs).get(section), name)[0]
        if get_origin(hint) is not dict or type(None) not in get_args(get_args(hint)[1]):
            return []
        return [one.removeprefix(f"{key}.") for one in self._known if one.startswith(f"{key}.")]


def _for_section(conf: type, shown: str, value: str) -> Iterator[str]:
    """Yield the words that set one key of a section, the declared one first, then those whose type fits."""
    if value == "true" or value in OFF:
        yield f"{shown}={{}}" if value == "true" else f"{shown}=null"
        return
    shares, kept = shares_in(value), getattr(conf, "shares", ())
    if shares and kept:
        yield f"{shown}={{{','.join(map(':'.join, zip(kept[-len(shares) + 1 :], shares[1:], strict=True)))}}}"
        return
    number = number_in(value)
    if kept and isinstance(number, float) and 0.5 < number < 1:  # what most of the rows are for
        yield f"{shown}.{kept[-1]}={round(1 - number, 6):g}"
        return
    hints = hints_of(conf)
    wanted: tuple[type, ...] = (str,) if number_in(value) is None else (int, float)
    if number_in(value) is None and value[:1].isdigit():
        wanted = (float,)  # a duration
    elif isinstance(number_in(value), float):
        wanted = (float,)
    fitting = [name for kind in wanted for name in _names(conf) if kind in (hints[name], *get_args(hints[name]))]
    declared = [conf.scalar] if hasattr(conf, "scalar") else []
    for name in dict.fromkeys([*declared, *(fitting if "." in shown else [])]):  # not for a whole part of the config
        yield f"{shown}.{name}={value}"


def _number_of_file(key: str, value: str | None, problem: str) -> str | None:
    """Return the number that a text of a file means where one is wanted; None if it means none."""
    wanted = re.match(r"must be a (whole )?number", problem)
    if wanted is None or value is None:
        return None
    meant = rewritten(value) if unit_of(key) is None else with_unit(value)
    kind = int if wanted[1] else (int, float)
    return next((one for one in meant if isinstance(number_in(one), kind)), None)


def in_brackets(value: str | None) -> str | None:
    """Return the line that shows numbers of a file as a list; None for another value."""
    is_list = value is not None and _NUMBERS.fullmatch(value)
    return f"put a list in brackets: [{value}]" if is_list else None


def _may_be_none(conf: type | None, key: str) -> bool:
    """Return whether ``none`` is one of the texts that a key takes."""
    types = {one.name: str(one.type) for one in fields(conf)} if conf is not None and is_dataclass(conf) else {}
    return "'none'" in types.get(key.rpartition(".")[2], "").replace('"', "'")


def _names(conf: type) -> list[str]:
    return [one.name for one in fields(conf) if one.init] if is_dataclass(conf) else []


def named_in(message: str, words: Mapping[str, Any]) -> str | None:
    """Return the last of ``words``, by key, whose key a message names; else the last of which it names a part."""
    names = {key: key.rpartition(".")[2] for key in words}
    whole = [key for key, name in names.items() if re.search(rf"\b{re.escape(name)}\b", message)]
    parts = [key for key, name in names.items() if any(len(part) > 3 and part in message for part in name.split("_"))]
    return next(reversed(whole or parts), None)
