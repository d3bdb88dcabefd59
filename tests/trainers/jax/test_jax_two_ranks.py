"""Two processes are one world: they train what one process trains."""

import numpy as np
import pytest
from jax_runs import DROPOUT, MLP, assert_same, fit, fit_rank, make_conf, weights

import rtrain
from rtrain.errors import TrainingError
from rtrain.testing.small_data import UnevenSplit, small_dataset
from rtrain.testing.workers import make_worker

CLOSE = {"rtol": 1e-4, "atol": 1e-6}


@pytest.mark.parametrize(("model", "num_train"), [(MLP, 150), (DROPOUT, 160)], ids=["uneven", "dropout"])
def test_two_ranks_train_what_one_trains(tmp_path, ranks, model, num_train):
    conf, data = make_conf(model=model), small_dataset(num_rows=(num_train, 37))
    one = fit(tmp_path / "one", conf, data)
    two = ranks.run(fit_rank, tmp_path / "two", conf, data)
    assert_same(weights(tmp_path / "one"), weights(tmp_path / "two"), **CLOSE)
    assert two[1].of("metrics") == []
    for name in ("train/epoch_loss", "test/loss", "test/accuracy"):
        assert two[0].metrics[name] == pytest.approx(one.metrics[name], rel=1e-4)
    rows = [channel.of("worker")[-1]["facts"]["num_rows"] for channel in two]
    assert [sum(row[name] for row in rows) for name in ("train", "test")] == [num_train, 37]


def test_two_ranks_resume_to_the_same_numbers(tmp_path, ranks):
    conf = make_conf(model=DROPOUT)
    ranks.run(fit_rank, tmp_path / "a", conf)
    stopped = ranks.run(fit_rank, tmp_path / "b", conf, stop_after=(None, 1))
    assert stopped[0].of("checkpoint")[-1]["step"] < 15, "the wish of one rank stops both"
    ranks.run(fit_rank, tmp_path / "b", conf)
    assert_same(weights(tmp_path / "a"), weights(tmp_path / "b"), rtol=0, atol=0)


def test_a_checkpoint_of_two_ranks_is_resumed_by_one(tmp_path, ranks):
    ranks.run(fit_rank, tmp_path, make_conf(max_epochs=1))
    fit(tmp_path, make_conf(max_epochs=2))
    fit(tmp_path / "one", make_conf(max_epochs=2))
    assert_same(weights(tmp_path), weights(tmp_path / "one"), **CLOSE)


def test_uneven_streams_lose_no_row_and_hang_nobody(tmp_path, ranks):
    data = small_dataset(split=UnevenSplit)
    two = ranks.run(fit_rank, tmp_path, make_conf(max_epochs=2), data)
    rows = [channel.of("worker")[-1]["facts"]["num_rows"] for channel in two]
    assert [row["train"] for row in rows] == [30, 120]
    assert [row["test"] for row in rows] == [7, 30]
    assert np.isfinite(two[0].metrics["test/loss"])


def test_workers_that_are_no_world_are_a_failure(tmp_path):
    from rtrain.trainers.jax.world import world_of

    with pytest.raises(TrainingError, match="JAX sees 1 processes, but there are 2 workers"):
        world_of(make_worker(tmp_path, make_conf(), small_dataset(), world_size=2))


FUNCTIONS = """
import jax, numpy as np
from jax.experimental.multihost_utils import process_allgather

def meet(worker):
    total = float(process_allgather(np.float32(worker.rank + 1)).sum())
    worker.report({"total": total, "processes": jax.process_count()}, step=1, epoch=1)

def fail(worker):
    if worker.rank == 1:
        raise ValueError("rank one has had enough")
    process_allgather(np.float32(1))
"""


@pytest.mark.slow
def test_functions_of_ones_own_meet_and_a_failed_rank_keeps_nobody_waiting(tmp_path):
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "own_jax.py").write_text(FUNCTIONS)
    (tmp_path / "own.yaml").write_text("trainer: {type: jax, train_function: 'own_jax:meet'}")
    words = ["num_workers=2", f"run.root_dir={tmp_path}/runs"]
    run = rtrain.fit(str(tmp_path / "own.yaml"), words)
    assert run.metrics == {"total": 3.0, "processes": 2.0}
    with pytest.raises(TrainingError, match="ValueError on worker 1: rank one has had enough"):
        rtrain.fit(str(tmp_path / "own.yaml"), [*words, "trainer.train_function=own_jax:fail"])
