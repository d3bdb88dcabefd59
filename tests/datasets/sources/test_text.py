from __future__ import annotations

import csv
import gzip
import json
import pickle

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet
from pydantic import TypeAdapter

from rtrain.datasets.registry import confs, load_source
from rtrain.errors import DatasetError

TEXT = "To be, or not to be: that is the question.\nWhether 'tis nobler in the mind to suffer\n" * 20
REVIEWS = [(f'{"good" if i % 3 else "bad"}, "quoted"\nfilm {i}', "pos" if i % 3 else "neg") for i in range(30)]
TAGGED = [(["Ann", "saw", f"Bob{i}"][: 2 + i % 2], ["PER", "O", "PER"][: 2 + i % 2]) for i in range(12)]


def write_lines(path, rows):
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))


def write_folders(folder, rows=REVIEWS):
    for number, (text, label) in enumerate(rows):
        file = folder / label / f"{number:02}.txt"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)


def all_rows(dataset, split="train"):
    (columns,) = dataset.splits[split].own_rows(0, 1)
    return columns


def open_rows(dataset, name="text", with_labels=True, **keys):
    reader = load_source(name).open_rows(TypeAdapter(confs()[name]).validate_python(keys), dataset.encoding)
    assert json.loads(json.dumps(dataset.encoding)) == dataset.encoding
    sent = pickle.loads(pickle.dumps(reader))
    return [chunk for piece in reader.pieces for chunk in sent.read(piece, with_labels)]


def test_characters_are_split_and_cut_into_rows_as_documented(load, tmp_path):
    (tmp_path / "x.txt").write_text(TEXT)
    dataset = load("text", path=str(tmp_path / "x.txt"), tokenizer="characters", block_size=16, split={"val": 0.1})
    names = sorted(set(TEXT))
    cut = int(0.9 * len(TEXT))
    assert dataset.info.task == "language-modeling"
    assert dataset.info.class_names == tuple(names)
    assert dataset.info.num_classes == len(names)
    assert dataset.info.input_shape == (16,)
    for split, text in (("train", TEXT[:cut]), ("val", TEXT[cut:])):
        codes = [names.index(one) for one in text]
        columns = all_rows(dataset, split)
        assert len(columns["x"]) == (len(text) - 1) // 16
        assert columns["x"].dtype == columns["y"].dtype == np.int64
        for row in range(len(columns["x"])):
            assert columns["x"][row].tolist() == codes[row * 16 : row * 16 + 16]
            assert columns["y"][row].tolist() == codes[row * 16 + 1 : row * 16 + 17]
    split = dataset.splits["train"]
    assert np.shares_memory(split.columns["x"], split.columns["y"])


def test_bytes_need_no_vocabulary(load, tmp_path):
    (tmp_path / "x.txt.gz").write_bytes(gzip.compress(("naïve ✓ " * 50).encode()))
    dataset = load("text", path=str(tmp_path), tokenizer="bytes", block_size=8, split={"test": 0})
    assert (dataset.info.num_classes, dataset.info.class_names) == (256, ())
    assert bytes(all_rows(dataset)["x"].reshape(-1).tolist()).decode(errors="ignore").startswith("naïve ✓ ")


def test_files_named_after_splits_and_tables_make_tokens_too(load, tmp_path):
    write_lines(tmp_path / "train.jsonl", [{"body": "abc"}, {"body": "abd"}])
    (tmp_path / "val.txt").write_text("eeeeeeee")
    dataset = load("text", path=str(tmp_path), text="body", tokenizer="characters", block_size=2)
    assert dataset.info.class_names == ("\n", "a", "b", "c", "d", "e")
    assert all_rows(dataset)["x"].tolist() == [[1, 2], [3, 0], [1, 2]]
    assert dataset.info.num_rows == {"train": 3, "val": 3}


