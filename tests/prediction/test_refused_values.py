"""NaN and infinite values in rows to predict, of sources that know no tables."""

from dataclasses import replace

import numpy as np
import pytest
from record_files import npy, write_shard

import rtrain
from rtrain.datasets.checked_columns import CHUNK_VALUES, first_infinite
from rtrain.errors import PredictionError
from rtrain.prediction.raw_columns import UNKNOWN
from rtrain.prediction.refused_values import check_values

X = np.random.default_rng(0).normal(size=(120, 3)).astype(np.float32)
Y = (X.sum(axis=1) > 0).astype(int)
SOURCES = ("numpy", "libsvm", "webdataset")


def write(path, x, y):
    """Write rows in the format of a source, and return the file."""
    match path.suffix:
        case ".npz":
            np.savez(path, x=x, y=y)
        case ".svm":
            lines = [" ".join(map(str, (label, *row))) for label, row in zip(y, x, strict=True)]
            path.write_text("\n".join(lines) + "\n")
        case _:
            rows = list(enumerate(zip(x, y, strict=True)))
            write_shard(path, [one for n, (a, b) in rows for one in ((f"{n}.npy", npy(a)), (f"{n}.cls", b"%d" % b))])
    return path


def fit(trainer, folder, source):
    """Return a model of rows in the format of a source, and where new ones go."""
    ending = {"numpy": "npz", "libsvm": "svm", "webdataset": "tar"}[source]
    path = write(folder / f"rows.{ending}", X, Y)
    words = ["num_workers=0", f"dataset={source}", f"dataset.path={path}", f"run.root_dir={folder}/runs"]
    more = ["trainer.max_epochs=1"] if trainer == "mlp" else ["trainer.num_boost_round=2"]
    return rtrain.fit(trainer, [*words, *more]), folder / f"new.{ending}"


@pytest.mark.parametrize("source", SOURCES)
def test_a_network_takes_neither(tmp_path, source):
    run, new = fit("mlp", tmp_path, source)
    for value, message in ((np.nan, "has no value .NaN. at"), (np.inf, "is infinite, or too large for float32, at")):
        x = X[:5].copy()
        x[3, 1] = value
        words = [f"dataset.path={write(new, x, Y[:5])}"]
        with pytest.raises(PredictionError, match=rf"new\.\w+: row 4 {message} '?(f1|place 1)"):
            rtrain.predict(run.path, tmp_path / "out.parquet", words)
        with pytest.raises(PredictionError, match=f"row 4 {message}"):
            rtrain.evaluate(run.path, words)
        assert not (tmp_path / "out.parquet").exists()


def test_trees_take_missing_values(tmp_path):
    run, new = fit("lightgbm", tmp_path, "numpy")
    x = X[:5].copy()
    x[3, 1] = np.nan
    assert rtrain.predict(run.path, tmp_path / "out.parquet", [f"dataset.path={write(new, x, Y[:5])}"]) == 5
    x[3, 1] = -np.inf
    with pytest.raises(PredictionError, match="row 4 is infinite"):
        rtrain.predict(run.path, tmp_path / "other.parquet", [f"dataset.path={write(new, x, Y[:5])}"])
    with pytest.raises(PredictionError, match=r"^x\[3\] is infinite, or too large for float32, at 'f1'"):
        rtrain.load_checkpoint(run.path).predict(x)


def test_an_unknown_category_hides_no_infinite_value():
    info = replace(UNKNOWN, feature_names=("area", "town"), categories={"town": ("a",)})
    check_values(np.array([[1, np.nan]]), info, str, lambda: False)
    with pytest.raises(PredictionError, match="'area'"):
        check_values(np.array([[1, np.nan], [np.inf, 0]]), info, str, lambda: True)


def test_the_first_infinite_value_of_many_rows_is_found():
    x = np.zeros((CHUNK_VALUES, 3, 1), np.float32)
    assert first_infinite(x) is None
    x[5] = np.nan
    x[-1, 2] = -np.inf
    assert first_infinite(x) == (CHUNK_VALUES - 1, 2)
    assert first_infinite(np.zeros((2, 3), np.uint8)) is None
