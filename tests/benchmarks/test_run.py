"""Each benchmark runs, on next to nothing: one that crashes would be noticed by nobody until it is needed."""

import json
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

import page
import pytest
from measured import Growth, Row
from run import DOCS, SUITES, keep

BENCHMARKS = Path(__file__).with_name("run.py")
ON_RAY = ("whole", "ready", "streamed", "boosting", "recovery", "sweeps", "many", "growth")
"""Start clusters, and so do their peers."""
MINUTES = [pytest.mark.slow, pytest.mark.timeout(900)]
ROW = Row("epoch / plain", "ms", [3.0, 2.0, 5.0], [2.0, 2.0, 2.0], 1.5, [0.9, 0.92])


@pytest.mark.parametrize("suite", [pytest.param(name, marks=MINUTES if name in ON_RAY else []) for name in SUITES])
def test_a_benchmark_runs_and_prints_what_it_found(suite, tmp_path):
    command = [sys.executable, str(BENCHMARKS), suite, "--smoke"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "goal" in done.stdout or "exponent" in done.stdout


def test_a_ratio_is_the_median_of_the_pairs_and_shows_their_spread():
    assert "| 3 ms | 2 ms | 1.50 (1.00 to 2.50) | 1.5, met |" in page.text(kept("epochs", ROW))


def test_what_reaches_something_worse_is_not_compared_and_nothing_else_is_lost(tmp_path):
    as_good = Row("mlp", "ms", [3.0], [2.0], reached=[0.9, 0.92])
    worse = Row("gpt", "ms", [3.0], [2.0], reached=[0.5, 0.92])
    assert keep("epochs", [worse, as_good], tmp_path) == [worse.problem()]
    assert "gpt: rtrain reaches 0.5, its peer 0.92." in worse.problem()
    text = (tmp_path / "benchmarks.md").read_text()
    assert ("mlp" in text, "gpt" in text) == (True, False)


@pytest.mark.parametrize(("costs", "exponent"), [([1, 10, 100], 1), ([5, 5, 5], 0), ([1, 1, 100], 2)])
def test_an_exponent_is_that_of_the_steepest_part(costs, exponent):
    assert Growth("all", "s", "rows", [10, 100, 1000], costs).exponent() == pytest.approx(exponent)


def test_each_suite_has_its_place_on_the_page():
    assert [*page.TITLES] == [*SUITES]


def test_a_suite_replaces_what_it_found_before_and_no_other(tmp_path):
    (tmp_path / "figures").mkdir()
    growth = Growth("all", "s", "rows of a table", [10, 100], [1.0, 2.0])
    page.keep(tmp_path, "growth", "Curves.", [growth])
    for name in ("first", "second"):
        page.keep(tmp_path, "epochs", "Epochs.", [Row(name, "ms", [1.0])])
    text = (tmp_path / "benchmarks.md").read_text()
    assert ("first" in text, "second" in text) == (False, True)
    assert (tmp_path / "figures" / "growth-rows-of-a-table.svg").read_text().count("<circle") == 2


def test_the_page_is_the_one_of_the_numbers():
    numbers = json.loads((DOCS / "benchmarks.json").read_text())
    assert (DOCS / "benchmarks.md").read_text() == page.text(numbers)
    for name, figure in page.figures(numbers).items():
        assert (DOCS / "figures" / name).read_text() == figure


def kept(suite, *found):
    return {suite: {"about": "", "date": "", "machine": "", "found": [asdict(one) for one in found]}}
