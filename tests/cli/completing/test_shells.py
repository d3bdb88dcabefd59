"""TAB in real shells, those that are installed: bash and zsh in a terminal, fish by what it asks its completions."""

from __future__ import annotations

import os
import pty
import re
import select
import shlex
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

START = {
    "bash": (["bash", "--norc", "--noprofile", "-i"], "source <(rtrain completion bash)"),
    "zsh": (["zsh", "-f", "-i"], "autoload -U compinit; compinit -u -D; source <(rtrain completion zsh)"),
}
LONGEST_WAIT_SECONDS = 60
CODES = re.compile(rb"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07]*\x07|\x1b[()=>][B0]?|[\r\x07]")


class Terminal:
    """A shell in a terminal."""

    def __init__(self, command, env):
        self._master, slave = pty.openpty()
        self._process = subprocess.Popen(
            command, stdin=slave, stdout=slave, stderr=slave, env=env, cwd=env["HOME"], start_new_session=True
        )
        os.close(slave)
        self._shown = b""

    def type(self, text):
        self._shown = b""
        os.write(self._master, text.encode())

    def wait_for(self, text):
        """Wait until a text is shown; fail if it does not come."""
        end = time.monotonic() + LONGEST_WAIT_SECONDS
        while time.monotonic() < end:
            ready, _, _ = select.select([self._master], [], [], 1)
            if ready:
                self._shown += os.read(self._master, 65536)
            if text in self.shown:
                return
        pytest.fail(f"{text!r} is not in {self.shown!r}")

    def settle(self):
        """Wait until nothing more is shown, as when a shell waits for a line."""
        while select.select([self._master], [], [], 1)[0]:
            self._shown += os.read(self._master, 65536)

    @property
    def shown(self):
        return CODES.sub(b"", self._shown).decode(errors="replace")

    def close(self):
        self._process.kill()
        self._process.wait()
        os.close(self._master)


@pytest.fixture(scope="module")
def env(tmp_path_factory):
    """The environment of a shell, in which a TAB was answered before."""
    home, programs = str(tmp_path_factory.mktemp("home")), Path(sys.executable).parent
    own = {
        "PATH": f"{programs}:{os.environ['PATH']}",
        "HOME": home,
        "XDG_CACHE_HOME": home,
        "TERM": "dumb",
        "PS1": "$ ",
    }
    env = {name: value for name, value in os.environ.items() if name != "PROMPT_COMMAND"} | own
    subprocess.run([programs / "rtrain", "complete", "--", "rtrain "], env=env, check=True, capture_output=True)
    return env


@pytest.fixture(params=list(START))
def shell(request, env):
    if shutil.which(request.param) is None:
        pytest.skip(f"{request.param} is not installed")
    command, setup = START[request.param]
    terminal = Terminal(command, env)
    terminal.type(f"{setup}; echo rea''dy\n")
    terminal.wait_for("ready")
    terminal.settle()
    yield terminal
    terminal.close()


COMPLETED = pytest.mark.parametrize(
    ("typed", "completed"),
    [
        ("rtrain complet", "rtrain completion"),
        ("rtrain fit resn", "rtrain fit resnet"),
        ("rtrain fit resnet optimizer=adamw dataset=dig", "dataset=digits"),
        ("rtrain fit resnet run.checkpoint.best.ke", "run.checkpoint.best.keep="),
        ("rtrain fit resnet trainer.precision=bf", "trainer.precision=bf16"),
        ("rtrain fit resnet --config", "--config-dir"),
    ],
)


@COMPLETED
def test_a_tab_completes_the_word(shell, typed, completed):
    shell.type(f"{typed}\t")
    shell.wait_for(completed)


@pytest.mark.skipif(shutil.which("fish") is None, reason="fish is not installed")
@COMPLETED
def test_fish_is_given_the_word(typed, completed, env):
    code = f"rtrain completion fish | source; complete -C {shlex.quote(typed)}"
    done = subprocess.run(["fish", "--no-config", "-c", code], env=env, capture_output=True, text=True, check=True)
    assert completed.split(" ")[-1] in done.stdout.splitlines()
