"""Build what a ``_target_`` names: hydra.utils.instantiate on plain data, for allowed modules only."""

from __future__ import annotations

import functools
import inspect
import re
import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any

from rtrain.config.diagnostics.omegaconf_messages import as_written
from rtrain.config.did_you_mean import LONG, closest, did_you_mean, plain
from rtrain.config.targets.allow_list import SPECIAL, is_allowed, is_framework, modules_with, project_roots, targets_in
from rtrain.config.targets.argument_types import parameters_of
from rtrain.config.targets.arguments import (
    check_complete,
    check_names_known,
    check_refused,
    check_swallowed,
    check_types,
)
from rtrain.config.targets.harmless import is_harmless, unwanted_argument
from rtrain.config.targets.importing import import_longest, raised_at
from rtrain.errors import ConfigError, TargetError

TRUST_HINT = "  if you trust its author: --trust"
MOST_MEANT = 6
"""Most names that one may be the beginning, or the end, of."""
_PATH = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*([.:][^\W\d]\w*)(\.[^\W\d]\w*)*")


@dataclass(frozen=True)
class Builder:
    """Imports, checks and builds what the targets of a config name."""

    allow: tuple[str, ...] = ()
    """Modules allowed beyond the known frameworks and the project's own."""
    trusted: bool = True
    """Whether this account wrote the targets. If not, they name what ``harmless.py`` lists, and not all of a framework:
    ``torch.hub.load`` runs the code of a folder."""

    def allows(self, module: str, roots: Sequence[Path] | None = None) -> bool:
        """Return whether a target may come from the dotted path ``module``.

        Args:
            module: Of the target.
            roots: Folders of the user's modules; None: those of the projects in use.
        """
        return is_allowed(module, self.allow, roots) if self.trusted else is_framework(module)

    def locate(self, path: str, where: str) -> Any:
        """Return the object at the dotted ``path``; ``module:name`` and ``module:name.attribute`` work too.

        Args:
            path: ``torch.optim.SGD``, say.
            where: The config key that holds the path, for messages.

        Raises:
            ConfigError: The path is not allowed, does not exist, or its module fails to import.
        """
        self.refuse_unless_allowed(path, where)
        module, names = import_longest(path.replace(":", "."), where)
        found: Any = module
        walked = module.__name__
        for name in names:
            if not hasattr(found, name):
                raise _no_attribute(found, walked, name, where, path)
            found = getattr(found, name)
            walked = f"{walked}.{name}"
            owner = found.__name__ if isinstance(found, ModuleType) else _owner(found)
            if owner is not None and not self.allows(owner):
                raise TargetError(where, f"{path} resolves to {owner}, which is not allowed", _allow_hint(owner))
        return found

    def locate_function(self, path: str, where: str, num_arguments: int | None = None) -> Any:
        """Return the function at ``path``, as ``locate`` does.

        Args:
            path: ``module:function``.
            where: The config key that holds the path, for messages.
            num_arguments: How many it will be called with; None: it takes what it wants.

        Raises:
            ConfigError: It does not exist, is not a function, or can't be called like that.
        """
        function = self.locate(path, where)
        if not callable(function):
            raise TargetError(where, f"{path} is a {type(function).__name__}, not a function")
        if num_arguments is not None:
            try:
                inspect.signature(function).bind(*[None] * num_arguments)
            except TypeError as error:
                raise TargetError(where, f"{path} can't be called with {num_arguments} arguments: {error}") from error
        return function

    def build(self, node: Mapping[str, Any], where: str, *args: Any, **kwargs: Any) -> Any:
        """Return what ``node`` describes, as ``hydra.utils.instantiate`` does; ``kwargs`` win over its keys.

        Raises:
            ConfigError: A target is not allowed or not there, or refuses its arguments.
        """
        target = self.locate(_target(node, where), f"{where}._target_")
        if isinstance(target, ModuleType):
            raise _is_module(target, node["_target_"], f"{where}._target_")
        if not self.trusted:
            _refuse_arguments(node, where)
        recursive = node.get("_recursive_", True)
        given = {key: value for key, value in node.items() if key not in SPECIAL and key not in kwargs}
        positional = args or tuple(node.get("_args_", ()))
        if recursive:
            given = {key: self._build_inside(value, f"{where}.{key}") for key, value in given.items()}
            positional = tuple(self._build_inside(one, f"{where}._args_") for one in positional)
        if node.get("_partial_", False):
            return functools.partial(target, *positional, **given, **kwargs)
        try:
            return target(*positional, **given, **kwargs)
        except (TypeError, ValueError, LookupError, ArithmeticError) as error:
            check_swallowed(target, [name for name in given if name in str(error)], where, node["_target_"], error)
            if inspect.isclass(target):  # functions may fetch, read or write something each time
                check_refused(
                    functools.partial(target, *positional), {**given, **kwargs}, where, node["_target_"], error
                )
            raise ConfigError(
                f"{where}: {node['_target_']} failed: {type(error).__name__}: {error}", raised_at(error)
            ) from error

    def check_node(
        self, node: Mapping[str, Any], where: str, *, provided: Collection[str] = (), num_args: int = 0
    ) -> None:
        """Import the targets in ``node`` and bind their arguments without calling anything.

        Args:
            node: A mapping with ``_target_``.
            where: Its key in the config, for messages.
            provided: Names of arguments that ``build`` will get as ``kwargs``.
            num_args: Number of positional arguments that ``build`` will get.

        Raises:
            ConfigError: A target is not allowed or not there, an argument is unknown or can't be what it is, or one is
                missing.
        """
        target = self.locate(_target(node, where), f"{where}._target_")
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
                self._check_inside(node[key], f"{where}.{key}")

    def _build_inside(self, value: Any, where: str) -> Any:
        if isinstance(value, Mapping):
            if "_target_" in value:
                return self.build(value, where)
            return {key: self._build_inside(one, f"{where}.{key}") for key, one in value.items()}
        if isinstance(value, list | tuple):
            return [self._build_inside(one, f"{where}.{index}") for index, one in enumerate(value)]
        return value

    def _check_inside(self, value: Any, where: str) -> None:
        if isinstance(value, Mapping):
            if "_target_" in value:
                self.check_node(value, where)
                return
            for key, one in value.items():
                self._check_inside(one, f"{where}.{key}")
        elif isinstance(value, list | tuple):
            for index, one in enumerate(value):
                self._check_inside(one, f"{where}.{index}")

    def check_names(self, node: Any, where: str, roots: Sequence[Path]) -> None:
        """Check each ``_target_`` at or below ``node`` by its name, and such keys; nothing is imported.

        Raises:
            ConfigError: One is not allowed.
        """
        for key, value in targets_in(node, where):
            name = key.rpartition(".")[2]
            if name != "_target_":
                raise TargetError(key, f"there is no key '{name}' here", f"  {did_you_mean(closest(name, SPECIAL))}")
            if not isinstance(value, str):
                raise TargetError(key, f"must be a dotted path, not {value!r}", "  e.g. torch.optim.SGD")
            self.refuse_unless_allowed(value, key, roots)

    def refuse_unless_allowed(self, path: str, where: str, roots: Sequence[Path] | None = None) -> None:
        """Check a dotted path by its name alone; nothing is imported.

        Raises:
            ConfigError: It is not allowed.
        """
        if path.startswith(("__main__.", "__main__:")):
            raise _of_main(path, where)
        if not _PATH.fullmatch(path) or "__" in path.replace(":", "."):
            example = "torch.optim.SGD" if where.endswith("_target_") else "my_module:function"
            own = [f"{module}.{path}" for module in modules_with(path, roots)] if path.isidentifier() else []
            hint = did_you_mean(*own) if own else f"e.g. {example}"
            raise TargetError(where, f"'{path}' is not a dotted path to a name in a module", f"  {hint}")
        dotted = path.replace(":", ".")
        if not self.allows(dotted, roots):
            top = dotted.partition(".")[0]
            problem = f"{path} is not allowed: {top} is neither a known framework nor in the project"
            raise TargetError(where, problem, _place_hint(path, top, roots) or _allow_hint(dotted))
        if not self.trusted and not is_harmless(dotted):
            problem = (
                f"{path} is not on the list of models and layers that only compute, and another account wrote this"
            )
            raise TargetError(where, problem, TRUST_HINT)


