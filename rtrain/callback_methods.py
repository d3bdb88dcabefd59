"""The methods of a user's callback: which of them are called, and which were meant to be under another name."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from inspect import isfunction, signature, unwrap
from types import CodeType, FunctionType
from typing import Any

from rtrain.config.did_you_mean import alike

WORDS = {
    "begin": "begin begins began beginning start starts started before",
    "end": "end ends ended ending finish finishes finished complete completed after",
    "train": "train training trained fit",
    "epoch": "epoch epochs",
    "step": "step steps batch batches iteration iterations round rounds",
    "save": "save saves saved saving checkpoint checkpoints",
    "evaluate": "evaluate evaluated evaluates evaluating evaluation eval validate validated validation",
    "event": "event events",
    "attempt": "attempt attempts",
    "fail": "fail fails failed failure",
    "": "on run",
}
"""What the parts of the names of called methods mean, with the words that other libraries have for them."""
MEANINGS = {word: meaning for meaning, words in WORDS.items() for word in words.split()}


def public_methods(kind: type) -> list[str]:
    """Return the names of the methods that a class itself defines, without those for its own use."""
    return [name for name, value in vars(kind).items() if isfunction(value) and not name.startswith("_")]


def own_methods(kind: type, contract: type) -> list[str]:
    """Return the names of the public methods of a callback, those of the contract included."""
    return [name for base in kind.__mro__ if issubclass(base, contract) for name in public_methods(base)]


def is_never_called(name: str, kind: type, contract: type) -> bool:
    """Return whether a method was meant to be called, and is not: its name says what that of a called one does.

    It may also say a part of it, ``save``, or more, ``validation_end``.
    A method that another one of the class refers to is a part of that one, whatever its name.
    """
    called, meaning = public_methods(contract), _meaning(name)
    is_like = bool(meaning) and any(meaning <= other or meaning > other for other in map(_meaning, called))
    is_like = is_like or name.startswith("on_") or alike(name, called) is not None
    return is_like and name not in _referred_to(kind, name)


def meant_methods(name: str, called: Sequence[str]) -> list[str]:
    """Return the called methods that a name may mean: ``epoch_begin`` for ``epoch_start``, two for ``save``."""
    near = alike(name, called)
    if near is not None:
        return [near]
    meaning = _meaning(name)
    known = {one: _meaning(one) for one in called}
    same = [one for one, other in known.items() if other == meaning]
    return same or [one for one, other in known.items() if set() < meaning < other]


def takes(method: Callable[..., Any], called: Callable[..., Any]) -> bool:
    """Return whether a method can be called with the arguments of the one of the contract that it overrides."""
    try:
        signature(method, follow_wrapped=False).bind(*signature(called).parameters)
    except TypeError:
        return False
    return True


def _meaning(name: str) -> set[str]:
    """Return what the parts of a name mean; nothing if one of them is another word."""
    parts = name.split("_")
    return {MEANINGS[part] for part in parts} - {""} if set(parts) <= set(MEANINGS) else set()


def _referred_to(kind: type, but: str) -> set[str]:
    """Return the names in the code of a class and its bases, but for those in one of its methods."""
    members = [value for base in kind.__mro__ for name, value in vars(base).items() if name != but]
    functions = [part for one in members for part in _functions_of(one)]
    return {name for one in functions for name in _names(one.__code__)}


def _functions_of(member: Any) -> list[FunctionType]:
    """Return the functions of a method of any kind or of a property, without their decorators."""
    parts = (member.fget, member.fset) if isinstance(member, property) else (getattr(member, "__func__", member),)
    return [one for one in map(unwrap, filter(callable, parts)) if isfunction(one)]


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for one in code.co_consts:
        if isinstance(one, CodeType):
            yield from _names(one)
        elif isinstance(one, str):
            yield one
