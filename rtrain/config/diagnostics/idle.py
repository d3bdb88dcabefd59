"""Set keys that have no effect: refused, or a note if the file is meant for several ways to run."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any

from rtrain.config.compose.aliases import split_word
from rtrain.config.compose.request import Request
from rtrain.config.diagnostics.diagnostic import Diagnostic
from rtrain.config.diagnostics.screen import CliWord, FileLocation
from rtrain.config.diagnostics.source_map import SourceMap
from rtrain.config.files import locations
from rtrain.config.needs import Need, Way, idle_keys, keys_of_rows
from rtrain.config.targets.gate import leaves
from rtrain.errors import IdleKeyError

Place = FileLocation | CliWord


@dataclass(frozen=True)
class Idle:
    """A key that is set and has no effect."""

    key: str
    need: Need
    place: Place | None
    """None: in a file that was not looked up."""

    @property
    def is_typed(self) -> bool:
        """Whether it is on the command line."""
        return isinstance(self.place, CliWord)


@dataclass(frozen=True)
class Checked:
    """What is known of keys without an effect before the rows are read."""

    notes: tuple[str, ...]
    """One for each reason why some of a file have none."""
    awaiting: Mapping[str, CliWord | None]
    """Keys that are set and of which only the rows tell whether they have one; with their words, if they are typed."""
    typed: frozenset[str]
    """Keys that the command line sets to something, those of mappings one by one, and those that a sweep varies."""


def check_idle(request: Request, way: Way, words: Collection[str], *, of_run: bool) -> Checked:
    """Refuse keys that are set and have no effect.

    Args:
        request: What was asked for.
        way: How it is run.
        words: The overrides of this job: a trial's own have one value each.
        of_run: Whether the file is what a run recorded: whoever began it has heard.

    Raises:
        ConfigError: Names the keys, and what to use instead.
    """
    varied = _decided(word.key for word in request.words if word.text not in words) | set(request.swept)
    idle = {key: need for key, need in idle_keys(way).items() if not need.decided_by(varied)}
    of_rows = {
        key: needs[0] for key, needs in keys_of_rows(way).items() if not any(need.decided_by(varied) for need in needs)
    }
    typed, places = _typed(request), SourceMap(request)

    found = [*_of_command(places, idle, typed), *(() if of_run else _of_files(places, way.conf, idle, typed))]
    decided = _decided(word.key for word in request.words)
    refused = [one for one in found if not _may_stay(one, request, decided)]
    if refused:
        _refuse(refused)
    # A key that idles in a resumed run ends what it did before.
    awaiting: dict[str, CliWord | None] = {}
    if not (request.of_file or way.resumed):
        # The files are not looked up: that takes as long as half of composing, and a note shows no place.
        in_files = () if of_run else (one for key in of_rows for one in _changed(way.conf, key))
        awaiting = dict.fromkeys(one for one in in_files if one not in typed)
        awaiting |= {
            one.key: one.place for one in _of_command(places, of_rows, typed) if isinstance(one.place, CliWord)
        }
    notes = tuple(_notes(one for one in found if not one.need.documented))
    return Checked(notes, awaiting, frozenset() if request.of_file else frozenset({*typed, *request.swept}))


def check_with_rows(awaiting: Mapping[str, CliWord | None], way: Way) -> tuple[str, ...]:
    """Refuse typed keys that have no effect with these rows, and return a note for each reason of keys in a file.

    Args:
        awaiting: Keys that are set and of which only the rows tell.
        way: How the config is run, with what is known of the dataset.

    Raises:
        ConfigError: Names the keys, and what to use instead.
    """
    idle = idle_keys(way) if awaiting else {}
    covering = {key: _covering(key, idle) for key in awaiting}
    found = [
        Idle(key, idle[above], awaiting[key])
        for key, above in covering.items()
        if above is not None and idle[above].of_rows  # of the others, it was said before
    ]
    typed = [one for one in found if one.is_typed]
    if typed:
        _refuse(typed)
    return tuple(_notes(one for one in found if not one.need.documented))


def _typed(request: Request) -> dict[str, str]:
    """Return the keys that words set to something, those of mappings one by one, and the word of each."""
    found: dict[str, str] = {}
    for word in request.words:
        sign, key, value = split_word(word.text)
        if sign != "~" and value not in ("null", "None", None):
            is_mapping = value.lstrip().startswith("{")  # to parse a word takes a millisecond
            parsed = request.app.parser.parse_override(word.text).value() if is_mapping else value
            found |= dict.fromkeys(leaves(_dotted(key), parsed), word.text)
    return found


def _decided(keys: Iterable[str]) -> set[str]:
    """Return the keys that words set, with those that choosing a plugin sets."""
    return {one for key in keys for one in (_dotted(key), f"{_dotted(key)}.type")}


def _dotted(key: str) -> str:
    """Return a key, or a group, with dots."""
    return key.replace("/", ".")


def _of_command(places: SourceMap, idle: Mapping[str, Need], typed: Mapping[str, str]) -> Iterator[Idle]:
    for leaf, word in typed.items():
        key = _covering(leaf, idle)
        place = places.of_word(word) if key else None
        if key and place is not None:
            yield Idle(leaf, idle[key], place)


def _of_files(places: SourceMap, conf: Any, idle: Mapping[str, Need], typed: Mapping[str, str]) -> Iterator[Idle]:
    for key, need in idle.items():
        for one in (one for one in _changed(conf, key) if one not in typed):
            place = places.of(one) or places.of_choice(one)
            if isinstance(place, FileLocation) and _is_users(place, places.request):
                yield Idle(one, need, place)


def _covering(leaf: str, idle: Mapping[str, Need]) -> str | None:
    """Return the idle key that a key is, or lies in."""
    return next((key for key in idle if f"{leaf}.".startswith(f"{key}.")), None)


def _changed(conf: Any, key: str) -> list[str]:
    """Return the keys at or below a key that don't have their default values."""
    *above, name = key.split(".")
    for part in above:
        conf = _part(conf, part)
    if not is_dataclass(conf):  # what a mapping holds is the user's
        return [] if _part(conf, name) is None else [key]
    one = next(one for one in fields(conf) if one.name == name)
    value, usual = getattr(conf, name), one.default_factory() if one.default_factory is not MISSING else one.default
    return [".".join([*above, leaf]) for leaf in _differing(name, value, usual)]


