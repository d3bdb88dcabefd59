"""What a run was started from: packages, and changes that were not committed."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from rtrain.config.secrets.masked_lines import masked_diff
from rtrain.runs.facts import GitState, installed_packages
from rtrain.runs.origin import DIFF, MOST_CHARACTERS, MOST_UNTRACKED, PACKAGES, read_packages, write_origin

NEW = SimpleNamespace(resumes=[])
"""The manifest of a run that begins."""


def state(diff="", untracked=(), *, dirty=True):
    return GitState({"commit": "a", "dirty": dirty}, diff, untracked)


def test_packages_are_those_of_the_path_the_first_one_wins(tmp_path):
    for place, name in (("a", "My_Pkg-1.0"), ("b", "my_pkg-2.0"), ("b", "other-0.1.dev1+local")):
        (tmp_path / place / f"{name}.dist-info").mkdir(parents=True)
    (tmp_path / "b" / "no-package").mkdir()
    found = installed_packages([str(tmp_path / "a"), str(tmp_path / "b"), str(tmp_path / "nowhere")])
    assert found == {"my-pkg": "1.0", "other": "0.1.dev1+local"}
    assert "pytest" in installed_packages()


def test_packages_are_read_back(tmp_path):
    assert read_packages(tmp_path) == {}
    write_origin(tmp_path, None, str, NEW)
    assert read_packages(tmp_path) == installed_packages()
    (tmp_path / PACKAGES).write_bytes(b"\xff\xfe")
    assert read_packages(tmp_path) == {}


def test_only_a_project_with_changes_has_a_diff(tmp_path):
    write_origin(tmp_path, state(dirty=False), str, NEW)
    assert not (tmp_path / DIFF).exists()
    write_origin(tmp_path, state("-a\n+b", ["new.py"]), str.upper, NEW)
    assert (tmp_path / DIFF).read_text() == "-A\n+B\n# not in git: new.py\n"


def test_a_resume_by_other_code_has_files_of_its_own(tmp_path):
    write_origin(tmp_path, state("first"), str, NEW)
    resumed = SimpleNamespace(resumes=[{}, {"code_before": {"commit": "b"}}, {}])
    write_origin(tmp_path, state("second"), str, resumed)
    names = {DIFF, PACKAGES, "code-resume-2.diff", "packages-resume-2.txt"}
    assert {one.name for one in tmp_path.iterdir()} == names
    assert [(tmp_path / one).read_text() for one in sorted(names)[:2]] == ["second\n", "first\n"]


def test_a_long_diff_is_cut_between_lines_and_says_so(tmp_path):
    write_origin(tmp_path, state("+line\n" * MOST_CHARACTERS, [f"{number}" for number in range(300)]), str, NEW)
    lines = (tmp_path / DIFF).read_text().splitlines()
    assert set(lines[: -MOST_UNTRACKED - 2]) == {"+line"}
    assert lines[-MOST_UNTRACKED - 2].startswith("# cut: 6,000,000 characters")
    assert lines[-1] == "# not in git: 100 more files"


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("+api_key: S3cret", "+api_key: ***"),
        ("-  password: S3cret", "-  password: ***"),
        ("+client = connect('https://me:S3cret@host/x')", "+client = connect('https://host/x')"),
        ("+lr: 0.1", "+lr: 0.1"),
        ("@@ -1,2 +1,2 @@", "@@ -1,2 +1,2 @@"),
        ("", ""),
    ],
)
def test_secrets_are_masked_by_the_names_of_their_keys(line, expected):
    assert masked_diff(line) == expected
    assert masked_diff(f" a\n{line}\n b") == f" a\n{expected}\n b"
