from __future__ import annotations

import numpy as np
import pytest
from pydantic import TypeAdapter
from sklearn.datasets import dump_svmlight_file, load_breast_cancer

from rtrain.datasets.registry import confs, load_source
from rtrain.errors import DatasetError


def columns(dataset, split="train"):
    (found,) = dataset.splits[split].own_rows(0, 1)
    return found


def test_what_scikit_learn_writes_is_read_back(load, tmp_path):
    x, y = load_breast_cancer(return_X_y=True)
    for split, rows in (("train", slice(0, 400)), ("test", slice(400, None))):
        dump_svmlight_file(x[rows], y[rows], str(tmp_path / f"{split}.libsvm"), zero_based=False)
    dataset = load("libsvm", path=str(tmp_path))
    assert dataset.info.num_rows == {"train": 400, "test": 169}
    assert (dataset.info.task, dataset.info.class_names) == ("classification", ("0", "1"))
    assert dataset.info.feature_names[:2] == ("f0", "f1")
    np.testing.assert_allclose(columns(dataset)["x"], x[:400], rtol=1e-6)
    np.testing.assert_array_equal(columns(dataset, "test")["y"], y[400:])


def test_absent_columns_are_zero_or_missing(load, tmp_path):
    (tmp_path / "x.svm").write_text("1 1:2 3:4 # a comment\n0 2:5\n1 1:0\n")
    zero, missing = (
        columns(load("libsvm", path=str(tmp_path), absent=absent, split={"test": 0}))["x"]
        for absent in ("zero", "missing")
    )
    np.testing.assert_array_equal(zero, [[2, 0, 4], [0, 5, 0], [0, 0, 0]])
    np.testing.assert_array_equal(missing, [[2, np.nan, 4], [np.nan, 5, np.nan], [0, np.nan, np.nan]])


def test_the_first_column_and_their_number_can_be_given(load, tmp_path):
    (tmp_path / "x.svm").write_text("1 1:2\n0 2:5\n")
    dataset = load("libsvm", path=str(tmp_path), first_column="0", num_features=5, split={"test": 0})
    assert columns(dataset)["x"].tolist() == [[0, 2, 0, 0, 0], [0, 0, 5, 0, 0]]


def test_queries_make_ranking_and_stay_together(load, tmp_path):
    lines = [f"{row % 3} qid:{query} 1:{row} 2:{query}" for query in range(20) for row in range(4)]
    (tmp_path / "x.svm").write_text("\n".join(lines))
    dataset = load("libsvm", path=str(tmp_path), split={"val": 0.25})
    assert (dataset.info.task, dataset.info.columns) == ("ranking", ("group",))
    assert dataset.info.num_rows == {"train": 60, "val": 20}
    train, val = columns(dataset), columns(dataset, "val")
    assert not set(train["group"]) & set(val["group"])
    assert train["y"].dtype == np.float32
    np.testing.assert_array_equal(train["group"], train["x"][:, 1])


@pytest.mark.parametrize("name", ["x.svm", "x.train"])
def test_positions_are_not_left_out_in_silence(load, tmp_path, caplog, name):
    (tmp_path / name).write_text("".join(f"{row % 3} qid:{row // 4} 1:{row}\n" for row in range(20)))
    load("libsvm", path=str(tmp_path / name))
    assert "position" not in caplog.text
    (tmp_path / f"{name}.position").write_text("0\n" * 20)
    load("libsvm", path=str(tmp_path / name))
    assert f"{name}.position is not read" in caplog.text


def test_dense_rows_and_side_files_as_lightgbm_has_them(load, tmp_path):
    (tmp_path / "x.train").write_text("1\t0.5\t2\n0\t1.5\tnan\n2\t3\t4\n")
    (tmp_path / "x.train.weight").write_text("1\n0.5\n2\n")
    (tmp_path / "x.train.query").write_text("2\n1\n")
    (tmp_path / "x.train.init").write_text("0.1\n0.2\n0.3\n")
    dataset = load("libsvm", path=str(tmp_path / "x.train"), split={"test": 0})
    found = columns(dataset)
    assert set(dataset.info.columns) == {"weight", "group", "base_margin"}
    np.testing.assert_array_equal(found["x"], [[0.5, 2], [1.5, np.nan], [3, 4]])
    assert found["group"].tolist() == [0, 0, 1]
    assert found["weight"].tolist() == [1, 0.5, 2]
    assert found["y"].tolist() == [1, 0, 2]


