"""Where the best checkpoint is chosen on the test split because there is no other, one line says so."""

from pathlib import Path

import pytest

from rtrain.cli.app import run as rtrain

WORDS = ["num_workers=0", "trainer.num_threads=1", "dataset.limit=100"]
NOTICE = "the best checkpoint is chosen on the split 'test'"
EPOCHS = ["trainer.max_epochs=2"]
TREES = ["dataset=sklearn", "dataset.limit=null", "trainer.num_boost_round=3"]


def told(capsys, *words):
    assert rtrain(["fit", *words, *WORDS]) == 0
    return capsys.readouterr().err.count(NOTICE)


@pytest.fixture(autouse=True)
def own_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    "words",
    [
        ["mlp", *EPOCHS],
        ["lightning", *EPOCHS],
        ["mlp", "trainer.max_epochs=1", "trainer.eval_every_steps=1"],
        ["xgboost", *TREES, "trainer.early_stopping={patience: 1}"],
        [
            "sklearn",
            *EPOCHS,
            "trainer.estimator._target_=sklearn.linear_model.SGDClassifier",
            "~trainer.estimator.n_estimators",
        ],
    ],
)
def test_a_choice_on_the_test_split_is_told_once(words, capsys):
    assert told(capsys, *words, "dataset.split.val=null") == 1


@pytest.mark.parametrize(
    "words",
    [
        ["mlp", "trainer.max_epochs=1"],
        ["mlp", *EPOCHS, "trainer.eval_every_epochs=2"],
        ["mlp", *EPOCHS, "dataset.split.val=0.2"],
        ["mlp", *EPOCHS, "trainer.evaluate_split=test"],
        ["mlp", *EPOCHS, "run.checkpoint.best.monitor=test/loss", "dataset.split.val=null"],
        ["mlp", *EPOCHS, "trainer.evaluate_split=none"],
        ["xgboost", *TREES],
        ["xgboost", *TREES, "trainer.early_stopping={patience: 1}", "trainer.eval_splits=[test]"],
        ["sklearn"],
    ],
)
def test_where_nothing_is_chosen_or_the_user_chose_nothing_is_told(words, capsys):
    assert told(capsys, *words) == 0


def test_a_run_that_is_resumed_has_told_it(capsys):
    assert told(capsys, "mlp", *EPOCHS, "dataset.split.val=null") == 1
    assert rtrain(["resume", str(*Path("runs").glob("mlp/2*")), "max_epochs=3"]) == 0
    assert NOTICE not in capsys.readouterr().err


def test_the_trials_of_a_sweep_tell_it_once_together(capsys):
    assert told(capsys, "mlp", *EPOCHS, "dataset.split.val=null", "run.seed=1,2", "--multirun") == 1
