"""Values of Python as overrides: whatever is given is what Hydra's grammar reads back."""

from __future__ import annotations

import enum
import string
from pathlib import Path

import numpy as np
import pytest
from hydra.core.override_parser.overrides_parser import OverridesParser
from omegaconf import OmegaConf

from rtrain.config.calls.overrides import choice, given_overrides, value_of
from rtrain.errors import ConfigError


class Size(enum.Enum):
    """An enum of texts."""

    small = "small one"


SIGNS = [f"a{sign}b" for sign in string.punctuation] + [f"a{sign}" for sign in string.punctuation]
TEXTS = [
    *(
        "",
        " ",
        " a ",
        "a b",
        "a\nb",
        "\t",
        "é",
        "aé.csv",
        "名",
        "null",
        "None",
        "true",
        "1",
        "1e5",
        "0x1",
        "inf",
        "nan",
    ),
    *("~", "+a", "a=b", "\\d+", "\\", "\\\\", "\\'", "'", '"', "''", "it's \"\\\\'", "choice(1,2)", "[a]", "{a: 1}"),
    *("a,b", "C:\\data\\", "s3://a/b?c=d&e", "*.csv", "a#b", "a: b", "- a", "x" * 300, *SIGNS),
]
VALUES = [
    *(None, True, False, 0, -3, 10**18, 0.1, 1e-8, -2.5e300, float("inf"), []),
    *([1, "a b", None], [[1, 2], ["x"]], [{"a": 1, "b": [2]}], ["true", True]),
    {"_target_": "a.B", "sizes": [1, 2], "how": {"deep": "a: b"}},
    {"val/loss": 0.5, "a b": 1, "c:d": {"e,f": [1]}, "{x}": "y", "a\\": 2},
]


def read(word):
    override = OverridesParser.create().parse_override(word)
    assert not override.is_sweep_override()
    return override.key_or_group, override.value()


@pytest.mark.parametrize("value", [*TEXTS, *VALUES], ids=repr)
def test_a_value_is_read_back_as_it_was_given(value):
    (given,) = given_overrides({"trainer.some_key": value})
    assert read(given.word) == ("trainer.some_key", value)
    assert type(read(given.word)[1]) is type(value)
    assert value_of(given.word) == value


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        ((1, 2), [1, 2]),
        (range(3), [0, 1, 2]),
        (Path("a b/c.csv"), "a b/c.csv"),
        (np.float32(0.5), 0.5),
        (np.int64(3), 3),
        (np.bool_(True), True),
        (np.arange(4).reshape(2, 2), [[0, 1], [2, 3]]),
        (np.str_("a b"), "a b"),
        (Size.small, "small one"),
        (OmegaConf.create([1, "${oc.env:HOME}"]), [1, "${oc.env:HOME}"]),
        ({"a": np.int8(1), "_target_": Path("x")}, {"a": 1, "_target_": "x"}),
    ],
    ids=repr,
)
def test_other_values_become_plain_ones(value, plain):
    (given,) = given_overrides({"key": value})
    assert read(given.word)[1] == plain


def test_a_nested_mapping_is_given_key_by_key():
    nested = {
        "trainer": {"max_epochs": 3, "model": {"hidden": [8]}, "clip-norm": None},
        "run": OmegaConf.create({"seed": 1}),
    }
    words = [one.word for one in given_overrides(nested)]
    assert words == ["trainer.max_epochs=3", "trainer.model.hidden=[8]", "trainer.clip-norm=null", "run.seed=1"]


@pytest.mark.parametrize("key", ["trainer", "dataset", "sweep", "datasets.more"])
def test_the_type_of_a_plugin_chooses_it(key):
    words = [one.word for one in given_overrides({key: {"path": "x", "type": "csv"}})]
    assert words == [f"{key}=csv", f"{key}.path=x"]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("lr=0.1", ["lr=0.1"]),
        (["lr=0.1", "~sweep"], ["lr=0.1", "~sweep"]),
        (iter(("lr=0.1",)), ["lr=0.1"]),
        ((), []),
        ({}, []),
        (OmegaConf.create(["lr=0.1"]), ["lr=0.1"]),
        (OmegaConf.create({"optimizer": {"lr": 0.1}}), ["optimizer.lr=0.1"]),
        ({"+vars.a": 1, "optimizer": "adam"}, ["+vars.a=1", "optimizer=adam"]),
    ],
)
def test_overrides_have_three_forms_and_keywords_come_last(given, words):
    assert [one.word for one in given_overrides(given, {"epochs": 3})] == [*words, "epochs=3"]


def test_a_choice_has_several_values_and_a_list_is_one():
    words = [one.word for one in given_overrides({"lr": choice(0.1, 0.01), "model": {"hidden": choice([8], [8, 8])}})]
    assert words == ["lr=0.1,0.01", "model.hidden=[8],[8,8]"]
    (one,) = given_overrides({"run.notes": choice("a, b")})
    (value,) = OverridesParser.create().parse_override(one.word).sweep_string_iterator()
    assert value_of(f"run.notes={value}") == "a, b"
    for word in words:
        assert OverridesParser.create().parse_override(word).is_sweep_override()


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"run.tags": {1, 2}}, "run.tags"),
        ({"trainer": {"model": [object()]}}, "trainer.model.0"),
        ({"trainer.model": {"_target_": Size}}, "trainer.model._target_"),
        ({"a": len}, "len"),
        ({"a": b"x"}, "a: "),
        ({1: 2}, "1"),
        ([3], "int"),
        (3, "int"),
        (None, "NoneType"),
        ({"a": {"it's": 1}}, "a: "),
        ({"a": {"null": 1, "b c": 2}}, "a: "),
        ({"a": {"_target_": "x.Y", "b": [choice(1, 2)]}}, "a.b"),
        ({"a": [choice(1, 2)]}, "a: "),
    ],
)
def test_what_is_no_override_is_named(given, named):
    with pytest.raises(ConfigError) as caught:
        given_overrides(given)
    assert named in caught.value.message
    assert caught.value.hint


def test_errors_name_no_value_which_may_be_a_secret():
    for given in ({"token": {"it's": "hush"}}, {"token": {"hush"}}, {"token": b"hush"}):
        with pytest.raises(ConfigError) as caught:
            given_overrides(given)
        assert "hush" not in str(caught.value)


def test_a_choice_of_nothing_is_refused():
    with pytest.raises(ConfigError):
        choice()


@pytest.mark.parametrize("key", ["vars.x", "trainer.train_loop_config.lr", "trainer.train_function_config.lr"])
def test_a_choice_may_add_a_key_where_a_value_may(key):
    for given, words in (
        ({key: 1}, [f"++{key}=1"]),
        ({key: choice(1, 2)}, [f"++{key}=1,2"]),
        ({key.rpartition(".")[0]: {key.rpartition(".")[2]: choice(1, 2)}}, [f"++{key}=1,2"]),
    ):
        assert [one.word for one in given_overrides(given)] == words
    assert [one.word for one in given_overrides({"optimizer.lr": choice(1, 2)})] == ["optimizer.lr=1,2"]
