"""Tags and notes have a file of their own."""

from __future__ import annotations

import subprocess
import sys

import pytest
from made_runs import make_run

from rtrain.errors import RunDirError
from rtrain.runs.filesystem.lock import locked
from rtrain.runs.labels import LABELS, Labels, change_labels, read_labels
from rtrain.runs.verify import verify_run


def test_tags_are_added_and_removed_in_order(tmp_path):
    run = make_run(tmp_path)
    change_labels(run, lambda labels: labels.tagged(["b", "a"]))
    change_labels(run, lambda labels: labels.tagged(["c", "a"], ["b"]))
    assert read_labels(run).tags == ("a", "c")
    assert read_labels(run).tags_with(["x", "b"]) == ["x", "a", "c"]
    change_labels(run, lambda labels: labels.tagged(["b"]))
    assert read_labels(run).tags_with(["x", "b"]) == ["x", "b", "a", "c"]


def test_a_note_replaces_the_one_before_and_leaves_tags(tmp_path):
    run = make_run(tmp_path)
    change_labels(run, lambda labels: labels.tagged(["a"]))
    change_labels(run, lambda labels: labels.noted("first"))
    change_labels(run, lambda labels: labels.noted("second"))
    assert read_labels(run) == Labels(tags=("a",), note="second")


def test_labels_change_no_other_file_and_are_no_problem_of_the_run(tmp_path):
    run = make_run(tmp_path)
    before = {path.name: path.read_bytes() for path in run.iterdir()}
    problems = verify_run(run)
    with locked(run):  # by its driver
        change_labels(run, lambda labels: labels.tagged(["a"]))
    assert {path.name: path.read_bytes() for path in run.iterdir() if path.name not in (LABELS, ".lock")} == before
    assert verify_run(run) == problems


@pytest.mark.parametrize("content", ["", "{", "[]", "3", '{"tags": 3}', '{"tags": [1, null]}', '{"note": {"a": 1}}'])
def test_a_file_of_any_content_is_read(content, tmp_path):
    run = make_run(tmp_path)
    (run / LABELS).write_text(content)
    assert all(isinstance(one, str) for one in read_labels(run).tags_with([]))


def test_a_link_in_its_place_is_not_followed_and_replaced(tmp_path):
    run = make_run(tmp_path / "runs")
    (tmp_path / "mine.json").write_text('{"tags": ["secret"]}')
    (run / LABELS).symlink_to(tmp_path / "mine.json")
    assert read_labels(run) == Labels()
    change_labels(run, lambda labels: labels.tagged(["a"]))
    assert (tmp_path / "mine.json").read_text() == '{"tags": ["secret"]}'
    assert read_labels(run).tags == ("a",)


def test_processes_that_tag_a_run_together_lose_nothing(tmp_path, start):
    run = make_run(tmp_path)
    code = "import sys; from pathlib import Path; from rtrain.runs.labels import change_labels\n"
    code += "for number in range(20):\n"
    code += "    change_labels(Path(sys.argv[1]), lambda labels: labels.tagged([f'{sys.argv[2]}{number}']))"
    processes = [start([sys.executable, "-c", code, str(run), name], stderr=subprocess.PIPE) for name in "abc"]
    assert [one.communicate()[1] for one in processes] == [b""] * 3
    assert set(read_labels(run).tags) == {f"{name}{number}" for name in "abc" for number in range(20)}


def test_a_folder_that_can_not_be_written_is_an_error(tmp_path):
    with pytest.raises(RunDirError, match="requires write permission"):
        change_labels(tmp_path / "nowhere", lambda labels: labels.tagged(["a"]))


def test_the_labels_of_a_private_run_are_private(tmp_path):
    run = make_run(tmp_path)
    run.chmod(0o700)
    change_labels(run, lambda labels: labels.tagged(["a"]))
    assert (run / "labels.json").stat().st_mode & 0o077 == 0
