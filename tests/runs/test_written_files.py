"""Files that are written in the current folder while a block runs."""

import os
import subprocess
import sys
from contextlib import contextmanager, suppress

import pytest

from rtrain.runs import written_files as module
from rtrain.runs.written_files import names_text, written_files


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def put(folder, *names):
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(name)


def test_new_and_replaced_files_are_told_apart(folder):
    put(folder, "old.csv", "data/rows.csv", "model.pt")
    with written_files() as found:
        put(folder, "new.csv", "logs/a/events")
        (folder / "model.pt").write_text("longer than before")
        os.utime(folder / "old.csv", (1, 1))
    assert (found.new, found.replaced) == (["logs/a/events", "new.csv"], ["model.pt", "old.csv"])
    assert found.facts()["folder"] == str(folder)


def test_they_are_found_when_the_block_fails_or_changes_to_another_folder(folder, tmp_path_factory):
    def fails():
        put(folder, "a")
        os.chdir(tmp_path_factory.mktemp("elsewhere"))
        raise ValueError("no luck")

    with suppress(ValueError), written_files() as found:
        fails()
    assert found.new == ["a"]


@pytest.mark.parametrize(
    "name", [".git/index", "__pycache__/a.pyc", "runs/a/1/manifest.json", "runs/a/1/logs/x", "env/lib/b.py", ".hidden"]
)
def test_what_others_write_is_left_out(folder, name):
    put(folder, "env/pyvenv.cfg", "runs/a/1/manifest.json")
    with written_files() as found:
        put(folder, name, "runs/events.of.tensorboard")
    assert found.new == ["runs/events.of.tensorboard"]


EDITED = ["train.py", "nets/layers.py", "try.ipynb", "run.sh", "train.yaml", "configs/optimizer/adam.yml"]
RESULTS = ["made.py", "metrics.yaml", "metrics.json", "configs/result.csv"]


@pytest.mark.parametrize("editor", ["write", "rename"])
def test_code_and_configs_that_are_edited_meanwhile_are_not_results(folder, editor):
    put(folder, *EDITED, *RESULTS[1:])
    with written_files(folder / "train.yaml") as found:
        for name in (*EDITED, *RESULTS):
            path = folder / (f"{name}~" if editor == "rename" else name)
            path.write_text("edited")
            path.replace(folder / name)
    assert (found.new, found.replaced) == (RESULTS[:1], sorted(RESULTS[1:]))


@contextmanager
def stream_into(path, number):
    """Have a standard stream go to a file, as a shell does."""
    kept = os.dup(number)
    with path.open("a") as file:
        os.dup2(file.fileno(), number)
    try:
        yield
    finally:
        os.dup2(kept, number)
        os.close(kept)


@pytest.mark.parametrize("number", [1, 2])
def test_the_file_that_the_output_goes_to_is_not_a_result(folder, number, capfd):
    with stream_into(folder / "A.log", number), written_files() as found:
        os.write(number, b"epoch 1")
        put(folder, "model.pt")
    assert (found.new, found.replaced) == (["model.pt"], [])
    assert (folder / "A.log").read_text() == "epoch 1"


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux says what files other processes have open")
def test_a_file_that_another_process_was_writing_is_not_a_result(folder):
    put(folder, "read.csv")
    with (folder / "server.log").open("w") as log, (folder / "read.csv").open() as read:
        other = subprocess.Popen(
            [sys.executable, "-c", "print(input(), flush=True)"], stdin=subprocess.PIPE, stdout=log
        )
        reader = subprocess.Popen(
            ["cat", "-"], stdin=subprocess.PIPE, stderr=subprocess.DEVNULL, pass_fds=[read.fileno()]
        )
    with written_files() as found:
        other.communicate(b"served\n")
        put(folder, "model.pt")
        (folder / "read.csv").write_text("rows of the loop")
    reader.communicate()
    assert (folder / "server.log").read_text() == "served\n"
    assert (found.new, found.replaced) == (["model.pt"], ["read.csv"])


def test_a_manifest_of_the_users_own_does_not_hide_the_folder(folder):
    put(folder, "manifest.json")
    with written_files() as found:
        put(folder, "a")
    assert found.new == ["a"]


def test_in_a_large_folder_no_old_file_is_taken_for_a_new_one(folder, monkeypatch):
    put(folder, *(f"{top}/{number}" for top in "abcdefgh" for number in range(2)))
    put(folder, *(f"images/{number}" for number in range(11)))
    monkeypatch.setattr(module, "MAX_LOOKED_AT", 10)
    with written_files() as found:
        put(folder, "model.pt", "i/new")
        for name in ("a/0", "a/1", "b/0", "b/1", "c/0", "images/0"):
            (folder / name).unlink()
        (folder / "a").rmdir()
    assert found.new == ["model.pt"]


@pytest.mark.parametrize(
    ("new", "replaced", "text"),
    [
        (["model.pt"], [], "model.pt"),
        (["tb/a", "tb/b/c", "z"], ["log.csv"], "tb/ (2 files), z, log.csv (replaced)"),
        (["tb/a"], ["tb/b"], "tb/ (2 files, replaced)"),
        ([str(number) for number in range(10)], [], "0, 1, 2, 3, 4, 5 and 4 more"),
    ],
)
def test_the_files_of_a_folder_are_one_name(new, replaced, text):
    assert names_text({"new": new, "replaced": replaced}) == text


def test_a_new_file_may_have_the_number_of_one_that_another_process_wrote(folder):
    words = "import sys; file = open('.part', 'w'); print('open', flush=True); sys.stdin.read()"
    with subprocess.Popen([sys.executable, "-c", words], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout.readline() == b"open\n"
        with written_files() as found:
            (folder / ".part").rename(
                folder / "model.pt"
            )  # as if it was removed, and its number given to the next file
        other.stdin.close()
    assert found.new == ["model.pt"]
