"""Secrets are taken out of output that doesn't pass through Python's streams, and a terminal stays one."""

from __future__ import annotations

import ctypes
import inspect
import itertools
import json
import logging
import os
import pty
import select
import subprocess
import sys
import traceback
import types
from asyncio import CancelledError

import pytest

from rtrain.config.secrets.redact import Redactor
from rtrain.engine.log_capture import copied_output
from rtrain.engine.output_filter import Masking
from rtrain.runs.records import FailureRecord, to_wire

SECRET = "S3cret-abc-123"
FORMS = [b"S3cret", b"S3cret-abc-123", b"3cretS3"]
TEXT = b"a S3cret b S3cret-abc-123 c S3cS3cret-abc S3cretS3cret-abc-12 3cretS3 S3cre"
SCRIPT = f"""
import os, sys
from rtrain.config.secrets.redact import Redactor
from rtrain.engine.log_capture import copied_output

with copied_output(0, lambda record: None, Redactor(frozenset([{SECRET!r}]))):
    os.write(1, b"raw {SECRET}\\n")
    print("\\x1b[1mbold {SECRET}\\x1b[0m", os.isatty(1), os.isatty(2), sys.stdout.isatty())
    """


def masked(parts: list[bytes]) -> bytes:
    """Return what comes out when a text comes in parts."""
    masking = Masking(FORMS, b"\0token\0", b"***")
    return b"".join(masking.feed(part)[0] for part in parts) + masking.rest()


def test_no_cut_lets_a_secret_through():
    whole = masked([TEXT])
    assert not any(form in whole for form in FORMS)
    assert whole.startswith(b"a *** b *** c S3c***-abc ")
    assert masked([bytes([one]) for one in TEXT]) == whole
    for first, second in itertools.combinations(range(len(TEXT)), 2):
        assert masked([TEXT[:first], TEXT[first:second], TEXT[second:]]) == whole


def test_a_token_ends_what_waits_and_is_left_out():
    masking = Masking(FORMS, b"\0token\0", b"***")
    assert masking.feed(b"a S3cre") == (b"a ", 0)
    assert masking.feed(b"t\0tok") == (b"***", 0)
    assert masking.feed(b"en\0S3cret-a\0token\0x") == (b"***-ax", 2)


def write_in_every_way(secret: str) -> None:
    """Write a secret in each way that user code has."""
    print("print", secret, flush=True)
    os.write(1, f"os.write {secret}\n".encode())
    os.write(2, f"os.write {secret[:5]}".encode())
    os.write(2, f"{secret[5:]}\n".encode())
    sys.stdout.buffer.write(f"bytes {secret}\n".encode())
    sys.stdout.flush()
    subprocess.run(["sh", "-c", f"echo child {secret}; echo child {secret} >&2"], check=True)
    libc = ctypes.CDLL(None)
    libc.printf(f"printf {secret}\n".encode())
    libc.fflush(None)
    print("last", secret, flush=True)
    logging.getLogger("mine").error("logged %s", secret)


@pytest.mark.parametrize("one_file", [True, False])
def test_what_bypasses_python_is_masked_in_order(one_file):
    imports = "import ctypes, logging, os, subprocess, sys\n"
    code = f"{imports}{inspect.getsource(write_in_every_way)}{SCRIPT}write_in_every_way({SECRET!r})\nprint('after')"
    errors = subprocess.STDOUT if one_file else subprocess.PIPE
    done = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=errors, text=True, timeout=60)
    assert done.returncode == 0
    assert SECRET not in done.stdout + (done.stderr or "")
    ways = ["print", "os.write", *["os.write"] * one_file, "bytes", "child", *["child"] * one_file, "printf", "last"]
    seen = [line for line in done.stdout.splitlines() if not line.startswith(("raw", "\x1b", "logged"))]
    assert seen == [*(f"{way} ***" for way in ways), "after"]


def test_without_secrets_descriptors_are_left_alone():
    before = os.fstat(1), os.fstat(2)
    with copied_output(0, lambda record: None):
        assert (os.fstat(1), os.fstat(2)) == before


@pytest.mark.parametrize("value", ['a"quoted\\key-77', "kéy-with-accents-1", "l1ne\nbreak-2-of-it", "a/b c+d1e2f3g4"])
def test_records_are_masked_however_a_formatter_spells_them(value, tmp_path):
    handler = logging.FileHandler(tmp_path / "log")
    formats = ["%(message)s", "%(args)r", "%(msg)s"]
    logger = logging.getLogger("mine")
    logger.addHandler(handler)
    try:
        with copied_output(0, lambda record: None, Redactor(frozenset({value}))):
            for form in formats:
                handler.setFormatter(logging.Formatter(form))
                logger.error("key %s", value)
                logger.error("key %r", value)
                try:
                    raise ValueError(value)
                except ValueError:
                    logger.exception("no")
    finally:
        logger.removeHandler(handler)
        handler.close()
    text = (tmp_path / "log").read_text()
    assert "***" in text
    assert not any(form in text for form in (value, repr(value)[1:-1]))


