"""Which modules a ``_target_`` may come from. No module is imported to find out."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Any

from rtrain.config.did_you_mean import closest, to_try
from rtrain.errors import ConfigError

_NAMES = """
torch torchvision torchaudio torchtext torchdata torchmetrics torch_geometric timm transformers diffusers peft
accelerate datasets tokenizers evaluate sentence_transformers open_clip monai segmentation_models_pytorch
kornia albumentations bitsandbytes deepspeed lightning lightning_fabric pytorch_lightning pl_bolts sklearn
xgboost lightgbm catboost keras tensorflow tensorflow_addons keras_core jax flax optax equinox orbax haiku
einops rtrain ray.train ray.data.preprocessors
"""
FRAMEWORKS = frozenset(_NAMES.split())
"""rtrain's known frameworks."""


SPECIAL = frozenset({"_target_", "_args_", "_partial_", "_recursive_", "_convert_"})
"""Keys of a node that say how to build it."""

_INSTALLED = frozenset({"site-packages", "dist-packages", ".venv", "venv", "node_modules"})


class ProjectPath(str):
    """The entry of ``sys.path`` that is the project's folder."""

    __slots__ = ()


def use_project_root(root: str | Path) -> None:
    """Make the modules in ``root`` importable, before those of other projects, and allowed."""
    path = ProjectPath(Path(root).resolve())
    if not (sys.path[:1] == [path] and isinstance(sys.path[0], ProjectPath)):
        sys.path[:] = [path, *(one for one in sys.path if one != path)]


def project_roots() -> list[Path]:
    """Return the folders passed to ``use_project_root``."""
    return [Path(one) for one in sys.path if isinstance(one, ProjectPath)]


def modules_with(name: str, roots: Sequence[Path] | None = None) -> list[str]:
    """Return the modules in project folders that define a class or function, by their text: none is imported."""
    defined = re.compile(rf"^(?:class|def) {name}\b", re.MULTILINE)
    places = project_roots() if roots is None else roots
    files = [file for root in places for file in sorted(root.glob("*.py"))]
    return [file.stem for file in files if defined.search(file.read_text(encoding="utf-8", errors="replace"))]


def is_framework(module: str) -> bool:
    """Return whether the dotted path ``module`` is a known framework, or in one."""
    return any(module == one or module.startswith(f"{one}.") for one in FRAMEWORKS)


def is_allowed(module: str, allow: Sequence[str], roots: Sequence[Path] | None = None) -> bool:
    """Return whether the dotted path ``module`` is a known framework, in ``allow``, or in a project folder."""
    if is_framework(module) or any(matches(module, pattern) for pattern in allow):
        return True
    top = module.partition(".")[0]
    if top in sys.stdlib_module_names or top in sys.builtin_module_names:
        return False
    return any(_lies_in(top, root) for root in (project_roots() if roots is None else roots))


def matches(path: str, pattern: str) -> bool:
    """Tell whether an entry of ``allow`` allows a dotted path: by its name, what it is below, or as a pattern."""
    stem = pattern.removesuffix(".*")
    return path == stem or path.startswith(f"{stem}.") or fnmatchcase(path, pattern)


def targets_in(node: Any, where: str) -> Iterator[tuple[str, Any]]:
    """Yield (key, value) of each ``_target_`` at or below ``node``, and of what is one misspelt."""
    if isinstance(node, Mapping):
        for key, value in node.items():
            if key == "_target_" or _is_misspelt(str(key)):
                yield f"{where}.{key}", value
            else:
                yield from targets_in(value, f"{where}.{key}")
    elif isinstance(node, list | tuple):
        for index, value in enumerate(node):
            yield from targets_in(value, f"{where}.{index}")


def _is_misspelt(key: str) -> bool:
    odd = key not in SPECIAL and (key.startswith("_") or key.endswith("_"))
    return odd and closest(key, SPECIAL, 0.75) is not None


def stands_before(top: str) -> str | None:
    """Return the file of a project that would be imported in place of an installed package of its name, if one is."""
    others = [one for one in sys.path if not isinstance(one, ProjectPath)]
    found = [origin for root in project_roots() if _lies_in(top, root) for origin in _origins(top, sys.path)]
    return found[0] if found and not set(found) & set(_origins(top, others) or found) else None


def file_in_project(module: str) -> Path | None:
    """Return the file of a project folder that a dotted path would be imported from, if it is one; imports nothing."""
    paths: Sequence[str] = sys.path
    parts = module.split(".")
    for index in range(len(parts)):
        spec = PathFinder.find_spec(".".join(parts[: index + 1]), paths)
        if spec is None:
            return None
        paths = list(spec.submodule_search_locations or [])
    file = Path(spec.origin) if spec and spec.origin else None
    return file if file and any(is_own(file, root) for root in project_roots()) else None


def _lies_in(top: str, root: Path) -> bool:
    """Return whether the top-level module ``top`` would be imported from a file of the project in ``root``."""
    return any(is_own(Path(origin), root) for origin in _origins(top, [str(root), *sys.path]))


def _origins(top: str, paths: Sequence[str]) -> list[str]:
    spec = PathFinder.find_spec(top, paths)
    if spec is None:
        return []
    return [spec.origin] if spec.origin else list(spec.submodule_search_locations or [])


def is_own(path: Path, root: Path) -> bool:
    """Return whether a file of a project folder is the project's, and not of a package that is installed there."""
    try:
        inside = path.resolve().relative_to(root.resolve())
    except ValueError:
        return False
    return not _INSTALLED.intersection(inside.parts)


def allowed_by_project(root: Path) -> tuple[str, ...]:
    """Return ``allow`` of ``[tool.rtrain]`` in the project's pyproject.toml.

    Raises:
        ConfigError: The file can't be read, or ``allow`` is not a list of modules.
    """
    import tomllib

    file = root / "pyproject.toml"
    if not file.is_file():
        return ()
    try:
        settings = tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise ConfigError(f"{file} can't be read: {error}") from None
    tools = settings.get("tool", {})
    own = tools.get("rtrain", {}) if isinstance(tools, dict) else {}
    allowed = own.get("allow", []) if isinstance(own, dict) else own
    if not isinstance(allowed, list) or not all(isinstance(one, str) for one in allowed):
        message = f"{file}: allow in [tool.rtrain] must be a list of modules."
        raise ConfigError(message, "  " + to_try('allow = ["my_pkg.*"]'))
    return tuple(allowed)
