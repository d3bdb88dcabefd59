"""An unknown key: what was meant, and the checked command that says it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import Any

from omegaconf import DictConfig, ListConfig

from rtrain.config.compose.aliases import CHOOSABLE, KEYS, expand_key, split_word
from rtrain.config.compose.nodes import full_key
from rtrain.config.compose.request import Request
from rtrain.config.diagnostics.diagnostic import Diagnostic, adding_word, command_with
from rtrain.config.diagnostics.meant.class_names import class_called, homes_of
from rtrain.config.diagnostics.meant.composition import Composition
from rtrain.config.diagnostics.meant.examples import example_of, node_at, usual_at
from rtrain.config.diagnostics.meant.keys.known_keys import KnownKeys
from rtrain.config.diagnostics.meant.keys.mappings import are_of, chosen_by_name, leaves_in, said_of_all
from rtrain.config.diagnostics.meant.keys.refusals import blames, reason
from rtrain.config.diagnostics.meant.keys.schema_keys import is_inside, names_of, read_whole
from rtrain.config.diagnostics.meant.keys.suggest import Keys, elsewhere, in_full
from rtrain.config.diagnostics.meant.keys.words import Meaning, sentence_about, translated, words_of_target
from rtrain.config.diagnostics.meant.rewritten import rewritten
from rtrain.config.diagnostics.meant.spelled import in_own_words, no_key, of_sweeper, short_of, spellings, varies
from rtrain.config.diagnostics.screen import CliWord, FileLocation
from rtrain.config.did_you_mean import alike, one_edit, plain, there_are
from rtrain.config.schema import Schemas
from rtrain.config.targets.parameters import may_take, of_project, takes
from rtrain.errors import IdleKeyError

Check = Callable[[Sequence[str]], Exception | None]
"""Returns what is wrong with the config under other overrides, or None."""

AXIS = "seed=1,2"
"""A word that varies something in any config."""
PARTS = ("trainer.scheduler", "trainer.early_stopping", "run.checkpoint", "sweep", "smoke")
"""Parts whose names in other tools say what the keys below them are about: ``lr_scheduler.patience`` stops no run."""
OF_RUNS = ("run", "scaling", "cluster", "sweep", "smoke")
"""Sections in which users do not look for the keys of a data set or a trainer."""
LIMITS = ("max_epochs", "max_steps", "max_seconds", "num_boost_round")
"""Keys that say how long a run is: what other tools call so in a section about something else is not that."""
_NO_RUN = re.compile(
    "val|eval|test|checkpoint|ckpt|sav(e|ing)|log|warm|decay|schedul|period|interval|early|patience|freez"
)
"""What such a section is about."""
MOST_INSIDE = 4
"""Most keys of an unknown section that a message places."""


class WrongKeys:
    """Explains unknown keys.

    Args:
        request: What was asked for.
        schemas: Of all plugins.
        check: Composes and checks the config under other overrides.
    """

    def __init__(self, request: Request, schemas: Schemas, check: Check) -> None:
        self.request, self.schemas, self._check = request, schemas, check
        self._composition = Composition(request)
        self.known = KnownKeys(request, schemas, self._composition)

    @property
    def chosen(self) -> Mapping[str, str | None]:
        """The plugin of each group."""
        return self._composition.chosen

    @property
    def composed(self) -> Mapping[str, Any] | None:
        """The nodes of the config without the user's values; None if it can't be composed."""
        return self._composition.nodes

    def explain(self, key: str, place: FileLocation | CliWord | None, owner: Any = None) -> Diagnostic:
        """Return what there is to say about the unknown ``key``.

        Args:
            key: With dots, from the root.
            place: Where it was set.
            owner: The dataclass that lacks it, if it is known.
        """
        if not isinstance(place, CliWord):
            return self._in_a_file(key, place, owner)
        sign, own_key, value = split_word(place.command[place.index])
        sign = sign.replace("+", "")  # what is meant is there
        if value is not None and expand_key(own_key) != key and _holds(value, key.rpartition(".")[2]):
            return self._in_a_mapping(key, place, owner)
        message = f"there is no key '{own_key}'"
        own = of_sweeper(place.command[place.index]) or self._users_own(key, place) or self._own_argument(key, place)
        if own is not None:
            return Diagnostic(message, place, None, command_with(place, own))
        if (found := self._of_typed_mapping(key, value, place, message)) is not None:
            return found
        first: Meaning | None = None
        why: str | None = None
        part = self._part_about(key)
        for meaning in map(partial(_as_choice, key), self._meanings(key, value, owner)):
            if self._is_no_length(key, meaning.key):
                continue
            if meaning.sentence is not None:
                return Diagnostic(message, place, note=meaning.sentence)
            if self._is_far(key, meaning.key, part):
                first = first or meaning
                continue
            said = sentence_about(expand_key(meaning.key), value if meaning.value is None else None, self.keys.confs)
            if said is not None:
                return Diagnostic(message, place, note=said)
            short = in_own_words(own_key, key, meaning.key)
            values = [meaning.value] if meaning.value is not None else [value]
            refused = self.checked(place, f"{sign}{short}={values[0]}") if first is None else None
            if isinstance(refused, IdleKeyError):  # another value, or key, would be another wish
                return Diagnostic(message, place, note=self._said_of(expand_key(meaning.key), value, refused))
            if meaning.value is None and value and first is None and value[0] not in "'\"":
                values += [one for one in rewritten(value) if "[" not in one]
            words = (self.checked_word(place, sign, short, one) for one in values)
            if (word := next(filter(None, words), None)) is not None:
                shown, axis = split_word(word)[1], self._axis(place, word)
                if (other := _also_sets(place, word)) is not None:
                    return Diagnostic(message, place, shown, note=f"{other} sets it too: remove one of them")
                note = f"a sweep needs values to vary: {AXIS} is an example" if axis else None
                if meaning.value is not None and self._says_so_already(meaning):
                    return Diagnostic(message, place, note=f"the config already sets this: {shown}={meaning.value}")
                attempt = command_with(place, *axis, word)
                return Diagnostic(message, place, shown, attempt, note or self._or_added(key, place, shown))
            if first is None:
                first, why = meaning, self._said_of(expand_key(meaning.key), value, refused)
        others = self.known.of_other_plugins(first.key) if first is not None else None
        if others is not None:
            return Diagnostic(message, place, note=others)
        if first is not None:
            group = first.key.removesuffix(".type")  # by itself, it would leave the keys of another plugin
            if group in CHOOSABLE:
                return self._no_option(group, value, message, place)
            meant = in_own_words(own_key, key, first.key)
            return Diagnostic(message, place, meant, note=self._or_added(key, place, meant) or why)
        return self._not_understood(key, place, message)

    def _says_so_already(self, meaning: Meaning) -> bool:
        """Return whether the files of the config set the value that is meant."""
        node = node_at(self.composed, expand_key(meaning.key))
        return str(node).casefold() == str(meaning.value).casefold()

    def _is_far(self, key: str, meant: str, part: str | None) -> bool:
        """Return whether a key is meant that has another name than the wrong one, and stands outside of its section.

        It is named, but not tried: what the name means in a part of the config may not be what it means elsewhere.
        """
        section, _, name = key.rpartition(".")
        if "." in section and self.known.knows(section) and not self.known.is_free(section):
            is_same = plain(meant.rpartition(".")[2]) == plain(name) or expand_key(name) == meant
            return not is_same and not is_inside(meant, section)
        return part is not None and not is_inside(meant, part)

    def _is_no_length(self, key: str, meant: str) -> bool:
        """Return whether a key is meant to say how long a run is, by a name in a section about something else."""
        section = key.rpartition(".")[0]
        is_unknown = bool(section) and not self.known.knows(section)
        return is_unknown and meant.rpartition(".")[2] in LIMITS and _NO_RUN.search(section.casefold()) is not None

    def _part_about(self, key: str) -> str | None:
        """Return the part that the section of a wrong key means: ``trainer.scheduler`` for ``lr_scheduler.x``."""
        section = key.rpartition(".")[0]
        head = section.partition(".")[0]
        inside = (one for one in PARTS if is_inside(section, one))
        called = (one.key for one in self.keys.meanings(head) if one.key in PARTS) if head else ()
        return next(chain(inside, called), None)

    def _no_option(self, group: str, value: str | None, message: str, place: CliWord) -> Diagnostic:
        """Return what there is to say about a name that is not an option of a group: ``dataset_name=imdb``."""
        hub = [f"{group}=huggingface", f"{group}.path={value}"]
        if group == "dataset" and self.checked(place, *hub) is None:
            return Diagnostic(message, place, attempt=command_with(place, *hub))
        said = self._said_of(group, value, None)
        return Diagnostic(message, place, group, note=said or there_are(self.schemas.group(group)))

    def _said_of(self, key: str, value: str | None, error: Exception | None) -> str | None:
        """Return what there is to say about a value that the key that is meant can't have; None for nothing."""
        meanings = in_full(key, value, self.keys.confs) if value else ()
        return next((one.sentence for one in meanings if one.sentence is not None), None) or reason(error, key)

    def _axis(self, place: CliWord, word: str) -> list[str]:
        """Return a word that varies something, where ``word`` sets a key of a sweep that varies nothing."""
        is_of_sweep = re.match(r"sweep[./](?!params\.)|\+?sweep=", word) is not None
        varied = node_at(self.composed, "sweep.params") or any(map(varies, place.command))
        return [AXIS] if is_of_sweep and not varied else []

    @property
    def keys(self) -> Keys:
        """What could have been meant."""
        return self.known.keys

    def translated(self, key: str, value: str | None) -> str | None:
        """Return rtrain's word for what other tools call a value of ``key``; None if it is unknown."""
        return translated(key, value, self.keys.confs)

    def _not_understood(self, key: str, place: CliWord, message: str) -> Diagnostic:
        added = self._added(key, place)
        if added is not None:
            return Diagnostic(message, place, None, command_with(place, added))
        value = split_word(place.command[place.index])[2]
        return Diagnostic(message, place, note=self._about(key, value) or self.known.list_of_keys(key))

    def _about(self, key: str, value: str | None) -> str | None:
        """Return what there is to say about a key that means nothing here: other plugins' keys, or its topic."""
        section = key.rpartition(".")[0]
        of_section = self.keys.topic(section) if section and not self.known.knows(section) else None
        may_be_elsewhere = key.partition(".")[0] not in OF_RUNS
        of_others = may_be_elsewhere and (self.known.of_other_plugins(key) or elsewhere(key, value, self.schemas))
        return of_section or of_others or self.keys.topic(key)

    def _in_a_mapping(self, key: str, place: CliWord, owner: Any) -> Diagnostic:
        """Explain a key inside a value: ``run.checkpoint={kep: 3}``, ``sweep.params={optimizer.lrr: [0.1, 0.2]}``."""
        typed = place.command[place.index]
        if self._users_own(key, place) is not None:
            return Diagnostic(no_key(key, None), place, None, command_with(place, adding_word(place)))
        if (attempt := self.chosen_by_name(place)) is not None:
            return Diagnostic(no_key(key, None), place, None, attempt)
        found = self._in_a_file(key, place, owner)
        is_far = found.meant is not None and "." in found.meant and _holds(typed, key)
        wrong = re.escape(key if is_far else key.rpartition(".")[2])
        word = re.sub(rf"\b{wrong}(?=\s*:)", found.meant or "", typed)
        is_meant = found.meant is not None and ":" not in found.meant and self.checked(place, word) is None
        return replace(found, attempt=command_with(place, word)) if is_meant else found

    def chosen_by_name(self, place: CliWord) -> str | None:
        """Return the command in which the name in a typed mapping chooses an option; None if none is called so."""
        _, key, value = split_word(place.command[place.index])
        words = chosen_by_name(key, leaves_in(value or ""))
        return command_with(place, *words) if words and self.checked(place, *words) is None else None

    def _in_a_file(self, key: str, place: FileLocation | CliWord | None, owner: Any) -> Diagnostic:
        if note := self.known.other_plugin(key):
            return Diagnostic(no_key(key, None), place, note=note)
        if isinstance(place, FileLocation) and alike(key, ["defaults"]) is not None:
            return Diagnostic(no_key(key, "defaults"), place, "defaults")
        value = place.value if isinstance(place, FileLocation) else None
        meaning = next(self._meanings(key, value, owner), None)
        inside = self._of_inside(key, meaning.key if meaning is not None else "")
        if isinstance(place, FileLocation) and inside is not None:
            meant = short_of(key, meaning.key) if meaning is not None and meaning.key else None
            return Diagnostic(no_key(key, meant), place, meant, note=inside)
        if meaning is None:
            note = self._about(key, value) or self.known.list_of_keys(key, names_of(owner))
            return Diagnostic(no_key(key, None), place, note=note)
        if meaning.sentence is not None:
            return Diagnostic(no_key(key, None), place, note=meaning.sentence)
        meant = short_of(key, meaning.key)
        return Diagnostic(no_key(key, meaning.key), place, f"{meant}: {meaning.value}" if meaning.value else meant)

    def _of_inside(self, key: str, section: str) -> str | None:
        """Return the line that says where the keys belong that a file has in an unknown section.

        None if it has none, or they are those of the ``section`` that is meant.
        """
        node: Any = self._composition.files[0]
        for part in key.split("."):
            node = node.get(part) if isinstance(node, dict) else None
        found = self._meanings_inside(key, node if isinstance(node, dict) else {})
        return None if are_of(section, found) else said_of_all(found)

    def _meanings_inside(self, key: str, given: Mapping[str, Any]) -> dict[str, Meaning]:
        """Return what the first keys in an unknown mapping mean, those of numbers aside: they name rows or classes."""
        names = [name for name in given if isinstance(name, str) and not name.isdecimal()][:MOST_INSIDE]
        return {name: next(self._meanings(f"{key}.{name}", str(given[name]), None), Meaning()) for name in names}

    def _of_typed_mapping(self, key: str, value: str | None, place: CliWord, message: str) -> Diagnostic | None:
        """Return what there is to say about ``key={a: 1, b: 2}``, as about ``key.a=1 key.b=2``; None for other values.

        None too where nothing is known of the keys in it, or they are those of what ``key`` means.
        """
        given = leaves_in(value or "")
        found = self._meanings_inside(key, given)
        section = next((one.key for one in self._meanings(key, value, None)), "") if found else ""
        if are_of(section, found) or one_edit(key, section):
            return None
        words = [f"{one.key}={one.value or given[name]}" for name, one in found.items() if one.key]
        if len(words) == len(given) and self.checked(place, *words) is None:
            return Diagnostic(message, place, None, command_with(place, *words))
        return Diagnostic(message, place, note=said_of_all(found))

    def _meanings(self, key: str, value: str | None, owner: Any) -> Iterator[Meaning]:
        if (said := read_whole(key, self.schemas)) is not None:
            yield Meaning(sentence=said)
        parent = key.rpartition(".")[0]
        own = [full_key(parent, name) for name in names_of(owner)]
        keys = self.keys
        if "." in parent and parent.partition(".")[0] in OF_RUNS:  # run.storage_options.key
            yield from (one for one in in_full(parent, None, keys.confs) if one.sentence is not None)
        if key.startswith("hydra."):
            yield from in_full(key, value, keys.confs)
            keys = replace(keys, known=self._composition.keys_of_hydra, confs=())
        if own:
            others = [one for one in keys.known if one.rpartition(".")[0] != parent]  # the wrong key may be among them
            keys = replace(keys, known=[*others, *own], confs=[(parent, owner), *keys.confs])
        yield from keys.meanings(key, value)

    def checked_word(self, place: CliWord, sign: str, key: str, value: str | None) -> str | None:
        """Return the word that sets ``key`` and passes the checks; None if none does."""
        key = key.removesuffix("._target_") if value is not None else key
        full = expand_key(key)
        default = node_at(self.composed, full)
        if isinstance(default, ListConfig) and "--multirun" in place.command and value and not set(value) & set("[({"):
            value = ",".join(f"[{one}]" for one in value.split(","))
        homes = homes_of(self.schemas.trainer.get(self.chosen["trainer"] or ""), full)
        has_options = homes and self.request.app.loader.get_group_options(full.replace(".", "/"))
        like = dict(self.keys.targets).get(full, "")
        named = class_called(value, homes, like=like) if value is not None and homes and not has_options else None
        is_built, new = full in self.known.free or named is not None, named or value
        keeps = is_built and new is not None and self._takes_arguments_of(full, default, new)
        for word in spellings(sign, key, new, default, is_built=is_built, keeps=keeps):
            if not blames(self.checked(place, word), expand_key(split_word(word)[1])):
                return word
        return None

    def _takes_arguments_of(self, key: str, node: Any, target: str) -> bool:
        """Return whether a class takes what is given to the one that a node builds; that of another trainer is gone."""
        given = node if isinstance(node, DictConfig) and "_target_" in node else {}
        if self.schemas.is_foreign(self.chosen["trainer"], given.get("_target_", "")):
            if not isinstance(node_at(self._composition.own_nodes, key), DictConfig):  # nothing is given
                return False
            return not self.refused_arguments(key, target)
        return all(may_take(target, str(one)) for one in given if str(one)[:1] != "_")

    def refused_arguments(self, key: str, target: str) -> list[str]:
        """Return what the files give to the class that is built at ``key``, and another one, ``target``, can't take."""
        node = node_at(self._composition.own_nodes, key)
        given = [str(one) for one in node] if isinstance(node, DictConfig) else []
        return [one for one in given if one[:1] != "_" and not may_take(target, one)]

    def usual(self, key: str) -> str | None:
        """Return a value that a key may have, as a word has it; None if none is known."""
        return usual_at(self.composed, key)

    def example(self, key: str, place: FileLocation | CliWord | None) -> str | None:
        """Return the line that shows a value that ``key``, set at ``place``, may have; None if none is known."""
        section, _, name = key.rpartition(".")
        found = self.usual(key) or example_of(dict(self.keys.confs).get(section), name)
        own_key = split_word(place.command[place.index])[1] if isinstance(place, CliWord) else key
        return f"for example: {own_key}={found}" if found is not None else None

    def _or_added(self, key: str, place: CliWord, meant: str) -> str | None:
        """Return the line that shows how to add ``key`` all the same; None where it is just a misspelling."""
        (parent, _, typed), name = key.rpartition("."), meant.rpartition(".")[2]
        is_argument = parent in dict(self.keys.targets) and alike(typed, [name]) != name
        added = self._added(key, place) if is_argument or self.known.is_users(parent) else None
        return f"or add it with {added}" if added is not None else None

    def _users_own(self, key: str, place: CliWord) -> str | None:
        """Return the word that adds a key of the user's, unless it misspells one that exists."""
        parent, _, name = key.rpartition(".")
        has_own = node_at(self.composed, "trainer.train_loop_config.lr") is not None
        if key == KEYS["lr"] and not has_own and str(node_at(self.composed, "trainer.train_loop")) != "None":
            return f"+trainer.train_loop_config.lr={split_word(place.command[place.index])[2]}"
        is_own = self.known.is_users(parent) and alike(name, self.known.below(parent)) is None
        return self._added(key, place) if is_own else None

    def _own_argument(self, key: str, place: CliWord) -> str | None:
        """Return the word that adds ``key`` if it is an argument of what is built there; None for another key."""
        parent, _, name = key.rpartition(".")
        target = dict(self.keys.targets).get(parent, "")
        meanings = (words.meaning(name, None, parent) for words in words_of_target(target))
        is_said = name == "name" or any(one is not None and one.key != key for one in meanings)
        is_new = of_project(target) and alike(name, self.known.below(parent)) is None
        return self._added(key, place) if not is_said and (is_new or takes(target, name)) else None

    def _added(self, key: str, place: CliWord) -> str | None:
        """Return the word that adds ``key`` where any key may stand; None if none may, or the checks refuse it."""
        added = f"+{place.command[place.index].lstrip('+~')}"
        parent, _, name = key.rpartition(".")
        may_be = self.known.is_free(parent) and may_take(dict(self.keys.targets).get(parent), name)
        return added if may_be and not blames(self.checked(place, added), key) else None

    def checked(self, place: CliWord, *words: str, without: str = "") -> Exception | None:
        """Return why the command is refused with ``words`` in place of the wrong one; None if it is not."""
        before = len(self.request.command) - len(self.request.overrides)
        overrides = [*place.command[before : place.index], *words, *place.command[place.index + 1 :]]
        return self._check([one for one in overrides if one != without])


def _as_choice(wrong: str, meaning: Meaning) -> Meaning:
    """Return the choice of a plugin, ``dataset``, in place of its ``dataset.type``, unless that was misspelt."""
    (group, _, name), typed = meaning.key.rpartition("."), wrong.rpartition(".")[2].casefold()
    is_choice = name == "type" and group in CHOOSABLE and typed != name and not one_edit(typed, name)
    return replace(meaning, key=group) if is_choice else meaning


def _holds(value: str, name: str) -> bool:
    """Return whether a typed value is a mapping with a key."""
    return re.search(rf"\b{re.escape(name)}\s*:", value) is not None


def _also_sets(place: CliWord, word: str) -> str | None:
    """Return another word of the command that sets the same key; None if none does."""
    key = expand_key(split_word(word)[1])
    others = (one for index, one in enumerate(place.command) if index != place.index and "=" in one)
    return next((one for one in others if expand_key(split_word(one)[1]) == key), None)
