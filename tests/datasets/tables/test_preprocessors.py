"""Preprocessors of tables: fitted on train, kept in the encoding, applied to every row."""

from __future__ import annotations

import inspect
import json
import subprocess
import sys

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import csv, parquet
from pydantic import TypeAdapter, ValidationError

from rtrain.config.session import Session
from rtrain.config.targets.builder import Builder
from rtrain.datasets.registry import confs, load_source
from rtrain.datasets.tables.preprocessing import Preprocessing, fit
from rtrain.datasets.tables.preprocessor_conf import ARGUMENTS, NOT_NEEDED
from rtrain.datasets.tables.spec import TableSpec
from rtrain.errors import ConfigError, DatasetError
from rtrain.schemas import schemas

NUM_ROWS = 200
STEPS = [
    {"type": "SimpleImputer", "columns": ["size"]},
    {"type": "OneHotEncoder", "columns": ["colour"]},
    {"type": "StandardScaler", "columns": ["size", "weight"]},
]
FEATURES = ("size", "weight", "colour=<blue>", "colour=green", "colour=red", "shop")


def sales():
    rng = np.random.default_rng(0)
    size = rng.normal(10, 3, NUM_ROWS)
    size[::9] = np.nan
    return pd.DataFrame(
        {
            "id": np.arange(NUM_ROWS),
            "size": size,
            "weight": rng.integers(1, 50, NUM_ROWS),
            "colour": np.array(["red", "green", "<blue>"])[rng.integers(0, 3, NUM_ROWS)],
            "shop": rng.integers(0, 4, NUM_ROWS),
            "y": rng.integers(0, 2, NUM_ROWS),
        }
    )


def write(path, frame, name="csv"):
    file = path.with_suffix(f".{name}")
    table = pa.Table.from_pandas(frame, preserve_index=False)
    if name == "csv":
        csv.write_csv(table, file)
    else:
        parquet.write_table(table, file, row_group_size=50)
    return str(file)


def options(**keys):
    return {"label": "y", "ids": ["id"], "preprocessors": STEPS, **keys}


def rows(split):
    parts = list(split.own_rows(0, 1))
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


