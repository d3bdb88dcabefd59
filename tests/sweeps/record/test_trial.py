"""What is said of a trial."""

import pytest

from rtrain.sweeps.record.trial import failure_text


@pytest.mark.parametrize(
    ("message", "text"),
    [
        ("no luck", "ValueError: no luck"),
        ("ValueError: no luck", "ValueError: no luck"),
        ("ValueError on worker 1: no luck", "ValueError on worker 1: no luck"),
        ("ValueErrors are bad", "ValueError: ValueErrors are bad"),
    ],
)
def test_the_class_of_an_error_stands_once_before_its_message(message, text):
    assert failure_text({"type": "ValueError", "message": message}) == text
