"""The folder of a sweep while a process works on it."""

from __future__ import annotations

import stat
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import yaml

from rtrain.config.compose.aliases import split_word
from rtrain.config.files.locations import project_of, shown
from rtrain.config.secrets.urls import MASK
from rtrain.config.session import Session
from rtrain.config.trials import COMMAND_NAME
from rtrain.errors import ConfigError, RunInUseError
from rtrain.runs.filesystem.leftovers import clear_leftovers
from rtrain.runs.filesystem.lock import LOCK, Lock, locked
from rtrain.runs.filesystem.plain_files import check_kind, check_run_dir, read_text
from rtrain.runs.signature import is_signed_by_this_account, not_trusted
from rtrain.schemas import schemas
from rtrain.sweeps.record.sweep_record import BEST, is_sweep

PLACES = ("run.root_dir", "sweep.name", "hydra.sweep.dir")
"""Keys that say where a new sweep lies."""


@contextmanager
def opened(folder: Path) -> Iterator[Lock]:
    """Hold the lock of a sweep's folder, which is made if need be; a new one is removed if nothing comes of the sweep.

    Raises:
        RunInUseError: Another process works on the sweep; its folder is left alone.
    """
    missing = [parent for parent in folder.parents if not parent.exists()]
    with _locked_by_us(folder) as lock:
        _check_entries(folder)
        clear_leftovers(folder)
        try:
            yield lock
        finally:
            if not is_sweep(folder):
                _remove_empty(folder, missing)


def _remove_empty(folder: Path, made: Sequence[Path]) -> None:
    """Remove a folder that holds nothing but the lock, which is ours, and those above it that were made for it."""
    with suppress(OSError):  # it is gone, or another process that waited for it is about to use it
        if all(one.name == LOCK for one in folder.iterdir()):
            (folder / LOCK).unlink()
            folder.rmdir()
            for parent in made:
                parent.rmdir()


def _check_entries(folder: Path) -> None:
    """Refuse a sweep's folder in which a link, a pipe or the like stands where the sweep or a trial writes.

    Raises:
        StrangeFileError: Names the first one.
    """
    for path in sorted(folder.iterdir()):
        if path.name != BEST or not path.is_symlink():  # that link is replaced, and never written through
            check_kind(path, stat.S_IFREG, stat.S_IFDIR)
        if path.is_dir() and path.name != BEST:
            check_run_dir(path)


@contextmanager
def _locked_by_us(folder: Path) -> Iterator[Lock]:
    with ExitStack() as stack:
        while True:
            try:
                folder.mkdir(parents=True, exist_ok=True)
                lock = stack.enter_context(locked(folder))
            except (FileNotFoundError, FileExistsError):  # another process has just removed it
                check_kind(folder, stat.S_IFDIR)
                continue
            except RunInUseError as error:
                raise RunInUseError(
                    error.message, "Wait until it ends, or start another sweep: sweep.name=NAME"
                ) from None
            break
        yield lock


def resuming_sweep(folder: Path, overrides: Sequence[str], *, trust: bool = False) -> Session:
    """Return the session of a sweep's own command with changes.

    Args:
        folder: Of the sweep.
        overrides: What is to change, ``sweep.num_trials=40`` say.
        trust: Run what the command names, even if another account wrote it.

    Raises:
        ConfigError: The command can't be read, or is not to be trusted, or the sweep is to lie elsewhere.
    """
    for _, key, value in map(split_word, overrides):
        if key in PLACES and value != folder.absolute().name:
            raise ConfigError(f"{key} can't be changed: the sweep stays in {shown(folder)}.", "Leave it out.")
    path = folder / COMMAND_NAME
    try:
        text = read_text(folder, COMMAND_NAME)
    except (OSError, ValueError) as error:
        raise ConfigError(f"{path} can't be read: {error}", "Repeat the command of the sweep.") from None
    if not trust and not is_signed_by_this_account(text, ""):
        raise not_trusted(folder, COMMAND_NAME)
    try:
        command = yaml.safe_load(text)
        words, config = [str(word) for word in command["overrides"]], command["config"]
    except (yaml.YAMLError, KeyError, TypeError, RecursionError) as error:
        raise ConfigError(f"{path} can't be read: {error}", "Repeat the command of the sweep.") from None
    if not isinstance(config, str):
        raise ConfigError(
            f"the config of {folder} is a mapping of a call from Python.", "Resume it with the same call."
        )
    # A sweep that was brought here from another machine finds its project where the command is given.
    root, config = project_of(folder, str(command.get("project_root") or ""), config)
    if Path(config).is_absolute() and not Path(config).exists():
        hint = "If it was moved, repeat the command of the sweep with its new path."
        if _has_copy(folder):
            hint = f"{hint} On another machine, repeat it where the project is: it resumes from run.storage."
        raise ConfigError(f"{config}, the config of this sweep, is not on this machine.", hint)
    if any(MASK in word for word in words):
        raise ConfigError(f"{path} contains no secrets, but the command had some.", "Repeat the command.")
    typed = ("rtrain", "resume", str(folder))
    session = Session(config, [*words, *overrides], schemas(), command.get("config_dir"), root, typed)
    session.trust = trust
    return session


def _has_copy(folder: Path) -> bool:
    """Return whether ``run.storage`` is set in a sweep, as far as its files say."""
    with suppress(OSError, ValueError, yaml.YAMLError, KeyError, TypeError, RecursionError):
        return yaml.safe_load(read_text(folder, "multirun.yaml"))["run"]["storage"] is not None
    return False
