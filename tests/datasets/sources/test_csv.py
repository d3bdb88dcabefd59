from __future__ import annotations

import gzip

import pytest

from rtrain.errors import DatasetError


def test_delimiter_and_compression(load, tmp_path):
    text = "a;b;y\n" + "".join(f"{i};{i / 2};{'no' if i % 2 else 'yes'}\n" for i in range(20))
    (tmp_path / "x.csv.gz").write_bytes(gzip.compress(text.encode()))
    for memory in ("resident", "stream"):
        info = load("csv", path=str(tmp_path), label="y", delimiter=";", memory=memory).info
        assert info.class_names == ("no", "yes")
        assert sum(info.num_rows.values()) == 20


def test_whole_numbers_that_get_a_point_later_can_be_streamed(load, tmp_path):
    lines = ["a,y\n", *(f"{i},{i % 2}\n" for i in range(200_000)), "0.5,1\n"]
    (tmp_path / "x.csv").write_text("".join(lines))
    info = load("csv", path=str(tmp_path / "x.csv"), label="y", memory="stream", split={"test": 0}).info
    assert info.num_rows == {"train": 200_001}


def test_text_far_down_is_an_error_that_names_row_or_value(load, tmp_path):
    lines = ["a,y\n", *(f"{i},{i % 2}\n" for i in range(200_000)), "oops,1\n"]
    (tmp_path / "x.csv").write_text("".join(lines))
    with pytest.raises(DatasetError, match="row 200001 contains 'oops'"):
        load("csv", path=str(tmp_path / "x.csv"), label="y", memory="resident")
    with pytest.raises(DatasetError, match=r"x\.csv: .*invalid value 'oops'"):
        load("csv", path=str(tmp_path / "x.csv"), label="y", memory="stream", split={"test": 0})


@pytest.mark.parametrize("memory", ["resident", "stream"])
@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "the file is empty"),
        (b"a,y\n1,2\n1,2,3\n", "Expected 2 columns, got 3"),
        (b"a;y\n1;2\n", "there is one column, 'a;y'"),
        ("ä,y\n1,2\n".encode("latin1"), "the names of the columns are not encoded in UTF-8"),
        ("a,y\n1,thé\n".encode("latin1"), "column 'y' is not encoded in UTF-8"),
        ("a,y\né,2\nb,3\n".encode("latin1"), "column 'a' is not encoded in UTF-8"),
        (("a,y\n" + "b,2\nc,3\n" * 200_000 + "é,2\n").encode("latin1"), "not encoded in UTF-8"),
    ],
)
def test_a_malformed_file_is_named(load, tmp_path, memory, content, message):
    (tmp_path / "x.csv").write_bytes(content)
    with pytest.raises(DatasetError, match=rf"x\.csv: .*{message}"):
        load("csv", path=str(tmp_path / "x.csv"), label="y", memory=memory)


def test_broken_compression_is_named(load, tmp_path):
    (tmp_path / "x.csv.gz").write_bytes(b"not gzip at all")
    with pytest.raises(DatasetError, match=r"x\.csv\.gz"):
        load("csv", path=str(tmp_path), label="y")


NAMES = ["NA", "null", "nan", "N/A", "EU"]


@pytest.mark.parametrize("memory", ["resident", "stream"])
@pytest.mark.parametrize("text", NAMES[:-1])
def test_of_texts_only_the_empty_one_is_missing(load, open_rows, tmp_path, memory, text):
    lines = [f"{(text, 'EU', '')[i % 3]},{text if i % 2 else 'other'}\n" for i in range(30)]
    (tmp_path / "x.csv").write_text("place,y\n" + "".join(lines))
    dataset = load("csv", path=str(tmp_path), label="y", memory=memory, on_missing="keep", split={"test": 0})
    assert set(dataset.info.class_names) == {text, "other"}
    assert set(dataset.info.categories["place"]) == {text, "EU"}
    codes = open_rows("csv", dataset, path=str(tmp_path), label="y").x[:3, 0].tolist()
    assert [dataset.info.categories["place"][int(code)] for code in codes[:2]] == [text, "EU"]
    assert codes[2] != codes[2]