@pytest.mark.parametrize(
    ("ending", "text", "message"),
    [
        ("weight", "1\n-2\n1\n", r"weight is -2\.0 in row 2\.\nA weight must be 0 or more"),
        ("weight", "1\n1\nnan\n", "weight is nan in row 3"),
        ("weight", "1\n2\n", "there are 3 rows of inputs, but 2 of weight"),
        ("weight", "1 2\n1 2\n1 2\n", "weight is of type float32 and shape 3 x 2"),
        ("init", "1 2\n1 inf\n1 2\n", r"base_margin is \[ 1\. inf\] in row 2"),
        ("init", "1\n", "there are 3 rows of inputs, but 1 of base_margin"),
    ],
)
def test_side_files_are_checked_in_training_and_in_evaluation(load, open_rows, tmp_path, ending, text, message):
    file = tmp_path / "x.svm"
    file.write_text("1\t0.5\t2\n0\t1.5\t1\n2\t3\t4\n")
    dataset = load("libsvm", path=str(file), split={"test": 0})
    file.with_name(f"x.svm.{ending}").write_text(text)
    for read in (lambda: load("libsvm", path=str(file)), lambda: open_rows("libsvm", dataset, True, path=str(file))):
        with pytest.raises(DatasetError, match=rf"x\.svm: {message}"):
            read()
    if ending == "weight":
        assert len(open_rows("libsvm", dataset, path=str(file)).x) == 3, "a prediction doesn't look at weights"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the file is empty"),
        ("1 1:2\n0 2:x\n", r"x\.svm: line 2 is not 'label column:value ...': 0 2:x"),
        ("1 1:2\n0 2:3\n1 1e5:2\n", r"x\.svm: line 3 is not 'label column:value ...': 1 1e5:2"),
        ("a,b,c\n1,2,3\n", r"x\.svm: .*without a header"),
        ("1 1:2\n1 2:3\n", "nothing to learn"),
    ],
)
def test_a_malformed_file_is_named(load, tmp_path, text, message):
    (tmp_path / "x.svm").write_text(text)
    with pytest.raises(DatasetError, match=f"(?s){message}"):
        load("libsvm", path=str(tmp_path))


def test_queries_that_do_not_add_up_are_an_error(load, tmp_path):
    (tmp_path / "x.svm").write_text("1 1:2\n0 2:3\n")
    (tmp_path / "x.svm.query").write_text("3\n")
    with pytest.raises(DatasetError, match="has 2 rows, but the rows of its queries add up to 3"):
        load("libsvm", path=str(tmp_path))
    (tmp_path / "x.svm.query").unlink()
    with pytest.raises(DatasetError, match="needs to know which rows belong to one query"):
        load("libsvm", path=str(tmp_path), task="ranking")


def lines_of(x, y=None, first=0, sign=" "):
    """Return sparse lines without the columns that are 0; with ``first`` None dense ones."""
    rows = []
    for row, values in enumerate(x):
        label = [] if y is None else [str(y[row])]
        named = (
            [f"{column + first}:{value:g}" for column, value in enumerate(values) if value] if first is not None else []
        )
        rows.append(sign.join([*label, *(named if first is not None else [f"{value:g}" for value in values])]))
    return "\n".join(rows) + "\n"


@pytest.mark.parametrize("with_labels", [False, True])
@pytest.mark.parametrize("labels", ["as trained", "unknown", "none"])
@pytest.mark.parametrize("gone", ["no column", "the first", "the last", "all but one"])
@pytest.mark.parametrize("first", [0, 1, None])
def test_new_rows_have_the_columns_of_training(load, open_rows, tmp_path, first, gone, labels, with_labels):
    draw = np.random.default_rng(0)
    x, y = draw.integers(1, 9, (12, 4)) / 4, np.arange(12) % 3
    (tmp_path / "train.svm").write_text(lines_of(x, y, first))
    dataset = load("libsvm", path=str(tmp_path / "train.svm"))
    x = x * {"no column": [1, 1, 1, 1], "the first": [0, 1, 1, 1], "the last": [1, 1, 1, 0]}.get(gone, [0, 1, 0, 0])
    given = {"as trained": y, "unknown": ["?"] * 12 if first is None or not with_labels else [7] * 12, "none": None}[
        labels
    ]
    (tmp_path / "new.svm").write_text(lines_of(x, given, first))
    if labels == "unknown" and with_labels:
        with pytest.raises(DatasetError, match=r"new\.svm"):
            open_rows("libsvm", dataset, with_labels, path=str(tmp_path / "new.svm"))
        return
    found = open_rows("libsvm", dataset, with_labels, path=str(tmp_path / "new.svm"))
    np.testing.assert_array_equal(found.x, x)
    if with_labels and labels == "as trained":
        np.testing.assert_array_equal(found.y, y)
    else:
        assert found.y is None


