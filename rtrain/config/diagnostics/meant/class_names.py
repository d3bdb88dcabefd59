"""The class that is meant where a part of the trainer is given a bare name: ``RandomForestClassifier``.

The dataclass of a trainer's keys names in its class attribute ``homes`` the modules that have the classes and functions
of each part: ``{"optimizer": ("torch.optim",)}``. They are imported to look for the name.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from importlib import import_module
from pathlib import Path

from rtrain.config.diagnostics.meant.rewritten import OFF
from rtrain.config.did_you_mean import closest, plain
from rtrain.config.targets.parameters import takes
from rtrain.config.targets.silenced import silenced

CUTOFF = 0.8
"""How alike a misspelt name has to be."""
SHORT = 4
"""Letters that the beginning of a name needs to stand for all of it."""


SEVERAL = ("metrics",)
"""Parts of a trainer that are several by name."""


def homes_of(conf: type | None, key: str) -> Sequence[str]:
    """Return the modules that have what the part of a trainer at ``key`` may be; none if it is not built.

    Args:
        conf: The trainer's dataclass of keys.
        key: With dots, from the root; of several parts with names that of one: ``trainer.metrics.f1``.
    """
    homes: Mapping[str, Sequence[str]] = getattr(conf, "homes", {})
    section, _, part = key.partition(".")
    return homes.get(part, homes.get(part.rpartition(".")[0], ())) if section == "trainer" else ()


def class_called(name: str, homes: Sequence[str], *, misspelt: bool = True, like: str = "") -> str | None:
    """Return the dotted path of the class or function ``name`` in the first module that has it; None if none has.

    Args:
        name: Without a module, in any case.
        homes: Dotted paths of modules.
        misspelt: Whether a similar name will do.
        like: The class in the config now. If two names match, the one with the same ending is meant:
                ``RandomForest`` in place of a classifier is a classifier.
    """
    if not name.isidentifier() or name.casefold() in OFF:
        return None
    found = {one: f"{home}.{one}" for home in reversed(homes) for one in _names_in(home)}
    near = name if name in found else next((one for one in found if plain(one) == plain(name)), None)
    if near is None and misspelt:
        longer = [one for one in found if plain(one).startswith(plain(name)) and len(name) >= SHORT]
        longer.sort(key=lambda one: (_last_word(one) != _last_word(like), len(one)))
        near = longer[0] if longer else closest(name, found, CUTOFF)
    return found[near] if near is not None else None


def by_name(value: str, homes: Sequence[str]) -> list[str]:
    """Return mappings of a bare name, or of a list of one, to the class that it means, for several parts with names."""
    name = value.strip("[] ")
    path = class_called(name, homes)
    if path is None:
        return []
    own = path.rpartition(".")[2].casefold()
    more = ", task: multiclass, num_classes: auto" if takes(path, "task") else ""
    return [f"{{{own}: {{_target_: {path}{more}}}}}"]


def class_in(file: str) -> str | None:
    """Return the dotted path of the one class of a Python file of the project; None if it has none, or several."""
    try:
        parsed = ast.parse(Path(file).read_text(encoding="utf-8"))
    except (OSError, ValueError, SyntaxError):
        return None
    names = [one.name for one in parsed.body if isinstance(one, ast.ClassDef)]
    is_inside = not Path(file).is_absolute() and ".." not in Path(file).parts
    return ".".join([*Path(file).with_suffix("").parts, names[0]]) if len(names) == 1 and is_inside else None


def _last_word(name: str) -> str:
    return next(reversed(re.findall("[A-Z][a-z]+", name)), "")


@cache
def _names_in(home: str) -> tuple[str, ...]:
    with suppress(Exception), silenced():  # the module is not installed, or is broken here
        module = import_module(home)
        return tuple(one for one in dir(module) if one[0] != "_" and callable(getattr(module, one)))
    return ()
