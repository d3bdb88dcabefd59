"""Overrides as Python gives them: a text, texts, a mapping, keywords; each one becomes a word of Hydra's grammar."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any

from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.errors import HydraException
from omegaconf import OmegaConf

from rtrain.config.calls.plain import is_frame, plain_value
from rtrain.config.compose.aliases import CHOOSABLE, TRIAL_SCHEDULER, expand_key
from rtrain.config.compose.search_space import as_text, varied
from rtrain.errors import ConfigError

Overrides = str | Iterable[str] | Mapping[str, Any]
"""``"lr=0.1"``, ``["lr=0.1", "epochs=3"]`` or ``{"lr": 0.1, "epochs": 3}``."""
_NAME = re.compile(r"[A-Za-z_][\w-]*", re.ASCII)
METRICS = "trainer.metrics"
"""A mapping of objects by names of the user's: it is given whole."""
_FREE = ("vars.", "hydra.", "trainer.train_loop_config.", "trainer.train_function_config.")
_OF_SEVERAL = re.compile(r"datasets\.[^.]+")


@dataclass(frozen=True)
class Choice:
    """Values of which each trial of a sweep has one."""

    values: tuple[Any, ...]


def choice(*values: Any) -> Choice:
    """Return a choice: ``rtrain.sweep("mlp", lr=rtrain.choice(0.1, 0.01))`` trains once with each value.

    A list is one value, ``model={"hidden": [64, 64]}`` say, so that several of them are a choice too:
    ``rtrain.choice([64], [64, 64])``.

    Raises:
        ConfigError: There is no value.
    """
    if not values:
        raise ConfigError("a choice needs values.", "  e.g. rtrain.choice(0.1, 0.01)")
    return Choice(values)


@dataclass(frozen=True)
class Given:
    """One override, and the form in which it was given."""

    word: str
    form: str
    """``text``, ``entry`` of a mapping, or ``keyword``."""


def given_overrides(overrides: Overrides, short: Mapping[str, Any] | None = None) -> list[Given]:
    """Return the overrides of a call, those given as keywords last: of two for the same key, the later one wins.

    Args:
        overrides: In any of the forms.
        short: Keywords and their values.

    Raises:
        ConfigError: Something is in another form, or a config can't hold a value.
    """
    return [*_positional(overrides), *(Given(word, "keyword") for word in words_of_mapping(short or {}))]


def _positional(overrides: Any) -> list[Given]:
    if OmegaConf.is_config(overrides):
        overrides = plain_value(overrides)
    if isinstance(overrides, str):
        return [Given(overrides, "text")]
    if isinstance(overrides, Mapping):
        return [Given(word, "entry") for word in words_of_mapping(overrides)]
    if is_frame(overrides):
        hint = '  rows come from a file, {"dataset.path": "new.parquet"}, or from a function of yours: dataset=python'
        raise ConfigError(f"overrides are words of a config, not a {type(overrides).__qualname__}.", hint)
    texts = list(overrides) if isinstance(overrides, Iterable) else [overrides]
    for one in texts:
        if not isinstance(one, str):
            hint = '  overrides must be a string, "lr=0.1", a list of strings, or a mapping, {"lr": 0.1}'
            raise ConfigError(f"an override must be a string, not a {type(one).__qualname__}.", hint)
    return [Given(one, "text") for one in texts]


def words_of_mapping(mapping: Mapping[Any, Any]) -> list[str]:
    """Return the overrides that a mapping stands for, each as deep as keys go: a nested one is merged, as in YAML.

    Raises:
        ConfigError: A key is not a text, or a config can't hold a value.
    """
    words: list[str] = []
    built = tuple(f"{key}." for key, value in mapping.items() if isinstance(value, Mapping) and "_target_" in value)
    for key, value in mapping.items():
        if not isinstance(key, str):
            raise ConfigError(f"{key!r} is not a key.", '  a key must be a string: "optimizer.lr"')
        free = "++" if key.startswith(built) else ""  # another class has other arguments
        words += [f"{free}{word}" for word in _words(key, value)]
    return words


