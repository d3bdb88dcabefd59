"""Which lines of a traceback are shown: the user's own, and nothing that a file may not be read for."""

import json
import os

import pytest

from rtrain.config.diagnostics.own_lines import own_lines, render_lines
from rtrain.config.secrets.redact import Redactor
from rtrain.errors import said_by

CODE = """
import json

def outer(how):
    return how()

def simple():
    known = {"a": 1}
    return known["b"] + 1

def whole():
    raise ValueError("no")

def umlaut():
    größe = {}; return größe["ä"] + größe["b"]

def several():
    return max(
        {}["b"],
        1,
    )

def caused():
    try:
        simple()
    except KeyError as error:
        raise RuntimeError("wrapped") from error

def again():
    return again()

def in_python():
    return json.loads("{")

def secret():
    return "opensesame" + {}["token"]

def literal():
    password = "hunter22" + {}["b"]

def long():
    return ["{}"] and {}["bbb"]

def quoted():
    try:
        simple()
    except KeyError as error:
        raise RuntimeError("failed: KeyError: 'b'") from error

def deep():
    try:
        caused()
    except RuntimeError as error:
        raise TypeError from error

def handled():
    try:
        simple()
    except KeyError:
        raise RuntimeError("by itself")

def secret_cause():
    raise RuntimeError("wrapped") from ValueError("got opensesame\\x1b")
""".replace('"{}"', '", ".join(' + '"' + "x" * 300 + '")')


@pytest.fixture
def screen(tmp_path, monkeypatch):
    """Return what is shown of a function of the user's that fails."""
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "own.py"
    path.write_text(CODE)

    def shown(name, redact=Redactor(), path=path):  # noqa: B008
        there = {}
        exec(compile(CODE, str(path), "exec"), there)
        try:
            there["outer"](there[name])
        except Exception as error:
            error.__traceback__ = error.__traceback__.tb_next  # without this file
            return render_lines(own_lines(error, redact))

    return shown


SCREENS = {
    "simple": """
  --> own.py:9:12 in simple
  >    9 | return known["b"] + 1
         |        ^^^^^^^^^^
""",
    "whole": """
  --> own.py:12 in whole
  >   12 | raise ValueError("no")
""",
    "umlaut": """
  --> own.py:15:24 in umlaut
  >   15 | größe = {}; return größe["ä"] + größe["b"]
         |                    ^^^^^^^^^^
""",
    "several": """
  --> own.py:19:9 in several
  >   19 | {}["b"],
         | ^^^^^^^
""",
    "handled": """
  --> own.py:60 in handled
  >   60 | raise RuntimeError("by itself")
""",
    "again": """
  --> own.py:30:12 in again
  >   30 | return again()
         |        ^^^^^^^
""",
    "in_python": """
  --> own.py:33:12 in in_python
  >   33 | return json.loads("{")
         |        ^^^^^^^^^^^^^^^
""",
}


@pytest.mark.parametrize("name", SCREENS)
def test_the_innermost_own_line_comes_first_with_carets_where_they_say_something(screen, name):
    lines = screen(name)
    expected = SCREENS[name].strip("\n").split("\n")
    assert lines[: len(expected)] == expected
    assert lines[len(expected) : len(expected) + 2] == ["  --> own.py:5:12 in outer", "  >    5 | return how()"]


CHAINS = {
    "caused": """
caused by KeyError: 'b'
  --> own.py:9:12 in simple
  >    9 | return known["b"] + 1
         |        ^^^^^^^^^^
  --> own.py:25 in caused
  >   25 | simple()
  --> own.py:27 in caused
  >   27 | raise RuntimeError("wrapped") from error
  more frames: 1 of your code
""",
    "quoted": """
  --> own.py:9:12 in simple
  >    9 | return known["b"] + 1
         |        ^^^^^^^^^^
  --> own.py:46 in quoted
  >   46 | simple()
  --> own.py:48 in quoted
  >   48 | raise RuntimeError("failed: KeyError: 'b'") from error
  more frames: 1 of your code
""",
    "deep": """
caused by RuntimeError: wrapped
caused by KeyError: 'b'
  --> own.py:9:12 in simple
  >    9 | return known["b"] + 1
         |        ^^^^^^^^^^
  --> own.py:25 in caused
  >   25 | simple()
  --> own.py:27 in caused
  >   27 | raise RuntimeError("wrapped") from error
  more frames: 3 of your code
""",
}


@pytest.mark.parametrize("name", CHAINS)
def test_an_error_that_was_raised_from_another_shows_both_messages_and_the_lines_of_the_innermost(screen, name):
    assert screen(name) == CHAINS[name].strip("\n").split("\n")


def test_the_message_of_a_cause_shows_no_secret_and_nothing_that_a_terminal_obeys(screen):
    assert screen("secret_cause", Redactor(frozenset({"opensesame"})))[0] == "caused by ValueError: got *** "


def test_frames_of_others_and_of_a_recursion_are_counted_in_one_line(screen):
    assert screen("in_python")[-1] == "  more frames: 3 of Python"
    assert len(screen("again")) < 10
    assert "of your code" in screen("again")[-1]


def test_secrets_are_masked_those_of_the_config_and_those_in_the_source(screen):
    told = "\n".join(screen("secret", Redactor(frozenset({"opensesame"}))))
    assert "opensesame" not in told
    assert "in secret" in told
    assert "hunter22" not in "\n".join(screen("literal"))


def test_a_long_line_is_cut_around_the_carets(screen):
    _, line, carets, *_ = screen("long")
    assert len(line) < 130
    start = carets.index("^")
    assert line[start:].startswith('{}["bbb"]')
    assert carets[start:] == "^" * len('{}["bbb"]')


@pytest.mark.parametrize("kind", ["missing", "folder", "pipe", "binary", "short"])
def test_a_source_that_is_no_text_is_named_and_not_shown(screen, tmp_path, kind):
    path = tmp_path / "other.py"
    if kind == "folder":
        path.mkdir()
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind != "missing":
        path.write_bytes(b"\0" * 1000 if kind == "binary" else b"one line")
    assert screen("simple", path=path)[0] == "  --> other.py:9 in simple"
    assert not any("|" in line for line in screen("simple", path=path))


def test_what_a_terminal_obeys_is_taken_out_of_a_line(screen, tmp_path):
    path = tmp_path / "other.py"
    path.write_bytes(b"\n" * 8 + b"\x1b]0;title\x07\x9b \xff return\n")
    line = next(line for line in screen("simple", path=path) if "return" in line)
    assert line.isprintable()


def test_without_own_lines_the_last_one_of_others_is_shown():
    with pytest.raises(ValueError, match="Expecting") as caught:
        json.loads("{")
    error = caught.value
    error.__traceback__ = error.__traceback__.tb_next  # without this file
    facts = own_lines(error)
    assert not facts["own"]
    assert "in raw_decode" in render_lines(facts)[0]


def test_the_members_of_a_group_are_told_as_its_causes():
    found = own_lines(ExceptionGroup("several", [KeyError("a"), ValueError("b")]))
    assert found["causes"] == ["KeyError: 'a'", "ValueError: b"]


class Unreadable(Exception):
    def __str__(self):
        raise RuntimeError("no text")


def test_an_error_that_can_not_say_its_text_is_told_anyway():
    error = Unreadable()
    assert said_by(error) == "its text can't be read: its __str__ raised RuntimeError"
    assert own_lines(error)["causes"] == []
