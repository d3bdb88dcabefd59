"""Colours of errors, where there are some."""

import io
import re
import sys

import pytest

from rtrain.cli.usage.say_error import say_error


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize(
    ("variables", "coloured"),
    [({"TERM": "xterm-256color"}, True), ({"TERM": "dumb"}, False), ({"TERM": "xterm", "NO_COLOR": "1"}, False)],
)
def test_an_error_has_colours_where_a_terminal_shows_them(variables, coloured, monkeypatch):
    for name in ("NO_COLOR", "FORCE_COLOR", "COLORTERM", "TTY_COMPATIBLE"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("sys.stderr", Terminal())
    text = "error: no key 'x\x1b[2J'\n    rtrain fit a x=1 [red]\n                 ^^^\n  try: rtrain fit a y=1"
    say_error(text)
    shown = sys.stderr.getvalue()
    bare = re.sub(r"\x1b\[[\d;]*m", "", shown)
    assert bare == text.replace("\x1b", "\\x1b") + "\n"
    assert re.findall(r"\x1b\[[\d;]*m([^\x1b\n]+)\x1b\[0m", shown) == (
        ["error:", " " * 17 + "^^^", "  try:"] if coloured else []
    )


def test_an_error_in_a_pipe_is_plain(capsys):
    say_error("error: x")
    assert capsys.readouterr().err == "error: x\n"
