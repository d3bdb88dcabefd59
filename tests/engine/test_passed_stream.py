"""A stream that stands in the place of another one."""

import io

from rtrain.engine.passed_stream import PassedStream


def test_a_stream_looks_like_the_one_that_it_stands_for(tmp_path):
    with (tmp_path / "out").open("w", encoding="latin-1", errors="replace") as stream:
        passed = PassedStream(stream)
        for one in ("encoding", "errors", "closed"):
            assert getattr(passed, one) == getattr(stream, one)
        assert (passed.fileno(), passed.isatty()) == (stream.fileno(), False)
        stream.write("text")
        passed.flush()
        assert (tmp_path / "out").read_text() == "text"
    assert passed.closed
    assert isinstance(passed, io.TextIOBase)