def test_a_key_of_several_lines_is_masked_line_by_line():
    key = "-----BEGIN KEY-----\nMIIEvQ/IBADAN+qqz\r\n  zwertyuiopBBBB==\nshort\n-----END KEY-----\n"
    indented = "".join(f"\t| {line}\n" for line in key.splitlines())
    assert Redactor(frozenset({key}))(indented) == (
        "\t| -----BEGIN KEY-----\n\t| ***\n\t|   ***\n\t| short\n\t| -----END KEY-----\n"
    )


def test_what_a_crash_says_last_is_masked_and_not_lost():
    crash = SCRIPT + "import ctypes, faulthandler; faulthandler.enable(); ctypes.string_at(0)"
    done = subprocess.run([sys.executable, "-c", crash], capture_output=True, text=True, timeout=60)
    assert done.returncode < 0
    assert "Segmentation fault" in done.stderr
    assert "raw ***" in done.stdout
    assert SECRET not in done.stdout + done.stderr


def in_terminal(code: str, answers: list[tuple[str, str]]) -> str:
    """Run code in a terminal, answer its prompts, and return what was on the screen."""
    pid, terminal = pty.fork()
    if not pid:
        os.execv(sys.executable, [sys.executable, "-c", code])
    shown, waiting = "", list(answers)
    while select.select([terminal], [], [], 60)[0]:
        try:
            data = os.read(terminal, 4096)
        except OSError:  # closed
            break
        shown += data.decode()
        if waiting and waiting[0][0] in shown:
            os.write(terminal, f"{waiting.pop(0)[1]}\n".encode())
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0, shown
    os.close(terminal)
    return shown


def test_a_terminal_stays_a_terminal():
    code = SCRIPT + f"answer = input('your name? '); breakpoint()\n    print(answer, {SECRET!r})\nprint('after')"
    shown = in_terminal(code, [("your name? ", "Ada"), ("(Pdb) ", "p answer * 2"), ("'AdaAda'", "c")])
    assert "raw ***\r\n" in shown
    assert "\x1b[1mbold ***\x1b[0m True True True" in shown
    assert "Ada ***\r\n" in shown
    assert shown.rstrip().endswith("after")
    assert SECRET not in shown.replace(f"print(answer, {SECRET!r})", "")


QUOTED = "sk-Zq9'hunterX77\"pw"


class Telling(Exception):
    """Says a field, and lets nobody set it."""

    def __init__(self, key: str) -> None:
        super().__init__()
        self._data = [types.SimpleNamespace(key=key)]

    @property
    def message(self) -> str:
        return self._data[0].key

    def __str__(self) -> str:
        return f"it is {self.message}"


def noted(secret: str) -> ValueError:
    error = ValueError("x")
    error.add_note(f"note {secret}")
    return error


ERRORS = {
    "attribute": Telling,
    "note": noted,
    "argv": lambda one: subprocess.CalledProcessError(3, ["sh", "-c", "exit 3", one]),
    "path": lambda one: FileNotFoundError(2, "No such file", f"/x/{one}"),
    "mapping": lambda one: ValueError({"k": [one]}),
    "bytes": lambda one: ValueError(one.encode()),
    "decoding": lambda one: UnicodeDecodeError("utf-8", one.encode(), 0, 1, one),
    "group": lambda one: ExceptionGroup(f"gr {one}", [ValueError(one), KeyError({"k": one})]),
    "group of one that tells": lambda one: ExceptionGroup("gr", [ExceptionGroup("in", [Telling(one)])]),
    "exit": SystemExit,
    "cancelled": CancelledError,
    "spelled twice": lambda one: ValueError(repr(json.dumps({"k": one}))),
}


@pytest.mark.parametrize("secret", [SECRET, QUOTED, "kéy'with-accents-1"])
@pytest.mark.parametrize("kind", ERRORS)
@pytest.mark.parametrize("caused", [False, True])
def test_no_exception_says_a_secret(kind, secret, caused):
    sent, left, made = [], None, ERRORS[kind](secret)
    outer = ValueError("outer") if caused else made
    outer.__cause__ = made if caused else None
    try:
        with copied_output(0, sent.append, Redactor(frozenset({secret}))):
            raise outer
    except BaseException as error:
        left = error
    whole = "".join(traceback.format_exception(left)) + str(left) + repr(left)
    assert "***" in whole or kind == "group of one that tells"
    (failure,) = (one for one in sent if isinstance(one, FailureRecord))
    assert failure.type == type(left).__name__ == type(outer).__name__
    text = whole + to_wire(sent) + str(sent)
    assert not any(form in text for form in (secret, repr(secret)[1:-1], ascii(secret)[1:-1]))