@pytest.mark.parametrize("memory", ["resident", "stream"])
@pytest.mark.parametrize("text", NAMES[:-1])
def test_a_text_is_one_in_a_file_that_holds_nothing_else(load, tmp_path, memory, text):
    for name, texts in (("train", (text, "EU")), ("test", (text, text))):
        (tmp_path / f"{name}.csv").write_text(
            "place,y\n" + "".join(f"{texts[row % 2]},{row % 3}\n" for row in range(30))
        )
    dataset = load("csv", path=str(tmp_path), label="y", memory=memory)
    (columns,) = dataset.splits["test"].own_rows(0, 1)
    assert {dataset.info.categories["place"][int(code)] for code in columns["x"][:, 0]} == {text}


@pytest.mark.parametrize("memory", ["resident", "stream"])
@pytest.mark.parametrize("dtypes", [None, {"size": "float64"}])
@pytest.mark.parametrize("text", ["", *NAMES[:-1]])
def test_numbers_are_missing_where_a_text_says_so(load, tmp_path, memory, dtypes, text):
    (tmp_path / "x.csv").write_text("size,y\n" + "".join(f"{i if i % 3 else text},{i % 2}\n" for i in range(30)))
    keys = {"memory": memory, "on_missing": "keep", "dtypes": dtypes, "split": {"test": 0}, "normalize": False}
    dataset = load("csv", path=str(tmp_path), label="y", **keys)
    (columns,) = dataset.splits["train"].own_rows(0, 1)
    assert sum(value != value for value in columns["x"][:, 0].tolist()) == 10


@pytest.mark.parametrize("memory", ["resident", "stream"])
def test_a_feature_without_a_name_is_told_of(load, tmp_path, memory, caplog):
    (tmp_path / "x.csv").write_text(",a,y\n" + "".join(f"{i},{i / 2},{i % 2}\n" for i in range(20)))
    load("csv", path=str(tmp_path), label="y", memory=memory, ids=[""])
    assert "an unnamed column" not in caplog.text
    load("csv", path=str(tmp_path), label="y", memory=memory)
    assert "an unnamed column is used as a feature" in caplog.text


@pytest.mark.parametrize("memory", ["resident", "stream"])
@pytest.mark.parametrize("empty", ["a", "z"])
def test_a_file_without_rows_makes_no_regression_of_classes(load, tmp_path, memory, empty):
    (tmp_path / "m.csv").write_text("x,y\n" + "".join(f"{row},{row % 2}\n" for row in range(20)))
    (tmp_path / f"{empty}.csv").write_text("x,y\n")
    info = load("csv", path=str(tmp_path), label="y", memory=memory, split={"test": 0}).info
    assert (info.task, info.num_classes, info.num_rows) == ("classification", 2, {"train": 20})


@pytest.mark.parametrize("memory", ["resident", "stream"])
@pytest.mark.parametrize("keys", [{}, {"names": ["y", "a"]}])
def test_lines_may_end_with_a_carriage_return_alone(load, tmp_path, memory, keys):
    (tmp_path / "x.csv").write_bytes(b"\r\ra,y\r" + b"".join(b"%d,%d\r" % (row, row % 2) for row in range(20)))
    info = load("csv", path=str(tmp_path), label="y", memory=memory, split={"test": 0}, **keys).info
    assert (info.feature_names, info.num_classes, info.num_rows) == (("a",), 2, {"train": 20})


@pytest.mark.parametrize("memory", ["resident", "stream"])
@pytest.mark.parametrize("name", ["x.csv", "x.csv.gz"])
def test_line_breaks_in_values_may_be_anywhere(load, tmp_path, memory, name):
    texts = ["Well.\n" * (row % 9) + "and so on, " * (row % 30) for row in range(20_000)]
    lines = [f'{row},"{text}",{row % 2}\n' for row, text in enumerate(texts)]
    text = ("a,text,y\n" + "".join(lines)).encode()
    assert len(text) > 3 << 20
    (tmp_path / name).write_bytes(gzip.compress(text, 1) if name.endswith(".gz") else text)
    info = load("csv", path=str(tmp_path), label="y", drop=["text"], memory=memory, split={"test": 0}).info
    assert info.num_rows == {"train": 20_000}
