"""What user code prints and what libraries log, as records of a worker."""

import logging
import sys

import pytest

from rtrain.engine.log_capture import copied_output, library_news_unshown


class OfStderr(logging.StreamHandler):
    """Writes to the stream that is stderr now, as Ray's handler does."""

    @property
    def stream(self):
        return sys.stderr

    @stream.setter
    def stream(self, _):
        pass


@pytest.fixture
def log():
    """Log a message of a file, through a handler as that of Ray's workers."""
    root, handler = logging.getLogger(), OfStderr()
    before = root.level
    root.addHandler(handler)
    root.setLevel(logging.INFO)
    yield lambda level, path: root.handle(root.makeRecord("any", level, path, 1, "message", (), None))
    root.removeHandler(handler)
    root.setLevel(before)


@pytest.mark.parametrize(
    ("level", "path", "printed"),
    [
        (logging.INFO, "/env/lib/site-packages/jax/_src/distributed.py", False),
        (logging.WARNING, "/env/lib/site-packages/jax/_src/distributed.py", True),
        (logging.INFO, "/home/user/project/loop.py", True),
    ],
)
def test_news_of_libraries_is_logged_and_not_shown(log, level, path, printed):
    sent = []
    with copied_output(0, sent.append), library_news_unshown():
        log(level, path)
        print("own")
    assert [one.printed for one in sent if "message" in one.text] == [printed]
    assert [one.printed for one in sent if one.text == "own"] == [True]


def test_without_a_stream_output_is_in_the_records_alone(capsys):
    sent = []
    with copied_output(0, sent.append, shows=False):
        print("own")
        assert sys.stdout.encoding
    assert "".join(one.text for one in sent) == "own\n"
    assert capsys.readouterr().out == ""
