"""Each search finds what is good, draws the same again, and goes on with what it is told."""

import math
import random

import pytest

from rtrain.config.compose.search_space import Axis
from rtrain.errors import ConfigError
from rtrain.searches.base import Objective
from rtrain.searches.registry import SEARCHES
from rtrain.sweeps.record.sweep_record import pareto_front
from rtrain.sweeps.record.trial import Trial

AXES = (
    Axis(key="lr", low=1e-5, high=1.0, log=True),
    Axis(key="width", low=1, high=64, is_int=True),
    Axis(key="act", values=("relu", "tanh", "null")),
)
LOSS = Objective(metric="val/loss", mode="min")
SMART = ("optuna", "hyperopt")


def make(name, goals=(LOSS,), axes=AXES, **conf):
    kind = SEARCHES.load(name)
    conf |= {} if name == "grid" else {"num_trials": 100}
    return kind(kind.Conf(**conf), axes, goals)


def loss(point):
    lr, width, act = point
    return (math.log10(float(lr)) + 2) ** 2 + abs(int(width) - 20) / 20 + {"relu": 0.0, "tanh": 1.0, "null": 2.0}[act]


def run(search, numbers, judge=loss):
    found = []
    for number in numbers:
        point = search.propose(number)
        found.append(point)
        search.learn(point, [judge(point)])
    return found


@pytest.mark.parametrize("name", ["random", *SMART])
def test_what_is_drawn_belongs_to_the_axes_and_to_the_seed(name):
    points = run(make(name), range(12))
    for lr, width, act in points:
        assert 1e-5 <= float(lr) <= 1
        assert 1 <= int(width) <= 64
        assert act in ("relu", "tanh", "null")
    assert run(make(name), range(12)) == points
    assert run(make(name, seed=1), range(12)) != points


@pytest.mark.parametrize("name", SMART)
def test_a_search_that_learns_is_better_than_chance(name):
    learned = sorted(map(loss, run(make(name, num_startup_trials=8, seed=3), range(40))[20:]))
    drawn = sorted(map(loss, run(make("random", seed=3), range(40))[20:]))
    assert learned[10] < drawn[10] / 1.5


@pytest.mark.parametrize("name", SMART)
def test_a_maximum_is_looked_for_where_more_is_better(name):
    def goodness(point):
        return -loss(point)

    goal = Objective(metric="val/accuracy", mode="max")
    learned = run(make(name, (goal,), num_startup_trials=8, seed=3), range(40), goodness)[20:]
    drawn = run(make("random", seed=3), range(40))[20:]
    assert sorted(map(loss, learned))[10] < sorted(map(loss, drawn))[10] / 1.5


@pytest.mark.parametrize("name", SMART)
def test_a_search_that_is_told_of_the_past_goes_on_from_it(name):
    past, proposed = run(make("random", seed=51), range(30)), []
    for seed in range(4):
        search = make(name, num_startup_trials=8, seed=seed)
        for point in past:
            search.learn(point, [loss(point)])
        search.learn(past[0], None)  # one that failed
        search.learn(("7.0", "3", "relu"), [0.0])  # one of an interval that was longer then
        proposed += run(search, range(30, 35))
    assert sorted(map(loss, proposed))[10] < sorted(map(loss, past))[15] / 2


@pytest.mark.parametrize("sampler", ["tpe", "random", "gp"])
def test_optuna_proposes_the_same_wherever_it_was_interrupted(sampler):
    numbers, conf = range(8), {"sampler": sampler, "num_startup_trials": 3, "seed": 5}
    whole = run(make("optuna", **conf), numbers)
    for begin in numbers[1:]:
        again = make("optuna", **conf)
        for point in whole[:begin]:
            again.learn(point, [loss(point)])
        assert again.propose(begin) == whole[begin]


FEW = (Axis(key="a", values=("1", "2", "3")), Axis(key="b", values=("1", "2", "3")))
EVERY = [(a, b) for a in "123" for b in "123"]


def next_new(search, number, seen):
    """Ask again for what was proposed before, as a sweep does."""
    for _ in range(20):
        point = search.propose(number)
        if point not in seen:
            return point
        search.learn(point, None)
    return next(point for point in EVERY if point not in seen)


@pytest.mark.parametrize("name", SMART)
def test_points_that_were_refused_make_no_difference_to_a_search_that_was_interrupted(name):
    conf = {"axes": FEW, "num_startup_trials": 3}
    search, whole = make(name, **conf), []
    for number in range(6):
        whole.append(next_new(search, number, whole))
        search.learn(whole[-1], [int(whole[-1][0]) + int(whole[-1][1]) / 2])
    for begin in range(1, 6):
        again = make(name, **conf)
        for point in whole[:begin]:
            again.learn(point, [int(point[0]) + int(point[1]) / 2])
        assert next_new(again, begin, whole[:begin]) == whole[begin]


