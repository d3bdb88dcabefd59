"""What a sweep varies: the words of Hydra's grammar, and the lists of ``sweep.params``, as axes of one space."""

from __future__ import annotations

import math
import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Glob, IntervalSweep, Override, RangeSweep
from hydra.errors import HydraException
from omegaconf import OmegaConf

from rtrain.config.compose.aliases import expand_word, quoted, split_word
from rtrain.config.compose.bounds import check_words
from rtrain.config.diagnostics.meant.keys.suggest import closest_key
from rtrain.config.did_you_mean import did_you_mean, there_are, to_try
from rtrain.errors import ConfigError

ZIP = "sweep.zip"
MAX_POINTS = 10_000
"""Values of a range, and trials of a grid: all of them are composed and checked before the first one starts."""
_PLAIN = re.compile(r"[A-Za-z_][\w./-]*", re.ASCII)
"""Texts that stay texts without quotes, unless they are among ``_WORDS``."""
_WORDS = ("true", "false", "null", "nan", "inf")
_SIGNS_OF_GRAMMAR = re.compile(r"[\\()\[\]{}:=, \t]")


@dataclass(frozen=True, kw_only=True)
class Axis:
    """One key, and what it may be: one of a number of values, or a number of an interval."""

    key: str
    """As Hydra takes it, with its sign."""
    values: tuple[str, ...] = ()
    """As Hydra takes them; empty for an interval."""
    low: float = 0.0
    high: float = 0.0
    is_int: bool = False
    """The numbers of the interval are whole."""
    log: bool = False
    """The logarithms of its numbers are spread evenly, not the numbers."""
    rows: tuple[tuple[str, ...], ...] = ()
    """Of ``sweep.zip``: the overrides that each value, a number from 0, stands for."""

    @property
    def name(self) -> str:
        """The key without its sign."""
        return self.key.lstrip("+")

    @property
    def first(self) -> str:
        """Any value, to see whether the key is right."""
        return self.values[0] if self.values else self.text(self.low)

    def text(self, number: float) -> str:
        """Return a number of the interval as Hydra takes it."""
        return str(round(number)) if self.is_int else repr(float(number))

    def holds(self, value: str) -> bool:
        """Tell whether a value, as Hydra takes it, is one of these."""
        return value in self.values if self.values else self.low <= float(value) <= self.high

    def words(self, value: str) -> tuple[str, ...]:
        """Return the overrides that stand for a value."""
        return self.rows[int(value)] if self.rows else (f"{self.key}={value}",)

    def draw(self, rng: random.Random) -> str:
        """Return a value at random."""
        if self.values:
            return rng.choice(self.values)
        if self.is_int and not self.log:
            return self.text(rng.randint(round(self.low), round(self.high)))
        low, high = (math.log(self.low), math.log(self.high)) if self.log else (self.low, self.high)
        drawn = rng.uniform(low, high)
        return self.text(min(max(math.exp(drawn) if self.log else drawn, self.low), self.high))


@dataclass(frozen=True, kw_only=True)
class Space:
    """What a sweep varies, and what it does not."""

    fixed: tuple[str, ...]
    """Overrides of every trial."""
    axes: tuple[Axis, ...]

    @property
    def probe(self) -> list[str]:
        """The overrides of a trial that may be, to learn what does not depend on the axes."""
        return [*self.fixed, *(word for axis in self.axes for word in axis.words(axis.first))]


def read_space(loader: Any, words: Sequence[str], seed: int) -> Space:
    """Return the space of a command's overrides.

    Args:
        loader: Hydra's config loader, which knows the options of groups.
        words: The overrides, in full words.
        seed: Of ``shuffle(...)``.

    Raises:
        HydraException: Something can't be parsed.
    """
    state = random.getstate()
    random.seed(seed)  # Hydra shuffles with Python's own generator
    try:
        fixed: dict[str, str] = {}
        axes: dict[str, Axis] = {}
        for override in OverridesParser.create(config_loader=loader).parse_overrides(list(words)):
            key = override.get_key_element()
            fixed.pop(key, None)
            axes.pop(key, None)
            if override.is_sweep_override():
                axes[key] = _axis(key, override)
            else:
                assert override.input_line is not None
                fixed[key] = override.input_line
    finally:
        random.setstate(state)
    return Space(fixed=tuple(fixed.values()), axes=tuple(axes.values()))


