"""The lines of reports on terminals: few of long runs, whole columns, each fact once."""

import itertools
import random

import pytest

from rtrain.displays.shown_reports import MOST_LINES, SLOW_SECONDS, ReportColumns, Thinning
from rtrain.run_lines import Limits, told_once
from rtrain.runs.events import Event

NOON = 1_700_000_000.0
METRICS = {
    "train/epoch_loss": 1.399,
    "train/accuracy": 0.25,
    "val/loss": 1.157,
    "val/accuracy": 0.65,
    "val/f1": 0.0012345,
    "train/rows_per_second": 6267.0,
    "train/lr": 0.1,
}
JUDGED = {"monitor": "val/logloss", "mode": "min"}
BEST = {"monitor": "val/accuracy", "mode": "max", "value": 0.6}


def a_report(epoch, **changed):
    return Event.at(NOON, step=epoch * 20, epoch=epoch, metrics=METRICS | changed)


@pytest.fixture
def clock(monkeypatch):
    now = [1000.0]
    monkeypatch.setattr("rtrain.displays.shown_reports.time.monotonic", lambda: now[0])
    return now


@pytest.mark.parametrize("num_epochs", [1, 7, 99, 100, 101, 250, 1000, 4000, 100_000])
@pytest.mark.parametrize("known", [True, False])
def test_a_fast_run_shows_about_a_hundred_lines_its_first_and_its_last_one_among_them(num_epochs, known, clock):
    thinning = Thinning(Limits(num_epochs if known else None, None))
    shown = [epoch for epoch in range(1, num_epochs + 1) if thinning.shows(a_report(epoch))]
    last = thinning.last()
    shown += [] if last is None else [last.epoch]
    assert shown[0] == 1
    assert shown[-1] == num_epochs
    assert len(shown) <= (MOST_LINES + 3 if known else 5 * MOST_LINES)
    assert len(shown) >= min(num_epochs, MOST_LINES / 2)


def test_a_slow_run_shows_all_its_lines(clock):
    thinning = Thinning(Limits(1000, None))
    for epoch in range(1, 1001):
        clock[0] += SLOW_SECONDS
        assert thinning.shows(a_report(epoch))
    assert thinning.last() is None


@pytest.mark.parametrize("width", [30, 40, 60, 72, 80, 100, 120, 200])
def test_as_many_columns_are_shown_as_fit_and_stand_below_each_other(width):
    columns, numbers = ReportColumns(Limits(12, None)), random.Random(0)
    lines = [
        columns.line(a_report(epoch, **{"val/loss": numbers.random() * 10, "val/accuracy": 0.1}), BEST, width)
        for epoch in range(1, 13)
    ]
    assert all(len(line) <= width for line in lines)
    assert all(line.startswith(f"epoch {epoch:>2}/12") for epoch, line in enumerate(lines, 1))
    for name in ("step", *METRICS):
        places = {line.index(f"{name} ") for line in lines if f"{name} " in line}
        assert len(places) <= 1, name


def test_columns_give_way_in_the_order_that_the_docs_state():
    order = ["rows/s", "train/accuracy", "step", "val/f1", "val/loss", "train/epoch_loss", "val/accuracy", "epoch"]
    left = [
        [name for name in order if f"{name} " in f"{line} "]
        for width in range(160, 20, -1)
        if (line := ReportColumns(Limits(12, None)).line(a_report(3), BEST, width))
    ]
    assert [names for names, _ in itertools.groupby(left)] == [order[number:] for number in range(8)]


@pytest.mark.parametrize("mode", ["min", "max"])
def test_the_best_value_so_far_has_a_star(mode):
    values = [0.5, 0.4, 0.6, 0.6, 0.3, 0.7]
    columns = ReportColumns(Limits(9, None))
    best = {"monitor": "val/loss", "mode": mode, "value": 0.5}
    starred = [
        value
        for value in values
        if "*" in columns.line(Event.at(NOON, step=1, epoch=1, metrics={"val/loss": value}), best, 99)
    ]
    assert starred == ([0.4, 0.3] if mode == "min" else [0.6, 0.7])


@pytest.mark.parametrize(
    ("metrics", "told"),
    [
        ({"val/error": 0.2, "val/accuracy": 0.8}, ["val/accuracy"]),
        ({"val/merror": 0.2, "val/accuracy": 0.8, "test/accuracy": 0.7}, ["val/accuracy", "test/accuracy"]),
        ({"val/error": 0.3, "val/accuracy": 0.8}, ["val/error", "val/accuracy"]),
        ({"val/error": 0.2, "test/accuracy": 0.8}, ["val/error", "test/accuracy"]),
        ({"val/logloss": 0.17, "val/loss": 0.17}, ["val/loss"]),
        ({"val/rmse": 3.0, "val/loss": 9.0}, ["val/rmse", "val/loss"]),
        ({"val/auc": 1.0, "val/loss": 1.0}, ["val/auc", "val/loss"]),
        ({"train/loss": 0.3, "train/epoch_loss": 0.4, "val/loss": 0.3}, ["train/epoch_loss", "val/loss"]),
        ({"train/loss": 0.3, "train/lr": 0.1, "train/rows_per_second": 9.0}, ["train/loss"]),
        ({"val/accuracy": None, "val/error": None, "val/loss": None, "val/logloss": None}, None),
    ],
)
def test_each_fact_is_told_once(metrics, told):
    assert list(told_once(metrics)) == (list(metrics) if told is None else told)


def test_boosted_trees_are_told_by_the_name_that_judges_them():
    metrics = {"val/merror": 0.2, "val/mlogloss": 0.17, "val/accuracy": 0.8, "val/loss": 0.17}
    assert list(told_once(metrics, "round")) == ["val/mlogloss", "val/accuracy"]
    assert list(told_once(metrics)) == ["val/accuracy", "val/loss"]


def test_of_boosted_trees_the_metric_that_decides_stays_and_has_its_stars_before_anything_is_saved():
    columns = ReportColumns(Limits(100, None, "round"))
    names = [f"{split}/{name}" for split in ("test", "val") for name in ("auc", "logloss", "map")]
    lines = [
        columns.line(Event.at(NOON, step=at, epoch=at, metrics=dict.fromkeys(names, value)), JUDGED, 60)
        for at, value in enumerate((0.5, 0.4, 0.45), 1)
    ]
    assert [line.endswith("*") or "* " in line for line in lines] == [True, True, False]
    assert all("val/logloss" in line and len(line) <= 60 for line in lines)
