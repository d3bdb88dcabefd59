"""Arguments of what a ``_target_`` names: checked against its signature, and named where it refuses one of them."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from rtrain.config.diagnostics.omegaconf_messages import as_written, of_environment
from rtrain.config.did_you_mean import closest, did_you_mean, to_try
from rtrain.config.targets.allow_list import FRAMEWORKS
from rtrain.config.targets.argument_types import example_of, misfit, misfit_inside, parameters_of
from rtrain.config.value_types.numeric import is_number
from rtrain.errors import ConfigError, TargetError

DEFAULT = "its default is"
"""How the hint begins that names the default of an argument's own."""


def check_type(value: Any, parameter: inspect.Parameter, where: str, *, by_default: bool) -> None:
    """Refuse a value that the annotation or the default of ``parameter`` rules out."""
    if parameter.kind in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL):
        return

    def fits(other: Any) -> bool:
        kinds = misfit(other, parameter, by_default=by_default)
        return kinds is None and misfit_inside(other, parameter, by_default=by_default) is None

    if fits(value):
        return
    wanted = misfit(value, parameter, by_default=by_default)
    if wanted is None:
        found = misfit_inside(value, parameter, by_default=by_default)
        assert found is not None
        place, wanted = found
        for index in place:
            where, value = f"{where}.{index}", value[index]
    example = example_of(parameter)
    hint = f"  {DEFAULT} {example}" if example is not None else None
    if isinstance(value, str) and (note := of_environment(value)) is not None:
        hint = f"  {note}"
    if isinstance(value, str) and is_number(value):
        hint = "  it is text; to read a number from the environment: ${oc.decode:${oc.env:NAME}}"
    raise TargetError(where, f"must be {wanted}, not {as_written(value)}", hint, fits)


def check_types(
    parameters: Mapping[str, inspect.Parameter], given: Mapping[str, Any], where: str, *, by_default: bool
) -> None:
    """Refuse values that their parameters rule out; ``where`` is the key above them."""
    for name, value in given.items():
        if name in parameters:
            check_type(value, parameters[name], f"{where}.{name}", by_default=by_default)


def check_names_known(parameters: Mapping[str, inspect.Parameter], names: Sequence[str], where: str, path: str) -> None:
    """Refuse names that the signature of the target at ``path`` does not have; ``where`` is the key above them."""
    if any(one.kind is one.VAR_KEYWORD for one in parameters.values()):
        return
    known = [name for name, one in parameters.items() if one.kind in (one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY)]
    for name in names:
        if name not in known:
            meant = closest(name, known)
            hint = f"  {did_you_mean(meant)}" if meant else f"  its arguments: {', '.join(known) or 'none'}"
            raise TargetError(f"{where}.{name}", f"{path} has no argument '{name}'.", hint)


def check_swallowed(target: Any, names: Sequence[str], where: str, path: str, error: Exception) -> None:
    """Refuse names that a target with ``**kwargs`` takes, and then calls unknown, with the nearest one that it has."""
    if re.search("unexpected|recogni[sz]ed|unknown", str(error), re.IGNORECASE):
        parameters = (parameters_of(target) or {}).items()
        check_names_known({key: one for key, one in parameters if one.kind is not one.VAR_KEYWORD}, names, where, path)


def check_refused(
    target: Callable[..., Any], given: Mapping[str, Any], where: str, path: str, error: Exception
) -> None:
    """Name the one number, text or list without which a framework's class takes the other arguments."""
    if not any(f"{path}.".startswith(f"{framework}.") for framework in FRAMEWORKS):
        return
    for name, value in given.items():
        if not isinstance(value, int | float | str | list):
            continue
        try:
            target(**{other: one for other, one in given.items() if other != name})
        except Exception:  # so this is not the one, or not the only one
            continue
        if isinstance(error, TypeError) and "not supported between" in str(error):  # it was compared with a number
            raise TargetError(f"{where}.{name}", f"must be a number, not {as_written(value)}") from error
        raise TargetError(f"{where}.{name}", f"{path} rejects {as_written(value)}: {error}") from error


def named_in_error(text: str, given: Mapping[str, Any]) -> str | None:
    """Return the one argument that an error names, or else whose value it shows; None if none or several."""
    names = [name for name in given if re.search(rf"\b{re.escape(name)}\b", text)]
    shown = [name for name, value in given.items() if re.search(rf"(?<!\w){re.escape(str(value))}(?!\w)", text)]
    found = names or shown
    return found[0] if len(found) == 1 else None


def check_complete(
    parameters: Mapping[str, inspect.Parameter], names: Collection[str], count: int, where: str, path: str
) -> None:
    positional = [one for one in parameters.values() if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)]
    if count > len(positional) and not any(one.kind is one.VAR_POSITIONAL for one in parameters.values()):
        raise ConfigError(f"{where}: {path} takes {len(positional)} positional arguments, not {count}.")
    filled = {one.name for one in positional[:count]}
    missing = [
        name
        for name, one in parameters.items()
        if one.default is one.empty
        and one.kind not in (one.VAR_POSITIONAL, one.VAR_KEYWORD)
        and name not in names
        and name not in filled
    ]
    if missing:
        raise ConfigError(f"{where}: {path} needs {', '.join(missing)}.", "  " + to_try(f"+{where}.{missing[0]}=..."))
