"""A mapping of sections is set key by key, on the command line as in a file."""

import pytest

from rtrain.config.session import Session
from rtrain.errors import ConfigError
from rtrain.schemas import schemas

MEANS = {"min": None, "max": 4.0}


def compose(*words):
    with Session("mlp", words, schemas()) as session:
        return session.check()


@pytest.mark.parametrize("word", ["bounds.score.max=4", "bounds.score={max: 4}", "bounds={score: {max: 4}}"])
@pytest.mark.parametrize("sign", ["", "+", "++"])
def test_each_way_to_write_it_means_the_same(sign, word):
    found = compose(f"{sign}run.stop.{word}")
    assert {name: vars(one) for name, one in found.conf.run.stop.bounds.items()} == {"score": MEANS}


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("run.stop.bounds.score.mx=4", "did you mean: run.stop.bounds.score.max"),
        ("run.stop.bounds.score.maximum=4", "did you mean: run.stop.bounds.score.max"),
        ("run.stop.bounds={score: {maximum: 4}}", "did you mean: max"),
        ("run.stop.bounds.score.max=abc", "run.stop.bounds.score.max: must be a number, not 'abc'"),
        ("run.stop.bounds.score=4", "run.stop.bounds.score: must be a mapping, not 4"),
        ("run.stop.bounds.score={}", "needs min, max, or both"),
    ],
)
def test_what_is_wrong_in_it_is_named(word, said):
    with pytest.raises(ConfigError) as refused:
        compose(word)
    assert said in str(refused.value)
