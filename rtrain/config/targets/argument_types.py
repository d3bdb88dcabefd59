"""Whether a value can be an argument, as far as the signature tells: its annotation, or else its default."""

from __future__ import annotations

import inspect
import numbers
import sys
import types
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from enum import Enum
from pathlib import PurePath
from typing import Annotated, Any, Literal, Union, get_args, get_origin

AUTO = "auto"
"""What the dataset or the run fills in."""
_ARRAYS = ("Tensor", "ndarray", "Array")
_OF_ARRAYS = ("torch", "numpy", "jax", "jaxlib")
_WORDS = {
    "list": "a list",
    "texts": "a list",
    "number": "a number",
    "whole": "a whole number",
    "bool": "true or false",
    "text": "text",
    "callable": "a function",
    "mapping": "a mapping",
}
"""Kind of value -> what a message calls it; other kinds are not for configs."""
_ANY = frozenset({"any"})


def parameters_of(target: Callable[..., Any]) -> Mapping[str, inspect.Parameter] | None:
    """Return the parameters of a target by name, with annotations that are types; None if it doesn't tell."""
    for evaluated in (True, False):
        try:
            found = inspect.signature(target, eval_str=evaluated).parameters
            return {name: _evaluated(one, target) for name, one in found.items()}
        except (ValueError, TypeError):
            return None
        except Exception:  # an annotation names what is there for type checkers only
            continue
    return None


def _evaluated(parameter: inspect.Parameter, target: Callable[..., Any]) -> inspect.Parameter:
    """Return a parameter whose annotation is a type, as far as the module of ``target`` has its names."""
    if not isinstance(parameter.annotation, str):
        return parameter
    try:
        names = vars(sys.modules[target.__module__])
        return parameter.replace(annotation=eval(parameter.annotation, dict(names)))  # as inspect does
    except Exception:  # it is there for type checkers only
        return parameter


def misfit(value: Any, parameter: inspect.Parameter, *, by_default: bool = True) -> str | None:
    """Return what ``parameter`` has to be, in words, if ``value`` surely can't be it; else None.

    Args:
        value: Plain data.
        parameter: As ``parameters_of`` returns it.
        by_default: Whether a default that is a number means that no text will do, where there is no annotation.
    """
    kinds = _kinds(parameter.annotation)
    if parameter.annotation is parameter.empty and by_default and type(parameter.default) in (int, float):
        kinds = frozenset({"number", "list", "callable", *(["bool"] if type(parameter.default) is int else [])})
    if value is None and _is_numeric(parameter, kinds):
        return "a number"
    if kinds & _ANY or value is None or _fits(value, kinds):
        return None
    return (_WORDS["number"] if parameter.annotation is parameter.empty else _in_words(kinds)) or None


def misfit_inside(
    value: Any, parameter: inspect.Parameter, *, by_default: bool = True
) -> tuple[tuple[int, ...], str] | None:
    """Return where in a list, with lists in it, something surely can't be, and what it has to be; None if all may be.

    A list of another length than a tuple's annotation tells is wrong as a whole: the place is empty.

    Args:
        value: Plain data that ``misfit`` lets pass.
        parameter: As ``parameters_of`` returns it.
        by_default: Whether a default of numbers alone means that no text will do, where there is no annotation.
    """
    hint, default = parameter.annotation, parameter.default
    if hint is parameter.empty and by_default and isinstance(default, tuple | list) and default:
        hint = list[float] if all(type(one) in (int, float) for one in default) else Any
    return _inside(value, hint)


def _inside(value: Any, hint: Any) -> tuple[tuple[int, ...], str] | None:
    lists = list(_lists(hint)) if isinstance(value, list | tuple) else []
    if not lists or None in lists:
        return None
    wrong = [_wrong_element(value, elements) for elements in lists if elements is not None]
    return None if None in wrong else max((one for one in wrong if one is not None), key=lambda one: len(one[0]))


def _wrong_element(values: Sequence[Any], elements: Sequence[Any]) -> tuple[tuple[int, ...], str] | None:
    """Return what is wrong with a list, by the annotations of its elements, of which the last may be an ellipsis."""
    if Ellipsis in elements:
        elements = [elements[0]] * len(values)
    for index, (value, hint) in enumerate(zip(values, elements, strict=False)):
        kinds = _kinds(hint)
        if value is None or not (kinds & _ANY or _fits(value, kinds)):
            if value is not None or kinds <= {"number", "whole", "bool", "list"}:
                return (index,), _in_words(kinds)
        elif (deeper := _inside(value, hint)) is not None:
            return (index, *deeper[0]), deeper[1]
    return None if len(values) == len(elements) else ((), f"a list of {len(elements)}")