def is_several(value: str) -> bool:
    """Return whether a value, as a command line has it, stands for several; one that can't be read stands for none."""
    try:
        return bool(OverridesParser.create().parse_override(f"key={value}").is_sweep_override())
    except HydraException:
        return False


def with_params(space: Space, loader: Any, params: dict[str, Any], seed: int) -> Space:
    """Return the space with the axes of ``sweep.params`` too; a key of the command line wins.

    It takes the sign that the key has without the command line: trials are known by their overrides.

    Raises:
        ConfigError: A value is not a range of values.
    """
    mine = {axis.name for axis in space.axes} | {_key(word) for word in space.fixed}
    found: list[Axis] = []
    words = {key: _params_words(key, value) for key, value in params.items()}
    check_words("sweep.params", [word for ones in words.values() for word in ones])
    for key, value in params.items():
        inner = read_space(loader, words[key], seed)
        if not inner.axes:
            raise ConfigError(
                f"sweep.params.{key}: {value} is a single value.",
                "List several: [0.1, 0.01]; or write it as on the command line: 'choice(1,2)', 'interval(0,1)'",
            )
        found += inner.axes
    keys = {axis.name: axis.key for axis in found}
    typed = [replace(axis, key=keys.get(axis.name, axis.key)) for axis in space.axes]
    return Space(fixed=space.fixed, axes=(*(axis for axis in found if axis.name not in mine), *typed))


def with_zip(space: Space, zipped: dict[str, list[Any]]) -> Space:
    """Return the space with one more axis for ``sweep.zip``: the first values of its keys, the second ones, and so on.

    Raises:
        ConfigError: The lists differ in length, or a key is varied by something else too.
    """
    if not zipped:
        return space
    lengths = {key: len(values) for key, values in zipped.items()}
    if len(set(lengths.values())) > 1 or 0 in lengths.values():
        told = ", ".join(f"{key} has {number}" for key, number in lengths.items())
        raise ConfigError(
            f"sweep.zip: {told}; all need the same number of values.", "Give each key the same number of values."
        )
    columns = [[expand_word(f"{key}={as_text(value)}") for value in values] for key, values in zipped.items()]
    rows = tuple(tuple(word for words in row for word in words) for row in zip(*columns, strict=True))
    check_words(ZIP, [word for row in rows for word in row])
    keys = {_key(word) for word in rows[0]}
    for others, does in (({axis.name for axis in space.axes}, "varied"), (set(map(_key, space.fixed)), "set")):
        if twice := keys & others:
            raise ConfigError(f"sweep.zip: {min(twice)} is also {does} elsewhere.", "Keep only one of them.")
    axis = Axis(key=ZIP, values=tuple(map(str, range(len(rows)))), rows=rows)
    return Space(fixed=space.fixed, axes=(*space.axes, axis))


def _axis(key: str, override: Override) -> Axis:
    value = override.value()
    if isinstance(value, IntervalSweep):
        start, end = value.start or 0, value.end or 0
        low, high, is_log = float(start), float(end), "log" in value.tags
        _check_interval(override, low, high, log=is_log)
        # Hydra makes whole numbers of int(interval(1,5)) only, whatever its types say.
        is_int = not isinstance(start, float) and not isinstance(end, float)
        return Axis(key=key, low=low, high=high, is_int=is_int, log=is_log)
    if isinstance(value, RangeSweep):
        _check_length(override, value)
    texts = tuple(override.sweep_string_iterator())
    if not texts:
        raise _no_value(override)
    return Axis(key=key, values=tuple(dict.fromkeys(texts)))


