"""Early stopping of boosted trees has the keys of every trainer; its old names still work, with a note."""

import boosting_runs
import numpy as np
import pytest
from boosting_runs import make_dataset

from rtrain.config.run_conf import BestConf, CheckpointConf, RunConf
from rtrain.config.schema import RtrainConf
from rtrain.config.session import Session
from rtrain.errors import ConfigError
from rtrain.schemas import schemas
from rtrain.testing.workers import make_job
from rtrain.trainers.lightgbm.config import Conf as LightGBMConf
from rtrain.trainers.loops.boosting.progress import RoundProgress
from rtrain.trainers.loops.early_stopping import EarlyStoppingConf
from rtrain.trainers.registry import load_trainer
from rtrain.trainers.xgboost.config import Conf as XGBoostConf

CONFS = {"xgboost": XGBoostConf, "lightgbm": LightGBMConf}
METRICS = {"xgboost": {"eval_metric": ["mae", "rmse"]}, "lightgbm": {"metric": ["l1", "l2"]}}


def dataset():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(200, 3)).astype("float32")
    y = (x[:, 0] + rng.normal(size=200)).astype("float32")
    return make_dataset({"x": x, "y": y}, np.arange(200))


def job(trainer, best=None, **keys):
    run = RunConf(name="test", checkpoint=CheckpointConf(best=BestConf(monitor=best)))
    return make_job(RtrainConf(trainer=CONFS[trainer](**keys), run=run), dataset(), trainer)


@pytest.mark.parametrize("trainer", CONFS)
def test_the_old_names_stop_at_the_same_round_and_name_the_new_ones(trainer, tmp_path):
    new = {"early_stopping": EarlyStoppingConf(patience=2, min_delta=0.01)}
    words = ["num_workers=0", "trainer.early_stopping_rounds=2", "trainer.early_stopping_min_delta=0.01"]
    with Session(trainer, words, schemas()) as session:
        composed = session.check()
    old = {"early_stopping": composed.conf.trainer.early_stopping}
    rounds = [
        len(boosting_runs.fit(trainer, tmp_path / str(number), dataset(), **keys).events)
        for number, keys in enumerate((new, old))
    ]
    assert rounds[0] == rounds[1] < 100
    assert old == new
    assert [note.partition("; ")[0] for note in composed.notices] == [
        "trainer.early_stopping_rounds was renamed to trainer.early_stopping.patience",
        "trainer.early_stopping_min_delta was renamed to trainer.early_stopping.min_delta",
    ]
    with Session(trainer, ["num_workers=0", "trainer.early_stopping.patience=2"], schemas()) as session:
        assert not session.check().notices


def test_the_new_name_counts_where_both_are_given():
    words = ["num_workers=0", "trainer.early_stopping.patience=7", "trainer.early_stopping_rounds=2"]
    with Session("xgboost", words, schemas()) as session:
        assert session.check().conf.trainer.early_stopping == EarlyStoppingConf(patience=7)


@pytest.mark.parametrize("trainer", CONFS)
def test_a_size_of_improvements_without_early_stopping_is_refused(trainer):
    words = ["num_workers=0", "trainer.early_stopping_min_delta=0.1"]
    with pytest.raises(ConfigError, match=r"early_stopping\.min_delta"), Session(trainer, words, schemas()) as one:
        one.check()


@pytest.mark.parametrize("trainer", CONFS)
def test_the_metric_of_early_stopping_also_chooses_the_best_round(trainer, tmp_path):
    params = METRICS[trainer]
    first = f"test/{next(iter(params.values()))[0]}"
    early = EarlyStoppingConf(monitor=first, patience=2)
    channel = boosting_runs.fit(trainer, tmp_path, dataset(), params=params, early_stopping=early)
    assert channel.checkpoints[-1]["score"]["monitor"] == first
    values = [event.metrics[first] for event in channel.events]
    assert channel.checkpoints[-1]["score"]["step"] == int(np.argmin(values)) + 1 == len(values) - 2


@pytest.mark.parametrize("trainer", CONFS)
def test_two_metrics_for_one_best_round_are_refused(trainer):
    early = EarlyStoppingConf(monitor="test/loss")
    with pytest.raises(ConfigError, match=r"early_stopping\.monitor=test/loss: .* already chosen by test/mae"):
        load_trainer(trainer).check(job(trainer, "test/mae", early_stopping=early))


def test_a_checkpoint_of_before_tells_how_many_rounds_there_were(tmp_path):
    (tmp_path / "progress.json").write_text(
        '{"rounds": 9, "best": 0.5, "best_round": 6, "metrics": {"test/mae": null}}'
    )
    progress = RoundProgress.load(tmp_path)
    assert (progress.step, progress.epoch, progress.bad_evaluations, progress.metrics) == (9, 9, 3, {})
