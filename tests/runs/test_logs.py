"""What workers print, as lines to be shown."""

from pathlib import Path

import pytest

from rtrain.runs.logs import OutputLines
from rtrain.runs.observer import SilentObserver
from rtrain.runs.recorder import Recorder
from rtrain.runs.records import LogRecord
from rtrain.testing.workers import make_manifest


def fed(lines, *texts, rank=0):
    return [lines.feed(LogRecord(rank=rank, text=text)) for text in texts]


def test_lines_are_whole_however_they_come():
    lines = OutputLines(all_ranks=False)
    assert fed(lines, "one\ntw", "o", "\n\nthree") == ["one", "", "two\n"]
    assert list(lines.rest()) == ["three"]
    assert list(lines.rest()) == []


def test_of_a_progress_bar_its_last_state_is_a_line():
    lines = OutputLines(all_ranks=False)
    assert fed(lines, "\r 0%", "\r50%\r", "100%\n", "next\r", "\n") == ["", "", "100%", "", "next"]


def test_colours_are_left_out():
    assert fed(OutputLines(all_ranks=False), "\x1b[1;31mred\x1b[0m\n") == ["red"]


@pytest.mark.parametrize("all_ranks", [True, False])
def test_ranks_are_told_apart_where_all_are_shown(all_ranks):
    lines = OutputLines(all_ranks=all_ranks)
    assert fed(lines, "a\nb", rank=0) + fed(lines, "c\n", rank=1) == (["[0] a", "[1] c"] if all_ranks else ["a", ""])
    assert list(lines.rest()) == (["[0] b"] if all_ranks else ["b"])


def test_a_traceback_is_left_to_the_error_of_the_run():
    assert OutputLines(all_ranks=True).feed(LogRecord(rank=0, text="Traceback\n", printed=False)) == ""


def test_a_recorder_writes_what_is_printed_and_shows_the_lines(tmp_path, capsys):
    recorder = Recorder(tmp_path, make_manifest(), SilentObserver(), output=OutputLines(all_ranks=False))
    for text, printed in (("shown\nun", True), ("ended", True), ("traceback\n", False)):
        recorder.accept(LogRecord(rank=0, text=text, printed=printed))
    assert capsys.readouterr().out == "shown\n"
    recorder.close()
    assert capsys.readouterr().out == "unended\n"
    assert Path(tmp_path / "logs" / "worker-0.log").read_text() == "shown\nunendedtraceback\n"
