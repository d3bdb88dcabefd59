"""What a sweep varies, as Hydra's grammar and the lists of a config say it."""

import pytest
from hydra.core.override_parser.overrides_parser import OverridesParser

from rtrain.config.compose.search_space import Space, is_excluded, read_space, with_params, with_zip
from rtrain.config.session import Session
from rtrain.errors import ConfigError
from rtrain.schemas import schemas

NOTHING = Space(fixed=(), axes=())


def axes(*words):
    return read_space(None, words, 0).axes


def test_the_words_of_the_grammar():
    assert axes("a=1,2")[0].values == ("1", "2")
    assert axes("+a=range(1,4)")[0].values == ("1", "2", "3")
    assert (axes("++a=x,y")[0].key, axes("++a=x,y")[0].name) == ("++a", "a")
    (axis,) = axes("a=tag(log,interval(1e-4,1))")
    assert (axis.values, axis.low, axis.high, axis.log, axis.is_int) == ((), 1e-4, 1.0, True, False)
    assert axes("a=int(interval(1,5))")[0].is_int
    assert read_space(None, ["a=1,2", "b=3", "a=4"], 0) == Space(fixed=("b=3", "a=4"), axes=())


def test_a_shuffled_list_is_shuffled_by_the_seed():
    orders = {read_space(None, ["a=shuffle(range(0,20))"], seed).axes[0].values for seed in (1, 1, 2)}
    assert len(orders) == 2
    assert all(sorted(order, key=int) == [str(number) for number in range(20)] for order in orders)


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("a=interval(2,1)", "ends before it starts"),
        ("a=interval(2,2)", "ends where it starts.\ntry: a=2"),
        ("a=int(interval(5,5))", "ends where it starts.\ntry: a=5"),
        ("a=tag(log,interval(0,1))", "no logarithm"),
        ("a=range(3,3)", "range"),
    ],
)
def test_words_that_hold_no_values_are_errors(word, said):
    with pytest.raises(ConfigError, match=said):
        axes(word)


HUGE = "range(0,1000000000)"


@pytest.mark.parametrize(
    "value",
    [
        *(HUGE, f"shuffle({HUGE})", f"sort({HUGE},reverse=true)", f"tag(a,{HUGE})", "range(1e9)", "range(0,1,1e-9)"),
        *("range(1000000000,0,-1)", "range(0,1e999)", f"range(0,1{'0' * 400})", "shuffle(range(0.0,1000000000))"),
    ],
)
def test_a_range_is_counted_before_it_is_made(value):
    with pytest.raises(ConfigError, match="the maximum is"):
        axes(f"a={value}")
    with pytest.raises(ConfigError, match="the maximum is"):
        with_params(NOTHING, None, {"a": value}, 0)


def test_a_long_range_is_one_axis():
    assert [len(axis.values) for axis in axes("a=range(0,10000)", "b=range(1,0,-1e-3)")] == [10000, 1000]


def test_values_of_a_config_keep_their_types():
    values = ["sgd", "1", 1, 1.5, True, "true", None, "a b", "it's", [1, "2"], {"x": 1}]
    (axis,) = with_params(NOTHING, None, {"a": values}, 0).axes
    assert axis.values == (
        *("sgd", "'1'", "1", "1.5", "True", "'true'", "null", "'a b'", "'it\\'s'", "[1,'2']", "{x:1}"),
    )


@pytest.mark.parametrize("text", ["\\d+", "C:\\data\\", "it's \\'", "aé.csv", "a b", "\\"])
def test_a_text_of_a_config_is_read_as_it_stands(text):
    (axis,) = with_params(NOTHING, None, {"run.notes": [text, {"c:d e": [text]}]}, 0).axes
    first, second = (OverridesParser.create().parse_override(f"key={value}").value() for value in axis.values)
    assert (first, second) == (text, {"c:d e": [text]})


def test_a_list_of_one_value_is_an_axis():
    assert with_params(NOTHING, None, {"a": [5]}, 0).axes[0].values == ("5",)


