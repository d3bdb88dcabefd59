"""Guess which key a wrong one was meant to be, the likeliest first."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import Field, dataclass, fields, is_dataclass, replace
from functools import cached_property
from itertools import chain
from typing import Any, get_args

from rtrain.config.compose.aliases import CHOOSABLE, GROUPS, KEYS, expand_key
from rtrain.config.diagnostics.meant.other_classes import sentence_of
from rtrain.config.diagnostics.meant.words import Meaning, translated, words_of, words_of_target
from rtrain.config.did_you_mean import alike, closest, one_edit, plain
from rtrain.config.schema import RtrainConf, Schemas
from rtrain.config.value_types.fields import hints_of

SHORT = 5
"""Letters that a name needs to be taken for a misspelt one of another section."""
SECTIONS = ("trainer", "dataset", "run", "scaling", "cluster", "sweep")
"""Sections of the config, in which the keys of a search mean something else than those of a run."""


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
                yield replace(found, value=new)

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
        may_be_misspelt = not is_known and len(name) >= SHORT - 1 and _plain(wrong) not in self._of_others
        similar = self._similar(section, name, value) if may_be_misspelt else None
        guesses = [self._beside(beside, value)] if beside is not None else []
        if similar is not None:
            is_nearer = beside is not None and one_edit(name, similar) and not one_edit(wrong, beside)
            guesses.insert(0 if is_nearer else len(guesses), self._respelled(section, similar, value))
        yield from chain(*guesses, self._of_family(wrong, value))

    def _of_family(self, wrong: str, value: str | None) -> Iterator[Meaning]:
        """Yield what is said about all names that begin like ``wrong``, or about its parent: ``deepspeed.x``."""
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
        confs = self._confs_for(head, value)
        root = [one for one in confs if not one[0]]
        near = [one for one in confs if _is_inside(one[0], section)] if section else [*confs[:1], *root]
        yield from self._of_targets(wrong, value)
        yield from in_full(wrong, value, confs)
        if name in NAMING:
            ends = (key for key in self.known if key in (section, f"trainer.{section}"))
            yield from (Meaning(key) for key in ends if key not in self._sections)
        yield from self._in_full_section(wrong)
        yield from self._below_meant(wrong, value)
        if section != "trainer":
            yield from self._of_classes(name, section)
        meant = list(_of_other_tools(wrong, value, near or confs[:1]))
        if meant and meant[0].sentence is not None and of_trainer:  # what is said of it where it can't be set
            yield from map(Meaning, self._built_with(name))
            yield from (one for one in self._of_dataset(wrong, value) if not section and one.sentence is None)
        yield from meant
        beside = self._corrected(wrong)
        slipped = beside is not None and len(name) >= SHORT and one_edit(name, beside.rpartition(".")[2])
        if beside is not None and (slipped or plain(beside) == plain(wrong)):
            yield Meaning(beside)  # before a framework is imported for its names
        yield from self._called(wrong)
        yield from _same_name(name, self.library() if of_trainer else {})
        yield from _of_other_tools(wrong, value, confs)
        yield from _same_name(name, self.arguments() if of_trainer else {})
        if section in ("", "trainer"):
            yield from self._of_classes(name, "trainer")

    def _similar(self, section: str, name: str, value: str | None) -> str | None:
        """Return the name of a key, or of another tool, of which ``name`` is a misspelling; None if it is of none."""
        ends = [key.rpartition(".")[2] for key in self._keys_for(section)]
        words = [words for _, conf in self._confs_for(section.partition(".")[0], value) for words in words_of(conf)]
        if section.partition(".")[0] in ("", "trainer"):
            words += [one for _, target in self.targets for one in words_of_target(target)]
        foreign = [one for some in words for one in some.names_in(section)]
        return alike(name, [one for one in (*ends, *foreign) if len(one) >= SHORT])

    def _keys_for(self, section: str) -> list[str]:
        """Return the keys that may be meant in a section; below ``sweep``, and in what is built, only its own."""
        head = section.partition(".")[0]
        built = (*self.library().values(), *self.arguments().values()) if head in ("", "trainer") else ()
        is_own = head == "sweep" or section in dict(self.targets)
        return [key for key in (*self.known, *built) if not is_own or _is_inside(key, section)]

    def _confs_for(self, head: str, value: str | None) -> list[tuple[str, type]]:
        """Return the dataclasses whose words may be meant in a section: below ``sweep``, all if a value is varied."""
        if head not in SECTIONS or (head == "sweep" and "," in (value or "")):
            return list(self.confs)
        others = {"sweep": set(SECTIONS) - {"sweep"}, "dataset": {"sweep", "run"}}.get(head, {"sweep"})
        return [one for one in self.confs if one[0].partition(".")[0] not in others]

    def _of_classes(self, name: str, section: str) -> Iterator[Meaning]:
        """Yield the sentence that names the classes that have an argument, if they may be built in a section."""
        said = sentence_of(name, section, dict(self.confs).get("trainer"), dict(self.targets))
        if said is not None:
            yield Meaning(sentence=said)

    def _of_targets(self, wrong: str, value: str | None) -> Iterator[Meaning]:
        """Yield what other tools mean by ``wrong``, as an argument of what is built; not if it is a section's own."""
        section, parts = wrong.rpartition(".")[0], wrong.split(".")
        sections = {where for where, _ in (*self.confs, *self.targets)} - {"", "trainer"}
        own = [where for where in sections if _is_inside(section, where)]
        for where, target in self.targets:
            if own and where not in own:
                continue
            for words in words_of_target(target):
                meanings = (words.meaning(".".join(parts[start:]), value, where) for start in range(len(parts)))
                yield from (one for one in meanings if one is not None)

    def _of_dataset(self, wrong: str, value: str | None) -> Iterator[Meaning]:
        """Yield the key of the chosen dataset that is called ``wrong``, and those that other tools call so."""
        yield from (Meaning(key) for key in self.known if key == f"dataset.{wrong}")
        yield from _of_other_tools(wrong, value, [one for one in self.confs if _is_inside(one[0], "dataset")])

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

    def _below_meant(self, wrong: str, value: str | None) -> Iterator[Meaning]:
        """Yield ``wrong`` below the mapping that its beginning means: ``sweep.params.lr`` for ``sweep.space.lr``."""
        for where, conf in self.confs if set("[(,") & set(value or "") else ():
            head, _, rest = wrong.removeprefix(f"{where}.").partition(".")
            found = [words.meaning(head, None, where) for words in words_of(conf)] if rest else []
            yield from (Meaning(f"{one.key}.{rest}") for one in found if one is not None and one.key == "sweep.params")

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
        """Yield the keys elsewhere with the same last part, those of the same section first."""
        section, _, name = wrong.rpartition(".")
        if section in self._prefixes and name == "name":  # of what is chosen there; that of a run is another's
            return
        same = [key for key in self.known if plain(key.rpartition(".")[2]) == plain(name)]
        if not _is_inside(section, "sweep"):  # the keys of a search mean something else elsewhere
            same = [key for key in same if not _is_inside(key, "sweep")]
        yield from map(Meaning, sorted(same, key=lambda key: (not _is_inside(key, section), key.count("."))))