@pytest.mark.parametrize("source", ["csv", "parquet"])
@pytest.mark.parametrize("memory", ["resident", "stream"])
def test_statistics_are_those_of_the_train_rows_alone(load, tmp_path, source, memory):
    file = write(tmp_path / "sales", sales(), source)
    dataset = load(source, path=file, memory=memory, **options(normalize=False, dtype="float64"))
    assert dataset.info.feature_names == FEATURES
    assert dataset.info.input_shape == (len(FEATURES),)
    assert not dataset.info.categories
    x = rows(dataset.splits["train"])["x"]
    np.testing.assert_allclose(x[:, :2].mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(x[:, :2].std(axis=0), 1, atol=1e-12)
    assert abs(rows(dataset.splits["test"])["x"][:, :2].mean()) > 1e-3
    np.testing.assert_array_equal(x[:, 2:5].sum(axis=1), 1)


def test_other_rows_than_those_of_train_change_nothing_that_is_learned(load, tmp_path):
    train, test = (write(tmp_path / name, sales()) for name in ("train", "test"))
    before = load("csv", path={"train": train, "test": test}, **options())
    shifted = sales().assign(size=1e6, colour="violet")
    after = load("csv", path={"train": train, "test": write(tmp_path / "shifted", shifted)}, **options())
    assert after.encoding == before.encoding
    assert not rows(after.splits["test"])["x"][:, 2:5].any()


def test_the_same_rows_are_split_off_as_without_preprocessors(load, tmp_path):
    file = write(tmp_path / "sales", sales())
    plain = load("csv", path=file, on_missing="keep", dtype="float64", **options(preprocessors=[]))
    made = load("csv", path=file, on_missing="keep", dtype="float64", **options())
    for split in ("train", "test"):
        np.testing.assert_array_equal(rows(plain.splits[split])["x"][:, 3], rows(made.splits[split])["x"][:, 5])
        np.testing.assert_array_equal(rows(plain.splits[split])["y"], rows(made.splits[split])["y"])


def test_groups_and_limit_go_with_preprocessors(load, tmp_path):
    file = write(tmp_path / "sales", sales().assign(y=lambda frame: frame["y"] * 1.5))
    keys = options(group="shop", task="ranking", ids=["id"], preprocessors=STEPS, split={"test": 0.25, "val": 0})
    dataset = load("csv", path=file, **keys)
    assert sum(dataset.info.num_rows.values()) == NUM_ROWS
    shops = [set(rows(split)["group"].tolist()) for split in dataset.splits.values()]
    assert not set.intersection(*shops)
    limited = load("csv", path=file, **options(limit=60, task="regression"))
    assert limited.info.num_rows == {"train": 48, "test": 12}
    sampled = load("csv", path=file, **options(sample=0.5, task="regression"))
    assert sampled.info.num_rows == {"train": 80, "test": 20}


@pytest.mark.parametrize("memory", ["resident", "stream"])
def test_new_rows_are_prepared_as_in_training_from_json_alone(load, tmp_path, memory):
    keys = options(path=write(tmp_path / "sales", sales(), "parquet"), memory=memory)
    dataset = load("parquet", **keys)
    encoding = json.loads(json.dumps(dataset.encoding, allow_nan=False))
    conf = TypeAdapter(confs()["parquet"]).validate_python(keys)
    reader = load_source("parquet").open_rows(conf, encoding)
    chunks = [chunk for piece in reader.pieces for chunk in reader.read(piece, with_labels=True)]
    new = {"id": np.concatenate([chunk.kept["id"] for chunk in chunks]), "x": np.concatenate([one.x for one in chunks])}
    np.testing.assert_array_equal(new["id"], np.arange(NUM_ROWS))
    known = {row.tobytes() for split in dataset.splits.values() for row in rows(split)["x"]}
    assert {row.tobytes() for row in new["x"]} == known


def test_a_new_file_may_write_numbers_as_text_and_hold_unknown_values(load, tmp_path):
    dataset = load("parquet", **options(path=write(tmp_path / "sales", sales(), "parquet")))
    new = sales().assign(size=lambda frame: frame["size"].astype(str).replace("nan", None), colour="violet")
    conf = TypeAdapter(confs()["parquet"]).validate_python(options(path=write(tmp_path / "new", new, "parquet")))
    reader = load_source("parquet").open_rows(conf, dataset.encoding)
    x = np.concatenate([chunk.x for piece in reader.pieces for chunk in reader.read(piece)])
    assert np.isfinite(x).all()
    assert not x[:, 2:5].any()


def test_a_column_is_cast_before_a_preprocessor_takes_it(load, tmp_path):
    keys = options(path=write(tmp_path / "sales", sales()), dtypes={"shop": "string", "weight": "string"})
    steps = [{"type": "OneHotEncoder", "columns": ["shop"]}, {"type": "SimpleImputer", "columns": ["size"]}]
    for memory in ("resident", "stream"):
        dataset = load("csv", memory=memory, **{**keys, "preprocessors": steps, "drop": ["colour", "weight"]})
        assert dataset.info.feature_names == ("size", "shop=0", "shop=1", "shop=2", "shop=3")


def test_text_that_no_preprocessor_encodes_is_a_category(load, tmp_path):
    frame = sales().assign(colour=lambda frame: frame["colour"].where(frame["id"] % 7 > 0))
    filled = [{"type": "SimpleImputer", "columns": ["colour"], "strategy": "most_frequent"}]
    for memory in ("resident", "stream"):
        path = write(tmp_path / memory, frame)
        dataset = load("csv", path=path, memory=memory, on_missing="keep", **options(preprocessors=filled))
        assert dataset.info.categories == {"colour": ("<blue>", "green", "red")}
        assert not np.isnan(rows(dataset.splits["train"])["x"][:, 2]).any()


def table(**columns):
    return [("here", pa.table(columns))]


def made(steps, columns):
    """Return what preprocessors make of the rows that they are fitted on, by feature."""
    fitted = fit(steps, table(**columns), list(columns))
    stored = TypeAdapter(Preprocessing).validate_json(TypeAdapter(Preprocessing).dump_json(fitted))
    out = stored.apply(table(**columns)[0][1], "here")
    assert tuple(out.column_names) == stored.features
    return {name: out[name].to_pylist() for name in out.column_names}


NUMBERS = {"a": [1.0, 2.0, 3.0, 6.0], "b": [-4, 0, 2, 2]}


@pytest.mark.parametrize(
    ("step", "columns", "expected"),
    [
        ({"type": "StandardScaler"}, {"b": [-1, 1]}, {"b": [-1, 1]}),
        ({"type": "MinMaxScaler"}, NUMBERS, {"a": [0, 0.2, 0.4, 1], "b": [0, 4 / 6, 1, 1]}),
        ({"type": "MaxAbsScaler"}, {"b": [-4, 0, 2, 2]}, {"b": [-1, 0, 0.5, 0.5]}),
        ({"type": "RobustScaler"}, {"a": [1.0, 2.0, 3.0, 4.0, 9.0]}, {"a": [-1, -0.5, 0, 0.5, 3]}),
        (
            {"type": "RobustScaler", "quantile_range": [0, 1]},
            {"a": [0, 1, 2, 4]},
            {"a": [-0.375, -0.125, 0.125, 0.625]},
        ),
        ({"type": "SimpleImputer"}, {"a": [1.0, None, 3.0]}, {"a": [1, 2, 3]}),
        (
            {"type": "SimpleImputer", "strategy": "most_frequent"},
            {"a": [True, None, True], "b": ["x", "y", None]},
            {"a": [1, 1, 1], "b": ["x", "y", "x"]},
        ),
        ({"type": "SimpleImputer", "strategy": "constant", "fill_value": 7}, {"a": [None, 1.0]}, {"a": [7, 1]}),
        ({"type": "OrdinalEncoder"}, {"a": ["x", "z", "y"], "b": [10, 5, 10]}, {"a": [0, 2, 1], "b": [1, 0, 1]}),
        (
            {"type": "OneHotEncoder", "max_categories": {"a": 1}},
            {"a": ["x", "z", "z"], "b": [1, 2, 1]},
            {"a=z": [0, 1, 1], "b=1": [1, 0, 1], "b=2": [0, 1, 0]},
        ),
        (
            {"type": "MultiHotEncoder"},
            {"a": [["u", "v"], ["v", "v"], []], "b": [[1], [2], [1, 2]]},
            {"a=u": [1, 0, 0], "a=v": [1, 2, 0], "b=1": [1, 0, 1], "b=2": [0, 1, 1]},
        ),
        (
            {"type": "CountVectorizer", "max_features": 2},
            {"a": ["to be or not to be", "to do", None]},
            {"a=to": [2, 1, None], "a=be": [2, 0, None]},
        ),
        ({"type": "UniformKBinsDiscretizer", "bins": 2}, {"a": [0.0, 1.0, 9.0, 10.0]}, {"a": [0, 0, 1, 1]}),
        ({"type": "CustomKBinsDiscretizer", "bins": [0, 5, 10]}, {"a": [1.0, 6.0]}, {"a": [0, 1]}),
        ({"type": "PowerTransformer", "power": 2}, {"a": [0.0, 1.0]}, {"a": [0, 1.5]}),
        ({"type": "Normalizer", "norm": "l1"}, {"a": [1.0, 0.0], "b": [3.0, 2.0]}, {"a": [0.25, 0], "b": [0.75, 1]}),
        ({"type": "Concatenator"}, NUMBERS, {"concat_out_0": NUMBERS["a"], "concat_out_1": NUMBERS["b"]}),
        (
            {"type": "FeatureHasher", "num_features": 1, "output_column": "h"},
            NUMBERS,
            {**NUMBERS, "h_0": [-3, 2, 5, 8]},
        ),
        ({"type": "HashingVectorizer", "num_features": 1}, {"a": ["x y", "z"]}, {"a_0": [2, 1]}),
    ],
    ids=lambda value: value.get("type", "") if isinstance(value, dict) else "",
)
def test_a_preprocessor_does_what_ray_says(step, columns, expected):
    found = made([{**step, "columns": list(columns)}], columns)
    assert list(found) == list(expected)
    for name, values in expected.items():
        assert found[name] == (
            pytest.approx(values, nan_ok=True) if None not in values else nan_is_none(found[name], values)
        )


def nan_is_none(found, values):
    return [one if other is None and one != one else other for one, other in zip(found, values, strict=True)]


def test_each_preprocessor_sees_what_the_one_before_made():
    steps = [
        {"type": "Tokenizer", "columns": ["text"], "output_columns": ["words"]},
        {"type": "MultiHotEncoder", "columns": ["words"]},
        {"type": "HashingVectorizer", "columns": ["text"], "num_features": 2},
        {"type": "MinMaxScaler", "columns": ["a"], "output_columns": ["small"]},
        {"type": "StandardScaler", "columns": ["small"]},
    ]
    found = made(steps, {"text": ["x y", "y"], "a": [5, 7]})
    assert list(found) == ["text_0", "text_1", "a", "words=x", "words=y", "small"]
    assert found["a"] == [5, 7]
    assert found["small"] == [-1, 1]
    assert found["words=y"] == [1, 1]


def test_the_arguments_are_those_of_ray():
    from ray.data import preprocessors

    assert set(preprocessors.__all__) == set(ARGUMENTS) | set(NOT_NEEDED)
    without_data = {"tokenization_fn", "dtypes", "quantile_precision", "raise_if_missing", "encode_lists"}
    for name, (needed, optional) in ARGUMENTS.items():
        parameters = list(inspect.signature(getattr(preprocessors, name)).parameters.values())
        assert {one.name for one in parameters if one.default is one.empty} == set(needed)
        assert {one.name for one in parameters} - without_data == {*needed, *optional}


@pytest.mark.parametrize(
    ("steps", "message"),
    [
        ([{"columns": ["size"]}], r"\[0\]: needs a type"),
        ([{"type": "StandardScaller", "columns": ["size"]}], "did you mean: StandardScaler"),
        ([STEPS[0], {"type": "LabelEncoder", "columns": ["y"]}], r"\[1\]: LabelEncoder is not needed: the label is"),
        ([{"type": "MinMaxScaler", "columns": ["size"], "feature_range": [0, 1]}], "it has columns, output_columns"),
        ([{"type": "SimpleImputer", "columns": ["size"], "stategy": "mean"}], "did you mean: strategy"),
        ([{"type": "PowerTransformer", "columns": ["size"]}], r"\[0\] \(PowerTransformer\) needs power"),
        ([{"type": "StandardScaler", "columns": "size"}], "columns must be a list"),
        ([{"type": "StandardScaler", "columns": ["size"], "output_columns": ["a", "b"]}], "same length"),
        (["StandardScaler"], "valid dict"),
    ],
)
def test_a_wrong_preprocessor_is_refused_without_looking_at_data(steps, message):
    with pytest.raises(ValidationError, match=message):
        TypeAdapter(confs()["csv"]).validate_python(options(path="none.csv", preprocessors=steps))


def test_a_wrong_name_on_the_command_line_is_told_in_a_line():
    steps = "dataset.preprocessors=[{type: StandardScalr, columns: [size]}]"
    words = ["dataset=csv", "dataset.path=sales.csv", "dataset.label=y", steps]
    with Session("xgboost", words, schemas(), None) as session, pytest.raises(ConfigError) as raised:
        session.check()
    first = "dataset.preprocessors: [0]: there is no preprocessor StandardScalr; did you mean: StandardScaler"
    assert str(raised.value).splitlines()[0] == first


@pytest.mark.parametrize(
    ("step", "message"),
    [
        ({"type": "StandardScaler", "columns": ["sise"]}, "'sise', which is not a feature.\ndid you mean: size"),
        ({"type": "StandardScaler", "columns": ["y"]}, "'y', which is not a feature"),
        ({"type": "StandardScaler", "columns": ["colour"]}, "needs numbers, but 'colour' contains text"),
        ({"type": "MultiHotEncoder", "columns": ["colour"]}, "needs lists, but 'colour' contains text"),
        (
            {"type": "OneHotEncoder", "columns": ["size"]},
            "null values.*\nFill them in, or train with this before it: {type: SimpleImputer",
        ),
        ({"type": "Tokenizer", "columns": ["colour"]}, "'colour' still contains lists.*\nEncode them: {type: MultiHot"),
        ({"type": "SimpleImputer", "columns": ["size"], "strategy": "median"}, "Strategy median is not supported"),
        ({"type": "MaxAbsScaler", "columns": ["size"], "output_columns": ["y"]}, "create a feature 'y', but"),
    ],
)
@pytest.mark.parametrize("memory", ["resident", "stream"])
def test_a_preprocessor_that_does_not_fit_the_data_is_named(load, tmp_path, memory, step, message):
    with pytest.raises(DatasetError, match=message):
        load("csv", path=write(tmp_path / "sales", sales()), memory=memory, **options(preprocessors=[step]))


def test_a_column_without_values_has_nothing_to_learn_from():
    with pytest.raises(DatasetError, match=r"\[0\] \(StandardScaler\): feature 'a' has no value in the train split"):
        fit([{"type": "StandardScaler", "columns": ["a"]}], table(a=pa.nulls(3)), ["a"])


def test_a_value_that_became_text_is_named_when_new_rows_are_read(load, tmp_path):
    dataset = load("csv", path=write(tmp_path / "sales", sales()), **options())
    new = write(tmp_path / "new", sales().assign(weight="heavy"))
    reader = load_source("csv").open_rows(
        TypeAdapter(confs()["csv"]).validate_python(options(path=new)), dataset.encoding
    )
    with pytest.raises(DatasetError, match=r"new.csv: feature 'weight' is not a number: .*heavy"):
        list(reader.read(reader.pieces[0]))


def test_values_that_are_still_missing_are_named_with_their_split(load, tmp_path):
    with pytest.raises(DatasetError, match=r"sales.csv \(of these the rows of train\): values are missing in 'size'"):
        load("csv", path=write(tmp_path / "sales", sales()), **options(preprocessors=STEPS[1:2], on_missing="error"))


def test_arrays_have_no_columns_to_preprocess(load, tmp_path, monkeypatch):
    (tmp_path / "my_arrays.py").write_text(
        "import numpy as np\ndef load():\n    return {'x': np.eye(9), 'y': np.arange(9) % 2}\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    source = load_source("python", Builder(("my_arrays",)))
    conf = TypeAdapter(confs()["python"]).validate_python({"function": "my_arrays:load", "preprocessors": STEPS})
    with pytest.raises(DatasetError, match="preprocessors requires columns of a table"):
        source.load(conf)


def test_ray_data_is_imported_by_preprocessors_alone(tmp_path):
    file = write(tmp_path / "sales", sales().dropna())
    script = (
        "import sys\nfrom rtrain.datasets.registry import confs, load_source\n"
        f"conf = confs()['csv'](path={file!r}, label='y')\nload_source('csv').load(conf)\n"
        "assert 'ray' not in sys.modules\n"
        "conf.preprocessors = [{'type': 'StandardScaler', 'columns': ['size']}]\nload_source('csv').load(conf)\n"
        "import ray\nassert 'ray.data' in sys.modules and not ray.is_initialized()\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


def test_a_spec_reads_the_columns_that_features_are_made_of():
    from rtrain.datasets.labels import Labels

    fitted = fit([{"type": "OneHotEncoder", "columns": ["a"]}], table(a=["x", "y"], b=[1, 2]), ["a", "b"])
    spec = TableSpec(features=fitted.features, labels=Labels("y", None), on_missing="error", preprocessing=fitted)
    assert spec.features == ("a=x", "a=y", "b")
    assert spec.columns == ("a", "b", "y")


@pytest.mark.parametrize(
    "step",
    [
        {"type": "Chain"},
        {"type": "BatchMapper"},
        {"type": "preprocessor.Preprocessor"},
        {"type": "StandardScaler", "arguments": {"columns": ["size"], "transform_kwargs": {}}},
        {"type": "Tokenizer", "arguments": {"columns": ["size"], "tokenization_fn": "os.system"}},
        {"type": "StandardScaler", "arguments": ["columns"]},
        {"type": "StandardScaler", "arguments": {"columns": "size"}},
    ],
    ids=str,
)
def test_a_checkpoint_names_no_other_preprocessor_than_a_config(step):
    stored = {"inputs": ["size"], "kinds": {"size": "number"}, "parts": {}, "features": ["size"]}
    steps = [{"arguments": {"columns": ["size"]}, "statistics": {}, **step}]
    with pytest.raises(ValidationError):
        TypeAdapter(Preprocessing).validate_python({**stored, "steps": steps})
