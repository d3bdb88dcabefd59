"""Short names: ``num_workers=8`` is ``scaling.num_workers=8``, ``optimizer=sgd`` is ``trainer/optimizer=sgd``.

They are rewritten before Hydra parses anything. Interpolation would be wrong for this: a group file that sets the
target would silently win.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rtrain.config.diagnostics.screen import render
from rtrain.errors import ConfigError

if TYPE_CHECKING:
    from rtrain.config.files.yaml_file import YamlFile

KEYS = {
    "num_workers": "scaling.num_workers",
    "use_gpu": "scaling.use_gpu",
    "seed": "run.seed",
    "name": "run.name",
    "batch_size": "trainer.batch_size",
    "epochs": "trainer.max_epochs",
    "max_epochs": "trainer.max_epochs",
    "lr": "trainer.optimizer.lr",
}
"""Short name of a key -> the key."""

GROUPS = {name: f"trainer/{name}" for name in ("model", "optimizer", "scheduler", "loss", "metrics")}
"""Short name of a config group -> the group; its package is the same with dots."""

TRIAL_SCHEDULER = "sweep.scheduler"
"""The part of a sweep that is chosen in a config group, as the parts of a trainer are."""

CHOOSABLE = ("trainer", "dataset", "sweep")
"""Groups whose choice may be taken back with ``=null``."""

FREE = "trainer.params."
"""Where any key may be set without a ``+``: a library's own parameters, whose names the plugin knows and checks."""

OF_SEVERAL = "dataset@datasets."
"""How the choice of an option for one of several data sets begins, as Hydra spells it: its name follows."""

LOGGERS = "run.loggers"
"""A mapping for which a list of its names may stand."""

_BACKSLASHES = re.compile(r"(\\*)('|\Z)")
_WORD = re.compile(r"(?P<sign>\+\+|\+|~)?(?P<key>[^=]*)(?P<rest>=.*)?", re.DOTALL)
_NAMES = re.compile(r"\[?([A-Za-z]\w*(?:, ?[A-Za-z]\w*)*)?\]?")
_ONE_OF_SEVERAL = re.compile(r"datasets\.[^.@]+")
_OPTION = re.compile(r"[\w.\-/]+(,[\w.\-/]+)*|(choice|glob|shuffle|sort)\(.*\)|\[[\w.\-/, ]*\]")


@dataclass(frozen=True)
class Word:
    """One override as Hydra gets it, and which of the user's words it comes from."""

    text: str
    origin: int

    @property
    def key(self) -> str:
        """The key or group, without sign and value."""
        return split_word(self.text)[1]


def split_word(word: str) -> tuple[str, str, str | None]:
    """Return sign (``+``, ``++``, ``~`` or nothing), key and value of an override; the value is None without ``=``."""
    match = _WORD.fullmatch(word)
    assert match is not None
    rest = match["rest"]
    return match["sign"] or "", match["key"], None if rest is None else rest[1:]


def quoted(text: str) -> str:
    """Return a text as Hydra's grammar takes it, whatever it holds.

    Backslashes stand for themselves, but for those before a quote or at the end.
    """
    escaped = _BACKSLASHES.sub(lambda found: found[1] * 2 + ("\\'" if found[2] else ""), text)
    return f"'{escaped}'"


def expand(overrides: Iterable[str]) -> tuple[Word, ...]:
    """Return the user's overrides with the names that Hydra knows."""
    return tuple(Word(text, origin) for origin, word in enumerate(overrides) for text in expand_word(word))


def expand_word(word: str) -> list[str]:
    """Return the overrides that one of the user's words stands for."""
    sign, key, value = split_word(word)
    key = expand_key(key) if key in KEYS or key.partition(".")[0] in GROUPS else key
    dotted = key.replace("/", ".")
    is_node = value is not None and "_target_" in value and not value.startswith("[")
    if sign in ("", "++") and is_node and dotted.startswith("trainer."):
        return [f"{dotted}=null", f"++{dotted}={value}"]
    if sign == "" and value is not None and dotted.startswith(FREE):
        return [f"++{dotted}={value}"]
    if key == LOGGERS and value is not None:
        return [f"{key}=null" if value in ("null", "None", "[]") else f"++{key}={_mapping_of_names(value)}"]
    if dotted in CHOOSABLE and sign in ("", "++") and value in ("null", "None"):
        return [f"~{dotted}"]
    if dotted.replace(".", "/") in GROUPS.values():
        return [_choice(sign, dotted, value)]
    if key == TRIAL_SCHEDULER and _is_option(value) and sign in ("", "+", "++"):
        return [f"{key.replace('.', '/')}={value}"]
    if _ONE_OF_SEVERAL.fullmatch(dotted) and _is_option(value) and sign in ("", "+", "++"):
        return [f"{sign.replace('++', '')}dataset@{dotted}={value}"]
    return [f"{sign}{key}" + ("" if value is None else f"={value}")]


