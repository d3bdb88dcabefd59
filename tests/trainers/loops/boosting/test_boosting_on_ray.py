"""Boosted trees on two workers: a run that fails, ends and goes on has the trees of one that nothing happened to."""

import pytest

import rtrain

CODE = '''
import pathlib

calls = 0


def fails_once(predictions, data):
    """A metric of the user's, which raises in the sixth round, on the first worker that gets there, if it has to."""
    global calls
    calls += 1
    if calls == 6:
        try:
            pathlib.Path(__file__).with_name("fail").unlink()
        except FileNotFoundError:
            pass
        else:
            raise RuntimeError("once is enough")
    return RESULT
'''
RESULT = {"xgboost": '"nothing", 0.0', "lightgbm": '"nothing", 0.0, False'}
DRAWING = {
    "xgboost": "{subsample: 0.7, colsample_bynode: 0.5, max_depth: 4}",
    "lightgbm": "{bagging_fraction: 0.7, bagging_freq: 3, feature_fraction: 0.5, num_leaves: 7}",
}
MODEL = {"xgboost": "model.ubj", "lightgbm": "model.txt"}


@pytest.fixture
def project(tmp_path):
    """Code of a user's beside rows in Parquet."""
    import numpy as np
    import pyarrow as pa
    from pyarrow import parquet

    x = np.random.default_rng(0).normal(size=(4001, 6)).astype("float32")
    y = (x[:, 0] * 2 + np.sin(x[:, 1] * 3)).astype("float32")
    columns = {f"f{number}": x[:, number] for number in range(x.shape[1])}
    parquet.write_table(pa.table({**columns, "y": y}), tmp_path / "rows.parquet")
    (tmp_path / "pyproject.toml").write_text("")
    return tmp_path


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("trainer", MODEL)
def test_two_workers_that_fail_and_are_resumed_grow_the_trees_of_an_uninterrupted_run(project, trainer):
    (project / "my_code.py").write_text(CODE.replace("RESULT", RESULT[trainer]))
    (project / "mine.yaml").write_text(f"defaults: [{trainer}]\n")
    words = ["dataset=parquet", f"dataset.path={project}/rows.parquet", "dataset.label=y", "num_workers=2"]
    words += [f"trainer.params={DRAWING[trainer]}", "trainer.num_threads=1", "run.checkpoint.every_steps=4"]
    words += [f"run.root_dir={project}/runs", "trainer.metric_functions=['my_code:fails_once']"]

    def fit(*more):
        return rtrain.fit(str(project / "mine.yaml"), [*words, *more])

    def trees(run):
        text = (run.checkpoints[-1] / MODEL[trainer]).read_bytes()
        return text.partition(b"\nparameters:")[0]

    whole = fit("trainer.num_boost_round=20")
    (project / "fail").touch()
    half = fit("trainer.num_boost_round=10")
    assert [attempt["from_step"] for attempt in half.manifest.attempts] == [0, 4]
    again = rtrain.resume(half.path, ["trainer.num_boost_round=20"])
    assert again.manifest.attempts[-1]["from_step"] == 10
    assert trees(again) == trees(whole)