def _words(key: str, value: Any) -> Iterator[str]:
    """Yield the words for a value; a class with its arguments, and keys that Hydra can't read, stay one."""
    if isinstance(value, Choice):
        yield f"{'++' if is_free(key) else ''}{_choice(key, value)}"
        return
    if isinstance(value, Mapping) and "_target_" in value and any(isinstance(one, Choice) for one in value.values()):
        yield _choice(key, _combined(value))
        return
    if OmegaConf.is_config(value) or not _is_section(value):
        _refuse_choice_inside(value, key)
        value = plain_value(value, key)
    if not _is_section(value) or expand_key(key) == METRICS:
        yield f"{'++' if is_free(key) else ''}{key}={_text(key, plain_value(value, key))}"
        return
    rest = dict(value)
    if "type" in rest and (key in (*CHOOSABLE, TRIAL_SCHEDULER) or _OF_SEVERAL.fullmatch(key)):
        yield from _words(key, rest.pop("type"))  # chooses the option of that name, as in YAML
    for name, one in rest.items():
        yield from _words(f"{key}.{name}", one)


def is_free(key: str) -> bool:
    """Return whether a key names what only the user knows, so that a mapping may add it without a sign."""
    return f"{key}.".startswith(_FREE)


def _is_section(value: Any) -> bool:
    """Return whether a value is a mapping whose keys are given one by one."""
    is_mapping = isinstance(value, Mapping) and bool(value) and "_target_" not in value
    return is_mapping and all(isinstance(name, str) and _NAME.fullmatch(name) for name in value)


def _refuse_choice_inside(value: Any, key: str) -> None:
    inner = value.values() if isinstance(value, Mapping) else value if isinstance(value, list | tuple) else ()
    if any(isinstance(one, Choice) for one in inner):
        hint = '  e.g. {"model.hidden": rtrain.choice([8], [8, 8])}'
        raise ConfigError(f"{key}: a choice must be the whole value of a key.", hint)


def _combined(node: Mapping[Any, Any]) -> Choice:
    """Return the choice among all that a class with its arguments can be, some of which are choices."""
    values = [one.values if isinstance(one, Choice) else (one,) for one in node.values()]
    return Choice(tuple(dict(zip(node, one, strict=True)) for one in product(*values)))


def _choice(key: str, choice: Choice) -> str:
    return varied(key, [_text(key, plain_value(value, key)) for value in choice.values])


def _text(key: str, value: Any) -> str:
    """Return a value as Hydra's grammar has it.

    Raises:
        ConfigError: It has a key that the grammar has no form for.
    """
    text = as_text(value)
    if _has_unusual_keys(value) and not _is_read_back(value, text):
        message = f"{key}: its value contains a mapping with a key that an override can't have."
        raise ConfigError(message, "  Put it into the config, which can also be a mapping.")
    return text


def value_of(word: str) -> Any:
    """Return the value of an override as Python has it; of one that Hydra can't read, its text."""
    try:
        return OverridesParser.create().parse_override(word).value()
    except HydraException:
        return word.partition("=")[2]


def _has_unusual_keys(value: Any) -> bool:
    if isinstance(value, Mapping):
        return any(not _NAME.fullmatch(str(name)) or _has_unusual_keys(one) for name, one in value.items())
    return isinstance(value, list) and any(map(_has_unusual_keys, value))


def _is_read_back(value: Any, text: str) -> bool:
    try:
        read = OverridesParser.create().parse_override(f"key={text}").value()
    except HydraException:
        return False
    return bool(_with_texts(read) == _with_texts(value))


def _with_texts(value: Any) -> Any:
    """Return a value whose keys are all texts, which is what configs make of them."""
    if isinstance(value, Mapping):
        return {str(name): _with_texts(one) for name, one in value.items()}
    return [_with_texts(one) for one in value] if isinstance(value, list) else value