@pytest.mark.parametrize("absent", ["zero", "missing"])
def test_absent_columns_of_new_rows_are_what_they_were_in_training(load, open_rows, tmp_path, absent):
    (tmp_path / "x.svm").write_text("1 1:2 3:4\n0 2:5\n" * 5)
    dataset = load("libsvm", path=str(tmp_path), absent=absent, split={"test": 0})
    np.testing.assert_array_equal(open_rows("libsvm", dataset, path=str(tmp_path)).x, columns(dataset)["x"])


def test_new_rows_in_several_files_keep_their_order_and_their_queries_apart(load, tmp_path):
    for name in ("a", "b"):
        (tmp_path / f"{name}.svm").write_text("".join(f"{row % 3} qid:{row // 3} 1:{row} 2:1\n" for row in range(9)))
    trained = load("libsvm", path=str(tmp_path / "a.svm"), split={"val": 0.4})
    conf = TypeAdapter(confs()["libsvm"]).validate_python({"path": str(tmp_path)})
    reader = load_source("libsvm").open_rows(conf, trained.encoding)
    chunks = [chunk for piece in reader.pieces for chunk in reader.read(piece, True)]
    assert np.concatenate([chunk.x[:, 0] for chunk in chunks]).tolist() == [*range(9), *range(9)]
    assert len(np.unique(np.concatenate([chunk.group for chunk in chunks]))) == 6
    assert [chunk.kept["group"].tolist() for chunk in chunks] == [[0, 0, 0, 1, 1, 1, 2, 2, 2]] * 2


def test_a_new_line_with_a_column_that_training_did_not_have_is_named(load, open_rows, tmp_path):
    (tmp_path / "x.svm").write_text("1 1:2 3:4\n0 2:5\n" * 5)
    dataset = load("libsvm", path=str(tmp_path / "x.svm"))
    (tmp_path / "new.svm").write_text("1 1:2\n0 4:5\n")
    with pytest.raises(DatasetError, match=r"new\.svm: line 2 names column 4, but the columns are 1 to 3"):
        open_rows("libsvm", dataset, path=str(tmp_path / "new.svm"))


def test_columns_in_any_order_are_read_as_in_ascending_order(load, tmp_path):
    (tmp_path / "x.svm").write_text("1 qid:1 3:4 1:2 # comment\n\n0 qid:2 2:5\n1 qid:2 3:1 2:7\n")
    (tmp_path / "sorted.svm").write_text("1 qid:1 1:2 3:4\n0 qid:2 2:5\n1 qid:2 2:7 3:1\n")
    one, other = (
        columns(load("libsvm", path=str(tmp_path / name), split={"test": 0})) for name in ("x.svm", "sorted.svm")
    )
    assert one.keys() == other.keys()
    for name in one:
        np.testing.assert_array_equal(one[name], other[name])


@pytest.mark.parametrize(
    ("text", "keys", "message"),
    [
        ("1 1:2\n0 2:1 2:3\n", {}, r"x\.svm: line 2 names column 2 twice"),
        ("1 1:2\n0 0:1 2:3\n", {"first_column": "1"}, r"x\.svm: line 2 names column 0, but the columns are 1 to 2"),
        ("1 1:2\n0 2:1 7:3\n", {"num_features": 3}, r"x\.svm: line 2 names column 7, but the columns are 1 to 3"),
        ("1\n0\n", {}, r"x\.svm: no line names a column"),
    ],
)
def test_a_column_that_can_not_be_is_named(load, tmp_path, text, keys, message):
    (tmp_path / "x.svm").write_text(text)
    with pytest.raises(DatasetError, match=message):
        load("libsvm", path=str(tmp_path), **keys)
