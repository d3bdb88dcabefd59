"""Guess which key a wrong one was meant to be, the likeliest first."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from typing import get_origin

from rtrain.config.compose.aliases import GROUPS, KEYS, expand_key
from rtrain.config.diagnostics.meant.keys.schema_keys import is_inside, names_of, plugins_with, sections
from rtrain.config.diagnostics.meant.keys.words import Meaning, translated, words_of, words_of_target
from rtrain.config.diagnostics.meant.other_classes import sentence_of
from rtrain.config.diagnostics.meant.rewritten import number_in
from rtrain.config.did_you_mean import alike, closest, one_edit, plain
from rtrain.config.schema import RtrainConf, Schemas
from rtrain.config.targets.parameters import takes
from rtrain.config.value_types.fields import kinds_of

SHORT = 5
"""Minimum length of a name that may be a misspelt name of another section."""
SECTIONS = ("trainer", "dataset", "run", "scaling", "cluster", "sweep")
"""Sections of the config, in which the keys of a search mean something else than those of a run."""
NOISE = ("use", "enable", "do", "with", "create", "apply", "is", "run", "mode", "enabled", "flag", "option", "setting")
"""Parts at the ends of a name that say no more than that it is set."""
VAGUE = ("mode", "type", "path", "unit", "subset", "interval", "folder", "value")
"""Names of keys that mean something else in each section."""
OF_LOOPS = ("trainer.train_loop_config", "trainer.train_function_config", "trainer.arguments")
"""What a custom loop is given."""
NAMING = ("type", "name", "kind", "value")
"""Keys of a mapping that other tools have where a key has one value."""


@dataclass(frozen=True)
class Keys:
    """What can have been meant in one config."""

    known: Sequence[str]
    """Full keys that exist."""
    confs: Sequence[tuple[str, type]]
    """The dataclasses of keys, each by the key at which it stands."""
    targets: Sequence[tuple[str, str]] = ()
    """What the parts of the trainer are built by, each by its key."""
    library: Callable[[], Mapping[str, str]] = dict
    """Tells the full key of each parameter of the trainer's library."""
    arguments: Callable[[], Mapping[str, str]] = dict
    """Tells the full key of each argument of the trainer's targets; asked only where nothing else is meant."""

    elsewhere: Collection[str] = ()
    """Full keys of other plugins, which aren't misspellings."""
    named_elsewhere: Callable[[str], bool] = lambda _: False
    """Tells whether another tool uses a name for a key of another plugin: such a name is not misspelt either."""

    def meanings(self, wrong: str, value: str | None = None) -> Iterator[Meaning]:
        """Yield what the unknown dotted key ``wrong`` may mean with ``value``."""
        seen: set[str] = set()
        if wrong in self.known and (value_here := translated(wrong, value, self.confs)) is not None:
            yield Meaning(wrong, value_here)
        in_section = "." in wrong  # where the short names of the root mean nothing
        for one in self._candidates(wrong, value):
            found = replace(one, key=expand_key(one.key)) if in_section else one
            if found.key != wrong and found.key not in seen:
                seen.add(found.key)
                new = found.value or translated(found.key, value, self.confs)
                yield self._inside_built(replace(found, value=new), value)

    def _inside_built(self, meaning: Meaning, value: str | None) -> Meaning:
        """Return a meaning whose key is given a number, but built by a class, as the argument of that class."""
        target = dict(self.targets).get(meaning.key)
        if target is None or number_in(meaning.value or value or "") is None:
            return meaning
        name = meaning.key.rpartition(".")[2]
        found = [words.meaning(name, value, meaning.key) for words in words_of_target(target)]
        said = f"{meaning.key} is built by {target}, whose arguments are set below it"
        return next((one for one in found if one is not None), Meaning(sentence=said))

    @cached_property
    def _of_others(self) -> list[list[str]]:
        return [_plain(key) for key in self.elsewhere]

    @cached_property
    def _prefixes(self) -> Mapping[str, None]:
        """The known keys, and their sections."""
        keys = (key.split(".") for key in self.known)
        return dict.fromkeys(".".join(parts[:count]) for parts in keys for count in range(1, len(parts) + 1))

    @cached_property
    def _sections(self) -> frozenset[str]:
        """The keys that have others below them."""
        return frozenset(key.rpartition(".")[0] for key in self._prefixes)

    def _candidates(self, wrong: str, value: str | None) -> Iterator[Meaning]:
        section, _, name = wrong.rpartition(".")
        if name == "_target_":
            yield from [Meaning(f"trainer.{wrong}")] if f"trainer.{section}" in dict(self.targets) else []
            return
        is_known = False
        for one in self._as_written(wrong, value):
            is_known = is_known or one.key != wrong
            yield one
        beside = self._corrected(wrong)
        is_vague = bool(section) and section not in self._prefixes and name in VAGUE
        is_open = not is_known and not is_vague
        may_be_misspelt = is_open and len(name) >= SHORT - 1 and _plain(wrong) not in self._of_others
        bare = _without_noise(name)
        if not is_known and bare != name:
            yield from self._as_written(f"{section}.{bare}".strip("."), value)
        similar = self._similar(section, name, value) if may_be_misspelt else None
        similar = None if similar is not None and self.named_elsewhere(wrong) else similar
        guesses = [self._beside(beside, value)] if beside is not None else []
        if similar is not None:
            is_nearer = beside is not None and one_edit(name, similar) and not one_edit(wrong, beside)
            guesses.insert(0 if is_nearer else len(guesses), self._respelled(section, similar, value))
        yield from chain(*guesses, self._of_family(wrong, value))

    def topic(self, wrong: str) -> str | None:
        """Return the sentence about what ``wrong`` has to do with, which names no one key; None if that is unknown.

        What a section says comes before what the name in it does: ``checkpoint.folder``.
        """
        words = [words for _, conf in self._confs_for(wrong.partition(".")[0], None) for words in words_of(conf)]
        parts = [part for part in wrong.split(".") if part not in SECTIONS]
        return next((said for part in parts for one in words if (said := one.topic(part)) is not None), None)

    def _of_family(self, wrong: str, value: str | None) -> Iterator[Meaning]:
        """Yield the notes about all names that begin like ``wrong``, or about its parent: ``deepspeed.x``."""
        head, dot, _ = wrong.partition(".")
        if dot and head not in self._prefixes:
            yield from (one for one in self._as_written(head, None) if one.sentence is not None)
        words = (words for _, conf in self._confs_for(head, value) for words in words_of(conf))
        found = (one.beginning(wrong.rpartition(".")[2]) for one in words)
        yield from (one for one in found if one is not None)

    def _beside(self, corrected: str, value: str | None) -> Iterator[Meaning]:
        """Yield what a key means of which one part has been corrected."""
        yield from () if corrected in self.known else self._as_written(corrected, value)
        yield Meaning(corrected)

    def _respelled(self, section: str, name: str, value: str | None) -> Iterator[Meaning]:
        """Yield what ``name``, which is known somewhere, means in a section."""
        yield from self._as_written(f"{section}.{name}".strip("."), value)
        yield from (Meaning(key) for key in self._keys_for(section) if key.rpartition(".")[2] == name)

    def _as_written(self, wrong: str, value: str | None) -> Iterator[Meaning]:
        """Yield what ``wrong`` may mean if it is spelled right."""
        section, _, name = wrong.rpartition(".")
        yield from (Meaning(key) for key in self.known if _plain(key) == _plain(wrong))
        head = section.partition(".")[0]
        of_trainer = head in ("", "trainer")
        may_be_library = of_trainer or head not in (*SECTIONS, "hydra", "datasets", "vars")  # lgb_params.num_leaves
        confs = self._confs_for(head, value)
        root = [one for one in confs if not one[0]]
        near = [one for one in confs if is_inside(one[0], section)] if section else [*confs[:1], *root]
        yield from self._of_targets(wrong, value)
        yield from in_full(wrong, value, confs)
        yield from self._in_near_section(wrong, value)
        if name in NAMING:
            ends = (key for key in self.known if key in (section, f"trainer.{section}"))
            yield from (Meaning(key) for key in ends if key not in self._sections)
        yield from self._in_full_section(wrong)
        yield from self._below_meant(wrong, value)
        yield from self._of_class(section)
        yield from (Meaning(key) for key in self.known if key in (f"{where}.{name}" for where in OF_LOOPS))
        if section != "trainer":
            yield from self._of_classes(name, section)
        meant = list(_of_other_tools(wrong, value, near or confs[:1]))
        if meant and meant[0].sentence is not None and of_trainer:  # the note for where it can't be set
            yield from map(Meaning, self._built_with(name))
            yield from (one for one in self._of_dataset(wrong, value) if not section and one.sentence is None)
        yield from meant
        beside = self._corrected(wrong)
        called, of_others = list(self._called(wrong)), list(_of_other_tools(wrong, value, confs))
        may_slip = (
            beside is not None and len(name) >= SHORT and not called + of_others
        )  # use_cpu is not a misspelt use_gpu
        slipped = may_slip and one_edit(name, (beside or "").rpartition(".")[2])
        if beside is not None and (slipped or plain(beside) == plain(wrong)):
            yield Meaning(beside)  # before a framework is imported for its names
        yield from called
        yield from _same_name(name, self.library() if may_be_library else {})
        yield from of_others
        yield from _same_name(name, self.arguments() if of_trainer else {})
        if section in ("", "trainer"):
            yield from self._of_classes(name, "trainer")
        if section and section not in self._prefixes and name in KEYS and expand_key(name) in self.known:
            yield from [Meaning(expand_key(name))] if name != "name" else []  # that of a part, most of the time

    def _of_class(self, section: str) -> Iterator[Meaning]:
        """Yield the sentence for the class that an unknown section is called after: ``Dropout.p``."""
        if section[:1].isupper() and "." not in section and section not in self._prefixes:
            yield from (one for one in self._as_written(section, None) if one.sentence is not None)

    def _similar(self, section: str, name: str, value: str | None) -> str | None:
        """Return the name of a key, or of another tool, of which ``name`` is a misspelling; None if it is of none."""
        ends = [key.rpartition(".")[2] for key in self._keys_for(section)]
        words = [words for _, conf in self._confs_for(section.partition(".")[0], value) for words in words_of(conf)]
        if section.partition(".")[0] in ("", "trainer"):
            words += [one for _, target in self.targets for one in words_of_target(target)]
        foreign = [one for some in words for one in some.names_in(section) if one_edit(name, one) or some.is_key(one)]
        known = [one for one in (*ends, *foreign) if len(one) >= SHORT]
        return alike(name, [one for one in known if len(name) > SHORT or one[0] == name[0]])  # not slots for plots

    def _keys_for(self, section: str) -> list[str]:
        """Return the keys that may be meant in a section; below ``sweep``, and in what is built, only its own."""
        head = section.partition(".")[0]
        built = (*self.library().values(), *self.arguments().values()) if head in ("", "trainer") else ()
        is_own = head == "sweep" or section in dict(self.targets)
        return [key for key in (*self.known, *built) if not is_own or is_inside(key, section)]

    def _confs_for(self, head: str, value: str | None) -> list[tuple[str, type]]:
        """Return the dataclasses whose words may be meant in a section: below ``sweep``, all if a value is varied."""
        if head not in SECTIONS or (head == "sweep" and "," in (value or "")):
            return list(self.confs)
        others = {"sweep": set(SECTIONS) - {"sweep"}, "dataset": {"sweep", "run"}}.get(head, {"sweep"})
        return [one for one in self.confs if one[0].partition(".")[0] not in others]

    def _of_classes(self, name: str, section: str) -> Iterator[Meaning]:
        """Yield the sentence that names the classes that have an argument, if they may be built in a section.

        A short name of the root means its key, whichever classes have such an argument.
        """
        if name in KEYS and section == "trainer":
            yield Meaning(KEYS[name])
            return
        said = sentence_of(name, section, dict(self.confs).get("trainer"), dict(self.targets))
        if said is not None:
            yield Meaning(sentence=said)

    def _of_targets(self, wrong: str, value: str | None) -> Iterator[Meaning]:
        """Yield what other tools mean by ``wrong``, as an argument of what is built; not if it is a section's own."""
        section, parts = wrong.rpartition(".")[0], wrong.split(".")
        sections = {where for where, _ in (*self.confs, *self.targets)} - {"", "trainer"}
        own = [where for where in sections if is_inside(section, where)]
        for where, target in self.targets:
            if own and where not in own:
                continue
            for words in words_of_target(target):
                meanings = (words.meaning(".".join(parts[start:]), value, where) for start in range(len(parts)))
                yield from (one for one in meanings if one is not None)

    def _of_dataset(self, wrong: str, value: str | None) -> Iterator[Meaning]:
        """Yield the key of the chosen dataset that is called ``wrong``, and those that other tools call so."""
        yield from (Meaning(key) for key in self.known if key == f"dataset.{wrong}")
        yield from _of_other_tools(wrong, value, [one for one in self.confs if is_inside(one[0], "dataset")])

    def _in_full_section(self, wrong: str) -> Iterator[Meaning]:
        """Yield the known key that ``wrong`` is where its section is written in full: ``params.eta``, ``data.seed``."""
        head, _, rest = wrong.partition(".")
        if not rest or head in self._prefixes:
            return
        heads = [prefix for prefix in self._prefixes if prefix.count(".") < 2]
        same = [prefix for prefix in heads if plain(prefix.rpartition(".")[2]) == plain(head)]
        near = alike(head, [prefix for prefix in heads if "." not in prefix])
        known = {*self.known, *(self.library().values() if same else ())}
        for section in [*same, *([near] if near is not None else [])]:
            full = expand_key(f"{section}.{rest}")
            yield from (Meaning(key) for key in known if _plain(key) == _plain(full))
            if takes(dict(self.targets).get(section, ""), rest) or self.has_any_names(section):
                yield Meaning(full)

    def has_any_names(self, section: str) -> bool:
        """Return whether the names below a section are the user's own: ``cluster.runtime_env``."""
        parent, _, last = section.rpartition(".")
        kinds = kinds_of(dict(self.confs).get(parent), last) if parent.partition(".")[0] not in ("", "trainer") else ()
        return any(get_origin(one) is dict for one in kinds)

    def _in_near_section(self, wrong: str, value: str | None) -> Iterator[Meaning]:
        """Yield ``wrong`` in the known section, inside another, that its own misspells: ``run.stop.targets.loss``."""
        corrected = self._corrected(wrong) or ""
        section, near = wrong.rpartition(".")[0], corrected.rpartition(".")[0]
        if section == near or not one_edit(section, near) or section.partition(".")[0] not in self._prefixes:
            return
        parent, _, last = near.rpartition(".")
        is_mapping = any(get_origin(one) is dict for one in kinds_of(dict(self.confs).get(parent), last))
        if is_mapping and near not in dict(self.targets):  # of any names
            yield Meaning(corrected)
        yield from self._beside(corrected, value)

    def _below_meant(self, wrong: str, value: str | None) -> Iterator[Meaning]:
        """Yield ``wrong`` below the mapping that its beginning means: ``sweep.params.lr`` for ``sweep.space.lr``."""
        for where, conf in self.confs if set("[(,") & set(value or "") else ():
            head, _, rest = wrong.removeprefix(f"{where}.").partition(".")
            found = [words.meaning(head, None, where) for words in words_of(conf)] if rest else []
            if any(one is not None and one.key == "sweep.params" for one in found):
                rest = rest.removesuffix(".values")
                full = rest if rest in self.known else next((one.key for one in self.meanings(rest) if one.key), rest)
                yield Meaning(f"sweep.params.{full}")

    def _built_with(self, name: str) -> list[str]:
        """Return the keys of the arguments called ``name`` of what is built."""
        known = [key for key in self.known if key.rpartition(".")[0] in dict(self.targets)]
        return [key for key in (*known, *self.arguments().values()) if plain(key.rpartition(".")[2]) == plain(name)]

    def _corrected(self, wrong: str) -> str | None:
        """Return ``wrong`` with its first unknown part replaced by the key that it misspells."""
        prefixes = self._prefixes
        parts = wrong.split(".")
        for index, part in enumerate(parts):
            if ".".join(parts[: index + 1]) in prefixes:
                continue
            parent = ".".join(parts[:index])
            siblings = {prefix.split(".")[index] for prefix in prefixes if _is_below(prefix, parent, index)}
            fitting = alike(part, sorted(siblings))
            return ".".join([*parts[:index], fitting, *parts[index + 1 :]]) if fitting is not None else None
        return None

    def _called(self, wrong: str) -> Iterator[Meaning]:
        """Yield the keys elsewhere with the same last part: that of the short name first, then those of the section."""
        section, _, name = wrong.rpartition(".")
        if section and name == "name":  # of what is chosen there; that of a run is another's
            return
        if section and section not in self._prefixes and name in VAGUE:
            return
        whole = plain(wrong) if section and section not in self._prefixes else ""  # eval.every_epochs
        same = [key for key in self.known if plain(key.rpartition(".")[2]) in (plain(name), whole)]
        if not is_inside(section, "sweep"):  # the keys of a search mean something else elsewhere
            same = [key for key in same if not is_inside(key, "sweep")]
        same.sort(key=lambda key: (not is_inside(key, section), key.count(".")))
        same.sort(key=lambda key: (plain(key.rpartition(".")[2]) != whole, key != KEYS.get(name)))
        yield from map(Meaning, same)