def test_a_limit_takes_the_first_rows_of_a_language(load, tmp_path):
    (tmp_path / "x.txt").write_text(TEXT)
    keys = {"path": str(tmp_path), "tokenizer": "bytes", "block_size": 4, "split": {"test": 0}}
    few, some, all_ = (
        all_rows(load("text", **keys, **chosen))["x"] for chosen in ({"limit": 5}, {"sample": 0.5}, {"limit": None})
    )
    np.testing.assert_array_equal(few, all_[:5])
    np.testing.assert_array_equal(some, all_[: round(len(all_) / 2)])


def test_new_text_is_coded_as_the_learned_one(load, tmp_path):
    (tmp_path / "x.txt").write_text(TEXT)
    keys = {"tokenizer": "characters", "block_size": 8}
    dataset = load("text", path=str(tmp_path / "x.txt"), **keys, split={"val": 0.1})
    (tmp_path / "new.txt").write_text("be not Whether")
    (chunk,) = open_rows(dataset, path=str(tmp_path / "new.txt"), **keys)
    assert "".join(dataset.info.class_names[one] for one in chunk.x[0]) == "be not W"
    assert "".join(dataset.info.class_names[one] for one in chunk.y[0]) == "e not Wh"
    (tmp_path / "new.txt").write_text("be\nß")
    with pytest.raises(DatasetError, match=r"new\.txt: character 4, 'ß', is not one of the"):
        open_rows(dataset, path=str(tmp_path / "new.txt"), **keys)


def test_lines_to_model_are_rows_and_their_own_targets(load, tmp_path):
    (tmp_path / "x.txt").write_text("\ufeffone\r\n\n  \ntwo\u2028still two\nthree")
    dataset = load("text", path=str(tmp_path / "x.txt"), split={"test": 0.4})
    assert (dataset.info.task, dataset.info.dtype, dataset.info.input_shape) == ("language-modeling", "object", ())
    assert all_rows(dataset)["x"].tolist() == ["one"]
    assert all_rows(dataset, "test")["x"].tolist() == ["two\u2028still two", "three"]
    assert all_rows(dataset)["y"] is not None
    np.testing.assert_array_equal(all_rows(dataset)["x"], all_rows(dataset)["y"])
    whole = load("text", path=str(tmp_path / "x.txt"), each="file", split={"test": 0})
    assert whole.info.num_rows == {"train": 1}


def test_a_folder_per_class(load, tmp_path):
    write_folders(tmp_path / "data")
    dataset = load("text", path=str(tmp_path / "data"))
    assert (dataset.info.task, dataset.info.class_names) == ("classification", ("neg", "pos"))
    assert dataset.info.num_rows == {"train": 24, "test": 6}
    columns = all_rows(dataset)
    assert [("neg", "pos")[label] for label in columns["y"]] == [dict(REVIEWS)[text] for text in columns["x"]]
    chunks = open_rows(dataset, path=str(tmp_path / "data"))
    assert [chunk.x[0] for chunk in chunks] == [
        text for label in ("neg", "pos") for text, one in REVIEWS if one == label
    ]
    assert chunks[0].kept["file"][0].endswith("neg/00.txt")
    assert chunks[0].y.tolist() == [0]


def test_a_folder_per_class_below_folders_of_splits(load, tmp_path):
    write_folders(tmp_path / "train", REVIEWS[:20])
    write_folders(tmp_path / "test", REVIEWS[20:])
    assert load("text", path=str(tmp_path)).info.num_rows == {"train": 20, "test": 10}


def test_a_file_beside_the_class_folders_is_passed_over_where_classes_are_asked_for(load, tmp_path):
    write_folders(tmp_path)
    (tmp_path / "README.md").write_text("What this is.")
    assert load("text", path=str(tmp_path)).info.task == "language-modeling"
    dataset = load("text", path=str(tmp_path), task="classification")
    assert (dataset.info.class_names, sum(dataset.info.num_rows.values())) == (("neg", "pos"), 30)


