from __future__ import annotations

import pickle
import shutil

import numpy as np
import pytest
from PIL import Image
from rows_on_disk import check_same_rows
from sklearn.datasets import load_digits

from rtrain.errors import DatasetError

datasets = pytest.importorskip("datasets")


@pytest.fixture(autouse=True)
def offline(monkeypatch):
    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", True)


def save(folder, columns, kinds=None, **splits):
    whole = datasets.Dataset.from_dict(columns)
    for name, kind in (kinds or {}).items():
        whole = whole.cast_column(name, kind)
    parts = {name: whole.select(rows) for name, rows in splits.items()}
    (datasets.DatasetDict(parts) if parts else whole).save_to_disk(str(folder))
    return str(folder)


def test_a_table_with_class_names_and_splits(load, tmp_path):
    columns = {"a": list(range(30)), "b": [i / 2 for i in range(30)], "label": [i % 2 for i in range(30)]}
    kinds = {"label": datasets.ClassLabel(names=["zebra", "ant"])}
    path = save(tmp_path / "x", columns, kinds, train=range(19, -1, -1), validation=range(20, 30))
    dataset = load("huggingface", path=path)
    assert dataset.info.num_rows == {"train": 20, "val": 10}
    assert dataset.info.class_names == ("zebra", "ant")
    assert dataset.info.feature_names == ("a", "b")
    np.testing.assert_array_equal(dataset.splits["train"].columns["x"][:, 0], np.arange(19, -1, -1))


def test_images(load, tmp_path):
    bunch = load_digits()
    images = [Image.fromarray((image * 15).astype(np.uint8)) for image in bunch.images[:40]]
    path = save(tmp_path / "x", {"image": images, "label": bunch.target[:40].tolist()})
    dataset = load("huggingface", path=path, channels=1, split={"test": 0})
    assert (dataset.info.input_shape, dataset.info.dtype, dataset.info.num_classes) == ((1, 8, 8), "uint8", 10)
    np.testing.assert_array_equal(dataset.splits["train"].columns["x"][:, 0], (bunch.images[:40] * 15).astype(np.uint8))
    assert load("huggingface", path=path, image_size=[5, 6]).info.input_shape == (3, 5, 6)


def test_texts_to_classify_to_tag_and_to_model(load, tmp_path):
    texts = [f"text number {i}" for i in range(10)]
    path = save(tmp_path / "x", {"text": texts, "label": [i % 3 for i in range(10)]})
    dataset = load("huggingface", path=path, input="text", split={"test": 0})
    assert (dataset.info.task, dataset.info.dtype, dataset.info.num_classes) == ("classification", "object", 3)
    assert dataset.splits["train"].columns["x"].tolist() == texts
    assert load("huggingface", path=path, input="text", task="language-modeling").info.num_rows["train"] == 8
    kinds = {"tags": datasets.Sequence(datasets.ClassLabel(names=["O", "B"]))}
    tagged = {"tokens": [["a", "b"], ["c"]], "tags": [[0, 1], [0]]}
    path = save(tmp_path / "y", tagged, kinds)
    dataset = load("huggingface", path=path, input="tokens", label="tags", split={"test": 0})
    assert (dataset.info.task, dataset.info.class_names) == ("token-classification", ("O", "B"))
    assert [row.tolist() for row in dataset.splits["train"].columns["y"]] == [[0, 1], [0]]


def test_mistakes_are_explained(load, tmp_path):
    path = save(tmp_path / "x", {"a": [1, 2], "y": [0, 1]})
    with pytest.raises(DatasetError, match=r"'label', which is not a column\.\navailable: a, y"):
        load("huggingface", path=path)
    with pytest.raises(DatasetError, match=r"dataset.input names 'b'"):
        load("huggingface", path=path, input="b", label="y")
    with pytest.raises(DatasetError, match="can't be opened"):
        load("huggingface", path=str(tmp_path))
    columns = {"a": [[[1.0, 2.0]]] * 2, "y": [0, 1]}
    path = save(tmp_path / "w", columns, {"a": datasets.Array2D((1, 2), "float32")})
    with pytest.raises(DatasetError, match=r"'a' is nested.*\nEncode them as numbers"):
        load("huggingface", path=path, label="y")
    path = save(tmp_path / "z", {"a": [1, 2], "y": [0, 1]}, foo=range(2))
    with pytest.raises(DatasetError, match=r"there is no split 'train'; available: foo"):
        load("huggingface", path=path)