def in_full(wrong: str, value: str | None, confs: Sequence[tuple[str, type]]) -> Iterator[Meaning]:
    """Yield what all of ``wrong`` means: a name that is known with its section, or for this very value."""
    for where, conf in confs:
        own = wrong.removeprefix(f"{where}.") if is_inside(wrong, where) else ""
        parameter = own.rpartition(".")[2] if own.count(".") == 1 and hasattr(conf, "parameters") else ""
        for name in filter(None, dict.fromkeys((wrong, own, parameter))):
            for words in words_of(conf):
                found = words.meaning(name, value, where) if words.has(name, value) else None
                if found is not None:
                    yield found


def _of_other_tools(wrong: str, value: str | None, confs: Sequence[tuple[str, type]]) -> Iterator[Meaning]:
    """Yield what other tools mean by the end of the key ``wrong``, as much of it as possible first."""
    parts = wrong.split(".")
    for start in range(len(parts)):
        for where, conf in confs:
            for words in words_of(conf):
                found = words.meaning(".".join(parts[start:]), value, where)
                if found is not None:
                    yield found


def _same_name(name: str, parameters: Mapping[str, str]) -> Iterator[Meaning]:
    yield from (Meaning(key) for own, key in parameters.items() if plain(own) == plain(name))


def closest_key(wrong: str, keys: Iterable[str]) -> str | None:
    """Return the full key that the dotted key ``wrong`` was probably meant to be."""
    return next((one.key for one in Keys(list(keys), ()).meanings(wrong)), None)


