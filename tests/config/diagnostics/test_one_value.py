"""Commands that take one value of each key are not advised to try several: they have no ``--multirun``."""

import pytest

from rtrain.config.session import Session
from rtrain.errors import ConfigError
from rtrain.schemas import schemas

SEVERAL = [
    "trainer.num_boost_round=20,30",
    "trainer.num_boost_round=[20,30]",
    "trainer.num_bost_round=20,30",
    "trainer.params.eta=0.1,0.2",
    "dataset.limit=[3,4]",
    "dataset.limit=3,4",
    "run.tags=a,b",
    "run.nme=a,b",
    "run.stop.max_seconds=1,5",
    "dataset=sklearn,csv",
    "sweep=optuna",
]
ONE_VALUE = ("resume", "predict", "evaluate")


def advice(typed, word):
    """Return what is said of a word in a command."""
    with pytest.raises(ConfigError) as refused, Session("xgboost", [word], schemas(), typed=typed) as session:
        session.check()
    return refused.value.hint or ""


@pytest.mark.parametrize("word", SEVERAL)
def test_a_sweep_is_advised_where_there_can_be_one(word):
    for verb in ONE_VALUE:
        said = advice(("rtrain", verb, "runs/xgboost/1"), word)
        assert "--multirun" not in said.replace("add --multirun to rtrain fit", ""), verb


def test_the_command_that_sweeps_is_advised_to():
    words = [word for word in SEVERAL if "--multirun" in advice((), word)]
    assert len(words) > len(SEVERAL) / 2
