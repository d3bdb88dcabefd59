"""Two Ray workers train and evaluate what one process does."""

import pytest

import rtrain

pytestmark = pytest.mark.slow


def test_two_workers_train_what_one_trains(tmp_path):
    words = ["trainer.max_epochs=2", "trainer.global_batch_size=63", "trainer.eval_batch_size=50"]
    one, two = (
        rtrain.fit("lightning", [*words, f"num_workers={number}", f"run.root_dir={tmp_path}/{number}"])
        for number in (0, 2)
    )
    for split, count in two.manifest.dataset["num_rows"].items():
        assert sum(worker["num_rows"][split] for worker in two.manifest.workers.values()) == count
    for name in ("test/loss", "test/accuracy"):
        assert two.metrics[name] == pytest.approx(one.metrics[name], rel=1e-4), name
