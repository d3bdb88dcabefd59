"""All events as one table."""

from __future__ import annotations

import csv
from types import SimpleNamespace

import pandas as pd
import pyarrow.parquet as pq
import pytest
from made_runs import NOON, make_run, make_sweep

from rtrain.errors import ConfigError, RtrainError
from rtrain.history.export import PLACE, export_events
from rtrain.history.index import list_rows
from rtrain.loggers.csv import Conf, Logger
from rtrain.runs.events import Event, EventLog, read_events
from rtrain.runs.run import Run


@pytest.fixture
def rows(project):
    run = make_run(project / "runs", losses=(0.9, 0.5))
    log = EventLog(run / "events.jsonl")
    log.go_back(10)
    log.append(Event(step=20, epoch=2, time=NOON.isoformat(), metrics={"val/loss": 0.4, "train/loss": float("nan")}))
    log.append(Event(step=30, epoch=3, time=NOON.isoformat(), metrics={}, values={"best_text": ["a", 1]}))
    log.close()
    make_run(project / "runs", short_id="0a1c", losses=()).joinpath("events.jsonl").unlink()
    make_sweep(project / "runs", rates=(0.1,))
    return list_rows()


def test_a_table_holds_each_step_as_it_was_done_last(rows, tmp_path):
    assert export_events(rows, tmp_path / "e.parquet") == 5
    found = [one for one in pq.read_table(tmp_path / "e.parquet").to_pylist() if one["run"] == "0a1b"]
    assert [(one["step"], one["val/loss"], one["train/loss"], one["best_text"]) for one in found] == [
        (10, 0.9, None, None),
        (20, 0.4, None, None),
        (30, None, None, '["a",1]'),
    ]


def test_both_formats_hold_the_same(rows, tmp_path):
    export_events(rows, tmp_path / "e.parquet")
    export_events(rows, tmp_path / "e.csv")
    table = pq.read_table(tmp_path / "e.parquet")
    with (tmp_path / "e.csv").open(newline="") as file:
        lines = list(csv.DictReader(file))
    assert list(lines[0]) == table.column_names
    assert [
        {name: "" if value is None else str(value) for name, value in one.items()} for one in table.to_pylist()
    ] == lines


def test_a_metric_called_like_a_column_has_one_of_its_own(project, tmp_path):
    run = make_run(project / "runs", losses=())
    names = ("run", "path", "step", "epoch", "time", "score")
    log = EventLog(run / "events.jsonl")
    metrics = {name: 100.0 + place for place, name in enumerate(names)}
    log.append(Event(step=7, epoch=3, time=NOON.isoformat(), metrics=metrics, values={}))
    log.append(Event(step=8, epoch=4, time=NOON.isoformat(), metrics={}, values={"time": "late"}))
    log.close()
    for name in ("e.parquet", "e.csv"):
        export_events(list_rows(), tmp_path / name)
    exported = [pd.read_parquet(tmp_path / "e.parquet"), pd.read_csv(tmp_path / "e.csv")]
    logger = Logger(Conf())
    logger.open(SimpleNamespace(folder=run), SimpleNamespace(ids={}, events=0))
    logger.log(list(Run.load(run).events()))
    others = [Run.load(run).frame(), pd.read_csv(run / "metrics.csv")]
    for frame, place in (*((one, PLACE) for one in exported), *((one, PLACE[2:]) for one in others)):
        assert "late" in "".join(map(str, frame.iloc[1]))
        assert len(set(frame.columns)) == len(frame.columns)
        assert (frame["step"].tolist(), frame["epoch"].tolist()) == ([7, 8], [3, 4])
        for name, value in metrics.items():
            assert float(frame[f"reported/{name}" if name in place else name][0]) == value


def test_the_events_of_a_run_are_those_of_run_events(rows, tmp_path):
    run = next(row for row in rows if row.id == "0a1b")
    export_events([run], tmp_path / "e.parquet")
    steps = pq.read_table(tmp_path / "e.parquet")["step"].to_pylist()
    assert steps == [event.step for event in read_events(run.path / "events.jsonl")]


def test_a_file_is_replaced_only_on_request_and_never_left_in_parts(rows, tmp_path):
    output = tmp_path / "e.csv"
    output.write_text("mine")
    with pytest.raises(ConfigError, match="--force"):
        export_events(rows, output)
    assert output.read_text() == "mine"
    export_events(rows, output, force=True)
    assert output.read_text().startswith("run,path,step")
    with pytest.raises(ConfigError, match=r"\.parquet or \.csv"):
        export_events(rows, tmp_path / "e.xlsx")
    with pytest.raises(RtrainError, match="No such file"):
        export_events(rows, tmp_path / "nowhere" / "e.csv")
    assert [path.name for path in tmp_path.glob("*e.csv*")] == ["e.csv"]
