from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import dump_svmlight_file, load_breast_cancer

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
