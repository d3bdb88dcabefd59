"""A sweep function inside of a list, a mapping or a choice is refused in plain words: Hydra takes it for a value."""

from __future__ import annotations

import pytest

from rtrain.config.session import Session
from rtrain.errors import ConfigError
from rtrain.schemas import schemas

FUNCTIONS = ["choice(1,2)", "range(1,3)", "interval(0,1)", "tag(a,choice(1,2))", "shuffle(range(1,3))", "sort(3,1)"]
AROUND = ["{},0.3", "0.3,{}", "choice(0.3,{})", "shuffle(choice(0.3,{}))", "[{}]", "[3],[1,{}]", "{{a: {}}}", "[[{}]]"]


KEYS = [*(("trainer.model.hidden", one) for one in AROUND)]
KEYS += [(key, one) for key in ("+trainer.loss.new", "sweep.params.lr") for one in ("{},0.3", "[{}]")]


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize(("key", "around"), KEYS)
def test_what_can_vary_only_a_whole_value(around, function, key):
    word = f"{key}={around.format(function)}"
    with pytest.raises(ConfigError) as failed, Session("mlp", [word], schemas()) as session:
        session.trials()
    told = str(failed.value)
    assert "must be the whole value" in told
    assert "varied" in told
    assert "try:" not in told
