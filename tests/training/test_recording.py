"""What makes a run a failed one although its trainer ended well."""

import pytest

from rtrain.config.run_conf import BestConf, BoundsConf, CheckpointConf, RunConf, StopConf
from rtrain.errors import TrainingError
from rtrain.runs.observer import Observer
from rtrain.testing.workers import make_manifest
from rtrain.training.recording import check_rows, tell_missing_goals


def a_manifest(*workers, num_workers=None):
    return make_manifest(
        dataset={"num_rows": {"train": 10, "test": 4}},
        workers={str(rank): {"num_rows": rows} for rank, rows in enumerate(workers)},
        attempts=[{"num_workers": 4}, {"num_workers": len(workers) if num_workers is None else num_workers}],
    )


def test_each_row_on_one_worker_is_right():
    check_rows(a_manifest({"train": 6, "test": 4}, {"train": 4, "test": 0}))


def test_rows_that_no_worker_had_fail_the_run():
    with pytest.raises(TrainingError, match=r"the workers had 5 \+ 4 rows of the split 'train', which has 10"):
        check_rows(a_manifest({"train": 5}, {"train": 4}))


def test_every_worker_with_all_rows_fails_the_run():
    with pytest.raises(TrainingError, match=r"10 \+ 10 rows"):
        check_rows(a_manifest({"train": 10}, {"train": 10}))


def test_workers_of_an_earlier_attempt_and_silent_ones_do_not_count():
    check_rows(a_manifest({"train": 10}, {"train": 5}, num_workers=1))
    check_rows(a_manifest({"train": 10}, num_workers=0))
    check_rows(a_manifest({"train": 5}, {}))


class Ear(Observer):
    """Keeps what is noticed."""

    def __init__(self):
        self.heard = []

    def notice(self, text):
        self.heard.append(text)


@pytest.mark.parametrize(
    ("conf", "key"),
    [
        ({"stop": StopConf(target={"loss": 1.0, "lss": 0.1})}, "run.stop.target"),
        ({"stop": StopConf(bounds={"lss": BoundsConf(max=1.0)})}, "run.stop.bounds"),
        ({"checkpoint": CheckpointConf(best=BestConf(monitor="lss"))}, "run.checkpoint.best.monitor"),
        ({"stop": StopConf(target={"loss": 0.1})}, None),
        ({"stop": StopConf(target={"loss": 0.1, "lss": None})}, None),
    ],
)
@pytest.mark.parametrize("metrics", [{}, {"loss": 0.5, "step": 1.0}])
@pytest.mark.parametrize("status", ["succeeded", "interrupted"])
def test_a_goal_that_was_never_reported_is_told_when_the_run_is_over(conf, key, metrics, status):
    ear, manifest = Ear(), make_manifest(metrics=metrics, status=status)
    tell_missing_goals(manifest, RunConf(**conf), ear)
    mine = [text for text in ear.heard if text.startswith(f"{key}: ") and "lss" in text]
    assert len(mine) == (status == "succeeded" and key is not None)
    assert all("loss" in text for text in mine) == bool(metrics) or not mine
