"""Facts about the machine and the code that a run needs to be understood later."""

from __future__ import annotations

import hashlib
import os
import platform
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

from rtrain.errors import RtrainError
from rtrain.runs.filesystem.plain_files import open_inside

QUIET = {"safe.bareRepository": "explicit", "core.fsmonitor": "false", "core.hooksPath": "/dev/null"}
"""Settings with which git runs no program of a repository."""
OFFLINE = {"GIT_NO_LAZY_FETCH": "1", "GIT_ALLOW_PROTOCOL": "none"}
"""Variables with which git fetches nothing, for which a partial clone names a program or a server."""
NO_FILTER = {"clean": "", "process": "", "required": "false"}
"""Settings of a filter that git doesn't run."""
OWN = ("system", "global")
"""Scopes of git's settings that are the user's, not a repository's."""
MOST_HASHED, MAX_HASHED_BYTES = 200, 1 << 20
"""Python files that are in no commit, and bytes of each, whose changes are noticed."""
SHARED = ("rtrain", "ray", "hydra-core", "omegaconf", "numpy", "pandas", "pyarrow", "safetensors")
"""Packages that every run uses."""


def installed_versions(packages: Iterable[str]) -> dict[str, str]:
    """Return the versions of Python, what all runs use and those ``packages`` that are installed; imports none."""
    versions = {"python": platform.python_version()}
    for package in (*SHARED, *packages):
        try:
            versions[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return versions


def num_cores() -> int:
    """Return the cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def describe_host() -> dict[str, Any]:
    """Return name, platform, cores and memory of this machine, and the process id."""
    return {
        "hostname": platform.node(),
        "pid": os.getpid(),
        "platform": platform.platform(),
        "num_cores": num_cores(),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
    }


OF_RAY = "thirdparty_files"
"""A folder within Ray that it puts on the path, with packages that the user has not installed."""


def installed_packages(path: Iterable[str] | None = None) -> dict[str, str]:
    """Return the version of each package that is installed, by name, as the names of its folders tell; reads no file.

    Args:
        path: Folders to look in; None: where Python imports from.
    """
    found: dict[str, str] = {}
    for folder in sys.path if path is None else path:
        if Path(folder).name == OF_RAY:
            continue
        for info in sorted(Path(folder).glob("*-*.dist-info")):
            name, _, version = info.name.removesuffix(".dist-info").rpartition("-")
            found.setdefault(name.replace("_", "-").lower(), version)
    return dict(sorted(found.items()))


@dataclass(frozen=True)
class GitState:
    """The checkout that holds a project."""

    facts: dict[str, Any]
    """``commit``, ``branch``, ``dirty`` and so on, as the manifest has them."""
    diff: str
    """What was changed and not committed; empty where git can't compare."""
    untracked: Sequence[str]
    """Files that are in no commit."""


def read_git(folder: Path) -> GitState | None:
    """Return the state of the checkout that holds ``folder``; None outside git or without it."""
    commit = _git(folder, "rev-parse", "HEAD")
    if commit is None:
        return None
    diff = _git(folder, "diff", "HEAD", "--no-ext-diff", "--no-textconv", "--ignore-submodules=dirty")
    untracked = _git(folder, "ls-files", "--others", "--exclude-standard")
    dirty = diff is None or bool(diff or untracked)  # the objects that a comparison needs may be missing
    facts: dict[str, Any] = {
        "commit": commit,
        "branch": _git(folder, "rev-parse", "--abbrev-ref", "HEAD"),
        "dirty": dirty,
        "untracked_code_sha256": _digest_of_code(folder, (untracked or "").splitlines()),
    }
    if dirty:
        facts["diff_sha256"] = None if diff is None else hashlib.sha256(diff.encode()).hexdigest()
        facts["num_untracked"] = len((untracked or "").splitlines())
    return GitState(facts, diff or "", (untracked or "").splitlines())


def _digest_of_code(folder: Path, names: Sequence[str]) -> str:
    """Return a sha256 over the Python files among those that are in no commit; of folders of many, over the first."""
    found = hashlib.sha256()
    for name in sorted(one for one in names if one.endswith(".py"))[:MOST_HASHED]:
        try:
            with open_inside(folder, name) as file:
                content = hashlib.sha256(file.read(MAX_HASHED_BYTES)).hexdigest()
        except (OSError, ValueError, RtrainError):  # it was removed since, or is a link
            content = ""
        found.update(f"{name}\0{content}\0".encode(errors="surrogateescape"))
    return found.hexdigest()


def _git(folder: Path, *words: str) -> str | None:
    """Return what git prints. It runs nothing that the repository says, which may be a stranger's."""
    listed = _run_git(folder, QUIET, "config", "--show-scope", "--name-only", "--get-regexp", r"^filter\.") or ""
    lines = [line.partition("\t") for line in listed.splitlines()]
    filters = {name.rpartition(".")[0] for scope, _, name in lines if scope not in OWN}
    unused = {f"{name}.{key}": value for name in filters for key, value in NO_FILTER.items()}
    return _run_git(folder, QUIET | unused, *words)


def _run_git(folder: Path, settings: Mapping[str, str], *words: str) -> str | None:
    numbered = [pair for number, pair in enumerate(settings.items()) for pair in _numbered(number, *pair)]
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *words],
            env={**os.environ, **OFFLINE, "GIT_CONFIG_COUNT": str(len(settings)), **dict(numbered)},
            capture_output=True,
            text=True,
            timeout=10,
            check=False,
            errors="replace",
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def _numbered(number: int, key: str, value: str) -> tuple[tuple[str, str], tuple[str, str]]:
    """Return the variables by which git takes a setting whose name may hold any character."""
    return (f"GIT_CONFIG_KEY_{number}", key), (f"GIT_CONFIG_VALUE_{number}", value)
