"""Queries of any type, whose rows lie anywhere in the data: both libraries rank them as if they were sorted."""

import datetime

import boosting_runs
import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv, parquet

from rtrain.config.session import Session
from rtrain.runs.observer import SilentObserver
from rtrain.schemas import schemas
from rtrain.trainers.loops.boosting.rounds import group_sizes
from rtrain.training.preparation import load_dataset

ROWS, QUERIES = 240, 24
RNG = np.random.default_rng(0)
QUERY = RNG.integers(0, QUERIES, ROWS)
X = RNG.normal(size=(ROWS, 3)).astype("float32")
GRADES = np.clip(np.round(X[:, 0] + 1), 0, 3)
KINDS = {
    "texts": [f"query {QUERIES - one}" for one in QUERY],
    "numbers that descend": (-7 * QUERY).tolist(),
    "fractions": (QUERY / 4).tolist(),
    "whole numbers as floats": (100.0 * QUERY).tolist(),
    "days": [datetime.date(2020, 1, 1) + datetime.timedelta(days=int(one)) for one in QUERY],
    "yes or no": (QUERY % 2 == 0).tolist(),
}


def arrays_of_texts():
    return {"x": X, "y": GRADES, "group": np.array(KINDS["texts"])}


def dataset_of(words):
    with Session("xgboost", [*words, "dataset.seed=0"], schemas(), None) as session:
        return load_dataset(session.check(), SilentObserver(), None)


def table_words(folder, kind, ending):
    table = pa.table({"a": X[:, 0], "b": X[:, 1], "c": X[:, 2], "grade": GRADES, "query": KINDS[kind]})
    path = folder / f"rows.{ending}"
    csv.write_csv(table, path) if ending == "csv" else parquet.write_table(table, path)
    return [f"dataset={ending}", f"dataset.path={path}", "dataset.label=grade", "dataset.group=query"]


def check_queries(dataset, keys):
    """Compare the queries of the splits with those that went in, told from the features of their rows."""
    names = dict(zip(X[:, 0].tolist(), keys, strict=True))
    for split in dataset.splits.values():
        group, x = split.columns["group"], split.columns["x"]
        assert len(group_sizes(group)) == len(np.unique(group))
        found = {}
        for number, value in zip(group.tolist(), x[:, 0].tolist(), strict=True):
            found.setdefault(number, set()).add(names[value])
        assert all(len(one) == 1 for one in found.values())
        assert len({next(iter(one)) for one in found.values()}) == len(found)


@pytest.mark.parametrize("trainer", ["xgboost", "lightgbm"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_rows_of_a_query_are_brought_together_whatever_it_is_called(trainer, kind, ending, tmp_path):
    words = [*table_words(tmp_path, kind, ending), "dataset.task=ranking", "dataset.split.test=0.5"]
    dataset = dataset_of(words)
    check_queries(dataset, KINDS[kind])
    channel = boosting_runs.fit(trainer, tmp_path / "run", dataset, num_boost_round=2)
    assert channel.metrics["test/ndcg@5"] > 0


@pytest.mark.parametrize("trainer", ["xgboost", "lightgbm"])
@pytest.mark.parametrize("source", ["libsvm", "python"])
def test_queries_of_other_sources_are_brought_together(trainer, source, tmp_path):
    if source == "libsvm":
        lines = [
            f"{int(grade)} qid:{query} 1:{row[0]!s} 2:{row[1]!s} 3:{row[2]!s}"
            for grade, query, row in zip(GRADES, QUERY, X.tolist(), strict=True)
        ]
        (tmp_path / "rows.svm").write_text("\n".join(lines))
        words = ["dataset=libsvm", f"dataset.path={tmp_path}/rows.svm"]
    else:
        words = ["dataset=python", f"dataset.function={__name__}:arrays_of_texts", f"allow=[{__name__}]"]
    dataset = dataset_of(words)
    assert dataset.info.task == "ranking"
    check_queries(dataset, QUERY.tolist())
    channel = boosting_runs.fit(trainer, tmp_path / "run", dataset, num_boost_round=2)
    assert channel.metrics["test/ndcg@5"] > 0
