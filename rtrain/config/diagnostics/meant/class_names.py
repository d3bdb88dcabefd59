"""The class that is meant where a part of the trainer is given a bare name: ``RandomForestClassifier``.

The dataclass of a trainer's keys names in its class attribute ``homes`` the modules that have the classes and functions
of each part: ``{"optimizer": ("torch.optim",)}``. They are imported to look for the name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from importlib import import_module

from rtrain.config.diagnostics.meant.rewritten import OFF
from rtrain.config.did_you_mean import closest, plain
from rtrain.config.targets.silenced import silenced

CUTOFF = 0.8
"""How alike a misspelt name has to be."""
SHORT = 4
"""Letters that the beginning of a name needs to stand for all of it."""


def homes_of(conf: type | None, key: str) -> Sequence[str]:
    """Return the modules that have what the part of a trainer at ``key`` may be; none if it is not built.

    Args:
        conf: The trainer's dataclass of keys.
        key: With dots, from the root; of several parts with names that of one: ``trainer.metrics.f1``.
    """
    homes: Mapping[str, Sequence[str]] = getattr(conf, "homes", {})
    section, _, part = key.partition(".")
    return homes.get(part, homes.get(part.rpartition(".")[0], ())) if section == "trainer" else ()


def class_called(name: str, homes: Sequence[str], *, misspelt: bool = True) -> str | None:
    """Return the dotted path of the class or function ``name`` in the first module that has it; None if none has.

    Args:
        name: Without a module, in any case.
        homes: Dotted paths of modules.
        misspelt: Whether a similar name will do.
    """
    if not name.isidentifier() or name.casefold() in OFF:
        return None
    found = {one: f"{home}.{one}" for home in reversed(homes) for one in _names_in(home)}
    near = name if name in found else next((one for one in found if plain(one) == plain(name)), None)
    if near is None and misspelt:
        longer = sorted((one for one in found if plain(one).startswith(plain(name)) and len(name) >= SHORT), key=len)
        near = longer[0] if longer else closest(name, found, CUTOFF)
    return found[near] if near is not None else None


@cache
def _names_in(home: str) -> tuple[str, ...]:
    with suppress(Exception), silenced():  # the module is not installed, or is broken here
        module = import_module(home)
        return tuple(one for one in dir(module) if one[0] != "_" and callable(getattr(module, one)))
    return ()
