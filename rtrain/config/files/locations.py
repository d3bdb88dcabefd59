"""Where configs are: the file that a command names, the folders next to it, the project around it."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from rtrain.config.did_you_mean import closest, did_you_mean, to_try
from rtrain.config.files.data_files import words_for
from rtrain.config.files.home import expanded
from rtrain.config.files.no_config import hint_for
from rtrain.config.value_types.names import as_name
from rtrain.errors import ConfigError
from rtrain.runs.filesystem.files import SWEEP
from rtrain.text.enumeration import few

CONFIG_FOLDERS = ("configs", "config", "conf")
CONFIG = "config"
"""Name of the config of a folder that is a separate project."""
_Config = TypeVar("_Config", str, str | None)
PROJECT_MARKS = ("pyproject.toml", ".git")
MOST_CONFIGS = 12
"""So many of the configs of a folder are listed in an error."""


@dataclass(frozen=True, kw_only=True)
class Primary:
    """The config that the command names."""

    path: Path
    builtin: bool
    given: bool = False
    """It was written of a mapping that a call from Python has for a config: it belongs to the current folder."""

    @property
    def folder(self) -> Path:
        """Folder that becomes the main config source."""
        return self.path.parent

    @property
    def name(self) -> str:
        """Name of the config in its folder."""
        return self.path.stem

    @property
    def job_name(self) -> str:
        """Name of its runs: the file's, or its folder's where the file is a config.yaml."""
        own_folder = self.name == CONFIG and self.folder.name not in CONFIG_FOLDERS and not self.given
        return as_name(self.folder.name if own_folder else self.name) or CONFIG


def builtin_config_dir() -> Path:
    """Return the folder of built-in configs."""
    return builtin_dir("configs")


def builtin_dir(name: str) -> Path:
    """Return the folder ``configs`` or ``recipes``: inside the package when installed, next to it in a checkout."""
    package = Path(__file__).resolve().parents[2]
    installed = package / name
    return installed if installed.is_dir() else package.parent / name


def find_primary(config: str, overrides: Sequence[str] = ()) -> Primary:
    """Return the file that ``config``, a path, a folder with a config.yaml, or a name, stands for.

    Args:
        config: What the user calls it.
        overrides: What the user typed after it, for messages.

    Raises:
        ConfigError: There is no such file, or it is not a YAML file that can be read.
    """
    if not config.strip():
        raise ConfigError("the config has no name.", "  " + to_try("rtrain fit configs/resnet.yaml"))
    path = expanded(config)
    if path.suffix == ".yml":
        raise _wrong_suffix(config, path)
    if "://" in config:
        fetch = f"{shlex.join(['curl', '-O', config])} && {shlex.join(['rtrain', 'fit', path.name, *overrides])}"
        hint = "  " + to_try(fetch) if config.startswith("http") else None
        raise ConfigError(f"{config} is a URL: a config must be a local file.", hint)
    if not path.is_dir() and (words := words_for(config)) is not None:
        hint = "  " + to_try(shlex.join(["rtrain", "fit", "xgboost", *words]))
        raise ConfigError(
            f"{config} is a data file, not a config: the first argument must be a config or its name.", hint
        )
    if path.suffix == ".py":
        attempt = to_try(f"trainer: {{type: torch, train_loop: {path.stem}:FUNCTION}}")
        problem = f"{config} is a script, not a config: a config can name a function of it."
        raise ConfigError(problem, f"  {attempt}\n  in a .yaml file next to it")
    if path.suffix == ".yaml" or path.exists():
        return Primary(path=_readable(config, path, overrides), builtin=False)
    return _by_name(config, overrides)


def search_folders(primary: Primary, config_dir: str | None) -> list[tuple[str, Path]]:
    """Return (provider, folder) of all config folders, first hit wins."""
    found = [("main", primary.folder)]
    current = (Path.cwd() / name for name in CONFIG_FOLDERS) if primary.given else ()
    ancestor = next((one for one in current if one.is_dir()), None) or nearest_config_folder(primary.folder)
    if ancestor is not None:
        found.append(("project", ancestor))
    if config_dir is not None:
        found.append(("command-line", _existing_folder(config_dir)))
    found.append(("rtrain", builtin_config_dir()))
    return _without_repeats(found)


def nearest_config_folder(folder: Path) -> Path | None:
    """Return the nearest ancestor of ``folder``, itself included, that is called configs, config or conf."""
    return next((one for one in (folder, *folder.parents) if one.name in CONFIG_FOLDERS), None)


def find_project_root(primary: Primary) -> Path:
    """Return the folder whose modules a config may name.

    That is the nearest ancestor with a pyproject.toml or .git; else the config's folder, or the one around it where
    the folder is called configs, config or conf. Built-in configs and mappings belong to the current folder. In a
    folder that many may write to, what another account put there makes no project of it.
    """
    if primary.builtin or primary.given:
        return Path.cwd()
    for folder in primary.path.parents:
        if any(_counts(folder / mark, primary.path) for mark in PROJECT_MARKS):
            return folder
    return primary.folder.parent if primary.folder.name in CONFIG_FOLDERS else primary.folder


def project_of(place: Path, recorded: str, config: _Config) -> tuple[Path | None, _Config]:
    """Return the project that a run, or a sweep, belongs to, and its config there; None: it is not on this machine.

    That is the one where it was trained, unless it lies in a copy of it, at the same place, with the same config.

    Args:
        place: The folder of the run or sweep.
        recorded: Folder of the project where it was trained.
        config: The config that it was trained by: a path in full; or the name of a built-in one, or None.
    """
    project, here = Path(recorded), place.resolve()
    if config and recorded and Path(config).is_relative_to(project) and not here.is_relative_to(project.resolve()):
        inside = Path(config).relative_to(project)
        copy = next((one for one in here.parents if _is_ours(one / inside)), None)
        if copy is not None and (not project.is_dir() or (project / here.relative_to(copy)).exists()):
            return copy, str(copy / inside)
    return (project if recorded and project.is_dir() else None), config


def _is_ours(file: Path) -> bool:
    return file.is_file() and file.stat().st_uid in (os.geteuid(), 0)


def _counts(mark: Path, config: Path) -> bool:
    """Return whether a file is there and belongs to this account, to root, or to whoever wrote the config."""
    return mark.exists() and mark.lstat().st_uid in (os.geteuid(), 0, config.stat().st_uid)


_CALLED: dict[Path, str] = {}
"""Other names of folders."""


@contextmanager
def called(folder: Path, name: str) -> Iterator[None]:
    """Have ``shown`` call a folder, or a file, by another name in the block.

    What was brought from a store goes by its URL, and users never see the file that a mapping was written to.
    """
    _CALLED[folder] = name
    try:
        yield
    finally:
        del _CALLED[folder]


def shown(path: Path) -> str:
    """Return ``path`` as a user would type it: relative where it lies below the current folder, and no option."""
    for folder in filter(path.is_relative_to, _CALLED):
        return "/".join((_CALLED[folder], *path.relative_to(folder).parts))
    try:
        text = str(path.relative_to(Path.cwd()))
    except (ValueError, FileNotFoundError):  # the current folder may be gone
        text = str(path)
    return f"./{text}" if text.startswith("-") else text


def nearest_line(word: str, known: Sequence[str]) -> str | None:
    """Return the line that names the known word closest to ``word``, if one is close."""
    close = closest(word, known)
    return f"  {did_you_mean(close)}" if close else None


def _to_type(*words: str | Path) -> str:
    return to_try(shlex.join(shown(word) if isinstance(word, Path) else word for word in words))


def _readable(config: str, path: Path, overrides: Sequence[str] = ()) -> Path:
    if path.is_dir():
        own = path / f"{CONFIG}.yaml"
        if not own.is_file():
            is_sweep = (path / SWEEP).is_file()
            hint = f"  it is a sweep\n  {_to_type('rtrain', 'resume', config)}" if is_sweep else _listing(path)
            raise ConfigError(f"{config} is a folder without a config.yaml.", hint)
        path = own
    if path.suffix != ".yaml":
        raise ConfigError(f"{config} is not a .yaml file.", "  " + _to_type("rtrain", "fit", path.with_suffix(".yaml")))
    if not path.exists():
        raise _missing(config, path, overrides)
    if not os.access(path, os.R_OK):
        raise ConfigError(f"{config} can't be read: permission denied.", "  " + _to_type("chmod", "+r", config))
    return path.resolve()


def _missing(config: str, path: Path, overrides: Sequence[str]) -> ConfigError:
    yml = path.with_suffix(".yml")
    if yml.exists():
        return _wrong_suffix(str(yml), yml)
    folder = path.parent
    missing = f"{config} doesn't exist" + ("" if folder.is_dir() else f": there is no folder {folder}") + "."
    if (builtin_config_dir() / path.name).is_file():
        return ConfigError(missing, "  " + _to_type("rtrain", "fit", path.stem, *overrides))
    if not folder.is_dir():
        return ConfigError(missing)
    near = closest(path.name, _configs_in(folder))
    hint = _listing(folder) if near is None else "  " + _to_type("rtrain", "fit", folder / near, *overrides)
    return ConfigError(missing, hint)


def _listing(folder: Path) -> str:
    names = _configs_in(folder)
    if not names:
        return f"  there is no YAML file in {folder}"
    return f"  in it: {few(names, MOST_CONFIGS)}\n  {_to_type('rtrain', 'fit', folder / names[0])}"


def _configs_in(folder: Path) -> list[str]:
    """Return what may be configs; hidden files are those of other tools."""
    return sorted(one.name for one in folder.glob("*.yaml") if not one.name.startswith("."))


def _wrong_suffix(config: str, path: Path) -> ConfigError:
    if not path.exists():
        names = (str(path.with_suffix(".yaml")), path.stem)
        there = [one for one in names if Path(one).exists() or one in config_names()]
        hint = "  " + _to_type("rtrain", "fit", there[0]) if there else None
        return ConfigError(f"{config} doesn't exist, and configs end in .yaml.", hint)
    renamed = path.with_suffix(".yaml")
    return ConfigError(f"{config} ends in .yml; configs end in .yaml.", "  " + _to_type("mv", config, renamed))


def _by_name(config: str, overrides: Sequence[str]) -> Primary:
    local = [Path(folder) / f"{config}.yaml" for folder in CONFIG_FOLDERS]
    for path in local:
        if path.exists():
            return Primary(path=_readable(str(path), path), builtin=False)
    builtin = builtin_config_dir() / f"{config}.yaml"
    if builtin.is_file():
        return Primary(path=builtin, builtin=True)
    recipes = sorted(path.parent.name for path in builtin_dir("recipes").glob(f"*/{CONFIG}.yaml"))
    hint = hint_for(config, overrides, config_names(), recipes)
    folders = ", ".join(f"./{folder}" for folder in CONFIG_FOLDERS)
    raise ConfigError(f"there is no config called '{config}' in {folders} or built in.", hint)


def config_names() -> list[str]:
    """Return the names of all configs: the user's, then those that are built in."""
    folders = (*map(Path, CONFIG_FOLDERS), builtin_config_dir())
    return list(dict.fromkeys(Path(name).stem for folder in folders for name in _configs_in(folder)))


def _existing_folder(config_dir: str) -> Path:
    folder = expanded(config_dir)
    if not folder.is_dir():
        raise ConfigError(f"--config-dir {config_dir}: there is no such folder.")
    return folder.resolve()


def _without_repeats(found: list[tuple[str, Path]]) -> list[tuple[str, Path]]:
    seen: dict[Path, str] = {}
    for provider, folder in found:
        seen.setdefault(folder, provider)
    return [(provider, folder) for folder, provider in seen.items()]