def _check_length(override: Override, value: RangeSweep) -> None:
    """Check how many numbers a range holds, before there are any of them."""
    start, stop, step = value.start or 0, value.stop or 0, value.step
    count = -((start - stop) // step) if step else 0
    if count <= MAX_POINTS:
        return
    number = f"{count:,.0f}" if count < 10**15 else "endlessly many"
    raise ConfigError(
        f"{override.input_line}: the range holds {number} values; the maximum is {MAX_POINTS:,}.",
        f"Draw from an interval: {override.get_key_element()}=int(interval({start},{stop})) sweep=random "
        "sweep.num_trials=20",
    )


def _no_value(override: Override) -> ConfigError:
    if not isinstance(override.value(), Glob):
        kind = "range" if isinstance(override.value(), RangeSweep) else "choice"
        return ConfigError(f"{override.input_line}: the {kind} is empty.")
    assert override.config_loader is not None
    options = override.config_loader.get_group_options(override.key_or_group)
    there = there_are(options) if options else "glob(...) is for config groups: trainer, dataset, ..."
    return ConfigError(f"{override.input_line}: it matches no option of {override.key_or_group}.", there)


def _check_interval(override: Override, low: float, high: float, *, log: bool) -> None:
    if low == high:
        instead = to_try(f"{override.get_key_element()}={low:g}", "or write interval(low,high)")
        raise ConfigError(f"{override.input_line}: the interval ends where it starts.", instead)
    if not low < high:
        raise ConfigError(f"{override.input_line}: the interval ends before it starts.", "Write interval(low,high).")
    if log and low <= 0:
        raise ConfigError(
            f"{override.input_line}: 0 and negative numbers have no logarithm.",
            "Start above 0, or leave out tag(log, ...).",
        )


def _params_words(key: str, value: Any) -> list[str]:
    if not isinstance(value, list | tuple):
        return expand_word(f"{key}={value}")
    return expand_word(varied(key, [as_text(one) for one in value]))


def varied(key: str, texts: Sequence[str]) -> str:
    """Return the override that tries each of some values, which are as Hydra's grammar has them."""
    # Hydra's choice(...) takes no null, and a list of one needs it.
    return f"{key}={','.join(texts)}" if len(texts) > 1 else f"{key}=choice({''.join(texts)})"


def as_text(value: Any) -> str:
    """Return a plain value as Hydra's grammar takes it."""
    if isinstance(value, str):
        if _PLAIN.fullmatch(value) and value.lower() not in _WORDS:
            return value
        return quoted(value)
    if isinstance(value, bool) or value is None:
        return "null" if value is None else str(value).lower()
    if isinstance(value, dict):
        return "{" + ",".join(f"{_as_key(key)}:{as_text(one)}" for key, one in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ",".join(map(as_text, value)) + "]"
    return repr(value)


def _as_key(key: Any) -> str:
    """Return the key of a mapping as Hydra's grammar takes it, as far as it does."""
    return _SIGNS_OF_GRAMMAR.sub(r"\\\g<0>", key) if isinstance(key, str) else as_text(key)


def _leaves(node: dict[str, Any], path: str = "") -> Iterator[str]:
    for name, value in node.items():
        yield f"{path}{name}"
        if isinstance(value, dict):
            yield from _leaves(value, f"{path}{name}.")


def expanded_key(key: str) -> str:
    """Return a key of the config, or a group, as the user writes it, in full and with dots."""
    return _key(expand_word(f"{key}=x")[0]).replace("/", ".")


def _key(word: str) -> str:
    return split_word(word)[1]


def is_excluded(resolved: dict[str, Any], rules: Sequence[dict[str, Any]]) -> bool:
    """Tell whether all keys of one of the rules match a trial's config.

    Raises:
        ConfigError: A rule names a key that the config does not have.
    """
    matches = [[_matches(resolved, key, wanted) for key, wanted in rule.items()] for rule in rules]
    return any(map(all, matches))


def _matches(resolved: dict[str, Any], key: str, wanted: Any) -> bool:
    full = expanded_key(key)
    there = OmegaConf.select(OmegaConf.create(resolved), full, default=Ellipsis)
    if there is Ellipsis:
        near = closest_key(full, _leaves(resolved))
        hint = did_you_mean(near) if near else "Write the key as on the command line."
        raise ConfigError(f"sweep.exclude: there is no key '{key}'.", hint)
    if OmegaConf.is_dict(there) and "type" in there:
        there = there["type"]  # of a config group
    return there in wanted if isinstance(wanted, list) and not OmegaConf.is_list(there) else bool(there == wanted)