def _of_main(path: str, where: str) -> TargetError:
    """Return the error about what a notebook or a script defines itself: no other process can import it."""
    problem = f"{path} is defined in a notebook or in the main script: workers can't import it"
    moved = path.replace("__main__", "my_code", 1)
    return TargetError(where, problem, f"  put it into a file, my_code.py in the current folder, and use {moved}")


def _target(node: Any, where: str) -> str:
    if not isinstance(node, Mapping):
        name = node if isinstance(node, str) and node.isidentifier() else "Class"
        hint = f"  give its class: {{_target_: package.{name}}}"
        raise TargetError(where, f"must be a mapping with a _target_, not {as_written(node)}", hint, _is_built)
    target = node.get("_target_")
    if not isinstance(target, str):
        raise TargetError(
            where, "has no _target_", f"  give its class as _target_: {where}={{_target_: package.Class}}"
        )
    return target


def _is_built(value: Any) -> bool:
    return isinstance(value, Mapping) and "_target_" in value


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
            raise TargetError(
                where, "contains a serialized object, and another account may have written this", TRUST_HINT
            )
        for key, value in node.items():
            _refuse_serialized(value, f"{where}.{key}")
    elif isinstance(node, list | tuple):
        for index, value in enumerate(node):
            _refuse_serialized(value, f"{where}.{index}")


