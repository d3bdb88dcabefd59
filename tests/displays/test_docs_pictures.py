"""The runs that README and docs/first-run.md show look as a run does on a terminal."""

import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2]
PAGES = ["README.md", "docs/first-run.md"]
COLOURS, MOVES = re.compile(r"\x1b\[[0-9;]*m"), re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\r")
LINES = r"(training|epoch +\d+/15 +step|result|time|best|checkpoint|run|next) .*"


def block_of(page):
    """Return the picture of a page."""
    return re.search(r"    training resnet.*?\n    next .*?\n", (DOCS / page).read_text(), re.DOTALL)[0]


def shape(line):
    """Return a line without what differs from run to run: numbers, ids, stars, and where it was trained."""
    line = re.sub(r"\d{4}-\d\d-\d\d_\d\d-\d\d-\d\d-[0-9a-f]{4}", "ID", line)
    line = re.sub(r"\d[\d,.]*(e-?\d+)?\*?", "N", line).replace("on N worker", "in this process")
    return " ".join(line.replace("starting workers N s, ", "").split())


@pytest.fixture(scope="module")
def shown(tmp_path_factory):
    """The lasting lines of a run on a terminal of 120 columns."""
    ours, theirs = pty.openpty()
    words = ["mlp", "num_workers=0", "trainer.max_epochs=15", "run.name=resnet"]
    env = os.environ | {"COLUMNS": "120", "LINES": "40", "TERM": "xterm"}
    command = [str(Path(sys.executable).with_name("rtrain")), "fit", *words]
    with subprocess.Popen(command, stdout=theirs, env=env, cwd=tmp_path_factory.mktemp("run")) as process:
        os.close(theirs)
        text = b""
        try:
            while data := os.read(ours, 65536):
                text += data
        except OSError:  # the terminal is gone with the process
            pass
    os.close(ours)
    assert process.returncode == 0
    lines = MOVES.sub("\n", COLOURS.sub("", text.decode())).split("\n")
    return [line for line in lines if re.fullmatch(LINES, line)]


@pytest.mark.parametrize("page", PAGES)
def test_a_run_in_the_docs_looks_as_it_does_on_a_terminal(page, shown):
    drawn = [line.strip() for line in block_of(page).strip().split("\n")]
    first, rest = drawn[: drawn.index("...")], drawn[drawn.index("...") + 1 :]
    assert list(map(shape, first)) == list(map(shape, shown[: len(first)]))
    assert list(map(shape, rest)) == list(map(shape, shown[-len(rest) :]))
    assert all(len(line) <= 120 for line in drawn)


def test_the_pages_show_the_same_run():
    assert len(set(map(block_of, PAGES))) == 1