def in_full(wrong: str, value: str | None, confs: Sequence[tuple[str, type]]) -> Iterator[Meaning]:
    """Yield what all of ``wrong`` means: a name that is known with its section, or for this very value."""
    for where, conf in confs:
        for name in (wrong, *([wrong.removeprefix(f"{where}.")] if _is_inside(wrong, where) else [])):
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


def all_keys(schemas: Schemas, trainer: str | None = None, dataset: str | None = None) -> Iterator[str]:
    """Yield the full keys of the config, with the plugins' own where the plugin is known, and the short names."""
    yield from _keys(RtrainConf, "")
    for group, plugin in (("trainer", trainer), ("dataset", dataset)):
        yield f"{group}.type"
        conf = schemas.group(group).get(plugin or "")
        if conf is not None:
            yield from _keys(conf, group)
    yield from (*KEYS, *GROUPS, "sweep.type", "defaults", "hydra")


def all_confs(schemas: Schemas, chosen: Mapping[str, str | None]) -> list[tuple[str, type]]:
    """Return the dataclasses of keys of a config, each by the key at which it stands.

    Args:
        schemas: Of all plugins.
        chosen: The plugin of each group.
    """
    plugins = [(group, schemas.group(group).get(name or "")) for group, name in chosen.items()]
    roots = [*((group, conf) for group, conf in plugins if conf is not None), ("", RtrainConf)]
    roots.sort(key=lambda one: one[0] == "sweep")  # words of a search mean something else elsewhere
    return [one for where, conf in roots for one in ((where, conf), *_sections(conf, where))]


