"""Import and build what a ``_target_`` names: hydra.utils.instantiate on plain data, for allowed modules only."""

from __future__ import annotations

import functools
import inspect
import re
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any

from rtrain.config.diagnostics.omegaconf_messages import as_written
from rtrain.config.diagnostics.own_lines import line_of_syntax, own_lines, render_lines
from rtrain.config.did_you_mean import LONG, closest, did_you_mean, plain, to_try
from rtrain.config.targets.allow_list import (
    FRAMEWORKS,
    SPECIAL,
    Untrusted,
    is_allowed,
    modules_with,
    targets_in,
)
from rtrain.config.targets.argument_types import parameters_of
from rtrain.config.targets.arguments import (
    check_complete,
    check_names_known,
    check_refused,
    check_swallowed,
    check_types,
)
from rtrain.config.targets.harmless import is_harmless, unwanted_argument
from rtrain.errors import ConfigError, TargetError

TRUST_HINT = "  if you trust who wrote it: --trust"
MOST_MEANT = 6
"""Most names that one may be the beginning, or the end, of."""
_PATH = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*([.:][^\W\d]\w*)(\.[^\W\d]\w*)*")


def locate(path: str, where: str, allow: Sequence[str]) -> Any:
    """Return the object at the dotted ``path``; ``module:name`` and ``module:name.attribute`` work too.

    Args:
        path: ``torch.optim.SGD``, say.
        where: The config key that holds the path, for messages.
        allow: Modules allowed beyond the known frameworks and the project's own.

    Raises:
        ConfigError: The path is not allowed, is not there, or its module fails to import.
    """
    refuse_unless_allowed(path, where, allow)
    module, names = _import_longest(path.replace(":", "."), where)
    found: Any = module
    walked = module.__name__
    for name in names:
        if not hasattr(found, name):
            raise _no_attribute(found, walked, name, where, path)
        found = getattr(found, name)
        walked = f"{walked}.{name}"
        owner = found.__name__ if isinstance(found, ModuleType) else _owner(found)
        if owner is not None and not is_allowed(owner, allow):
            raise TargetError(where, f"{path} leads to {owner}, which is not allowed", _allow_hint(owner))
    return found


def locate_function(path: str, where: str, allow: Sequence[str], num_arguments: int | None = None) -> Any:
    """Return the function at ``path``, as ``locate`` does.

    Args:
        path: ``module:function``.
        where: The config key that holds the path, for messages.
        allow: Modules allowed beyond the known frameworks and the project's own.
        num_arguments: How many it will be called with; None: it takes what it wants.

    Raises:
        ConfigError: It is not there, is no function, or can't be called like that.
    """
    function = locate(path, where, allow)
    if not callable(function):
        raise TargetError(where, f"{path} is a {type(function).__name__}, not a function")
    if num_arguments is not None:
        try:
            inspect.signature(function).bind(*[None] * num_arguments)
        except TypeError as error:
            raise TargetError(where, f"{path} can't be called with {num_arguments} arguments: {error}") from error
    return function


def build(node: Mapping[str, Any], where: str, allow: Sequence[str], *args: Any, **kwargs: Any) -> Any:
    """Return what ``node`` describes, as ``hydra.utils.instantiate`` does; ``kwargs`` win over the keys of ``node``.

    Raises:
        ConfigError: A target is not allowed or not there, or refuses its arguments.
    """
    target = locate(_target(node, where), f"{where}._target_", allow)
    if isinstance(target, ModuleType):
        raise _is_module(target, node["_target_"], f"{where}._target_")
    if isinstance(allow, Untrusted):
        _refuse_arguments(node, where)
    recursive = node.get("_recursive_", True)
    given = {key: value for key, value in node.items() if key not in SPECIAL and key not in kwargs}
    positional = args or tuple(node.get("_args_", ()))
    if recursive:
        given = {key: _build_inside(value, f"{where}.{key}", allow) for key, value in given.items()}
        positional = tuple(_build_inside(one, f"{where}._args_", allow) for one in positional)
    if node.get("_partial_", False):
        return functools.partial(target, *positional, **given, **kwargs)
    try:
        return target(*positional, **given, **kwargs)
    except (TypeError, ValueError, LookupError, ArithmeticError) as error:
        check_swallowed(target, [name for name in given if name in str(error)], where, node["_target_"], error)
        if inspect.isclass(target):  # functions may fetch, read or write something each time
            check_refused(functools.partial(target, *positional), {**given, **kwargs}, where, node["_target_"], error)
        raise ConfigError(
            f"{where}: {node['_target_']} failed: {type(error).__name__}: {error}", raised_at(error)
        ) from error