def _mapping_of_names(value: str) -> str:
    """Return a name, or a list of names, as a mapping of them to nothing else; other values unchanged."""
    match = _NAMES.fullmatch(value.strip())
    if (
        match is None
        or (value.startswith("[") != value.endswith("]"))
        or (match[1] and "," in match[1] and value[0] != "[")
    ):
        return value
    return "{" + ",".join(f"{name.strip()}:{{}}" for name in (match[1] or "").split(",") if name) + "}"


def expand_key(key: str) -> str:
    """Return the full key that the short ``key`` stands for, with dots; other keys unchanged."""
    head, dot, tail = key.partition(".")
    if key in KEYS:
        return KEYS[key]
    return f"trainer.{head}{dot}{tail}" if head in GROUPS else key


def chosen_at(key: str) -> str | None:
    """Return where the option goes that an override of ``key`` chooses, with dots; None if it chooses none of ours."""
    if key.startswith(OF_SEVERAL):
        return key.partition("@")[2]
    return key.replace("/", ".") if key in (*CHOOSABLE, *GROUPS.values()) else None


def expand_keys(data: dict[str, Any], file: YamlFile) -> None:
    """Move short names at the top level of a config to where they belong, and those of a sweep's parameters."""
    shorts = [key for key in data if key in KEYS or key in GROUPS]
    for short in sorted(shorts, key=lambda key: expand_key(key).count(".")):  # a part before the keys inside of it
        _place(data, short, data.pop(short), file)
    _expand_names(data)
    hydra = data.get("hydra")
    sweeper = hydra.get("sweeper") if isinstance(hydra, dict) else None
    params = sweeper.get("params") if isinstance(sweeper, dict) else None
    if isinstance(sweeper, dict) and isinstance(params, dict):
        words = [text for key, value in params.items() for text in expand_word(f"{key}={value}")]
        pairs = [split_word(word) for word in words]
        sweeper["params"] = {f"{sign}{key}": value for sign, key, value in pairs}


def _expand_names(data: dict[str, Any]) -> None:
    """Make a mapping of the loggers that a config only names."""
    run = data.get("run")
    named = run.get("loggers") if isinstance(run, dict) else None
    names = [named] if isinstance(named, str) and "${" not in named else named
    if isinstance(run, dict) and isinstance(names, list) and all(isinstance(one, str) for one in names):
        run["loggers"] = {name: {} for name in names}


def expand_defaults(defaults: list[Any], *, relative: bool) -> list[Any]:
    """Return a defaults list with full group names.

    Args:
        defaults: The entries as the YAML has them.
        relative: Whether entries without a leading slash are relative to the root of the configs.
    """
    return [
        {_expand_entry(str(key), relative): value for key, value in entry.items()}
        if isinstance(entry, dict)
        else _expand_entry(entry, relative)
        if isinstance(entry, str)
        else entry
        for entry in defaults
    ]


def without_choice(word: str) -> str:
    """Return an override that chooses ``null`` in a group below ``trainer`` as one that sets the part to null."""
    _, key, value = split_word(word)
    return f"{key.replace('/', '.')}=null" if key in GROUPS.values() and value in ("null", "None") else word


def _choice(sign: str, dotted: str, value: str | None) -> str:
    """Return the override for a group below ``trainer``: an option is chosen, anything else is a value."""
    if sign == "~" or value in ("null", "None", None):
        return f"{dotted}=null" if value in ("null", "None") or sign == "~" else dotted
    if _is_option(value):
        return f"{'+' if sign == '+' else ''}{dotted.replace('.', '/')}={value}"
    return f"{sign}{dotted}={value}"


def _is_option(value: str | None) -> bool:
    """Return whether a value names an option of a group, or several of a sweep."""
    return value not in ("null", "None", None) and _OPTION.fullmatch(value) is not None and "{" not in value


def _place(data: dict[str, Any], short: str, value: Any, file: YamlFile) -> None:
    full = expand_key(short)
    *parents, last = full.split(".")
    node = data
    for parent in parents:
        if node.get(parent) is None:
            node[parent] = {}
        node = node[parent]
        if not isinstance(node, dict):
            raise ConfigError(render(f"'{short}' means {full}, but {parent} is not a mapping", spot=file.spot([short])))
    if last in node:
        message = f"'{short}' means {full}, which this file also sets"
        raise ConfigError(render(message, spot=file.spot([short])), "  keep only one of them")
    node[last] = value


def _expand_entry(entry: str, relative: bool) -> str:
    *keywords, name = entry.split(" ")
    slash, bare = ("/", name[1:]) if name.startswith("/") else ("", name)
    group, _, option = bare.partition("/")
    if group not in GROUPS or not (slash or relative) or "@" in bare:
        return entry
    return " ".join([*keywords, f"{slash}{GROUPS[group]}" + (f"/{option}" if option else "")])
