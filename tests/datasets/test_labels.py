"""Numbers to predict keep what they need, from every kind of source, or are refused by name."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rtrain.datasets.base import DatasetInfo
from rtrain.datasets.labels import Labels, LabelScan, Targets
from rtrain.errors import DatasetError

ROWS = 300


def written(source, folder, y):
    """Write targets with a feature, as whole numbers where they are; return the keys of the dataset."""
    x, values = np.arange(len(y)) / 7, [one.item() for one in np.asarray(y)]
    path = folder / f"rows.{ {'json': 'jsonl', 'numpy': 'npz'}.get(source, source) }"
    if source == "parquet":
        pq.write_table(pa.table({"x": x, "y": values}), path)
    elif source == "json":
        path.write_text("".join(json.dumps({"x": a, "y": b}) + "\n" for a, b in zip(x, values, strict=True)))
    elif source == "csv":
        path.write_text("x,y\n" + "".join(f"{a},{b!r}\n" for a, b in zip(x, values, strict=True)))
    elif source == "libsvm":
        path.write_text("".join(f"{b!r} 1:{a}\n" for a, b in zip(x, values, strict=True)))
    else:
        np.savez(path, x=x[:, None], y=np.asarray(y))
    return {"path": str(path), "task": "regression", "split": {"test": 0.2}} | (
        {} if source in ("libsvm", "numpy") else {"label": "y"}
    )


SOURCES = [("csv", "resident"), ("csv", "stream"), ("parquet", "resident"), ("parquet", "stream"), ("json", "resident")]
SOURCES += [("libsvm", None), ("numpy", None)]


def all_targets(dataset):
    return np.concatenate([part["y"] for split in dataset.splits.values() for part in split.own_rows(0, 1)])


@pytest.mark.parametrize(("source", "memory"), SOURCES)
@pytest.mark.parametrize(
    ("first", "step", "wide", "merged"),
    [(2**20, 1, False, False), (2**24, 9_999, True, False), (2**31, 1, True, True), (2**53 - ROWS, 1, True, True)],
)
def test_whole_numbers_are_exact(load, tmp_path, source, memory, first, step, wide, merged):
    y = np.int64(first) + np.arange(ROWS) * step
    keys = {} if memory is None else {"memory": memory, "dtype": "float64" if memory == "stream" else "float32"}
    dataset = load(source, **written(source, tmp_path, y), **keys)
    assert sorted(all_targets(dataset).tolist()) == y.tolist()
    assert (dataset.info.target_dtype, dataset.info.merged_targets) == ("float64" if wide else "float32", merged)
    assert all_targets(dataset).dtype == dataset.info.target_dtype


@pytest.mark.parametrize(("source", "memory"), [one for one in SOURCES if one[0] != "libsvm"])
def test_whole_numbers_that_float64_can_not_hold_are_named(load, tmp_path, source, memory):
    y = np.append(np.arange(ROWS), 2**53 + 1)
    keys = {} if memory is None else {"memory": memory}
    with pytest.raises(DatasetError, match=rf"row {ROWS + 1} has y=9007199254740993"):
        load(source, **written(source, tmp_path, y), **keys)


@pytest.mark.parametrize(("source", "memory"), SOURCES)
def test_infinite_targets_are_named(load, tmp_path, source, memory):
    y = np.append(np.arange(ROWS) / 3, np.inf)
    keys = {} if memory is None else {"memory": memory}
    path = written("csv" if source == "json" else source, tmp_path, y)
    with pytest.raises(DatasetError, match=rf"rows.* row {ROWS + 1} has (y|label)=inf, but targets must be finite"):
        load("csv" if source == "json" else source, **path, **keys)


def test_a_type_of_ones_own_rounds_numbers_of_too_many_digits(load, tmp_path):
    y = np.append(np.arange(ROWS), 2**53 + 1)
    dataset = load("parquet", **written("parquet", tmp_path, y), dtypes={"y": "float64"})
    assert all_targets(dataset).max() == 2.0**53


@pytest.mark.parametrize(
    ("low", "high", "dtype", "merged"),
    [
        (0, 1, "float32", False),
        (-5.5, 2.0**24, "float32", False),
        (0, 2.0**24 + 1, "float64", False),
        (0, 1e9, "float64", False),
        (1.7e9, 1.7e9 + 3600, "float64", True),
        (1e6, 1e6 + 1, "float64", True),
        (0, 1e300, "float64", True),
        (3e9, 3e9, "float64", False),
    ],
)
def test_what_holds_targets_follows_from_their_range(low, high, dtype, merged):
    assert Targets.between(low, high) == Targets(dtype, merged)


MIXED = {
    "booleans and numbers": ([True, False], [0, 1, 2]),
    "numbers and booleans": ([0, 1, 2], [True, False]),
    "numbers and fractions": ([1, 2], [1.5, 2.0]),
    "fractions and numbers": ([1.5, 2.0], [2, 1]),
    "large numbers and fractions": ([2**60 + 1, 2**60], [1.5]),
    "text and numbers": (["1", "2"], [1, 2]),
    "text and booleans": (["true"], [True, False]),
    "signs": ([-1, 1], [1, -1]),
    "zeros": ([0.0, -0.0, 1.0], [-0.0]),
    "unsigned": (pa.array([2**63 + 1, 5], pa.uint64()), [5]),
}


@pytest.mark.parametrize("task", ["auto", "classification", "regression"])
@pytest.mark.parametrize("kinds", MIXED)
def test_labels_of_several_types_are_each_their_value_or_an_error(task, kinds):
    parts, scan = [pa.array(one) for one in MIXED[kinds]], LabelScan("y", task)
    try:
        for where, part in zip("ab", parts, strict=True):
            scan.add(part, where, 0)
        labels = scan.labels()
        found = [labels.encode(part, where, 0) for where, part in zip("ab", parts, strict=True)]
    except DatasetError as error:
        found, said = None, str(error)
    if found is None:
        assert "y" in said
        return
    for part, y in zip(parts, found, strict=True):
        expected = y if labels.classes is None else [labels.classes[code] for code in y]
        assert list(expected) == part.to_pylist()


FLOATS = {
    "days": ([20240101.0, 20240102.0], ("20240101", "20240102")),
    "fractions": ([0.1234567, 0.1234568, 2.0], ("0.1234567", "0.1234568", "2")),
    "large": ([2.0**53, 2.0**53 + 2, 1e300], (str(2.0**53), str(2.0**53 + 2), "1e+300")),
    "signs": ([-1.0, 0.0, 1.0], ("-1", "0", "1")),
}


@pytest.mark.parametrize("kind", FLOATS)
def test_different_numbers_are_classes_of_different_names(kind):
    values, names = FLOATS[kind]
    scan = LabelScan("y", "classification")
    scan.add(pa.array(values), "a", 0)
    assert scan.labels().class_names == names


def test_two_classes_of_one_name_are_refused():
    facts = {"task": "classification", "input_shape": (1,), "num_classes": 3, "num_rows": {}, "fingerprint": ""}
    with pytest.raises(DatasetError, match="two classes named 'a'"):
        DatasetInfo(name="x", memory="", memory_reason="", class_names=("a", "b", "a"), **facts)


@pytest.mark.parametrize("kind", [pa.int8(), pa.int64(), pa.uint64(), pa.float32(), pa.float64()])
@pytest.mark.parametrize("wrong", [2, 3, 100])
def test_of_numbers_only_0_and_1_are_booleans(kind, wrong):
    labels = Labels("y", (False, True))
    assert labels.encode(pa.array([1, 0, 1], kind), "a", 0).tolist() == [1, 0, 1]
    with pytest.raises(DatasetError, match=rf"row 2 has the label y={wrong}"):
        labels.encode(pa.array([1, wrong], kind), "a", 0)


WRITTEN = ["{:,}", "{},5", "{}%", "${}", "{} 000", "${:,}.00", "€ {}", "{:,} €", "{} EUR", "USD {:,}", "£{:,}", "¥ {}"]


@pytest.mark.parametrize("written", WRITTEN)
def test_numbers_written_with_signs_are_no_classes_unless_asked_for(written):
    texts = pa.array([written.format(1000 + i) for i in range(30)])
    scan = LabelScan("y", "auto")
    scan.add(texts, "a", 0)
    with pytest.raises(
        DatasetError, match=r"row 1 has y=.*: without '[^']+'( and '[^']+')?, almost all labels are numbers"
    ):
        scan.labels()
    scan = LabelScan("y", "classification")
    scan.add(texts, "a", 0)
    assert len(scan.labels().classes or ()) == 30


@pytest.mark.parametrize(
    "texts",
    [["a,b", "c"], ["18-25", "26-40"], ["10 a", "20 b"], ["EUR 1 up", "EUR 2 down"], [",", "%", "$"], ["$", "1", "b"]],
)
def test_texts_with_signs_are_classes(texts):
    scan = LabelScan("y", "auto")
    scan.add(pa.array(texts), "a", 0)
    assert scan.labels().classes == tuple(sorted(texts))


@pytest.mark.parametrize(
    ("values", "hint"),
    [
        ([one / 7 for one in range(160)], "dataset.task=regression"),
        ([f"id-{one}" for one in range(160)], "dataset.label"),
    ],
    ids=["decimals", "texts"],
)
def test_a_class_for_nearly_each_row_is_told(values, hint, caplog):
    scan = LabelScan("price", "classification")
    scan.add(pa.array([*values, *values[:40]]), "rows.csv", 0)
    assert scan.labels().num_classes == 160
    assert "160 classes in 200 rows" in caplog.text
    assert "'price'" in caplog.text
    assert hint in caplog.text


@pytest.mark.parametrize(("classes", "rows"), [(19, 19), (160, 320)], ids=["a few rows", "two rows of each"])
def test_many_classes_that_come_again_are_no_news(classes, rows, caplog):
    scan = LabelScan("kind", "classification")
    scan.add(pa.array([one % classes / 7 for one in range(rows)]), "rows.csv", 0)
    scan.labels()
    assert not caplog.text