def check_node(
    node: Mapping[str, Any], where: str, allow: Sequence[str], provided: Collection[str] = (), num_args: int = 0
) -> None:
    """Import the targets in ``node`` and bind their arguments without calling anything.

    Args:
        node: A mapping with ``_target_``.
        where: Its key in the config, for messages.
        allow: Modules allowed beyond the known frameworks and the project's own.
        provided: Names of arguments that ``build`` will get as ``kwargs``.
        num_args: Number of positional arguments that ``build`` will get.

    Raises:
        ConfigError: A target is not allowed or not there, an argument is unknown or can't be what it is, or one is
            missing.
    """
    target = locate(_target(node, where), f"{where}._target_", allow)
    names = [key for key in node if key not in SPECIAL]
    count = num_args or len(node.get("_args_", ()))
    parameters = parameters_of(target)
    if parameters is not None:
        check_names_known(parameters, names, where, node["_target_"])
        if not node.get("_partial_", False):
            check_complete(parameters, {*names, *provided}, count, where, node["_target_"])
        checks_itself = hasattr(target, "_parameter_constraints")  # scikit-learn's, whose defaults don't tell types
        check_types(parameters, {name: node[name] for name in names}, where, by_default=not checks_itself)
    if node.get("_recursive_", True):
        for key in names:
            _check_inside(node[key], f"{where}.{key}", allow)


def check_names(node: Any, where: str, allow: Sequence[str], roots: Sequence[Path]) -> None:
    """Check every ``_target_`` at or below ``node`` by its name alone, and the names of such keys; nothing is imported.

    Raises:
        ConfigError: One is not allowed.
    """
    for key, value in targets_in(node, where):
        name = key.rpartition(".")[2]
        if name != "_target_":
            raise TargetError(key, f"there is no key '{name}' here", f"  {did_you_mean(closest(name, SPECIAL))}")
        if not isinstance(value, str):
            raise TargetError(key, f"must be a dotted path, not {value!r}", "  e.g. torch.optim.SGD")
        refuse_unless_allowed(value, key, allow, roots)


def _target(node: Any, where: str) -> str:
    if not isinstance(node, Mapping):
        name = node if isinstance(node, str) and node.isidentifier() else "Class"
        hint = f"  by its class: {{_target_: package.{name}}}"
        raise TargetError(where, f"must be a mapping with a _target_, not {as_written(node)}", hint, _is_built)
    target = node.get("_target_")
    if not isinstance(target, str):
        raise TargetError(where, "has no _target_", f"  its class is its _target_: {where}={{_target_: package.Class}}")
    return target


def _is_built(value: Any) -> bool:
    return isinstance(value, Mapping) and "_target_" in value


def _build_inside(value: Any, where: str, allow: Sequence[str]) -> Any:
    if isinstance(value, Mapping):
        if "_target_" in value:
            return build(value, where, allow)
        return {key: _build_inside(one, f"{where}.{key}", allow) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_build_inside(one, f"{where}.{index}", allow) for index, one in enumerate(value)]
    return value


def _check_inside(value: Any, where: str, allow: Sequence[str]) -> None:
    if isinstance(value, Mapping):
        if "_target_" in value:
            check_node(value, where, allow)
            return
        for key, one in value.items():
            _check_inside(one, f"{where}.{key}", allow)
    elif isinstance(value, list | tuple):
        for index, one in enumerate(value):
            _check_inside(one, f"{where}.{index}", allow)


def refuse_unless_allowed(path: str, where: str, allow: Sequence[str], roots: Sequence[Path] | None = None) -> None:
    """Check a dotted path by its name alone; nothing is imported.

    Raises:
        ConfigError: It is not allowed.
    """
    if not _PATH.fullmatch(path) or "__" in path.replace(":", "."):
        example = "torch.optim.SGD" if where.endswith("_target_") else "my_module:function"
        own = [f"{module}.{path}" for module in modules_with(path, roots)] if path.isidentifier() else []
        hint = did_you_mean(*own) if own else f"e.g. {example}"
        raise TargetError(where, f"'{path}' is no dotted path of a module and a name in it", f"  {hint}")
    dotted = path.replace(":", ".")
    if not is_allowed(dotted, allow, roots):
        top = dotted.partition(".")[0]
        problem = f"{path} is not allowed: {top} is neither a known framework nor in the project"
        raise TargetError(where, problem, _allow_hint(dotted))
    if isinstance(allow, Untrusted) and not is_harmless(dotted):
        problem = f"{path} is not on the list of models and layers that only compute, and another account wrote this"
        raise TargetError(where, problem, TRUST_HINT)


def _refuse_arguments(node: Mapping[str, Any], where: str) -> None:
    """Refuse what would have a harmless target do more than compute."""
    unwanted = unwanted_argument(str(node["_target_"]).replace(":", "."), node)
    if unwanted is not None:
        problem = "could fetch or open a file, and another account wrote this"
        raise TargetError(f"{where}.{unwanted}", problem, TRUST_HINT)
    _refuse_serialized(node, where)


def _refuse_serialized(node: Any, where: str) -> None:
    """Refuse the form in which Keras takes an object, of any module, for an argument."""
    if isinstance(node, Mapping):
        if "class_name" in node or "registered_name" in node:
            raise TargetError(where, "holds a serialized object, and another account may have written this", TRUST_HINT)
        for key, value in node.items():
            _refuse_serialized(value, f"{where}.{key}")
    elif isinstance(node, list | tuple):
        for index, value in enumerate(node):
            _refuse_serialized(value, f"{where}.{index}")