def test_folders_in_a_class_folder_are_of_its_class_in_training_and_later(load, tmp_path):
    write_folders(tmp_path / "data")
    for inner in ("2024", "neg"):
        (tmp_path / "data" / "pos" / inner).mkdir()
        (tmp_path / "data" / "pos" / inner / "x.txt").write_text(f"good {inner}")
    dataset = load("text", path=str(tmp_path / "data"), split={"test": 0})
    trained = dict(zip(all_rows(dataset)["x"], all_rows(dataset)["y"], strict=True))
    chunks = open_rows(dataset, path=str(tmp_path / "data"))
    assert {chunk.x[0]: chunk.y[0] for chunk in chunks} == trained
    assert trained["good neg"] == 1
    alone = open_rows(dataset, path=str(tmp_path / "data" / "pos" / "neg"))
    assert [chunk.y.tolist() for chunk in alone] == [[0]]


@pytest.mark.parametrize("ending", ["csv", "tsv", "jsonl"])
def test_tables_with_a_label(load, tmp_path, ending):
    file = tmp_path / f"x.{ending}"
    rows = [(text.replace("\n", " "), label) if ending == "tsv" else (text, label) for text, label in REVIEWS]
    with file.open("w", newline="") as stream:
        if ending == "jsonl":
            stream.writelines(f"{json.dumps({'id': 7, 'review': text, 'y': label})}\n" for text, label in rows)
        elif ending == "csv":
            csv.writer(stream).writerows([("id", "review", "y"), *((7, *row) for row in rows)])
        else:
            stream.writelines(
                f"{one}\t{text}\t{label}\n"
                for one, text, label in [("id", "review", "y"), *((7, *row) for row in rows)]
            )
    keys = {"path": str(file), "text": "review", "label": "y"}
    dataset = load("text", **keys, split={"test": 0})
    assert all_rows(dataset)["x"].tolist() == [text for text, _ in rows]
    assert all_rows(dataset)["y"].tolist() == [int(label == "pos") for _, label in rows]
    (chunk,) = open_rows(dataset, **keys)
    assert chunk.kept["id"].to_pylist() == [7] * 30
    assert chunk.y.tolist() == all_rows(dataset)["y"].tolist()


def test_texts_without_labels_can_be_predicted(load, tmp_path):
    write_lines(tmp_path / "x.jsonl", [{"text": text, "y": label} for text, label in REVIEWS])
    dataset = load("text", path=str(tmp_path / "x.jsonl"), label="y")
    write_lines(tmp_path / "new.jsonl", [{"text": "?"}])
    keys = {"path": str(tmp_path / "new.jsonl"), "label": "y"}
    (chunk,) = open_rows(dataset, with_labels=False, **keys)
    assert (chunk.x.tolist(), chunk.y) == (["?"], None)
    with pytest.raises(DatasetError, match=r"new\.jsonl: dataset\.label names 'y', which is not a column"):
        open_rows(dataset, **keys)


def test_a_number_to_predict_from_texts(load, tmp_path):
    write_lines(tmp_path / "x.jsonl", [{"text": "a" * i, "stars": i / 2} for i in range(10)])
    dataset = load("text", path=str(tmp_path), label="stars", split={"test": 0})
    assert (dataset.info.task, dataset.info.num_classes) == ("regression", None)
    assert all_rows(dataset)["y"].dtype == np.float32


@pytest.mark.parametrize("ending", ["jsonl", "json", "csv"])
@pytest.mark.parametrize("first", [2**53, 2**63, 2**70])
def test_all_digits_of_numbers_next_to_texts_count(load, tmp_path, ending, first):
    rows = [{"text": "a" * (place + 1), "uid": first + place, "y": place % 2} for place in range(120)]
    file = tmp_path / f"x.{ending}"
    if ending == "jsonl":
        write_lines(file, rows)
    elif ending == "json":
        file.write_text(json.dumps(rows))
    else:
        file.write_text("text,uid,y\n" + "".join(f"{row['text']},{row['uid']},{row['y']}\n" for row in rows))
    keys = {"path": str(file), "label": "y"}
    dataset = load("text", **keys, split={"test": 0.3, "by_hash": "uid"})
    kept = [one for chunk in open_rows(dataset, **keys) for one in chunk.kept["uid"].to_pylist()]
    assert list(map(str, kept)) == [str(row["uid"]) for row in rows]
    with pytest.raises(DatasetError, match="row 2 has uid="):
        load("text", path=str(file), label="uid")


