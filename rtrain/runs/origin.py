"""What a run was started from that its config does not say: changes that were not committed, and the packages."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from rtrain.errors import RtrainError
from rtrain.runs.facts import GitState, installed_packages
from rtrain.runs.filesystem.files import write_atomic
from rtrain.runs.filesystem.plain_files import read_text

DIFF, PACKAGES = "code.diff", "packages.txt"
MOST_CHARACTERS = 1_000_000
"""Of a diff; a longer one is cut, and says so."""
MOST_UNTRACKED = 200
"""Names of files that are listed."""


def write_origin(run_dir: Path, git: GitState | None, masked: Callable[[str], str]) -> None:
    """Write ``packages.txt``, and ``code.diff`` if the project has changes that were not committed.

    Args:
        run_dir: The run directory.
        git: The checkout of the project, if it is one.
        masked: Takes the secrets out of a diff.
    """
    packages = (f"{name}=={version}\n" for name, version in installed_packages().items())
    write_atomic(run_dir / PACKAGES, "".join(packages))
    if git is not None and git.facts["dirty"]:
        write_atomic(run_dir / DIFF, _diff_text(git, masked))


def _diff_text(git: GitState, masked: Callable[[str], str]) -> str:
    diff = git.diff
    if len(diff) > MOST_CHARACTERS:
        diff = f"{diff[:MOST_CHARACTERS].rpartition(chr(10))[0]}\n# cut: {len(git.diff):,} characters in total"
    names = [f"# not in git: {name}" for name in git.untracked[:MOST_UNTRACKED]]
    more = len(git.untracked) - len(names)
    names += [f"# not in git: {more:,} more files"] if more else []
    return "\n".join([*([masked(diff)] if diff else []), *names]) + "\n"


def read_packages(run_dir: Path) -> dict[str, str]:
    """Return the version of each package by name, as a run found them; nothing if it kept none that can be read."""
    try:
        lines = read_text(run_dir, PACKAGES).splitlines()
    except (OSError, ValueError, RtrainError):
        return {}
    pairs = (line.partition("==") for line in lines)
    return {name: version for name, sign, version in pairs if sign}
