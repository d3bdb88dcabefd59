"""Numbers that can't be are refused by name, whatever trainer, key and library."""

from dataclasses import fields
from math import inf, nan
from typing import get_args

import pytest
from pydantic import ValidationError

from rtrain.config.schema import RtrainConf
from rtrain.config.validate import _adapter, dataclasses_in
from rtrain.config.value_types.fields import hints_of
from rtrain.errors import ConfigError, TargetError
from rtrain.schemas import schemas
from rtrain.trainers.loops.number_ranges import FROM_0, FROM_1, SHARES, check_numbers

GROUPS = ("trainer", "dataset", "sweep", "sweep/scheduler")
CONFS = dict.fromkeys(
    one
    for conf in (RtrainConf, *(conf for group in GROUPS for conf in schemas().group(group).values()))
    for one in dataclasses_in(conf, set())
)
NEGATIVE = {("BoundsConf", "min"), ("BoundsConf", "max")}
"""Keys that may be below 0: metrics may."""
NUMBERS = [
    (conf, one.name)
    for conf in CONFS
    for one in fields(conf)
    if any(hint in (int, float) for hint in (hints_of(conf)[one.name], *get_args(hints_of(conf)[one.name])))
]


def is_refused(conf, key, value):
    """Tell whether the key is, whatever else the dataclass lacks."""
    try:
        _adapter(conf).validate_python({key: value})
    except ValidationError as error:
        return any(key in one["loc"] for one in error.errors())
    except ConfigError:
        return False
    return False


@pytest.mark.parametrize(("conf", "key"), NUMBERS, ids=lambda one: getattr(one, "__qualname__", one))
def test_a_key_has_a_range(conf, key):
    wrong = [nan, inf, -inf] + [-1] * ((conf.__name__, key) not in NEGATIVE)
    assert [value for value in wrong if not is_refused(conf, key, value)] == []


def test_no_key_is_left_out():
    assert len(NUMBERS) > 100


WRONG = [
    *((name, value) for name in (*FROM_0, *FROM_1, *SHARES, "anything") for value in (nan, inf, -inf)),
    *((name, -1) for name in (*FROM_0, *FROM_1, *SHARES)),
    *((name, 0) for name in FROM_1),
    *((name, 1) for name in SHARES),
    *((name, [0.5, 1.5]) for name in SHARES),
]


@pytest.mark.parametrize(("name", "value"), WRONG)
def test_an_argument_has_a_range_at_any_depth(name, value):
    for node, key in (({name: value}, name), ({"rate": [{name: value}]}, f"rate[0].{name}")):
        with pytest.raises(TargetError, match="must be") as raised:
            check_numbers(node, "trainer.optimizer")
        assert raised.value.key.removesuffix("[1]") == f"trainer.optimizer.{key}"


def test_usual_numbers_are_taken():
    node = {"lr": 0, "betas": [0, 0.999], "T_max": 1, "nesterov": True, "step_size": -0.01, "_target_": "optax.scale"}
    check_numbers(node, "trainer.optimizer")
    check_numbers({"lr": 0.1, "threshold": -inf}, "trainer.module", ("lr",))