def _allow_hint(path: str) -> str | None:
    """Return how to allow a module; Python's own modules have no place in a config."""
    if path.partition(".")[0] in sys.stdlib_module_names:
        return None
    return f"  if you trust it, put this into the config: allow: [{path.partition('.')[0]}.*]"


def _import_longest(path: str, where: str) -> tuple[ModuleType, list[str]]:
    """Import the longest leading part of ``path`` that is a module; return it and the names that are left."""
    parts = path.split(".")
    module = _import(parts[0], where, path)
    for index, part in enumerate(parts[1:], start=1):
        here = vars(module).get(part)
        if not hasattr(module, "__path__") or (here is not None and not isinstance(here, ModuleType)):
            return module, parts[index:]
        name = ".".join(parts[: index + 1])
        try:
            module = _import(name, where, path)
        except _NotThereError:
            return module, parts[index:]
    return module, []


@contextmanager
def no_arguments() -> Iterator[None]:
    """Hide the command's arguments in the block: what code of the user's parses them would take them for its own."""
    before = sys.argv
    sys.argv = before[:1]
    try:
        yield
    finally:
        sys.argv = before


class _NotThereError(ConfigError):
    """There is no module of this name."""


def _import(name: str, where: str, path: str) -> ModuleType:
    try:
        with no_arguments():
            return import_module(name)
    except ModuleNotFoundError as error:
        if error.name == name:
            hint = None if "." in name else _module_hint(name, path)
            raise _NotThereError(f"{where}: there is no module '{name}'.", hint) from None
        raise _import_failed(name, where, error) from error
    except Exception as error:
        raise _import_failed(name, where, error) from error


def _module_hint(name: str, path: str) -> str:
    """Return where a module may come from: a package of an unknown name may be anybody's."""
    if name in FRAMEWORKS:
        return "  " + to_try(f"pip install {name}", f"  or check the spelling of {path}")
    return f"  put {name}.py into the project's folder, install its package, or check the spelling of {path}"


def _import_failed(name: str, where: str, error: Exception) -> ConfigError:
    message = f"{where}: importing {name} failed: {type(error).__name__}: {getattr(error, 'msg', None) or error}"
    if isinstance(error, SyntaxError):
        return ConfigError(message, "\n".join(line_of_syntax(error).render()))
    return ConfigError(message, raised_at(error))


def raised_at(error: BaseException) -> str | None:
    """Return the user's own lines that an error comes from; None where it passed none: others' tell nothing."""
    found = own_lines(error)
    return "\n".join(render_lines(found, folded=False)) or None if found["own"] else None


def _no_attribute(found: Any, walked: str, name: str, where: str, path: str) -> ConfigError:
    known = [one for one in dir(found) if not one.startswith("_")]
    mark = ":" if path.startswith(f"{walked}:") else "."
    if mark == ":":  # a function or class is meant, not what the module imports
        known = [one for one in known if not isinstance(vars(found).get(one), ModuleType)]
    longer = [one for one in known if one.startswith(name)]  # RandomForestClassifier, RandomForestRegressor
    if not longer and len(name) >= LONG:  # BinaryCrossentropy, CategoricalCrossentropy
        longer = [one for one in known if plain(one).endswith(plain(name)) and one[0].isupper() == name[0].isupper()]
    meant = longer if 1 < len(longer) <= MOST_MEANT else [closest(name, known)]
    hint = f"  {did_you_mean(*(f'{walked}{mark}{one}' for one in meant))}" if meant[0] else None
    if hint is None and (file := re.fullmatch(r"([\w./-]+)\.py[:.](\w+)", path)):
        module = file[1].strip("./").replace("/", ".")
        hint = f"  {did_you_mean(f'{module}.{file[2]}')}"
    return ConfigError(f"{where}: {path} is not there: {walked} has no '{name}'.", hint)


def _is_module(module: ModuleType, path: str, where: str) -> TargetError:
    """Return the error about a module in place of what it has, which may have the same name in other letters."""
    names = [
        name for name, one in vars(module).items() if callable(one) and plain(name) == plain(path.rpartition(".")[2])
    ]
    parent = path.rpartition(".")[0]
    is_there = bool(names) and hasattr(sys.modules.get(parent), names[0])
    hint = f"  {did_you_mean(f'{parent if is_there else path}.{names[0]}')}" if names else None
    return TargetError(where, f"{path} is a module, and builds nothing", hint)


def _owner(found: Any) -> str | None:
    """Return the module that defines a class or function; None for other values and for what doesn't tell."""
    if isinstance(found, functools.partial):
        return _owner(found.func)
    if isinstance(found, type | FunctionType | BuiltinFunctionType | MethodType):
        owner = getattr(found, "__module__", None)
        return owner if isinstance(owner, str) else None
    return None
