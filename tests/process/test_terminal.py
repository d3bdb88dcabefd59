"""Streams that go away while something is shown on them, and streams that a command is started without."""

import fcntl
import logging
import os
import subprocess
import sys
import threading

import pytest

from rtrain.cli.interrupt import INTERRUPTED
from rtrain.process.terminal import lasting


def a_pipe():
    reader, writer = os.pipe()
    os.close(reader)
    return writer


def a_terminal():
    leader, follower = os.openpty()
    os.close(leader)
    return follower


def a_full_disk():
    return os.open("/dev/full", os.O_WRONLY)


@pytest.fixture(params=[a_pipe, a_terminal, a_full_disk])
def gone(request):
    """A descriptor that nothing can be written to."""
    descriptor = request.param()
    yield descriptor
    os.close(descriptor)


def test_what_can_not_be_shown_is_noted_once_and_goes_nowhere(gone, caplog):
    with caplog.at_level(logging.WARNING, "rtrain.process.terminal"):
        stream = lasting(None, gone)
        for number in range(3):
            print("line", number, file=stream, flush=True)
        stream.buffer.write(b"bytes")
        stream.close()
    assert len(caplog.records) == 1
    assert os.write(gone, b"of a library that writes by itself") > 0


def test_a_pipe_that_does_not_wait_loses_nothing():
    reader, writer = os.pipe()
    fcntl.fcntl(writer, fcntl.F_SETFL, os.O_NONBLOCK)
    text, read = "x" * 1_000_000, []

    def collect():
        while received := os.read(reader, 65536):
            read.append(received)

    thread = threading.Thread(target=collect)
    thread.start()
    lasting(None, writer).write(text)
    os.close(writer)
    thread.join()
    os.close(reader)
    assert b"".join(read) == text.encode()


def test_a_stream_keeps_its_ways(tmp_path):
    with (tmp_path / "out").open("w", encoding="latin-1", errors="replace") as stream:
        stream.write("before, ")
        other = lasting(stream, stream.fileno())
        other.write("é, €")
        other.flush()
        assert (other.encoding, other.errors, other.line_buffering) == ("latin-1", "replace", stream.line_buffering)
    assert (tmp_path / "out").read_bytes() == b"before, \xe9, ?"


@pytest.mark.parametrize("encoding", ["utf-8", "ascii", "latin-1"])
@pytest.mark.parametrize("errors", ["strict", "surrogateescape"])
def test_any_text_can_be_shown(tmp_path, encoding, errors):
    with (tmp_path / "out").open("w", encoding=encoding, errors=errors) as stream:
        for one in (lasting(stream, stream.fileno()), lasting(None, stream.fileno())):
            print("\ud800\ud801\udcff", file=one, flush=True)
    assert (tmp_path / "out").read_bytes() == b"\\ud800\\ud801\\udcff\n" * 2


def test_a_file_name_of_any_bytes_is_shown_as_it_is(tmp_path):
    with (tmp_path / "out").open("w", encoding="ascii", errors="surrogateescape") as stream:
        print("a\udcff", file=lasting(stream, stream.fileno()), flush=True)
    assert (tmp_path / "out").read_bytes() == b"a\xff\n"


STREAMS = """
import os, sys
from rtrain.process.terminal import open_streams
open_streams()
print("out")
print("err", file=sys.stderr)
assert sys.stdin.read() == ""
assert os.open("/", os.O_RDONLY) > 2, "a file has the number of a stream"
"""


@pytest.mark.parametrize("closed", ["0", "1", "2", "0 1 2"])
def test_streams_that_are_closed_are_opened(closed):
    closing = " ".join(f"{number}>&-" for number in closed.split())
    command = f'{{ "$0" -c "$1"; }} {closing}'
    done = subprocess.run(
        ["/bin/sh", "-c", command, sys.executable, STREAMS], stdin=subprocess.DEVNULL, capture_output=True, check=False
    )
    assert done.returncode == 0
    assert done.stdout == (b"" if "1" in closed else b"out\n")
    assert done.stderr == (b"" if "2" in closed else b"err\n")


@pytest.mark.parametrize(
    ("words", "device", "code"),
    [(words, a_full_disk, 1) for words in ("schema", "datasets", "recipes ls", "fit mlp --cfg job")]
    + [("trainers", a_pipe, 0)],
)
def test_data_that_can_not_be_written_are_no_success(words, device, code, tmp_path):
    out = device()
    command = [sys.executable, "-c", "from rtrain.cli import main; main()", *words.split()]
    done = subprocess.run(command, stdout=out, stderr=subprocess.PIPE, text=True, cwd=tmp_path, check=False)
    os.close(out)
    assert (done.returncode, done.stderr.startswith("error: ")) == (code, bool(code))


AT_IMPORT = """
import os, signal, sys

class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == MODULE:
            os.kill(os.getpid(), signal.SIGINT)

MODULE = sys.argv.pop(1)
sys.meta_path.insert(0, Finder())
from rtrain.cli import main
main()
"""


MODULES = ["rtrain.process.terminal", "typer", "rtrain.cli.fit", "rtrain.config.session", "hydra"]


@pytest.mark.parametrize("module", MODULES)
def test_ctrl_c_while_modules_are_imported_is_quiet(tmp_path, module):
    command = [sys.executable, "-c", AT_IMPORT, module, "fit", "mlp", "num_workers=0"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (INTERRUPTED, "")
    assert list(tmp_path.iterdir()) == []
