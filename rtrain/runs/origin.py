"""What a run was started from that its config does not say: its code and the packages."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from rtrain.errors import RtrainError
from rtrain.runs.facts import GitState, installed_packages
from rtrain.runs.filesystem.files import write_atomic
from rtrain.runs.filesystem.plain_files import read_text
from rtrain.runs.manifest import Manifest
from rtrain.text.enumeration import few
from rtrain.text.printable import printable

DIFF, PACKAGES = "code.diff", "packages.txt"
UNCOMMITTED, UNTRACKED = "uncommitted changes", "code that is not in git"
MOST_SHOWN = 6
"""Changes that are listed."""
MOST_CHARACTERS = 1_000_000
"""Of a diff; a longer one is cut, and says so."""
MOST_UNTRACKED = 200
"""Names of files that are listed."""


def code_of(git: Mapping[str, Any] | None, versions: Mapping[str, str]) -> dict[str, Any]:
    """Return what says which code trains, by name.

    Args:
        git: As manifests have it.
        versions: By the name of the package.
    """
    git = git or {}
    own = {UNCOMMITTED: git.get("diff_sha256"), UNTRACKED: git.get("untracked_code_sha256")}
    return {"commit": git.get("commit"), **own, **versions}


def code_of_run(run_dir: Path, manifest: Manifest) -> dict[str, Any]:
    """Return what says by which code a run was last trained, by name."""
    packages = read_packages(run_dir, name_of_latest(PACKAGES, manifest))
    return code_of(manifest.git, {**packages, **manifest.versions})


def code_now(git: Mapping[str, Any] | None, versions: Mapping[str, str]) -> dict[str, Any]:
    """Return the same of this process, whose ``git`` and ``versions`` are those that its manifest will have."""
    return code_of(git, {**installed_packages(), **versions})


def changes(before: Mapping[str, Any], now: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    """Return what differs, before and now, by name."""
    names = dict.fromkeys([*before, *now])
    return {name: (before.get(name), now.get(name)) for name in names if before.get(name) != now.get(name)}


def code_changes(before: Mapping[str, Any], now: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    """Return what differs, as ``code_of`` names it; nothing of what one of both does not know."""
    found = changes(before, now)
    if None in (before["commit"], now["commit"]):  # outside git, or it did not answer
        found = {name: pair for name, pair in found.items() if name not in (UNCOMMITTED, UNTRACKED)}
    return {name: pair for name, pair in found.items() if name in ("commit", UNCOMMITTED) or None not in pair}


def in_words(changed: Mapping[str, tuple[Any, Any]]) -> str:
    """Return on one line how code changed: ``commit 1c5c2af3ba -> 54d3f2a901, uncommitted changes``."""
    texts = [
        name if name in (UNCOMMITTED, UNTRACKED) else f"{name} {_short(was)} -> {_short(now)}"
        for name, (was, now) in changed.items()
    ]
    return printable(few(texts, MOST_SHOWN))


def _short(value: Any) -> str:
    return "unknown" if value is None else str(value)[:10]


def name_of_latest(name: str, manifest: Manifest) -> str:
    """Return ``DIFF`` or ``PACKAGES`` as it is called of the last resume by other code: ``code-resume-2.diff``."""
    numbers = [number for number, one in enumerate(manifest.resumes, start=1) if one.get("code_before")]
    stem, dot, ending = name.partition(".")
    return f"{stem}-resume-{numbers[-1]}{dot}{ending}" if numbers else name


def write_origin(run_dir: Path, git: GitState | None, masked: Callable[[str], str], manifest: Manifest) -> None:
    """Write the packages, and a diff if the project has changes that were not committed.

    Args:
        run_dir: The run directory.
        git: The checkout of the project, if it is one.
        masked: Takes the secrets out of a diff.
        manifest: Of the run, with the resume that begins.
    """
    packages = (f"{name}=={version}\n" for name, version in installed_packages().items())
    write_atomic(run_dir / name_of_latest(PACKAGES, manifest), "".join(packages))
    if git is not None and git.facts["dirty"]:
        write_atomic(run_dir / name_of_latest(DIFF, manifest), _diff_text(git, masked))


def _diff_text(git: GitState, masked: Callable[[str], str]) -> str:
    diff = git.diff
    if len(diff) > MOST_CHARACTERS:
        diff = f"{diff[:MOST_CHARACTERS].rpartition(chr(10))[0]}\n# cut: {len(git.diff):,} characters in total"
    names = [f"# not in git: {name}" for name in git.untracked[:MOST_UNTRACKED]]
    more = len(git.untracked) - len(names)
    names += [f"# not in git: {more:,} more files"] if more else []
    return "\n".join([*([masked(diff)] if diff else []), *names]) + "\n"


def read_packages(run_dir: Path, file: str = PACKAGES) -> dict[str, str]:
    """Return the version of each package by name, as a run found them; nothing if it kept none that can be read."""
    try:
        lines = read_text(run_dir, file).splitlines()
    except (OSError, ValueError, RtrainError):
        return {}
    pairs = (line.partition("==") for line in lines)
    return {name: version for name, sign, version in pairs if sign}
