"""What is learned in memory is what Ray's preprocessors learn on a cluster."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from rtrain.datasets.tables.preprocessing import fit

NUM_ROWS = 300
STEPS = [
    {"type": "StandardScaler", "columns": ["a", "b"]},
    {"type": "MinMaxScaler", "columns": ["a", "b"]},
    {"type": "MaxAbsScaler", "columns": ["a"]},
    {"type": "SimpleImputer", "columns": ["holes"]},
    {"type": "SimpleImputer", "columns": ["colour"], "strategy": "most_frequent"},
    {"type": "OrdinalEncoder", "columns": ["colour", "b"]},
    {"type": "OneHotEncoder", "columns": ["colour"], "max_categories": {"colour": 3}},
    {"type": "MultiHotEncoder", "columns": ["tags"]},
    {"type": "CountVectorizer", "columns": ["text"], "max_features": 4},
    {"type": "UniformKBinsDiscretizer", "columns": ["a"], "bins": 5},
]


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    settings = {
        "PYTHONBREAKPOINT": "0",  # Ray sets it and leaves it behind
        "RAY_AUTH_MODE": "disabled",
        "RAY_DATA_DISABLE_PROGRESS_BARS": "1",
        "RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0",
        "RAY_USAGE_STATS_ENABLED": "0",
    }
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    import ray

    ray.init("local", num_cpus=2, include_dashboard=False, object_store_memory=100_000_000, log_to_driver=False)
    yield
    ray.shutdown()


def sales() -> pd.DataFrame:
    rng = np.random.default_rng(3)
    words = np.array(["to", "be", "or", "not", "is", "it"])
    return pd.DataFrame(
        {
            "a": rng.normal(5, 2, NUM_ROWS),
            "b": rng.integers(0, 9, NUM_ROWS).astype(float),
            "holes": np.where(rng.random(NUM_ROWS) < 0.2, np.nan, rng.normal(size=NUM_ROWS)),
            "colour": rng.choice(["red", "green", "blue", "grey"], NUM_ROWS, p=[0.4, 0.3, 0.2, 0.1]),
            "tags": [rng.choice(words, 2).tolist() for _ in range(NUM_ROWS)],
            "text": [" ".join(rng.choice(words, 5, p=[0.3, 0.25, 0.2, 0.12, 0.08, 0.05])) for _ in range(NUM_ROWS)],
        }
    )


def matrix(frame: pd.DataFrame, columns: list[str]) -> np.ndarray:
    """Return columns and the elements of vectors side by side."""
    if frame[columns].dtypes.isin([np.dtype(object)]).any():
        return np.asarray(
            [np.concatenate([np.atleast_1d(row[name]) for name in columns]) for _, row in frame.iterrows()]
        )
    return frame[columns].to_numpy()


@pytest.mark.slow
def test_ray_learns_the_same_on_a_cluster(cluster: None) -> None:
    import ray
    from ray.data import preprocessors

    frame = sales()
    rows = ray.data.from_pandas(frame).repartition(3).materialize()
    for step in STEPS:
        arguments = {name: value for name, value in step.items() if name != "type"}
        theirs = getattr(preprocessors, str(step["type"]))(**arguments).fit(rows).transform_batch(frame.copy())
        fitted = fit([step], [("here", pa.Table.from_pandas(frame, preserve_index=False))], list(frame.columns))
        ours = fitted.apply(pa.Table.from_pandas(frame, preserve_index=False), "here")
        made = [name for column in step["columns"] for name in fitted.parts.get(column, (column,))]
        expected = matrix(theirs, list(step["columns"]))
        found = np.stack([ours[name].to_numpy(zero_copy_only=False) for name in made], axis=1)
        if expected.dtype.kind == "f":
            np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12, err_msg=str(step))
        else:
            np.testing.assert_array_equal(found, expected, err_msg=str(step))
