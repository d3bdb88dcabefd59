"""A command that ends quickly loses nothing that Python would have written."""

import gzip
import subprocess
import sys

CODE = """
import gc
import gzip
import sys

import rtrain.cli

gc.disable()


class Holder:
    def __init__(self, opened, name):
        self.itself, self.file = self, opened(name, "wt")
        self.file.write("text")


used = Holder(open, "used")
Holder(gzip.open, "garbage.gz")
sys.argv[1:] = ["--version"]
rtrain.cli.main()
"""


def test_files_in_cycles_are_written(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", CODE], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout[:6], done.stderr) == (0, "rtrain", "")
    assert (tmp_path / "used").read_text() == "text"
    assert gzip.decompress((tmp_path / "garbage.gz").read_bytes()) == b"text"


BLOCKED = """
import os
import threading
import time

import rtrain.cli

pipe = os.fdopen(os.pipe()[1], "wb")
threading.Thread(target=pipe.write, args=(bytes(1 << 20),), daemon=True).start()
time.sleep(0.2)  # it writes until the pipe is full
rtrain.cli.sys.argv[1:] = ["--version"]
rtrain.cli.main()
"""


def test_a_thread_that_waits_for_the_reader_of_a_pipe_does_not_hold_it_up(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", BLOCKED], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
