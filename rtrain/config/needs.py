"""Conditions under which a key has an effect. Dataclasses of keys declare them; ``idle.py`` checks them.

A dataclass of keys lists them in its class attribute ``needs``: ``(WORKERS.of("placement_strategy"),)``. A trainer
names keys of other sections that it does not always follow in ``follows``: ``(EPOCHS.of("run.log_every_steps"),)``.
Needs that depend on the rows of the dataset are checked again after the rows have been read.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, fields, is_dataclass, replace
from itertools import chain
from typing import Any

from rtrain.config.renamed import new_names


@dataclass(frozen=True)
class Way:
    """How a config is run."""

    conf: Any
    """The whole config: dataclasses all the way down."""
    multirun: bool = False
    """Whether it is swept."""
    smoke: bool = False
    """Whether its smoke block is run."""
    resumed: bool = False
    """Whether it is the config of a run, which is resumed."""
    verb: str = "fit"
    """The command that trains: ``fit``, or ``resume`` or ``runs reproduce`` of a run."""
    info: Any = None
    """What is known of the dataset, its ``DatasetInfo``; None before the rows are read, or without a dataset."""

    @property
    def trainer(self) -> Any:
        """The trainer's dataclass of keys."""
        return self.conf.trainer


@dataclass(frozen=True, kw_only=True)
class Need:
    """What a key needs to have an effect."""

    met: Callable[[Way], bool]
    """Tells whether it is there."""
    otherwise: str
    """Why the key has no effect without it, after a colon: "num_workers=0 trains in this process"."""
    instead: str
    """What to use instead, as a sentence."""
    keys: tuple[str, ...]
    """The full keys, or sections, that decide."""
    portable: bool = False
    """Whether the same file makes sense in another way of running: then an idle key in it is a note, not an error."""
    documented: bool = False
    """Whether no user expects an effect: then an idle key in a file gives no note either."""
    of_rows: bool = False
    """Whether only the rows tell if it is there: it is met until they are read. Other rows make another answer, so that
    an idle key in a file is a note."""

    def decided_by(self, keys: Iterable[str]) -> bool:
        """Tell whether one of ``keys`` decides whether it is there."""
        return any(f"{one}.".startswith(f"{key}.") for one in keys for key in self.keys)

    def of(self, *names: str) -> Rule:
        """Return that keys need it."""
        return Rule(self, names)

    def of_all(self, *, but: Collection[str] = ()) -> Rule:
        """Return that all keys of the dataclass need it, with exceptions."""
        return Rule(self, None, frozenset(but))

    def of_section(self) -> Rule:
        """Return that the section as a whole needs it."""
        return Rule(self, ("",))

    def of_dataset(self, name: str) -> Rule:
        """Return that a key of the dataset needs it, if the dataset has such a key."""
        return self.of_found(lambda way: [f"dataset.{name}"] if hasattr(way.conf.dataset, name) else [])

    def of_found(self, find: Callable[[Way], Iterable[str]]) -> Rule:
        """Return that the full keys need it that ``find`` finds in a config: those in mappings, which users name."""
        return Rule(self, (), find=find)


@dataclass(frozen=True)
class Rule:
    """Which keys of a dataclass need what."""

    need: Need
    names: tuple[str, ...] | None
    """None: all."""
    but: frozenset[str] = frozenset()
    find: Callable[[Way], Iterable[str]] | None = None

    def keys(self, conf: type, where: str) -> Iterator[str]:
        """Yield the full keys, but for those that are to be found.

        Args:
            conf: The dataclass that declares it.
            where: The key at which the dataclass stands.
        """
        names = [one.name for one in fields(conf)] if self.names is None else self.names
        yield from (f"{where}.{name}".strip(".") for name in names if name not in self.but)


Rules = tuple[Rule, ...]

WORKERS = Need(
    met=lambda way: way.conf.scaling.num_workers != 0,
    otherwise="num_workers=0 trains in this process, without Ray",
    instead="Train on Ray workers: num_workers=1",
    keys=("scaling.num_workers",),
    portable=True,
)
PROCESSES = replace(WORKERS, met=lambda way: WORKERS.met(way) or way.multirun)
SEVERAL_WORKERS = replace(
    WORKERS,
    met=lambda way: way.conf.scaling.num_workers not in (0, 1),
    otherwise="it is for several workers",
    instead="Leave it out, or train on several: num_workers=2",
)
LOOP = Need(
    met=lambda way: getattr(way.trainer, "train_loop", None) is not None,
    otherwise="there is no custom train loop",
    instead="Set one: trainer.train_loop=module:function",
    keys=("trainer.train_loop",),
)
SWEEP = Need(
    met=lambda way: way.multirun,
    otherwise="without --multirun, only one run is trained",
    instead="To sweep, add --multirun to rtrain fit; in Python: rtrain.sweep(...)",
    keys=(),
    portable=True,
)
SMOKE = Need(
    met=lambda way: way.smoke,
    otherwise="only rtrain smoke uses it, and reads it from the file",
    instead="Put it into the file and run rtrain smoke FILE; for this run, type the overrides themselves",
    keys=(),
    documented=True,
)


def idle_keys(way: Way) -> dict[str, Need]:
    """Return the keys that have no effect, whether they are set or not, with what each lacks; sections as a whole."""
    found: dict[str, Need] = {}
    for key, need in _all_needs(way):
        if key not in found and not need.met(way):
            found[key] = need
    return found


def keys_of_rows(way: Way) -> dict[str, list[Need]]:
    """Return the keys of which only the rows tell whether they have an effect, with what each of them needs."""
    found: dict[str, list[Need]] = {}
    for key, need in _all_needs(way):
        if need.of_rows:
            found.setdefault(key, []).append(need)
    return found


def _all_needs(way: Way) -> Iterator[tuple[str, Need]]:
    # What a trainer never follows comes first: what the key itself needs would not help.
    return chain(_declared(way, type(way.trainer), "follows", ""), _within(way, way.conf, ""))


def _within(way: Way, conf: Any, where: str) -> Iterator[tuple[str, Need]]:
    """Yield what the dataclasses of keys in ``conf`` declare about their keys."""
    yield from _declared(way, type(conf), "needs", where)
    for one in fields(conf):
        value = getattr(conf, one.name)
        if is_dataclass(value):
            yield from _within(way, value, f"{where}.{one.name}".strip("."))


def _declared(way: Way, conf: type, attribute: str, where: str) -> Iterator[tuple[str, Need]]:
    rules: Rules = getattr(conf, attribute, ())
    before = {f"{where}.{now}".strip("."): f"{where}.{old}".strip(".") for old, now in new_names(conf).items()}
    for rule in rules:
        for key in rule.keys(conf, where) if rule.find is None else rule.find(way):
            yield key, rule.need
            if key in before:
                yield before[key], rule.need