@pytest.mark.parametrize(("last", "expected"), [(b"id", b"id".decode()), (b"\xff", b"\xff".hex())])
def test_bytes_next_to_texts_are_text_or_hexadecimal(load, tmp_path, last, expected):
    table = pa.table({"text": ["a", "b", "c", "d"], "uid": [b"0", b"1", b"2", last], "y": [0, 1, 0, 1]})
    parquet.write_table(table, tmp_path / "x.parquet")
    keys = {"path": str(tmp_path / "x.parquet"), "label": "y"}
    (chunk,) = open_rows(load("text", **keys), **keys)
    assert chunk.kept["uid"].to_pylist()[-1] == expected


def test_words_with_tags(load, tmp_path):
    write_lines(tmp_path / "x.jsonl", [{"tokens": words, "tags": tags} for words, tags in TAGGED])
    keys = {"path": str(tmp_path), "text": "tokens", "label": "tags"}
    dataset = load("text", **keys, split={"test": 0})
    assert (dataset.info.task, dataset.info.class_names) == ("token-classification", ("O", "PER"))
    columns = all_rows(dataset)
    assert columns["x"].tolist() == [words for words, _ in TAGGED]
    assert [row.tolist() for row in columns["y"]] == [[("O", "PER").index(tag) for tag in tags] for _, tags in TAGGED]
    assert all(row.dtype == np.int64 for row in columns["y"])
    (chunk,) = open_rows(dataset, **keys)
    assert [row.tolist() for row in chunk.y] == [row.tolist() for row in columns["y"]]


def test_the_fingerprint_is_that_of_the_content(load, tmp_path):
    write_lines(tmp_path / "x.jsonl", [{"tokens": words, "tags": tags} for words, tags in TAGGED])
    keys = {"path": str(tmp_path), "text": "tokens", "label": "tags"}
    before = load("text", **keys).info.fingerprint
    assert load("text", **keys).info.fingerprint == before
    write_lines(tmp_path / "x.jsonl", [{"tokens": words, "tags": tags[::-1]} for words, tags in TAGGED])
    assert load("text", **keys).info.fingerprint != before


@pytest.mark.parametrize(
    ("rows", "keys", "message"),
    [
        ([{"text": "a", "y": "b"}], {"label": "why"}, "dataset.label names 'why', which is not a column"),
        ([{"text": "a", "y": "b"}], {"text": "txt"}, "dataset.text names 'txt', which is not a column"),
        ([{"text": "a"}, {"text": None}], {}, "row 2 has no text"),
        ([{"text": "a", "y": "b"}, {"text": "c"}], {"label": "y"}, "row 2 has no label"),
        ([{"text": 1.5}], {}, "'text' is of type double; a text"),
        ([{"text": ["a", "b"], "y": ["c"]}], {"label": "y"}, "row 1 has 2 words but 1 tags"),
        ([{"text": ["a", "b"], "y": "c"}], {"label": "y"}, "a list of tags per row is needed"),
        ([{"text": "a"}], {"task": "classification"}, "needs labels"),
        ([{"text": "a", "y": "b"}], {"label": "y", "task": "token-classification"}, "contains texts"),
        ([{"text": "a"}], {"tokenizer": "bytes"}, "too few for a row of 64"),
        ([{"text": "a"}], {"tokenizer": "bytes", "task": "regression"}, "creates tokens for language modeling"),
    ],
)
def test_mistakes_are_explained(load, tmp_path, rows, keys, message):
    write_lines(tmp_path / "x.jsonl", rows)
    with pytest.raises(DatasetError, match=message):
        load("text", path=str(tmp_path / "x.jsonl"), split={"test": 0}, **keys)


