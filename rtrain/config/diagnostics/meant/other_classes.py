"""Arguments of the classes that a part of the trainer may be built of, other than the chosen one."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache
from importlib import import_module

from rtrain.config.targets.silenced import silenced

PARTS = ("estimator", "optimizer", "scheduler", "callbacks")
"""Parts whose classes differ in their arguments; those of models and losses have the same ones."""
OWN = {"optimizer": {"lr", "learning_rate"}, "scheduler": {"optimizer"}, "estimator": {"predict"}}
"""By part, arguments and methods of which one tells its classes from what else their module has."""
GIVEN = {"self", "args", "kwargs", "params", "optimizer"}
"""What isn't an argument of a class, or is given by the trainer."""
MOST = 3
"""Most classes that a sentence names."""


def sentence_of(name: str, section: str, conf: type | None, targets: Mapping[str, str]) -> str | None:
    """Return the sentence that names the classes with an argument ``name``; None if there are none.

    Args:
        name: As typed.
        section: Where it was typed: a part of the trainer, or ``trainer`` for any part.
        conf: The trainer's dataclass of keys, whose ``homes`` name the modules of each part.
        targets: The ``_target_`` of each part of the trainer, by key.
    """
    homes: Mapping[str, Sequence[str]] = getattr(conf, "homes", {})
    for part in (one for one in PARTS if section in ("trainer", f"trainer.{one}")):
        found = [path for home in homes.get(part, ()) for path in _with_argument(home, name, OWN.get(part))]
        key = f"trainer.{part}"
        if found and targets.get(key) not in found:
            others = f" (also of {', '.join(found[1:MOST])}{', ...' if len(found) > MOST else ''})" if found[1:] else ""
            return f"'{name}' is an argument of {found[0]}{others}: {key}={{_target_: {found[0]}, {name}: VALUE}}"
    return None


def _with_argument(home: str, name: str, own: set[str] | None) -> Iterator[str]:
    for path, (arguments, methods) in _arguments_in(home).items():
        if name in arguments - GIVEN and (own is None or own & (arguments | methods)):
            yield path


@cache
def _arguments_in(home: str) -> Mapping[str, tuple[frozenset[str], frozenset[str]]]:
    """Return the names of the arguments, and of the methods, of all that a module has to call, by its dotted path."""
    found = {}
    with suppress(Exception), silenced():  # the module is not installed, or is broken here
        module = import_module(home)
        for one in dir(module):
            built = getattr(module, one)
            if one[0] != "_" and callable(built):
                with suppress(TypeError, ValueError):  # it doesn't tell
                    found[f"{home}.{one}"] = frozenset(inspect.signature(built).parameters), frozenset(dir(built))
    return found
