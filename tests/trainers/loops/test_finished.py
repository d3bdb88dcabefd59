"""A run that had ended is resumed: it says that nothing is left, and by which command it trains on; that one works."""

import warnings

import pytest

import rtrain

TREES = ["dataset=sklearn", "trainer.num_boost_round=3"]
EPOCHS = ["dataset.limit=100", "trainer.max_epochs=3"]
STOPS = "trainer.early_stopping={patience: 1, min_delta: 9}"


def resumed(run_dir, *words):
    """Resume a run; return the line that says that nothing is left to train, if it does."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        rtrain.resume(run_dir, [*words, "trainer.num_threads=1"])
    lines = [str(one.message) for one in told]
    return next((line for line in lines if line.startswith("nothing is left to train: ")), "")


@pytest.mark.parametrize(
    ("config", "words", "why", "longer"),
    [
        ("mlp", EPOCHS, "trainer.max_epochs=3 (3 done)", "trainer.max_epochs=6"),
        (
            "mlp",
            [*EPOCHS, "max_epochs=null", "trainer.max_steps=2"],
            "trainer.max_steps=2 (2 done)",
            "trainer.max_steps=4",
        ),
        ("mlp", [*EPOCHS, "trainer.max_seconds=1e-9"], "time limit", "trainer.max_seconds="),
        ("mlp", [*EPOCHS, "run.stop.max_seconds=1e-9"], "time limit", "run.stop.max_seconds="),
        ("mlp", [*EPOCHS, STOPS], "early stopping", "trainer.early_stopping.patience=2"),
        ("mlp", [*EPOCHS, "run.stop.target={val/loss: 9, val/accuracy: 1}"], "its target of 9", "val/loss: null"),
        ("mlp", [*EPOCHS, "run.stop.bounds={val/loss: {max: 0.01}}"], "left its bounds", "{max: "),
        ("mlp", [*EPOCHS, "run.stop.bounds={val/loss: {min: 50}}"], "left its bounds", "{min: "),
        ("xgboost", [*TREES, "run.stop.target={test/accuracy: 0}"], "its target of 0", "test/accuracy: null"),
        ("xgboost", TREES, "trainer.num_boost_round=3 (3 done)", "trainer.num_boost_round=6"),
        ("lightgbm", TREES, "trainer.num_boost_round=3 (3 done)", "trainer.num_boost_round=6"),
        ("lightning", EPOCHS, "trainer.max_epochs=3 (3 done)", "trainer.max_epochs=6"),
    ],
)
def test_a_run_that_has_ended_says_how_it_trains_on(config, words, why, longer, tmp_path):
    run = rtrain.fit(config, [*words, "num_workers=0", "trainer.num_threads=1", f"run.root_dir={tmp_path / 'my runs'}"])
    line = resumed(run.path)
    assert why in line
    call = line.partition("To continue training: ")[2]
    assert longer in call
    before = max(event.step for event in run.events())
    eval(call, {"rtrain": rtrain})
    assert max(event.step for event in run.events()) > before


@pytest.mark.parametrize("trainer", ["xgboost", "lightgbm"])
@pytest.mark.parametrize("workers", [0, 1])
def test_trees_whose_best_round_was_long_ago_have_ended_well_after_they_are_resumed(trainer, workers, tmp_path):
    words = ["dataset=sklearn", "dataset.name=diabetes", "trainer.num_boost_round=80", f"run.root_dir={tmp_path}"]
    run = rtrain.fit(trainer, [*words, f"num_workers={workers}", "trainer.num_threads=1"])
    assert run.manifest.model["best_round"] < 70
    assert "num_boost_round=80 (80 done)" in resumed(run.path)
    again = rtrain.Run.load(run.path)
    assert again.status == "succeeded"
    assert (again.manifest.best, again.manifest.model) == (run.manifest.best, run.manifest.model)


def test_a_schedule_of_the_length_of_the_run_begins_a_new_one(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words = [*EPOCHS, "scheduler=cosine", "num_workers=0", "trainer.num_threads=1"]
    run = rtrain.fit("mlp", [*words, f"run.root_dir={tmp_path / 'my runs'}"])
    line = resumed(run.path)
    call = line[line.index("rtrain.fit(") :]
    assert eval(call, {"rtrain": rtrain}).manifest.parent_run is not None


def test_an_estimator_that_was_fitted_at_once_is_not_extended(tmp_path):
    run = rtrain.fit("sklearn", ["dataset.limit=100", "num_workers=0", f"run.root_dir={tmp_path / 'my runs'}"])
    assert "rtrain resume" not in resumed(run.path)
