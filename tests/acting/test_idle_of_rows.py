"""Keys of which only the rows tell that they have no effect: typed they are refused, in a file they are a note."""

import pytest

from rtrain.config.diagnostics.idle import check_with_rows
from rtrain.config.needs import Way
from rtrain.config.session import Session
from rtrain.errors import ConfigError
from rtrain.runs.observer import SilentObserver
from rtrain.schemas import schemas
from rtrain.training.preparation import load_dataset

STEPS = "before that many steps"
EVALUATIONS = "before that many evaluations"
WARMUP = ("scheduler=warmup_cosine", "trainer.scheduler.num_warmup_steps=40")
OPTAX = (
    "trainer.optimizer={_target_: optax.adam, learning_rate: {_target_: optax.warmup_cosine_decay_schedule,"
    " init_value: 0, peak_value: 0.1, warmup_steps: 40, decay_steps: auto}}"
)
MLP = ("trainer.global_batch_size=64", "max_epochs=2")
"""Two epochs of 20 steps."""
REFUSED = [
    ("mlp", (*MLP, "trainer.eval_every_steps=41"), STEPS),
    ("mlp", (*MLP, "run.checkpoint.every_steps=41"), STEPS),
    ("mlp", (*MLP, "run.log_every_steps=41"), STEPS),
    ("mlp", (*MLP, "trainer.accumulate_steps=2", "run.log_every_steps=21"), STEPS),
    ("mlp", (*MLP, "trainer.early_stopping.patience=1"), EVALUATIONS),
    ("mlp", (*MLP, "trainer.early_stopping.patience=3", "trainer.eval_every_steps=10"), EVALUATIONS),
    ("mlp", (*MLP, *WARMUP), STEPS),
    ("mlp", (*MLP, "scheduler=step", "trainer.scheduler.step_size=40"), STEPS),
    ("mlp", (*MLP, "scheduler=step", "trainer.scheduler_interval=epoch", "trainer.scheduler.step_size=2"), STEPS),
    ("mlp", (*MLP, "trainer.early_stopping.monitor=val/loss"), EVALUATIONS),
    ("mlp", (*MLP, "trainer.max_steps=39"), "trainer.max_steps ends the run earlier"),
    ("xgboost", ("dataset.normalize=true",), "use the numbers as they are"),
    ("lightgbm", ("dataset.normalize=false",), "use the numbers as they are"),
    ("mlp", (*MLP, "+trainer.metrics.f1._target_=torchmetrics.F1Score", "dataset.split={val: 0, test: 0}"), "no rows"),
    ("mlp", (*MLP, "trainer.max_steps=41"), "trainer.max_epochs ends the run earlier"),
    ("mlp", (*MLP, "trainer.eval_batch_size=2", "dataset.split={val: 0, test: 0}"), "no rows to evaluate on"),
    ("mlp", ("dataset=csv", "dataset.path=rows.csv", "dataset.label=y", "dataset.num_shuffle_rows=5"), "fit in memory"),
    ("jax", (*MLP, OPTAX), STEPS),
    ("keras", (*MLP, "run.log_every_steps=41"), STEPS),
    ("transformers", (*MLP, "trainer.arguments.warmup_steps=40"), STEPS),
    ("transformers", ("trainer.max_length=20",), "aren't texts"),
    ("transformers", ("trainer.packing=false",), "aren't texts"),
    ("transformers", ("trainer.tokenizer.train=bpe",), "aren't texts"),
    ("mlp", ("trainer.channels_last=true", "dataset=sklearn"), "aren't images"),
]
TAKEN = [
    ("mlp", (*MLP, "trainer.eval_every_steps=40", "run.checkpoint.every_steps=40", "run.log_every_steps=40")),
    ("mlp", (*MLP, "max_epochs=3", "trainer.early_stopping.patience=1")),
    ("mlp", (*MLP, "trainer.early_stopping.patience=2", "trainer.eval_every_steps=10")),
    ("mlp", ("max_epochs=null", "trainer.max_seconds=9", "trainer.eval_every_steps=4000", "scheduler=step")),
    ("mlp", ("max_epochs=null", "trainer.max_seconds=9", *WARMUP, "trainer.scheduler.num_training_steps=9")),
    ("mlp", (*MLP, "trainer.max_steps=40", "trainer.eval_batch_size=2")),
    ("mlp", ("trainer.max_steps=5",)),
    ("mlp", (*MLP, WARMUP[0], "trainer.scheduler.num_warmup_steps=39")),
]


def notes_with_rows(config, words):
    with Session(config, ("num_workers=0", *words), schemas()) as session:
        composed = session.check()
        dataset = load_dataset(composed, SilentObserver(), None)
    return check_with_rows(composed.awaiting, Way(composed.conf, info=dataset.info))


@pytest.mark.parametrize(("config", "words", "because"), REFUSED, ids=lambda one: str(one).strip("()"))
def test_what_does_nothing_with_these_rows_is_refused_where_it_is_typed(config, words, because, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rows.csv").write_text("x,y\n" + "".join(f"{row},{row % 2}\n" for row in range(40)))
    with pytest.raises(ConfigError) as raised:
        notes_with_rows(config, words)
    assert "has no effect" in str(raised.value)
    assert because in str(raised.value)


@pytest.mark.parametrize(("config", "words"), TAKEN, ids=lambda one: str(one).strip("()"))
def test_what_does_something_with_these_rows_is_taken(config, words):
    assert notes_with_rows(config, words) == ()


def test_what_was_said_before_the_rows_are_read_is_not_said_again():
    assert notes_with_rows("mlp", ("trainer.train_loop=a:b",)) == ()


def test_in_a_file_it_is_a_note(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    keys = "  scheduler: {num_warmup_steps: 50}\n  early_stopping: {patience: 9}\n"
    (tmp_path / "mine.yaml").write_text(
        "defaults: [trainer: torch, model: mlp, optimizer: sgd, scheduler: warmup_cosine, dataset: digits]\n"
        f"trainer:\n  max_epochs: 2\n  global_batch_size: 64\n{keys}run: {{checkpoint: {{every_steps: 50}}}}\n"
    )
    notes = notes_with_rows("mine.yaml", ())
    assert [STEPS in note or EVALUATIONS in note for note in notes] == [True, True]
    assert "run.checkpoint.every_steps and trainer.scheduler.num_warmup_steps have no effect" in notes[0]
    assert notes_with_rows("mine.yaml", ("max_epochs=20",)) == ()
    with pytest.raises(ConfigError, match="patience"):
        notes_with_rows("mine.yaml", ("trainer.early_stopping.patience=5",))


@pytest.mark.parametrize("search", ["optuna", "hyperopt"])
def test_a_search_that_never_begins_to_learn_is_refused(search):
    words = ("lr=0.1,0.2", f"sweep={search}", "sweep.num_trials=9", "sweep.num_startup_trials=9")
    with (
        Session("mlp", ("num_workers=0", *words), schemas()) as session,
        pytest.raises(ConfigError, match="num_startup_trials has no effect"),
    ):
        session.trials()


def test_a_sweep_that_varies_what_decides_is_not_refused():
    words = ("trainer.eval_every_steps=41", "trainer.global_batch_size=64,8", "max_epochs=2")
    with Session("mlp", ("num_workers=0", *words), schemas()) as session:
        assert session.trials().probe.awaiting == {}
