from __future__ import annotations

import re
import sqlite3

import numpy as np
import pytest

from rtrain.errors import DatasetError


@pytest.fixture
def url(tmp_path):
    with sqlite3.connect(tmp_path / "x.db") as database:
        database.execute("CREATE TABLE flowers (id INTEGER, length REAL, width REAL, kind TEXT)")
        rows = [(i, i / 2, None if i == 7 else i, "rose" if i % 2 else "lily") for i in range(50)]
        database.executemany("INSERT INTO flowers VALUES (?, ?, ?, ?)", rows)
    database.close()
    return f"sqlite:///{tmp_path / 'x.db'}"


def test_a_query_with_arguments(load, url):
    query = "SELECT length, id, kind FROM flowers WHERE id < :most ORDER BY id"
    dataset = load("sql", url=url, query=query, arguments={"most": 20}, label="kind", split={"test": 0})
    assert (dataset.info.class_names, dataset.info.feature_names) == (("lily", "rose"), ("length", "id"))
    np.testing.assert_array_equal(dataset.splits["train"].columns["x"][:, 1], np.arange(20))


def test_a_table_by_name_and_a_query_per_split(load, url):
    assert sum(load("sql", url=url, query="flowers", label="kind", on_missing="mean").info.num_rows.values()) == 50
    queries = {"train": "SELECT * FROM flowers WHERE id < 40", "test": "SELECT * FROM flowers WHERE id >= 40"}
    info = load("sql", url=url, query=queries, label="length", features=["id"]).info
    assert (info.task, info.num_rows) == ("regression", {"train": 40, "test": 10})


def test_new_rows_are_those_of_another_query_and_need_no_label(load, open_rows, url):
    keys = {"url": url, "label": "kind"}
    dataset = load("sql", **keys, query="SELECT length, id, kind FROM flowers", split={"test": 0})
    assert open_rows("sql", dataset, **keys, query="SELECT id AS length, id, 7 AS more FROM flowers").kept["more"]
    query = "SELECT kind, id, length FROM flowers WHERE id >= :least ORDER BY id DESC"
    found = open_rows("sql", dataset, with_labels=True, **keys, query=query, arguments={"least": 46})
    assert found.x.tolist() == [[24.5, 49], [24, 48], [23.5, 47], [23, 46]]
    assert found.y.tolist() == [1, 0, 1, 0]
    with pytest.raises(DatasetError, match="no column 'length', which the model takes"):
        open_rows("sql", dataset, **keys, query="SELECT id FROM flowers")


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"query": "flower"}, r"no such table: flower\n.*Tables: flowers"),
        ({"query": "SELECT petals FROM flowers"}, "no such column: petals"),
        ({"query": "SELECT * FROM flowers WHERE id < 0"}, "returns no rows"),
        ({"label": "kid"}, "did you mean: dataset.label=kind"),
        ({"on_missing": "error"}, r"values are missing in 'width' 1 times \(first in row 8\)"),
        ({"url": "sqlite:////no/such/folder/x.db"}, "does not exist"),
        ({"url": "nosuchdatabase://x"}, "does not know the database 'nosuchdatabase'"),
        ({"url": "postgresql+pg8000://me:secret@localhost/x"}, "needs the package 'pg8000'"),
        ({"url": "what is this"}, "not a valid SQLAlchemy URL"),
    ],
)
def test_mistakes_are_explained_and_passwords_are_not_shown(load, url, keys, message):
    with pytest.raises(DatasetError, match=message) as caught:
        load("sql", **{"url": url, "query": "flowers", "label": "kind", **keys})
    assert "secret" not in str(caught.value)


STATEMENTS = [
    "DELETE FROM flowers",
    "UPDATE flowers SET length = 0",
    "DROP TABLE flowers",
    "ALTER TABLE flowers RENAME COLUMN kind TO other",
    "CREATE TABLE more AS SELECT * FROM flowers",
]


@pytest.mark.parametrize("statement", STATEMENTS)
def test_a_statement_that_returns_no_table_is_refused_and_changes_nothing(load, url, statement):
    with pytest.raises(DatasetError, match=rf"a statement that returns no table\.\nThe query: {re.escape(statement)}$"):
        load("sql", url=url, query=statement, label="kind")
    assert sum(load("sql", url=url, query="flowers", label="kind", on_missing="mean").info.num_rows.values()) == 50
    with pytest.raises(DatasetError, match=r"Tables: flowers$"):
        load("sql", url=url, query="more", label="kind")


@pytest.mark.parametrize("name", ["order", "my table", "a;b", 'with"quote', "select", "UPPER", "2024-rows", "größe"])
@pytest.mark.parametrize("kind", ["TABLE", "VIEW"])
def test_a_table_may_have_any_name(load, url, name, kind):
    quoted = '"' + name.replace('"', '""') + '"'
    with sqlite3.connect(url.removeprefix("sqlite:///")) as database:
        database.execute(f"CREATE {kind} {quoted} AS SELECT id, length, kind FROM flowers")
    database.close()
    assert sum(load("sql", url=url, query=name, label="kind").info.num_rows.values()) == 50


def test_a_table_may_be_named_with_its_schema(load, url):
    assert sum(load("sql", url=url, query="main.flowers", label="kind", drop=["width"]).info.num_rows.values()) == 50


@pytest.mark.parametrize("values", [[1, 2, 3], (4, 5), [7]])
@pytest.mark.parametrize("word", ["IN", "in", "NOT IN"])
def test_a_list_is_for_in(load, url, values, word):
    query = f"SELECT id, length FROM flowers WHERE id {word} :some AND id < :most ORDER BY id"
    found = load("sql", url=url, query=query, arguments={"some": values, "most": 20}, label="length", split={"test": 0})
    expected = [one for one in range(20) if (one in values) == (word != "NOT IN")]
    assert found.splits["train"].columns["x"][:, 0].tolist() == expected


@pytest.mark.parametrize("columns", ["*", "a.id, b.id, a.length, a.kind", "a.*, b.kind, 1 AS kind"])
def test_two_columns_of_one_name_are_refused_with_the_fix(load, open_rows, url, columns):
    keys = {"url": url, "label": "kind", "query": f"SELECT {columns} FROM flowers a JOIN flowers b ON a.id = b.id"}
    dataset = load("sql", url=url, label="kind", query="SELECT length, id, kind FROM flowers")
    with pytest.raises(DatasetError, match=r"there are \d columns '\w+'\.\nName the columns in the query, .* AS"):
        load("sql", **keys)
    with pytest.raises(DatasetError, match=r"there are \d columns '\w+'\.\nName the columns in the query, .* AS"):
        open_rows("sql", dataset, **keys)
