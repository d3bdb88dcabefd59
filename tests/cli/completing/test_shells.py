"""TAB in real shells, in a terminal each: those of bash, zsh and fish that are installed."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import shutil
import subprocess
import sys
import termios
import time
from pathlib import Path

import pytest

START = {
    "bash": (["bash", "--norc", "--noprofile", "-i"], "source <(rtrain completion bash)"),
    "zsh": (["zsh", "-f", "-i"], "autoload -U compinit; compinit -u -D; source <(rtrain completion zsh)"),
    "fish": (["fish", "-i"], "rtrain completion fish | source"),
}
LONGEST_WAIT_SECONDS = 60
ROUNDS = "trainer.num_boost_round=5"
PROGRAM = """#!/bin/sh
case $1 in
    complete | completion) exec {rtrain} "$@" ;;
    *) printf '<%s>' "$@" ;;
esac
"""
"""Completes as ``rtrain`` does, and shows the words that it gets."""
TABLES = ("o(1)$x.csv", "a=b:c.csv", "n(1).csv", "n(2).csv")
FILES = ("base.yaml", "it's.yaml", "my folder/my net.yaml", "größe/net.yaml", "runs/old.yaml", *TABLES)
CODES = re.compile(rb"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07]*\x07|\x1b[()=>][B0]?|[\r\x07]")


class Terminal:
    """A shell in a terminal."""

    def __init__(self, command, env):
        self._master, slave = pty.openpty()
        self._process = subprocess.Popen(
            command,
            stdin=slave,
            stdout=slave,
            stderr=slave,
            env=env,
            cwd=env["HOME"],
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),  # fish exits without
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
    home, programs = tmp_path_factory.mktemp("home"), tmp_path_factory.mktemp("programs")
    rtrain = Path(sys.executable).with_name("rtrain")
    (programs / "rtrain").write_text(PROGRAM.format(rtrain=rtrain))
    (programs / "rtrain").chmod(0o755)
    for name in FILES:
        (home / name).parent.mkdir(exist_ok=True)
        (home / name).touch()
    (home / "base.yaml").write_text("trainer: {type: xgboost}\ndataset: {type: csv}\n")
    own = {
        "PATH": f"{programs}:{os.environ['PATH']}",
        "HOME": str(home),
        "XDG_CONFIG_HOME": str(home),
        "XDG_CACHE_HOME": str(tmp_path_factory.mktemp("cache")),
        "TERM": "dumb",
        "PS1": "$ ",
    }
    env = {name: value for name, value in os.environ.items() if name != "PROMPT_COMMAND"} | own
    subprocess.run([rtrain, "complete", "--", "rtrain "], env=env, check=True, capture_output=True)
    return env


@pytest.fixture(scope="module", params=list(START))
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


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        ("rtrain resu\t", "resume"),
        ("rtrain run\t", "runs"),  # a folder, too
        ("rtrain fit resn\t", "fit resnet"),
        ("rtrain fit resnet optimizer=adamw dataset=dig\t", "fit resnet optimizer=adamw dataset=digits"),
        ("rtrain fit resnet run.checkpoint.best.ke\t1", "fit resnet run.checkpoint.best.keep=1"),
        ("rtrain fit resnet +run.checkpoint.best.ke\t1", "fit resnet +run.checkpoint.best.keep=1"),
        ("rtrain fit resnet trainer.params.\t", "fit resnet trainer.params."),
        ("rtrain predict RUN --split te\t", "predict RUN --split test"),
        ("rtrain predict RUN --split=te\t", "predict RUN --split=test"),
        ("rtrain runs ls --sort -sta\t", "runs ls --sort -sta"),  # status and started
        ("rtrain runs ls --where monit\t", "runs ls --where monitor"),
        ("rtrain fit resnet --config\t.", "fit resnet --config-dir ."),
    ],
)
def test_a_tab_completes_the_word(shell, typed, words):
    gets(shell, typed, words.split(" "))


@pytest.mark.parametrize("before", ["RTRAIN_UP=off ", "cd . && ", "true; ", "true | "])
def test_the_command_may_stand_anywhere_in_the_line(shell, before):
    gets(shell, f"{before}rtrain fit base.yaml trainer.num_boost_r\t5", ["fit", "base.yaml", ROUNDS])


@pytest.mark.parametrize("before", ["time ", "env A=1 ", "echo $("])
def test_the_command_may_be_that_of_another(shell, before, request):
    if request.node.callspec.params["shell"] == "bash":
        pytest.skip("bash needs the package bash-completion for this")
    after = ")" if before.endswith("(") else ""
    gets(shell, f"{before}rtrain fit base.yaml trainer.num_boost_r\t5{after}", ["fit", "base.yaml", ROUNDS])


@pytest.mark.parametrize(
    ("typed", "last"),
    [
        ("my\t", "my folder/"),
        ("my\t\t", "my folder/my net.yaml"),
        ("my\\ folder/\t", "my folder/my net.yaml"),
        ("'my\t\t", "my folder/my net.yaml"),
        ("'my folder/my\t", "my folder/my net.yaml"),
        ('"my folder/my\t', "my folder/my net.yaml"),
        ('my" "fol\t\t', "my folder/my net.yaml"),
        ("it\t", "it's.yaml"),
        ('"it\t', "it's.yaml"),
        ("gr\t", "größe/"),
        ("base.yaml dataset.path=o\t", "dataset.path=o(1)$x.csv"),
        ("base.yaml 'dataset.path=o\t", "dataset.path=o(1)$x.csv"),
        ('base.yaml "dataset.path=o\t', "dataset.path=o(1)$x.csv"),
        ('base.yaml dataset.path="o\t', "dataset.path=o(1)$x.csv"),
        ("base.yaml dataset.path=my\\ fo\t", "dataset.path=my folder/"),
        ('base.yaml dataset.path="my fo\t\t', "dataset.path=my folder/my net.yaml"),
        ("base.yaml dataset.path='my fo\t\t", "dataset.path=my folder/my net.yaml"),
        ("base.yaml dataset.path=a\t", "dataset.path=a=b:c.csv"),
        ("resnet 'dataset=dig\t", "dataset=digits"),
        ("resnet '~optimizer.l\t", "~optimizer.lr"),
        ("base.yaml --config-dir my\t", "my folder/"),
        ("base.yaml dataset.path=n\t1\t", "dataset.path=n(1).csv"),
        ("base.yaml 'trainer.early_stopping_rounds=choice(5, 6)' trainer.num_boost_r\t5", ROUNDS),
    ],
)
def test_a_completed_word_is_one_word_however_it_is_quoted(shell, typed, last):
    gets(shell, f"rtrain fit {typed}", [last])


@pytest.mark.parametrize(
    ("typed", "name"),
    [("~/ba\t", "base.yaml"), ("~/my\\ fo\t", "my folder/"), ("~/my\t\t", "my folder/my net.yaml")],
)
def test_a_path_may_begin_at_home(shell, typed, name, env):
    gets(shell, f"rtrain fit {typed}", [f"{env['HOME']}/{name}"])


def test_a_value_may_begin_at_home(shell):
    gets(shell, "rtrain fit ~/base.yaml dataset.path=~/my\t\t", ["dataset.path=~/my folder/my net.yaml"])


def gets(shell, typed, words):
    """Type a line, TAB and all; assert that the program gets these words in the end."""
    shell.type(f"{typed}\n")
    shell.wait_for("".join(f"<{word}>" for word in words))