@pytest.mark.parametrize("path", ["./gone", "../gone", "~/gone", "/gone", "some/folder/gone", "gone/", "file.json"])
def test_the_hub_is_not_asked_for_what_can_only_be_a_path(load, tmp_path, monkeypatch, path):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file.json").write_text("{}")
    monkeypatch.setattr(datasets, "load_dataset", lambda *_, **__: pytest.fail("the hub is asked"))
    with pytest.raises(DatasetError, match="does not exist" if "gone" in path else "is a file, not a folder"):
        load("huggingface", path=path, label="y")


def test_a_hub_id_without_a_network_is_one_clear_error(load):
    with pytest.raises(DatasetError, match=r"(?s)nobody/nothing is not a local folder.*save_to_disk"):
        load("huggingface", path="nobody/nothing")


def test_new_rows_of_tables_images_and_texts(load, open_rows, tmp_path):
    kinds = {"label": datasets.ClassLabel(names=["zebra", "ant"])}
    table = load("huggingface", path=save(tmp_path / "a", {"a": [1, 2, 3, 4], "label": [0, 1, 0, 1]}, kinds))
    path = save(tmp_path / "b", {"more": ["p", "q"], "a": [7, 8]}, new=range(2))
    found = open_rows("huggingface", table, path=path)
    assert (found.x.tolist(), found.kept["more"]) == ([[7], [8]], ["p", "q"])
    images = {"image": [Image.new("L", (8, 8), i) for i in range(6)], "label": [0, 1] * 3}
    dataset = load("huggingface", path=save(tmp_path / "c", images), channels=1, split={"test": 0})
    found = open_rows("huggingface", dataset, with_labels=True, path=str(tmp_path / "c"), channels=1)
    np.testing.assert_array_equal(found.x, dataset.splits["train"].columns["x"])
    assert found.y.tolist() == [0, 1] * 3
    with pytest.raises(DatasetError, match="trained on another kind of rows, and this source gives images"):
        open_rows("huggingface", table, path=str(tmp_path / "c"))
    texts = {"text": ["p", "q", "r", "s"], "label": [0, 1, 0, 1]}
    dataset = load("huggingface", path=save(tmp_path / "d", texts), input="text", split={"test": 0})
    found = open_rows("huggingface", dataset, path=save(tmp_path / "e", {"text": ["new"]}), input="text")
    assert (found.x.tolist(), found.y) == (["new"], None)


def rows_of(kind, labels, names):
    """Return the columns and types of rows of a kind, the same ones whatever the labels."""
    count = len(labels)
    column = {
        "table": [float(i) for i in range(count)],
        "text": [f"text {i}" for i in range(count)],
        "image": [Image.new("L", (4, 4), i) for i in range(count)],
    }[kind]
    return {"x": column, "label": labels}, {"label": datasets.ClassLabel(names=names)}


@pytest.mark.parametrize("kind", ["table", "text", "image"])
def test_new_rows_that_number_classes_in_another_way_are_known_by_name(load, open_rows, tmp_path, kind):
    keys = {} if kind == "table" else {"input": "x"}
    path = save(tmp_path / "a", *rows_of(kind, [0, 1, 2] * 4, ["zebra", "ant", "cow"]))
    trained = load("huggingface", path=path, split={"test": 0}, **keys)
    path = save(tmp_path / "b", *rows_of(kind, [2, 0, 1] * 4, ["ant", "cow", "zebra"]))
    found = open_rows("huggingface", trained, with_labels=True, path=path, **keys)
    assert found.y.tolist() == [0, 1, 2] * 4
    columns, _ = rows_of(kind, [0, 1, 2] * 4, ["zebra", "ant", "cow"])
    found = open_rows("huggingface", trained, with_labels=True, path=save(tmp_path / "c", columns), **keys)
    assert found.y.tolist() == [0, 1, 2] * 4, "numbers without names are those of training"
    path = save(tmp_path / "d", *rows_of(kind, [0, 1, 1] * 4, ["ant", "dog"]))
    with pytest.raises(DatasetError, match="row 2 has the label label='dog', which is in no row of the train files"):
        open_rows("huggingface", trained, with_labels=True, path=path, **keys)
    assert open_rows("huggingface", trained, path=path, **keys).y is None


