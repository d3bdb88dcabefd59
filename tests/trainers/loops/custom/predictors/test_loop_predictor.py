"""What a loop has trained is evaluated and predicts, by a function of the user's that reads its checkpoint."""

import json
import shutil

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import csv, parquet
from sklearn.metrics import accuracy_score, f1_score, log_loss, roc_auc_score

import rtrain
from rtrain.cli.app import run as command
from rtrain.errors import CheckpointError, ConfigError, DatasetError, PredictionError

MODULE = """
import sys
import tempfile
from pathlib import Path

import numpy as np
import ray.train
from ray.train import Checkpoint


def train(config):
    rows = list(ray.train.get_dataset_shard("train").iter_rows())
    x, y = np.stack([row["x"] for row in rows]), np.array([row["y"] for row in rows])
    begin = ray.train.get_checkpoint()
    with tempfile.TemporaryDirectory() as folder:
        np.save(Path(folder, "centers.npy"), np.stack([x[y == one].mean(0) for one in np.unique(y)]))
        ray.train.report({"n": len(y), "began": "" if begin is None else begin.path}, Checkpoint(folder))


def train_alone():
    with tempfile.TemporaryDirectory() as folder:
        np.save(Path(folder, "centers.npy"), np.array([0.0, 1.0]))
        ray.train.report({}, Checkpoint(folder))


def centers(folder):
    assert isinstance(folder, Path) and len(sys.argv) == 1
    return np.load(folder / "centers.npy")


def distances(x, found):
    return ((x[:, None].astype("float64") - found[None]) ** 2).sum(-1)


def probabilities_of(x, found):
    raised = np.exp(-distances(x, found))
    return raised / raised.sum(1, keepdims=True)


def load(folder):
    found = centers(folder)

    def predict(batch):
        assert len(batch["x"]) <= 1024
        return probabilities_of(batch["x"], found)

    return predict


class Model:
    def __init__(self, folder, config):
        self.found, self.sizes = centers(folder), config["note"]

    def __call__(self, batch):
        probabilities = probabilities_of(np.stack([batch["a"], batch["b"]], 1), self.found)
        batch["x"] *= 0  # its own copy
        return {"prediction": probabilities, "note": [self.sizes] * len(probabilities), "both": batch["x"]}

    def metrics(self, batch):
        return {"share_of_red": (batch["y"] == 1).mean(), "rows": len(batch["y"])}


class ByName:
    def __init__(self, folder):
        self.found = centers(folder)

    def predict(self, batch):
        return np.array(["blue", "red"])[probabilities_of(batch["x"], self.found).argmax(1)]


def of_second(folder):
    inner = load(folder)
    return lambda batch: inner(batch)[:, 1:]


def half(folder):
    import torch

    inner = load(folder)
    return lambda batch: torch.tensor(inner(batch), requires_grad=True).float()


def frame(folder):
    import pandas

    inner = load(folder)
    return lambda batch: pandas.DataFrame({"prediction": inner(batch)[:, 1], "more": 1})


def classes(folder):
    inner = load(folder)
    return lambda batch: inner(batch).argmax(1).tolist()


class Kinds:
    def __init__(self, folder):
        pass

    def __call__(self, batch):
        return batch["kind"]


def alone(folder):
    found = centers(folder)
    return lambda batch: {"prediction": batch["a"] * found[1], "id2": batch["id"]}


class Measures:
    def __init__(self, folder):
        self.predict = alone(folder)

    def metrics(self, batch):
        return {"share": (batch["kind"] == "red").mean()}


def fails_to_load(folder):
    return open(folder / "nothing").read()


def fails(folder):
    return lambda batch: batch["nothing"]


def exits(folder):
    return lambda batch: sys.exit(3)


def of_one_row_less(folder):
    return lambda batch: np.zeros(len(batch["x"]) - 1)


def column_of_one_row_less(folder):
    return lambda batch: {"prediction": np.zeros(len(batch["x"])), "more": [1]}


def of_nothing(folder):
    return lambda batch: None


def no_function(folder):
    return 3


def logits(folder):
    return lambda batch: np.ones((len(batch["x"]), 2))


def unknown_class(folder):
    return lambda batch: ["green"] * len(batch["x"])


def too_many_classes(folder):
    return lambda batch: np.ones((len(batch["x"]), 3)) / 3


def high_class(folder):
    return lambda batch: np.full(len(batch["x"]), 2)


def ragged(folder):
    return lambda batch: [[0], [1, 2]] * (len(batch["x"]) // 2)


def of_three(folder, config, more):
    return None
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """A loop on a CSV file of two numbers and two classes, one without a dataset, and one with several."""
    folder = tmp_path_factory.mktemp("own")
    (folder / "pyproject.toml").write_text("")
    (folder / "own_centers.py").write_text(MODULE)
    rng = np.random.default_rng(0)
    x = rng.normal(size=(300, 2))
    kind = np.where(x.sum(axis=1) + rng.normal(size=300) > 0, "red", "blue")
    table = pa.table({"id": [f"row{one}" for one in range(300)], "a": x[:, 0], "b": x[:, 1], "kind": kind})
    csv.write_csv(table, folder / "rows.csv")
    trainer = "trainer: {type: torch, train_loop: 'own_centers:%s'%s}\n"
    rest = f"run: {{root_dir: {folder}/runs}}\nscaling: {{num_workers: 0}}\n"
    data = f"dataset: {{type: csv, path: {folder}/rows.csv, label: kind, ids: [id]}}\n"
    (folder / "own.yaml").write_text(trainer % ("train", ", train_loop_config: {note: a}") + data + rest)
    (folder / "alone.yaml").write_text(trainer % ("train_alone", "") + rest)
    several = "".join(f"  {name}: {{type: csv, path: {folder}/rows.csv}}\n" for name in ("train", "held"))
    (folder / "several.yaml").write_text(trainer % ("train_alone", "") + f"datasets:\n{several}" + rest)
    return folder


@pytest.fixture(scope="module")
def trained(project):
    return rtrain.fit(str(project / "own.yaml"), ["trainer.predictor=own_centers:load"])


@pytest.fixture(scope="module")
def without_data(project):
    return rtrain.fit(str(project / "alone.yaml"))


def by_hand(run, x):
    centers = np.load(run.best_checkpoint / "centers.npy")
    raised = np.exp(-((x[:, None].astype("float64") - centers[None]) ** 2).sum(-1))
    return raised / raised.sum(1, keepdims=True)


def rows_of(project):
    table = csv.read_csv(project / "rows.csv")
    x = np.stack([table["a"].to_numpy(), table["b"].to_numpy()], 1).astype("float32")
    return x, (np.array(table["kind"].to_pylist()) == "red").astype(int)


def test_predictions_are_those_of_the_function(trained, project, tmp_path):
    words = [f"dataset.path={project}/rows.csv"]
    assert rtrain.predict(trained.path, tmp_path / "out.parquet", words) == 300
    found = parquet.read_table(tmp_path / "out.parquet").to_pydict()
    x, _ = rows_of(project)
    expected = by_hand(trained, x)
    assert list(found) == ["id", "prediction", "probability_blue", "probability_red"]
    np.testing.assert_array_equal(found["probability_red"], expected[:, 1])
    assert found["prediction"] == ["red" if one else "blue" for one in expected.argmax(1)]
    assert found["id"][:2] == ["row0", "row1"]


def test_an_evaluation_measures_what_declared_models_are_measured_by(trained, project):
    x, y = rows_of(project)
    expected = by_hand(trained, x)
    found = rtrain.evaluate(trained.path, [f"dataset.path={project}/rows.csv"])
    assert found == pytest.approx(
        {
            "num_rows": 300,
            "loss": log_loss(y, expected),
            "accuracy": accuracy_score(y, expected.argmax(1)),
            "f1_macro": f1_score(y, expected.argmax(1), average="macro"),
            "auc": roc_auc_score(y, expected[:, 1]),
        },
        rel=1e-6,
    )
    assert rtrain.evaluate(trained.path)["num_rows"] == 60


def test_another_predictor_may_be_named_later_with_columns_and_metrics_of_its_own(trained, project, tmp_path):
    words = [f"dataset.path={project}/rows.csv", "trainer.predictor=own_centers:Model"]
    rtrain.predict(trained.path, tmp_path / "out.parquet", words)
    found = parquet.read_table(tmp_path / "out.parquet").to_pydict()
    assert list(found) == ["id", "prediction", "probability_blue", "probability_red", "note", "both"]
    assert (found["note"][0], found["both"][0]) == ("a", [0.0, 0.0])
    measured = rtrain.evaluate(trained.path, words)
    _, y = rows_of(project)
    assert measured["share_of_red"] == pytest.approx(y.mean())
    assert measured["accuracy"] == rtrain.evaluate(trained.path, words[:1])["accuracy"]


def test_classes_by_name_are_measured_without_probabilities(trained, project, tmp_path):
    words = [f"dataset.path={project}/rows.csv", "trainer.predictor=own_centers:ByName"]
    expected = rtrain.evaluate(trained.path, words[:1])
    measured = ("num_rows", "accuracy", "f1_macro")
    assert rtrain.evaluate(trained.path, words) == {name: expected[name] for name in measured}
    rtrain.predict(trained.path, tmp_path / "out.csv", words)
    assert (tmp_path / "out.csv").read_text().splitlines()[0] == '"id","prediction"'


@pytest.mark.parametrize("name", ["half", "frame", "classes"])
def test_tensors_tables_and_lists_are_taken(trained, project, name):
    words = [f"dataset.path={project}/rows.csv", f"trainer.predictor=own_centers:{name}"]
    expected = rtrain.evaluate(trained.path, words[:1])["accuracy"]
    assert rtrain.evaluate(trained.path, words)["accuracy"] == pytest.approx(expected, abs=0.01)


def test_probabilities_of_the_second_class_are_enough(trained, project):
    words = [f"dataset.path={project}/rows.csv", "trainer.predictor=own_centers:of_second"]
    assert rtrain.evaluate(trained.path, words) == pytest.approx(rtrain.evaluate(trained.path, words[:1]))


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("fails_to_load", "No such file"),
        ("fails", "KeyError: 'nothing'"),
        ("exits", "exit(3)"),
        ("of_one_row_less", "has 299 rows; the batch has 300"),
        ("column_of_one_row_less", "'more' in the result of own_centers:column_of_one_row_less has 1 rows"),
        ("of_nothing", "is nothing"),
        ("no_function", "not a function of a batch"),
        ("logits", "invalid probabilities"),
        ("unknown_class", "the class 'green'; csv has blue, red"),
        ("too_many_classes", "shape (3,) per row; csv has 2 classes"),
        ("high_class", "not one of the 2 classes"),
        ("ragged", "can't become an array"),
    ],
)
def test_a_wrong_predictor_is_named_with_the_users_line_and_nothing_is_written(
    trained, project, tmp_path, capsys, name, said
):
    words = [f"dataset.path={project}/rows.csv", f"trainer.predictor=own_centers:{name}"]
    code = command(["predict", str(trained.path), *words, "-o", str(tmp_path / "out.csv")])
    shown = capsys.readouterr().err
    assert code == 1
    assert said in shown
    assert f"own_centers:{name}" in shown
    assert ("own_centers.py:" in shown) == (name in ("fails_to_load", "fails", "exits"))
    assert list(tmp_path.iterdir()) == []
    if name != "high_class":
        with pytest.raises(PredictionError):
            rtrain.evaluate(trained.path, words)


def test_a_predictor_is_looked_at_before_training(project):
    with pytest.raises(ConfigError, match=r"trainer\.predictor: own_centers:of_three.*can't be called with a folder"):
        rtrain.fit(str(project / "own.yaml"), ["trainer.predictor=own_centers:of_three"])
    with pytest.raises(ConfigError, match="has no 'lod'"):
        rtrain.fit(str(project / "own.yaml"), ["trainer.predictor=own_centers:lod"])


def test_without_a_predictor_the_files_are_listed_with_what_to_write(project):
    run = rtrain.fit(str(project / "own.yaml"))
    with pytest.raises(CheckpointError, match=r"It contains: centers\.npy") as caught:
        rtrain.evaluate(run.path)
    assert "trainer.predictor=my_module:load" in caught.value.hint


def test_a_checkpoint_of_another_account_runs_nothing(trained, tmp_path):
    folder = tmp_path / "copy"
    shutil.copytree(trained.best_checkpoint, folder)
    about = json.loads((folder / "about.json").read_text())
    (folder / "about.json").write_text(json.dumps({**about, "seal": "0" * 64}))
    (folder / "checkpoint.json").unlink()
    with pytest.raises(CheckpointError, match="another account"):
        rtrain.evaluate(folder)
    assert rtrain.evaluate(folder, trust=True)["num_rows"] == 60


def test_files_that_somebody_changed_run_nothing(trained, tmp_path):
    folder = tmp_path / "copy"
    shutil.copytree(trained.best_checkpoint, folder)
    (folder / "more.pkl").write_text("")
    with pytest.raises(CheckpointError, match="another account"):
        rtrain.evaluate(folder)


@pytest.fixture(scope="module")
def with_several(project):
    return rtrain.fit(str(project / "several.yaml"))


@pytest.mark.parametrize("data", ["without_data", "with_several"])
def test_a_loop_without_one_dataset_predicts_from_columns_as_they_are(data, project, tmp_path, request):
    without_data = request.getfixturevalue(data)
    words = ["dataset=csv", f"dataset.path={project}/rows.csv", "trainer.predictor=own_centers:alone"]
    assert rtrain.predict(without_data.path, tmp_path / "out.parquet", words) == 300
    found, given = parquet.read_table(tmp_path / "out.parquet"), csv.read_csv(project / "rows.csv")
    assert found.column_names == ["id", "a", "b", "kind", "prediction", "id2"]
    np.testing.assert_array_equal(found["prediction"], given["a"])
    rtrain.predict(without_data.path, tmp_path / "ids.parquet", [*words, "dataset.ids=[id]"])
    assert parquet.read_table(tmp_path / "ids.parquet").column_names == ["id", "prediction", "id2"]
    with pytest.raises(PredictionError, match="no known labels"):
        rtrain.evaluate(without_data.path, words)
    own = rtrain.evaluate(without_data.path, [*words[:2], "trainer.predictor=own_centers:Measures"])
    _, y = rows_of(project)
    assert own == pytest.approx({"num_rows": 300, "share": y.mean()})


def test_a_loop_without_one_dataset_is_compared_with_the_labels_that_are_named(without_data, project, tmp_path):
    words = ["dataset=csv", f"dataset.path={project}/rows.csv", "trainer.predictor=own_centers:alone"]
    assert rtrain.evaluate(without_data.path, [*words, "dataset.label=a"])["r2"] == pytest.approx(1)
    found = rtrain.evaluate(
        without_data.path, [*words[:2], "trainer.predictor=own_centers:Kinds", "dataset.label=kind"]
    )
    assert (found["num_rows"], found["accuracy"]) == (300, 1)
    with pytest.raises(DatasetError, match="'kin' is not a column") as caught:
        rtrain.evaluate(without_data.path, [*words, "dataset.label=kin"])
    assert "kind" in caught.value.hint
    with pytest.raises(ConfigError, match=r"dataset.label=kind has no effect") as refused:
        rtrain.predict(without_data.path, tmp_path / "out.csv", [*words, "dataset.label=kind"])
    assert "rtrain evaluate" in refused.value.hint
    assert not (tmp_path / "out.csv").exists()


@pytest.mark.parametrize(
    ("data", "trained"), [("without_data", "read its data itself"), ("with_several", "on several data sets")]
)
def test_a_loop_without_one_dataset_asks_what_reads_the_rows(data, trained, tmp_path, request):
    path = request.getfixturevalue(data).path
    for words in ([], ["dataset.path=rows.csv"]):
        with pytest.raises(ConfigError, match=trained) as caught:
            rtrain.predict(path, tmp_path / "out.csv", words)
        assert "dataset=csv" in caught.value.hint


@pytest.mark.parametrize("source", ["digits", "synthetic"])
def test_a_source_without_columns_is_refused_for_a_loop_that_read_its_data_itself(without_data, source, tmp_path):
    words = ["trainer.predictor=own_centers:alone", f"dataset={source}"]
    for ask in (rtrain.evaluate, lambda run, words: rtrain.predict(run, tmp_path / "out.csv", words)):
        with pytest.raises(ConfigError, match=f"dataset={source} has no columns for trainer.predictor"):
            ask(without_data.path, words)
    assert not (tmp_path / "out.csv").exists()


def test_declared_models_have_no_other_predictor(project):
    with pytest.raises(ConfigError, match=r"trainer\.predictor has no effect"):
        rtrain.fit("mlp", ["trainer.predictor=own_centers:load", "num_workers=0", f"run.root_dir={project}/no"])


def test_a_checkpoint_is_loaded_in_python_with_its_folder(trained, without_data, project):
    found = rtrain.load_checkpoint(trained.path)
    x, _ = rows_of(project)
    assert found.path == trained.best_checkpoint.resolve()
    assert found.info.class_names == ("blue", "red")
    np.testing.assert_array_equal(found.predict(x), by_hand(trained, x))
    np.testing.assert_array_equal(found.predict({"x": x}), by_hand(trained, x))
    features = dict(zip(found.info.feature_names, x.T, strict=True))
    np.testing.assert_array_equal(found.predict(features), by_hand(trained, x))
    changes = rtrain.load_checkpoint(trained.path, ["trainer.predictor=own_centers:Model"])
    given = {"a": x[:, 0].copy(), "b": x[:, 1].copy(), "x": x.copy()}
    assert not changes.predict(given)["both"].any()
    np.testing.assert_array_equal(given["x"], x)
    alone = rtrain.load_checkpoint(without_data.path, ["trainer.predictor=own_centers:alone"])
    given = alone.predict({"a": [1.0, 2.0], "id": ["x", "y"]})
    assert (list(given["prediction"]), list(given["id2"])) == ([1.0, 2.0], ["x", "y"])
    with pytest.raises(CheckpointError, match=str(without_data.best_checkpoint)) as caught:
        rtrain.load_checkpoint(without_data.path)
    assert "trainer.predictor=my_module:load" in caught.value.hint
    with pytest.raises(ConfigError, match=r"dataset\.path=new\.csv has no effect"):
        rtrain.load_checkpoint(trained.path, ["dataset.path=new.csv"])


@pytest.mark.parametrize("table", [pa.table, pd.DataFrame, pl.DataFrame], ids=["arrow", "pandas", "polars"])
def test_the_columns_of_a_table_are_found_by_their_names(trained, project, table):
    found = rtrain.load_checkpoint(trained.path)
    x, _ = rows_of(project)
    features = dict(zip(found.info.feature_names, x.T, strict=True))
    mixed = table({"more": np.arange(len(x)), **dict(reversed(features.items()))})
    np.testing.assert_array_equal(found.predict(mixed), by_hand(trained, x))


@pytest.mark.parametrize("table", [pa.table, pd.DataFrame, pl.DataFrame], ids=["arrow", "pandas", "polars"])
def test_a_declared_model_takes_no_table(declared, table):
    with pytest.raises(PredictionError, match="prepared rows"):
        rtrain.load_checkpoint(declared.path).predict(table({"a": [1.0], "b": [2.0]}))


@pytest.fixture(scope="module")
def declared(tmp_path_factory):
    folder = tmp_path_factory.mktemp("declared")
    words = ["dataset=digits", "num_workers=0", "trainer.num_boost_round=2", f"run.root_dir={folder}"]
    return rtrain.fit("lightgbm", words)


def test_a_declared_model_is_loaded_in_python_too(declared):
    found = rtrain.load_checkpoint(declared.path)
    x = np.zeros((3, *found.info.input_shape), found.info.dtype)
    assert found.predict(x).shape == (3, 10)


def test_no_rows_are_refused(trained, tmp_path):
    (tmp_path / "none.csv").write_text("a,b\n")
    with pytest.raises(ConfigError):
        rtrain.predict(trained.path, tmp_path / "out.csv", [f"dataset.path={tmp_path}/none.csv"])


@pytest.mark.slow
def test_actors_of_ray_predict_the_same(trained, without_data, project, tmp_path):
    words = [f"dataset.path={project}/rows.csv"]
    alone = [*words, "dataset=csv", "trainer.predictor=own_centers:alone"]
    for run, given in ((trained, words), (without_data, alone)):
        for name, more in (("here", []), ("there", ["num_workers=1"])):
            rtrain.predict(run.path, tmp_path / f"{name}.parquet", [*given, *more], force=True)
        assert parquet.read_table(tmp_path / "here.parquet").equals(parquet.read_table(tmp_path / "there.parquet"))
    with pytest.raises(PredictionError, match="own_centers:fails failed: KeyError: 'nothing'"):
        rtrain.evaluate(trained.path, [*words, "trainer.predictor=own_centers:fails", "num_workers=1"])
