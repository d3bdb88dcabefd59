"""Import the module that a dotted path begins with, and say what is wrong where that fails."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from types import ModuleType

from rtrain.config.diagnostics.own_lines import line_of_syntax, own_lines, render_lines
from rtrain.config.did_you_mean import to_try
from rtrain.config.files.locations import shown
from rtrain.config.targets.allow_list import FRAMEWORKS, file_in_project, is_framework
from rtrain.errors import ConfigError
from rtrain.process.quick_imports import search_as_usual


def import_longest(path: str, where: str) -> tuple[ModuleType, list[str]]:
    """Import the longest leading part of ``path`` that is a module; return it and the names that are left."""
    if is_framework(path):
        return _longest(path, where)
    search_as_usual()
    module, names = _longest(path, where)
    _refuse_of_other_project(module, where)
    return module, names


def _longest(path: str, where: str) -> tuple[ModuleType, list[str]]:
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


def _refuse_of_other_project(module: ModuleType, where: str) -> None:
    """Refuse a module that this process imported from elsewhere, while the project has another one of its name."""
    imported, own = getattr(module, "__file__", None), file_in_project(module.__name__)
    if imported is None or own is None or Path(imported).resolve() == own.resolve():
        return
    if Path(imported).is_file() and Path(imported).read_bytes() == own.read_bytes():
        return  # another checkout of the same code
    raise ConfigError(
        f"{where}: this process has imported {module.__name__} from {shown(Path(imported))}; the project's is "
        f"{shown(own)}.",
        "  restart Python, or give one of the modules another name",
    )


class _NotThereError(ConfigError):
    """There is no module of this name."""


def _import(name: str, where: str, path: str) -> ModuleType:
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        if error.name == name:
            hint = None if "." in name else _module_hint(name, path)
            raise _NotThereError(f"{where}: there is no module '{name}'.", hint) from None
        raise _import_failed(name, where, error) from error
    except Exception as error:
        raise _import_failed(name, where, error) from error


def _module_hint(name: str, path: str) -> str:
    """Return where a module may come from: anyone may publish a package with an unknown name."""
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