def _place_hint(path: str, top: str, roots: Sequence[Path] | None) -> str | None:
    """Return how to name a module of the current folder, if that is a folder of the project and not its own."""
    here = Path.cwd().resolve()
    for root in project_roots() if roots is None else roots:
        if here != root and here.is_relative_to(root) and (here / f"{top}.py").is_file():
            inner = here.relative_to(root).parts
            name = f"its name is {'.'.join(inner)}.{path}, or " if all(one.isidentifier() for one in inner) else ""
            return f"  the project is {root}: {name}put an empty pyproject.toml next to {top}.py"
    return None


def _allow_hint(path: str) -> str | None:
    """Return how to allow a module; Python's own modules have no place in a config."""
    if path.partition(".")[0] in sys.stdlib_module_names:
        return None
    return f"  if you trust it, put this into the config: allow: [{path.partition('.')[0]}.*]"


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
    return ConfigError(f"{where}: {path} does not exist: {walked} has no '{name}'.", hint)


def _is_module(module: ModuleType, path: str, where: str) -> TargetError:
    """Return the error about a module in place of what it has, which may have the same name in other letters."""
    names = [
        name for name, one in vars(module).items() if callable(one) and plain(name) == plain(path.rpartition(".")[2])
    ]
    parent = path.rpartition(".")[0]
    is_there = bool(names) and hasattr(sys.modules.get(parent), names[0])
    hint = f"  {did_you_mean(f'{parent if is_there else path}.{names[0]}')}" if names else None
    return TargetError(where, f"{path} is a module, not a class or function", hint)


def _owner(found: Any) -> str | None:
    """Return the module that defines a class or function; None for other values and for what doesn't tell."""
    if isinstance(found, functools.partial):
        return _owner(found.func)
    if isinstance(found, type | FunctionType | BuiltinFunctionType | MethodType):
        owner = getattr(found, "__module__", None)
        return owner if isinstance(owner, str) else None
    return None