def test_one_value_is_no_axis_and_a_typed_key_wins():
    with pytest.raises(ConfigError, match="a single value"):
        with_params(NOTHING, None, {"a": 3}, 0)
    space = read_space(None, ["a=1,2", "b=3"], 0)
    assert [axis.values for axis in with_params(space, None, {"a": [5, 6], "b": [7, 8]}, 0).axes] == [("1", "2")]


@pytest.mark.parametrize("sign", ["", "+", "++"])
def test_a_typed_key_has_the_sign_that_it_has_in_the_config(sign):
    space = read_space(None, [f"{sign}a=1,2", f"{sign}b=3,4"], 0)
    assert [axis.key for axis in with_params(space, None, {"a": [5, 6]}, 0).axes] == ["a", f"{sign}b"]


def test_zipped_keys_vary_together():
    space = with_zip(NOTHING, {"a": [1, 2], "b": ["x", "y"]})
    (axis,) = space.axes
    assert [axis.words(value) for value in axis.values] == [("a=1", "b=x"), ("a=2", "b=y")]
    assert space.probe == ["a=1", "b=x"]
    with pytest.raises(ConfigError, match="a has 2, b has 1"):
        with_zip(NOTHING, {"a": [1, 2], "b": [1]})
    with pytest.raises(ConfigError, match="also varied elsewhere"):
        with_zip(read_space(None, ["a=1,2"], 0), {"a": [1, 2]})
    with pytest.raises(ConfigError, match="a is also set elsewhere"):
        with_zip(read_space(None, ["a=1"], 0), {"a": [1, 2]})


def test_rules_leave_out_what_matches_all_of_their_keys():
    config = {"trainer": {"type": "torch", "optimizer": {"lr": 0.1}}, "scaling": {"num_workers": 2}}
    assert is_excluded(config, [{"optimizer.lr": 0.1, "num_workers": [1, 2]}])
    assert is_excluded(config, [{"optimizer.lr": 0.2}, {"trainer": "torch"}])
    assert not is_excluded(config, [{"optimizer.lr": 0.1, "num_workers": 1}])
    with pytest.raises(ConfigError, match=r"no key 'optimizer\.lrr'[^~]*did you mean: trainer\.optimizer\.lr"):
        is_excluded(config, [{"optimizer.lrr": 0.1}])


@pytest.mark.parametrize("section", ["params", "zip"])
@pytest.mark.parametrize(
    ("key", "values", "found"),
    [
        ("run.stop.target", "[{val/loss: 1}, {val/loss: 2}]", lambda conf: conf.run.stop.target["val/loss"]),
        ("trainer.early_stopping.patience", "[1, 2]", lambda conf: conf.trainer.early_stopping.patience),
        ("scheduler", "[cosine, step]", lambda conf: len(conf.trainer.scheduler) - 1),
    ],
)
def test_a_file_varies_what_is_typed_without_a_sign(section, key, values, found, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    tmp_path.joinpath("mine.yaml").write_text(
        "defaults: [trainer: torch, model: mlp, optimizer: sgd, dataset: sklearn]\n"
        f"sweep: {{{section}: {{{key}: {values}}}}}\n"
    )
    with Session("mine.yaml", (), schemas()) as session:
        trials = session.trials()
        plans = [trials.plan(number, (value,)) for number, value in enumerate(trials.axes[0].values)]
    assert [found(plan.composed.conf) for plan in plans] == [1, 2]


@pytest.mark.parametrize("config", ["mlp", "resnet"])
def test_one_value_of_an_axis_may_leave_a_part_out(config):
    with Session(config, ("scheduler=null,linear",), schemas()) as session:
        trials = session.trials()
        plans = [trials.plan(number, (value,)) for number, value in enumerate(trials.axes[0].values)]
    off, on = (plan.composed.conf.trainer.scheduler for plan in plans)
    assert off is None
    assert on["_target_"].endswith("LinearLR")
