"""What git tells of the code of a run; whatever a repository's settings name, git runs none of it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from rtrain.runs.facts import installed_packages, read_git


def git(folder: Path, *words: str) -> None:
    who = ("-c", "user.name=me", "-c", "user.email=me@example.com")
    subprocess.run(["git", "-C", str(folder), *who, *words], check=True, capture_output=True)


@pytest.fixture
def repository(tmp_path):
    """A checkout with one file, which has changed since it was committed."""
    folder = tmp_path / "repository"
    folder.mkdir()
    git(folder, "init", "-q", "-b", "main")
    (folder / "a.txt").write_text("1\n")
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "first")
    (folder / "a.txt").write_text("2\n")
    return folder


def test_commit_branch_and_changes_are_told(repository):
    facts = read_git(repository).facts
    assert facts["branch"] == "main"
    assert len(facts["commit"]) == 40
    assert (facts["dirty"], facts["num_untracked"]) == (True, 0)
    git(repository, "commit", "-qam", "second")
    facts = read_git(repository).facts
    digest = facts.pop("untracked_code_sha256")
    assert facts == {"commit": facts["commit"], "branch": "main", "dirty": False}
    for text, is_same in (("a = 1\n", False), ("a = 2\n", False), (None, True)):
        own = repository / "own.py"
        own.unlink() if text is None else own.write_text(text)
        before, digest_now = digest, read_git(repository).facts["untracked_code_sha256"]
        assert (digest_now == before) == is_same


HOSTILE = {
    "fsmonitor": {"core.fsmonitor": "PROGRAM; false"},
    "clean": {"filter.evil.clean": "PROGRAM; cat"},
    "process": {"filter.evil.process": "PROGRAM; cat"},
    "required": {"filter.evil.clean": "PROGRAM; cat", "filter.evil.required": "true"},
    "name with dots": {"filter.e.v=il.clean": "PROGRAM; cat"},
    "textconv": {"diff.evil.textconv": "PROGRAM; cat"},
    "driver": {"diff.evil.command": "PROGRAM; true"},
    "external": {"diff.external": "PROGRAM; true"},
}


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("included", [False, True], ids=["own", "included"])
def test_no_program_of_a_repository_is_run(name, included, repository, tmp_path):
    marker = tmp_path / "ran"
    place = ("-f", str(repository / "more")) if included else ()
    for key, value in HOSTILE[name].items():
        git(repository, "config", *place, key, value.replace("PROGRAM", f"touch {marker}"))
        driver = key.split(".", 1)[1].rpartition(".")[0] or "evil"
        (repository / ".gitattributes").write_text(f"*.txt filter={driver} diff={driver}\n")
    if included:
        git(repository, "config", "include.path", "../more")
    facts = read_git(repository).facts
    assert facts["dirty"]
    assert not marker.exists()


def test_objects_that_a_partial_clone_lacks_are_not_fetched(repository, tmp_path):
    marker = tmp_path / "ran"
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\ntouch {marker}\n")
    program.chmod(0o755)
    found = subprocess.run(["git", "-C", str(repository), "rev-parse", "HEAD:a.txt"], check=True, capture_output=True)
    name = found.stdout.decode().strip()
    (repository / ".git" / "objects" / name[:2] / name[2:]).unlink()
    remote = {
        "url": f"ext::{program}",
        "uploadpack": str(program),
        "promisor": "true",
        "partialclonefilter": "blob:none",
    }
    for key, value in remote.items():
        git(repository, "config", f"remote.origin.{key}", value)
    for key, value in {"extensions.partialClone": "origin", "protocol.ext.allow": "always"}.items():
        git(repository, "config", key, value)
    for url in (f"ext::{program}", str(tmp_path)):
        git(repository, "config", "remote.origin.url", url)
        facts = read_git(repository).facts
        assert (facts["dirty"], facts["diff_sha256"], facts["num_untracked"]) == (True, None, 0)
        assert not marker.exists()


def test_a_bare_repository_inside_a_clone_is_none(tmp_path):
    marker = tmp_path / "ran"
    inside = tmp_path / "clone" / "examples"
    inside.mkdir(parents=True)
    git(tmp_path / "clone", "init", "-q", "-b", "main")
    git(inside, "init", "-q", "--bare", ".")
    for key, value in {"core.bare": "false", "core.worktree": ".", "core.fsmonitor": f"touch {marker}; false"}.items():
        git(inside, "config", "-f", "config", key, value)
    read_git(inside)
    assert not marker.exists()


def test_what_ray_brings_along_is_not_installed(tmp_path):
    for folder in ("site-packages/one-1.0.dist-info", "site-packages/ray/thirdparty_files/colorama-0.4.6.dist-info"):
        (tmp_path / folder).mkdir(parents=True)
    places = [str(tmp_path / "site-packages/ray/thirdparty_files"), str(tmp_path / "site-packages")]
    assert installed_packages(places) == {"one": "1.0"}
