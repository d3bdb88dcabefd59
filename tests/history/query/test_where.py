"""The language of --where."""

from __future__ import annotations

import time

import pytest
from made_runs import make_run, make_sweep

from rtrain.errors import ConfigError
from rtrain.history.index import list_rows
from rtrain.history.query.where import matching

NOW = time.time()


@pytest.fixture
def rows(project):
    root = project / "runs"
    torch = {"type": "torch", "optimizer": {"lr": 0.1}, "schedule": None, "amp": True}
    trees = {"type": "xgboost", "params": {"max_depth": 3}}
    make_run(root, "mlp", "000a", config={"trainer": torch, "run": {"tags": ["good", "v2"]}}, losses=(0.9, 0.5))
    make_run(root, "trees", "000b", config={"trainer": trees}, losses=(0.2,), timings_seconds={"total": 7200.0})
    make_run(root, "trees", "000c", config={"trainer": trees}, losses=(), status="failed", started_at=iso(NOW - 72_000))
    return list_rows()


def iso(timestamp):
    return time.strftime("%Y-%m-%dT%H:%M:%S+00:00", time.gmtime(timestamp))


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("", "abc"),
        ("trainer == torch", "a"),
        ("trainer = 'torch'", "a"),
        ("trainer != torch", "bc"),
        ("metrics.val/loss < 0.3", "b"),
        ("val/loss < 0.3", "b"),
        ("val/loss >= 0.5 and trainer == torch", "a"),
        ("lr > 0.05", "a"),
        ("lr == 1e-1", "a"),
        ("trainer.optimizer.lr == 0.1", "a"),
        ("config.trainer.optimizer.lr == 0.1", "a"),
        ("lr != 0.1", "bc"),
        ("lr == null", "bc"),
        ("lr != null", "a"),
        ("not lr < 1", "bc"),
        ("max_depth in [3, 4]", "bc"),
        ("max_depth not in [3, 4]", "a"),
        ("good in tags", "a"),
        ("'v2' in tags and not (status == failed)", "a"),
        ("v2 not in tags", "bc"),
        ("tags == good", "a"),
        ("tags ~ 'v*'", "a"),
        ("name ~ 'tr*s'", "bc"),
        ("name ~ 'ree'", "bc"),
        ("name ~ 'ree*'", ""),
        ("'re' in name", "bc"),
        ("tags", "a"),
        ("amp", "a"),
        ("amp == true", "a"),
        ("0.3 < best", "a"),
        ("best < 30%", "b"),
        ("status == failed or val/loss > 0.3", "ac"),
        ("status == failed or trainer == torch and val/loss > 0.9", "c"),
        ("(status == failed or trainer == torch) and val/loss > 0.4", "a"),
        ("seconds > 1h", "b"),
        ("seconds > 1h30min", "b"),
        ('seconds < "2 minutes"', "ac"),
        ("age < 2d", "c"),
        ('started > "3 days ago"', "c"),
        ('started < "3 days ago"', "ab"),
        ("started < 2026-11-02", "ab"),
        ("started >= yesterday", "c"),
        ("size < 1kB", "abc"),
        ("trainer > 3", ""),
        ("trainer < 'u'", "a"),
        ("kind == sweep", ""),
        ("path ~ '*trees*'", "bc"),
    ],
)
def test_what_expressions_mean(where, expected, rows, monkeypatch):
    monkeypatch.setattr(time, "time", lambda: NOW)
    assert "".join(sorted(row.id[-1] for row in matching(rows, where))) == expected


@pytest.mark.parametrize(
    ("where", "place", "said"),
    [
        ("lr >", 4, "a value is missing"),
        ("lr > 1 and", 10, "a condition is missing"),
        ("and lr", 0, "a condition is missing"),
        ("(lr > 1", 7, "a ) is missing"),
        ("lr > 1 lr", 7, "is not expected"),
        ("lr > 1 ; x", 7, "is not expected"),
        ("name == 'a", 8, "quotation mark"),
        ("learning_rate > 1", 0, "there is no field"),
        ("val/los > 1", 0, "did you mean: metrics.val/loss"),
        ("lr in 3", 6, "a list is missing"),
        ("status == faild", 10, "did you mean: failed"),
        ("kind != swep", 8, "did you mean: sweep"),
        ("status in [failed, kiled]", 19, "did you mean: killed"),
        ("lr in [1, 2", 11, "not closed"),
        ("started > 3d", 10, "3 days ago"),
        ("started > 3", 10, "3 days ago"),
        ("age > soon", 6, "2h"),
        ("lr > 3parsecs", 5, "is not a number"),
        ("1 <", 0, "a field is missing"),
        ("__import__('os')", 0, "there is no field"),
        ("name.__class__ == 1", 0, "there is no field"),
        ("(" * 60 + "lr", 50, "nested too deeply"),
        ("not " * 60 + "lr", 200, "nested too deeply"),
    ],
)
def test_what_is_wrong_is_named_with_its_place(where, place, said, rows):
    with pytest.raises(ConfigError) as error:
        matching(rows, where)
    first, source, carets = error.value.message.split("\n")[:3]
    assert source == f"    {where}"
    assert carets.index("^") - 4 == place
    assert said in str(error.value)
    assert first.startswith("--where: ")


def test_a_name_that_several_fields_end_with_lists_them(project):
    make_run(project / "runs", metrics={"val/f1": 1.0, "test/f1": 0.5})
    with pytest.raises(ConfigError, match=r"metrics\.test/f1 or metrics\.val/f1"):
        matching(list_rows(), "f1 > 0.7")


def test_fields_that_no_run_has_are_known_all_the_same(project):
    make_run(project / "runs")
    assert matching(list_rows(), "note == 'x' or error == ValueError") == []
    assert matching([], "whatever > 3") == []


def test_trials_are_asked_one_by_one(project):
    make_sweep(project / "runs", rates=(0.1, 0.4))
    assert [row.id for row in matching(list_rows(), "lr > 0.2")] == ["330826/1"]