def _lists(hint: Any) -> Iterator[Sequence[Any] | None]:
    """Yield the elements of each kind of list that an annotation admits; None for one that doesn't tell."""
    origin, inside = get_origin(hint), get_args(hint)
    if origin is Annotated:
        yield from _lists(inside[0])
    elif origin in (Union, types.UnionType):
        for one in inside:
            yield from _lists(one)
    elif origin is tuple:
        yield inside
    elif isinstance(origin, type) and issubclass(origin, Iterable) and len(inside) == 1:
        yield inside[0], Ellipsis
    elif _kinds(hint) & {*_ANY, "list", "texts", "array", "mapping"}:
        yield None


def example_of(parameter: inspect.Parameter) -> str | None:
    """Return the default of a parameter as a config has it; None if it has none that a config can have."""
    default = parameter.default
    if isinstance(default, tuple | list):
        return f"[{', '.join(map(str, default))}]" if all(isinstance(one, int | float) for one in default) else None
    if isinstance(default, bool):
        return str(default).lower()
    return str(default) if isinstance(default, int | float) else None


def _in_words(kinds: Collection[str]) -> str:
    words = [_WORDS[kind] for kind in _WORDS if kind in kinds and not (kind == "whole" and "number" in kinds)]
    return " or ".join(dict.fromkeys(words))


def _fits(value: Any, kinds: Collection[str]) -> bool:
    if isinstance(value, Mapping):
        return "_target_" in value or "mapping" in kinds
    if isinstance(value, str):
        return value == AUTO or bool({"text", "texts"} & set(kinds))
    if isinstance(value, bool):
        return bool({"bool", "whole", "text"} & set(kinds))
    if isinstance(value, int):
        return bool({"whole", "number", "array", "text"} & set(kinds)) or (value in (0, 1) and "bool" in kinds)
    if isinstance(value, float):
        return bool({"number", "array", "text"} & set(kinds)) or ("whole" in kinds and value.is_integer())
    lists = {"list", "texts", "mapping", *([] if "number" in kinds else ["array"])}  # a number or a tensor: no list
    return not isinstance(value, list | tuple) or bool(lists & set(kinds))


def _is_numeric(parameter: inspect.Parameter, kinds: Collection[str]) -> bool:
    """Return whether a parameter is a number by its annotation, and by its default, if it has one."""
    is_told = parameter.annotation is not parameter.empty and set(kinds) <= {"number", "whole", "array", "callable"}
    return is_told and bool({"number", "whole"} & set(kinds)) and parameter.default is not None


def _kinds(hint: Any) -> frozenset[str]:
    """Return the kinds of values that an annotation admits; ``any`` where it doesn't tell."""
    origin, inside = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return _kinds(inside[0])
    if origin in (Union, types.UnionType):
        return frozenset().union(*map(_kinds, inside))
    if origin is Literal:
        return frozenset().union(*(_kinds(type(one)) for one in inside))
    kind = origin or hint
    if kind is type(None) or kind is None:
        return frozenset({"none"})
    if not isinstance(kind, type):
        return _ANY
    return frozenset({_kind(kind, inside)})


def _kind(kind: type, inside: tuple[Any, ...]) -> str:
    if kind is bool:
        return "bool"
    if kind is int:
        return "whole"
    if kind in (float, complex, numbers.Number, numbers.Real):
        return "number"
    if issubclass(kind, str | bytes | PurePath | Enum):
        return "text"
    if kind.__module__.partition(".")[0] in _OF_ARRAYS and kind.__name__.rpartition(".")[2] in _ARRAYS:
        return "array"
    if any(one.__module__ == "numpy" and one.__name__ == "generic" for one in kind.__mro__):
        return "bool" if kind.__name__.startswith("bool") else "number"
    if kind.__module__ == "collections.abc" and kind.__name__ == "Callable":
        return "callable"
    if kind is not object and issubclass(kind, Mapping):
        return "mapping"
    if kind in (list, tuple, set, frozenset) or (kind.__module__ == "collections.abc" and issubclass(kind, Iterable)):
        elements = [one for one in inside if one is not Ellipsis]
        numeric = elements and all(_kinds(one) <= {"whole", "number", "bool", "list"} for one in elements)
        return "list" if numeric else "texts"
    return "any"