@pytest.mark.parametrize("kind", ["table", "text", "image"])
def test_new_rows_whose_numbers_are_those_of_no_class_keep_them(load, open_rows, tmp_path, kind):
    keys = {} if kind == "table" else {"input": "x"}
    path = save(tmp_path / "a", *rows_of(kind, [0, 1, 2] * 4, ["zebra", "ant", "cow"]))
    trained = load("huggingface", path=path, split={"test": 0}, **keys)
    columns, _ = rows_of(kind, [0, 7, -1, 2], ["zebra", "ant", "cow"])
    path = save(tmp_path / "b", columns)
    assert [str(one) for one in open_rows("huggingface", trained, path=path, **keys).kept["label"]] == [
        *("zebra", "7", "None", "cow")
    ]
    with pytest.raises(DatasetError, match=r"row 2 has the label label='7'|row 3 has no label"):
        open_rows("huggingface", trained, with_labels=True, path=path, **keys)


@pytest.mark.parametrize("kind", ["table", "text", "image"])
def test_splits_that_number_classes_in_another_way_are_known_by_name(load, tmp_path, kind):
    def part(*given):
        columns, kinds = rows_of(kind, *given)
        return datasets.Dataset.from_dict(columns).cast_column("label", kinds["label"])

    keys = {} if kind == "table" else {"input": "x"}
    train = part([0, 1] * 3, ["zebra", "ant"])
    test = part([1, 0] * 3, ["ant", "zebra"])
    datasets.DatasetDict(train=train, test=test).save_to_disk(str(tmp_path / "x"))
    dataset = load("huggingface", path=str(tmp_path / "x"), **keys)
    assert dataset.splits["test"].columns["y"].tolist() == [0, 1] * 3
    test = part([1, 0] * 3, ["ant", "dog"])
    datasets.DatasetDict(train=train, test=test).save_to_disk(str(tmp_path / "y"))
    with pytest.raises(DatasetError, match="split 'test' has the class 'dog', which split 'train' lacks"):
        load("huggingface", path=str(tmp_path / "y"), **keys)


def test_new_tags_that_are_numbered_in_another_way_are_known_by_name(load, open_rows, tmp_path):
    def tagged(name, tags, names):
        kinds = {"tags": datasets.Sequence(datasets.ClassLabel(names=names))}
        return save(tmp_path / name, {"tokens": [["a", "b"], ["c"]], "tags": tags}, kinds)

    keys = {"input": "tokens", "label": "tags"}
    trained = load("huggingface", path=tagged("a", [[0, 1], [0]], ["O", "B"]), split={"test": 0}, **keys)
    path = tagged("b", [[1, 0], [1]], ["B", "O"])
    found = open_rows("huggingface", trained, with_labels=True, path=path, **keys)
    assert [row.tolist() for row in found.y] == [[0, 1], [0]]


@pytest.mark.parametrize("kind", ["table", "text", "image"])
def test_a_label_that_is_the_number_of_no_class_is_told(load, tmp_path, kind):
    column = {
        "table": [float(i) for i in range(20)],
        "text": [f"text {i}" for i in range(20)],
        "image": [Image.new("L", (4, 4), i) for i in range(20)],
    }[kind]
    columns = {"x": column, "label": [-1 if i in (3, 7) else i % 2 for i in range(20)]}
    path = save(tmp_path / "x", columns, {"label": datasets.ClassLabel(names=["no", "yes"])})
    keys = {} if kind == "table" else {"input": "x"}
    with pytest.raises(DatasetError, match="row 4 has label=-1, which is not a class"):
        load("huggingface", path=path, **keys)


@pytest.mark.parametrize("tag", [-1, -100, 2, None])
def test_a_tag_that_is_the_number_of_no_class_is_an_error(load, tmp_path, tag):
    kinds = {"tags": datasets.Sequence(datasets.ClassLabel(names=["O", "B"]))}
    columns = {"tokens": [["a", "b"], ["c"], ["d", "e"]], "tags": [[0, 1], [0], [1, tag]]}
    path = save(tmp_path / "x", columns, kinds)
    with pytest.raises(DatasetError, match="row 3 has no tag for word 2, 'e'"):
        load("huggingface", path=path, input="tokens", label="tags", split={"test": 0})


@pytest.mark.parametrize("tag", [-100, None])
def test_a_word_whose_number_is_to_be_ignored_is_an_error(load, tmp_path, tag):
    columns = {"tokens": [["a", "b"], ["c"], ["d", "e"]], "tags": [[0, 1], [0], [1, tag]]}
    path = save(tmp_path / "x", columns)
    with pytest.raises(DatasetError, match="row 3 has no tag for word 2, 'e'"):
        load("huggingface", path=path, input="tokens", label="tags", split={"test": 0})