def key_of_class(name: str, schemas: Schemas) -> str | None:
    """Return the key whose value is the dataclass called ``name``, if there is just one."""
    confs = [("", RtrainConf), *((group, one) for group in CHOOSABLE for one in schemas.group(group).values())]
    found = {key for where, conf in confs for key, inner in _sections(conf, where) if inner.__name__ == name}
    found |= {where for where, conf in confs if conf.__name__ == name}
    return found.pop() if len(found) == 1 else None


def plugins_with(key: str, schemas: Schemas) -> str | None:
    """Return the line that names the plugins that do know ``trainer.<key>`` or ``dataset.<key>``, if there are any."""
    group, name = group_and_name(key)
    confs = schemas.group(group) if group else {}
    knowing = [plugin for plugin, conf in confs.items() if name in names_of(conf)]
    notes = [one.metadata["elsewhere"] for plugin in knowing for one in fields(confs[plugin]) if _is_noted(one, name)]
    own = f"{group.replace('/', '.')}.{name}"
    return "; ".join([f"{own} is a key of {group}={', '.join(knowing)}", *notes]) if knowing else None


def group_and_name(key: str) -> tuple[str, str]:
    """Return the group whose plugins may have a full key, empty for none, and the name of the key right below it."""
    for group in ("sweep/scheduler", *CHOOSABLE):
        if _is_inside(key, group.replace("/", ".")) and key.count(".") > group.count("/"):
            return group, key.split(".")[group.count("/") + 1]
    return "", ""


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
            confs = [(group, conf), *_sections(conf, group)]
            meanings = (one for one in _of_other_tools(key, value, confs) if one.sentence is None)
            for meaning in list(meanings)[:1]:
                found.setdefault(meaning, []).append(plugin)
        for meaning, plugins in found.items():
            given = "" if meaning.value is None else f"={meaning.value}"
            return f"{group}={', '.join(plugins)} has it: {meaning.key}{given}"
    return None


def _is_noted(one: Field[Any], name: str) -> bool:
    """Tell whether a plugin says what users of other plugins should know of its key."""
    return one.name == name and "elsewhere" in one.metadata


def names_of(conf: Any) -> list[str]:
    """Return the names of the fields of a dataclass; none for anything else."""
    return [one.name for one in fields(conf)] if is_dataclass(conf) else []


def _keys(conf: Any, where: str) -> Iterator[str]:
    for name in names_of(conf):
        yield f"{where}.{name}" if where else name
    for key, inner in _sections(conf, where, deep=False):
        yield from _keys(inner, key)


def _sections(conf: Any, where: str, *, deep: bool = True) -> Iterator[tuple[str, Any]]:
    """Yield (key, dataclass) of the dataclasses inside ``conf``."""
    for name, hint in hints_of(conf).items():
        full = f"{where}.{name}" if where else name
        for inner in (one for one in (hint, *get_args(hint)) if isinstance(one, type) and is_dataclass(one)):
            yield full, inner
            if deep:
                yield from _sections(inner, full)


def _plain(key: str) -> list[str]:
    return [plain(part) for part in key.split(".")]


def _is_inside(key: str, section: str) -> bool:
    return bool(section) and f"{key}.".startswith(f"{section}.")


def _is_below(prefix: str, parent: str, index: int) -> bool:
    return prefix.count(".") >= index and (not parent or prefix.startswith(f"{parent}."))