def test_plain_texts_that_are_unusable_are_named(load, tmp_path):
    (tmp_path / "x.txt").write_bytes("naïve".encode("latin1"))
    with pytest.raises(DatasetError, match=r"x\.txt: byte 2 is not UTF-8"):
        load("text", path=str(tmp_path))
    (tmp_path / "x.txt").write_bytes(b"\n\n")
    with pytest.raises(DatasetError, match=r"x\.txt: there is no text for the split 'train'"):
        load("text", path=str(tmp_path))
    with pytest.raises(DatasetError, match="is a plain text without columns"):
        load("text", path=str(tmp_path), label="y")


@pytest.mark.parametrize(("encoding", "guess"), [("latin1", "latin1"), ("utf-16", "utf-16")])
def test_a_hint_names_the_encoding_where_the_first_bytes_say_it(load, tmp_path, encoding, guess):
    (tmp_path / "x.txt").write_bytes("naïve ÿ".encode(encoding))
    with pytest.raises(DatasetError) as raised:
        load("text", path=str(tmp_path))
    assert f"iconv -f {guess} -t utf-8" in raised.value.hint


REPLIES = [
    {
        "text": f"reply {row}",
        "y": "good" if row % 2 else "bad",
        "author": f"a{row // 4}",
        "day": f"2024-01-{row + 1:02}",
    }
    for row in range(24)
]


@pytest.mark.parametrize(
    ("split", "expected"),
    [
        ({"by_group": "author"}, lambda train, test: not {row // 4 for row in train} & {row // 4 for row in test}),
        ({"by_time": "day"}, lambda _, test: test == {19, 20, 21, 22, 23}),
        (
            {"by_column": {"column": "author", "test": ["a1", "a3"]}},
            lambda _, test: {row // 4 for row in test} == {1, 3},
        ),
        ({"by_hash": "text"}, lambda _, test: 0 < len(test) < 12),
    ],
)
def test_columns_beside_the_texts_decide_their_split(load, tmp_path, split, expected):
    write_lines(tmp_path / "x.jsonl", REPLIES[:16])
    write_lines(tmp_path / "z.jsonl", REPLIES[16:])
    dataset = load("text", path=str(tmp_path), label="y", split=split)
    rows = [{int(text.split()[1]) for text in all_rows(dataset, name)["x"]} for name in ("train", "test")]
    assert rows[0] | rows[1] == set(range(24))
    assert len(rows[0]) + len(rows[1]) == 24
    assert expected(*rows)


def test_texts_without_columns_can_not_be_split_by_one(load, tmp_path):
    for name in ("good", "bad"):
        (tmp_path / name).mkdir()
        for number in range(5):
            (tmp_path / name / f"{number}.txt").write_text(f"{name} {number}\nand more")
    with pytest.raises(DatasetError, match="by_group names 'author', which is not a column"):
        load("text", path=str(tmp_path), split={"by_group": "author"})
    with pytest.raises(
        DatasetError, match=r"by_time=day names a column of a table, but the lines of .*\.txt have none"
    ):
        load("text", path=str(tmp_path), each="line", split={"by_time": "day"})
    with pytest.raises(DatasetError, match="texts for language modeling, which are split in order, have none"):
        load("text", path=str(tmp_path), task="language-modeling", split={"by_time": "day"})
    hashed = load("text", path=str(tmp_path), split={"by_hash": "file", "test": 0.5})
    assert sum(hashed.info.num_rows.values()) == 10


def test_a_word_that_is_null_is_an_error(load, tmp_path):
    rows = [{"words": ["a", "b"], "tags": ["X", "Y"]}, {"words": ["c", None], "tags": ["X", "Y"]}]
    (tmp_path / "t.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    with pytest.raises(DatasetError, match="row 2 has a word that is null in 'words'"):
        load("text", path=str(tmp_path / "t.jsonl"), text="words", label="tags")