def closest_group(wrong: str, groups: Iterable[str]) -> str | None:
    """Return the config group that ``wrong`` was probably meant to be, by its short name where it has one."""
    return closest(wrong, groups if "/" in wrong else [*GROUPS, *groups])


def elsewhere(key: str, value: str | None, schemas: Schemas) -> str | None:
    """Return the line that names the plugins that have what another tool calls ``key``; None if none has."""
    section = key.partition(".")[0]
    is_open = section not in ("hydra", *names_of(RtrainConf)) and not key.endswith("_target_")
    groups = [one for one in ("trainer", "dataset") if section == one or is_open]
    for group in groups if "." not in key else ():
        names = {plain(one): one for conf in schemas.group(group).values() for one in names_of(conf)}
        same = plugins_with(f"{group}.{names.get(plain(key), key)}", schemas)
        if same is not None:
            return same
    for group in groups:
        found: dict[Meaning, list[str]] = {}
        for plugin, conf in schemas.group(group).items():
            confs = [(group, conf), *sections(conf, group)]
            meanings = (one for one in _of_other_tools(key, value, confs) if one.sentence is None)
            for meaning in list(meanings)[:1]:
                found.setdefault(meaning, []).append(plugin)
        for meaning, plugins in found.items():
            given = "" if meaning.value is None else f"={meaning.value}"
            verb = "have" if len(plugins) > 1 else "has"
            return f"{group}={', '.join(plugins)} {verb} it: {meaning.key}{given}"
    return None


def _without_noise(name: str) -> str:
    """Return a name without the parts at its ends that say nothing: ``use_deterministic_mode``."""
    parts = name.split("_")
    while len(parts) > 1 and parts[0] in NOISE:
        parts = parts[1:]
    while len(parts) > 1 and parts[-1] in NOISE:
        parts = parts[:-1]
    return "_".join(parts)


def _plain(key: str) -> list[str]:
    return [plain(part) for part in key.split(".")]


def _is_below(prefix: str, parent: str, index: int) -> bool:
    return prefix.count(".") >= index and (not parent or prefix.startswith(f"{parent}."))