def _part(conf: Any, name: str) -> Any:
    """Return what a dataclass, a mapping or a list holds under a name; None if there is nothing."""
    if isinstance(conf, list):
        return conf[int(name)]
    return conf.get(name) if isinstance(conf, dict) else getattr(conf, name, None)


def _differing(key: str, value: Any, usual: Any) -> Iterator[str]:
    """Yield the keys at or below ``key`` whose values are not the usual ones."""
    if is_dataclass(value) and type(value) is type(usual):
        for one in fields(value):
            yield from _differing(f"{key}.{one.name}", getattr(value, one.name), getattr(usual, one.name))
    elif value != usual:
        yield key


def _is_users(place: FileLocation, request: Request) -> bool:
    """Tell whether a place is in a file of the user's, or in the config that was asked for."""
    path = Path(place.file)
    return place.file == locations.shown(request.primary.path) or not path.absolute().is_relative_to(
        locations.builtin_config_dir()
    )


def _may_stay(one: Idle, request: Request, decided: set[str]) -> bool:
    """Tell whether an idle key is at most a note: the command decides it, say, and the file alone would make sense."""
    if one.is_typed and not request.of_file:
        return False
    return one.need.portable or one.need.documented or one.need.decided_by(decided)


def _refuse(refused: list[Idle]) -> None:
    first = refused[0]
    same = [one.key for one in refused if one.need.otherwise == first.need.otherwise]
    said = Diagnostic(_sentence(same, first.need.otherwise), first.place, note=f"{first.need.instead}.")
    raise said.as_error(IdleKeyError)


def _notes(found: Iterable[Idle]) -> Iterator[str]:
    by_reason: dict[str, list[str]] = {}
    for one in found:
        by_reason.setdefault(one.need.otherwise, []).append(one.key)
    yield from (_sentence(keys, reason) for reason, keys in by_reason.items())


def _sentence(keys: list[str], reason: str) -> str:
    names = ", ".join(keys[:-1]) + f" and {keys[-1]}" if len(keys) > 1 else keys[0]
    return f"{names} {'have' if len(keys) > 1 else 'has'} no effect: {reason}"