@pytest.mark.parametrize("sampler", ["nsgaii", "cmaes"])
def test_an_interrupted_generation_is_completed(sampler):
    if sampler == "cmaes":
        pytest.importorskip("cmaes")
    conf = {"sampler": sampler, "num_startup_trials": 3, "seed": 5}
    axes = (*AXES[:2], Axis(key="act", low=0.0, high=2.0))

    def judge(point):
        return loss((*point[:2], "relu")) + float(point[2])

    numbers = range(110)
    whole = run(make("optuna", axes=axes, **conf), numbers, judge)
    for begin in (2, 20, 75, 105):
        again = make("optuna", axes=axes, **conf)
        for point in whole[:begin]:
            again.learn(point, [judge(point)])
        assert run(again, numbers[begin : begin + 5], judge) == whole[begin : begin + 5]


def test_points_that_an_evolving_sampler_would_not_propose_are_learned_as_well():
    search = make("optuna", sampler="nsgaii", seed=5)
    past = run(make("random", seed=51), range(60))
    for point in past:
        search.learn(point, [loss(point)])
    assert [one.values for one in search._study.trials if one.values] == [[loss(point)] for point in past]
    assert search.propose(60) not in past


def test_optuna_proposes_something_else_when_the_same_trial_is_asked_for_again():
    search = make("optuna", num_startup_trials=3)
    run(search, range(5))
    assert len({search.propose(5) for _ in range(5)}) == 5


def test_trials_at_the_same_time_try_different_points():
    search = make("optuna", num_startup_trials=3, axes=(AXES[0],))
    run(search, range(10), judge=lambda point: math.log10(float(point[0])) ** 2)
    assert len({search.propose(number) for number in range(10, 18)}) == 8


@pytest.mark.parametrize("sampler", ["random", "gp", "nsgaii"])
def test_optunas_samplers(sampler):
    points = run(make("optuna", sampler=sampler, num_startup_trials=3), range(6))
    assert len(set(points)) == 6


def test_a_sampler_whose_package_is_missing_is_told():
    with pytest.raises(ConfigError, match="cmaes"):
        make("optuna", sampler="cmaes")


def test_optuna_weighs_several_goals():
    goals = (LOSS, Objective(metric="seconds", mode="min"))
    search = make("optuna", goals, num_startup_trials=8)
    trials = []
    for number in range(40):
        point = search.propose(number)
        values = [loss(point), float(point[1])]
        search.learn(point, values)
        trials.append(Trial(number=number, point=point, overrides=[], name="", config_hash="", values=values))
    front = {one.number for one in pareto_front(trials, goals)}
    best = {one.number for one in search._study.best_trials}
    assert front == best
    assert 1 < len(front) < 40


def test_a_grid_holds_each_combination_once():
    axes = (Axis(key="a", values=("1", "2")), Axis(key="b", values=("x", "y", "z")))
    grid = make("grid", axes=axes)
    assert [grid.propose(number) for number in range(7)] == [
        *[("1", "x"), ("1", "y"), ("1", "z"), ("2", "x"), ("2", "y"), ("2", "z")],
        None,
    ]


def test_a_grid_that_nobody_can_wait_for_is_refused():
    axes = [Axis(key=key, values=tuple(map(str, range(1000)))) for key in "abcd"]
    with pytest.raises(ConfigError) as caught:
        make("grid", axes=axes)
    assert all(word in str(caught.value) for word in ("a (1,000 values)", "1,000,000,000,000 trials"))
    assert make("random", axes=axes).propose(0)


def test_random_numbers_are_spread_over_the_whole_interval():
    rng = random.Random(0)
    drawn = [float(AXES[0].draw(rng)) for _ in range(1000)]
    assert 0.15 < sum(one < 1e-4 for one in drawn) / 1000 < 0.25  # a fifth of the logarithms


@pytest.mark.parametrize("name", SMART)
def test_a_search_has_as_many_trials_as_the_key_says(name):
    conf = SEARCHES.load(name).Conf
    assert SEARCHES.load(name)(conf(num_trials=7), AXES, (LOSS,)).num_trials == 7


@pytest.mark.parametrize("name", SMART)
def test_points_are_drawn_until_a_search_begins_to_learn(name):
    """What is drawn does not depend on what came of the points before; what is learned does."""
    bad = run(make(name, num_startup_trials=12), range(14), judge=lambda point: -loss(point))
    good = run(make(name, num_startup_trials=12), range(14))
    early = run(make(name, num_startup_trials=2), range(14))
    assert good[:12] == bad[:12]
    assert good[12:] != bad[12:]
    assert early[:2] == good[:2]
    assert early[2:12] != good[2:12]


def test_optunas_samplers_propose_other_points():
    made = {sampler: run(make("optuna", sampler=sampler, num_startup_trials=2), range(6)) for sampler in ("tpe", "gp")}
    assert made["tpe"] != made["gp"]
