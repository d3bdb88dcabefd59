"""XGBoost's own demonstration gives the errors that its documentation prints.

    RTRAIN_TEST_DATA=DIR pytest -m slow tests/acceptance/test_xgboost_agaricus.py

``xgboost-demo`` holds the mushrooms of XGBoost's guided tour: its parameters, three rounds, errors to the last digit.
"""

import pytest

import rtrain

CONFIG = """
defaults: [trainer: xgboost, dataset: libsvm]
dataset: {absent: missing}
trainer:
  num_boost_round: 3
  params: {max_depth: 2, eta: 1, objective: "binary:logistic", base_score: 0.5, eval_metric: error}
"""


@pytest.mark.parametrize("num_workers", [0, 2])
def test_the_errors_of_each_round_are_those_of_the_documentation(tmp_path, data, num_workers):
    folder = data("xgboost-demo")
    (tmp_path / "agaricus.yaml").write_text(CONFIG)
    paths = f"{{train: {folder}/agaricus.txt.train, test: {folder}/agaricus.txt.test}}"
    words = [f"dataset.path={paths}", f"num_workers={num_workers}", f"run.root_dir={tmp_path}/runs"]
    run = rtrain.fit(str(tmp_path / "agaricus.yaml"), words)
    errors = [event.metrics["test/error"] for event in run.events() if "test/error" in event.metrics]
    assert [round(error, 6) for error in errors] == [0.042831, 0.021726, 0.006207]