@pytest.mark.parametrize("name", ["csv", "pandas", "parquet", "imagefolder"])
def test_a_file_format_of_the_library_is_no_data_set(load, name, tmp_path, monkeypatch):
    (tmp_path / "train.csv").write_text("a,label\n1,0\n2,1\n")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DatasetError, match=f"{name} is the name of a file format"):
        load("huggingface", path=name)


def test_what_is_chosen_from_a_data_set_of_the_hub_is_asked_for(load, monkeypatch):
    asked = []

    def hub(*words, **keys):
        asked.append((*words, keys))
        return datasets.Dataset.from_dict({"a": list(range(20)), "label": [row % 2 for row in range(20)]})

    monkeypatch.setattr(datasets, "load_dataset", hub)
    load("huggingface", path="somebody/flowers", subset="roses", revision="v2")
    assert asked == [("somebody/flowers", "roses", {"revision": "v2"})]


TEXTS = {
    "text": [f"{'a b c '[: number % 7]}text {number}" for number in range(2500)],
    "label": [number % 3 for number in range(2500)],
    "amount": [number / 2 for number in range(2500)],
    "author": [f"author {number // 10}" for number in range(2500)],
}


@pytest.mark.parametrize("splits", [{}, {"train": range(2000), "validation": range(2000, 2500)}], ids=["one", "own"])
@pytest.mark.parametrize(
    "keys",
    [
        {"split": {"test": 0.1, "val": 0.2}},
        {"split": {"test": 0.1, "by_group": "author"}},
        {"split": {"test": 0}, "limit": 77},
        {"label": "amount", "split": {"test": 0.1}, "sample": 0.5},
        {"task": "language-modeling"},
        {"task": "language-modeling", "limit": 50, "split": {"test": 0.3}},
    ],
    ids=str,
)
def test_texts_on_disk_are_the_rows_that_texts_in_memory_are(load, tmp_path, keys, splits):
    if splits and "test" in keys.get("split", {}) and "val" in keys["split"]:
        keys = {**keys, "split": {"test": 0.1}}
    path = save(tmp_path / "x", TEXTS, {"label": datasets.ClassLabel(names=["x", "y", "z"])}, **splits)
    held, mapped = (load("huggingface", path=path, input="text", **keys, memory=one) for one in ("resident", "stream"))
    check_same_rows(held, mapped)


def test_texts_on_disk_are_not_in_what_workers_get(load, tmp_path):
    path = save(tmp_path / "x", {"text": ["long " * 10_000] * 100, "label": [0, 1] * 50})
    assert len(pickle.dumps(load("huggingface", path=path, input="text", memory="stream"))) < 10_000


def test_what_differs_on_disk_has_another_fingerprint(load, tmp_path):
    columns = {"text": ["a", "b", "c", "d"], "label": [0, 1, 0, 1]}
    first = save(tmp_path / "first", columns)
    other = save(tmp_path / "other", {**columns, "text": ["a", "b", "c", "e"]})
    keys = {"input": "text", "memory": "stream", "split": {"test": 0.5}}
    prints = [
        split.fingerprint
        for path, seed in ((first, 0), (first, 1), (other, 0))
        for split in load("huggingface", path=path, seed=seed, **keys).splits.values()
    ]
    assert len(set(prints)) == len(prints) == 6
    again = load("huggingface", path=first, seed=0, **keys)
    assert [split.fingerprint for split in again.splits.values()] == prints[:2]


def test_what_cannot_stay_on_disk_is_refused(load, tmp_path):
    words = save(tmp_path / "words", {"words": [["a"], ["b"]], "label": [[0], [1]]})
    with pytest.raises(DatasetError, match=r"dataset\.memory=stream: 'words' has lists of words, which are held"):
        load("huggingface", path=words, input="words", memory="stream")
    holes = save(tmp_path / "holes", {"text": ["a", None, "c"], "label": [0, 1, 0]})
    with pytest.raises(DatasetError, match=r"row 2 has no text"):
        load("huggingface", path=holes, input="text", memory="stream")
    with pytest.raises(DatasetError, match=r"'label' is of type int64; a text"):
        load("huggingface", path=holes, input="label", memory="stream")


def test_a_machine_without_the_files_says_what_it_needs(load, tmp_path):
    path = save(tmp_path / "x", {"text": ["a", "b"], "label": [0, 1]})
    split = load("huggingface", path=path, input="text", memory="stream", split={"test": 0}).splits["train"]
    there = pickle.loads(pickle.dumps(split))
    shutil.rmtree(path)
    with pytest.raises(DatasetError, match=r"\.arrow can't be mapped.*\nEach machine needs the file"):
        next(there.own_rows(0, 1))
