"""Two processes are one world: they train what one process trains."""

import jax_runs
import pytest
from epochs_contract import EpochsOnTwoRanks, assert_same
from jax_runs import CLOSE, DROPOUT, make_conf, weights
from normalized import LINEN

import rtrain
from rtrain.config.targets import allow_list
from rtrain.errors import TrainingError
from rtrain.testing.small_data import small_dataset
from rtrain.testing.workers import make_worker


class TestTwoRanks(EpochsOnTwoRanks):
    runs, trainer = jax_runs, "jax"

    def test_two_ranks_draw_the_random_numbers_of_one(self, tmp_path, ranks):
        data = small_dataset(num_rows=(160, 37))
        self.assert_same_training(tmp_path, ranks, make_conf(model=DROPOUT), data)

    def test_two_ranks_have_the_batch_statistics_of_one(self, tmp_path, ranks):
        """Steps of 33, 33 and 1 row: none of them can be shared out evenly."""
        conf, data = make_conf(model=LINEN, global_batch_size=33, max_epochs=2), small_dataset(num_rows=(67, 9))
        _fit_normalized(0, tmp_path / "one", conf, data, world_size=1)
        ranks.run(_fit_normalized, tmp_path / "two", conf, data)
        assert_same(weights(tmp_path / "one"), weights(tmp_path / "two"), **CLOSE)


def _fit_normalized(rank, folder, conf, data, world_size=2):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(allow_list, "FRAMEWORKS", allow_list.FRAMEWORKS | {"normalized"})
        jax_runs.fit(folder, conf, data, rank=rank, world_size=world_size)


def test_workers_that_are_no_world_are_a_failure(tmp_path):
    from rtrain.trainers.jax.ranks import ranks_of

    with pytest.raises(TrainingError, match="JAX sees 1 processes, but there are 2 workers"):
        ranks_of(make_worker(tmp_path, make_conf(), small_dataset(), world_size=2))


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
