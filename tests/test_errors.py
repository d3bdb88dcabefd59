"""What is shown of a message, whatever is in it."""

import pytest

from rtrain.errors import MOST_CHARACTERS, MOST_LINES, first_line, in_brief, said_by


@pytest.mark.parametrize("num_lines", [1, 2, MOST_LINES, MOST_LINES + 1, 100])
@pytest.mark.parametrize("length", [1, MOST_CHARACTERS])
def test_of_a_long_message_its_beginning_and_its_end_are_shown(num_lines, length):
    lines = [f"{number} {'x' * length}" for number in range(num_lines)]
    shown = in_brief("\n".join(lines))
    assert shown.split()[0] == "0"
    assert shown.endswith(lines[-1][-50:])
    assert len(shown.split("\n")) <= MOST_LINES + 1
    assert len(shown) <= MOST_CHARACTERS + 100
    assert ("left out" in shown) == (shown != "\n".join(lines))


@pytest.mark.parametrize("colour", ["\x1b[1m", "\\x1b[1m", "\x1b[0;31m", "\x1b[m"])
def test_a_message_is_shown_without_its_colours(colour):
    assert said_by(ValueError(f"{colour}bad\x1b[0m shape")) == "bad shape"


@pytest.mark.parametrize(
    ("said", "line"),
    [
        (
            "Error(s) in loading state_dict:\n\n\tsize mismatch for a.weight\n\tmore",
            "Error(s) in loading state_dict: size",
        ),
        ("fails:", "fails:"),
        ("it is\nmore", "it is"),
        ("", "ValueError"),
    ],
)
def test_a_line_that_announces_another_one_is_told_with_it(said, line):
    found = first_line(ValueError(said))
    assert found.startswith(line)
    assert "more" not in found
