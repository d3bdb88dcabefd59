"""LightGBM on two workers, of which each has rows of its own kind: both have the trees of all rows."""

import lightgbm
import numpy as np
import pytest

import rtrain

ROUNDS = 10


@pytest.fixture
def table(tmp_path):
    """A regression in Parquet: 4,000 rows, sorted by the feature that counts most."""
    import pyarrow as pa
    from pyarrow import parquet

    rng = np.random.default_rng(0)
    x = rng.normal(size=(4000, 4)).astype("float32")
    x = x[np.argsort(x[:, 0])]
    y = (x[:, 0] * 2 + np.sin(x[:, 1] * 3)).astype("float32")
    names = {f"f{index}": x[:, index] for index in range(4)}
    parquet.write_table(pa.table({**names, "y": y}), tmp_path / "rows.parquet")
    return tmp_path


def fit(table, num_workers):
    words = ["dataset=parquet", f"dataset.path={table}/rows.parquet", "dataset.label=y"]
    words += [f"trainer.num_boost_round={ROUNDS}", "trainer.num_threads=1"]
    return rtrain.fit("lightgbm", [*words, f"num_workers={num_workers}", f"run.root_dir={table}/runs"])


@pytest.mark.slow
def test_lightgbm_shares_all_rows_and_gives_the_trees_of_one_worker(table):
    """LightGBM alone would take the bins of a feature from one worker's rows, and be far worse on sorted ones."""
    alone, shared = fit(table, 0), fit(table, 2)
    assert shared.metrics["test/l2"] == pytest.approx(alone.metrics["test/l2"], rel=1e-5)
    rows = [worker["num_rows"]["train"] for worker in shared.manifest.workers.values()]
    assert rows == [1600, 1600]
    for tree in lightgbm.Booster(model_file=shared.best_checkpoint / "model.txt").dump_model()["tree_info"]:
        assert tree["tree_structure"]["internal_count"] == 3200
