"""Each scheduler, told of trials without training any."""

import math
import random

import pytest

from rtrain.config.compose.search_space import Axis
from rtrain.errors import ConfigError
from rtrain.schedulers.base import Exploit, GoOn, Pause, Stop
from rtrain.schedulers.hyperband import bracket_shapes
from rtrain.schedulers.pb2 import from_unit, unit
from rtrain.schedulers.pbt import perturbed
from rtrain.schedulers.registry import SCHEDULERS
from rtrain.searches.base import Objective

LOSS = Objective(metric="val/loss", mode="min")
LR = Axis(key="lr", low=1e-4, high=1.0, log=True)
SIZE = Axis(key="size", values=("1", "2", "4", "8", "16", "32"))


def make(name, goal=LOSS, axes=(LR,), longest=None, **conf):
    kind = SCHEDULERS.load(name)
    return kind(kind.Conf(**conf), goal, axes, longest)


def decisions(scheduler):
    return list(iter(scheduler.decide_paused, None))


class Population:
    """Trials that are trained in turn, without a model: ``value(trial, length)`` is what they report."""

    def __init__(self, scheduler, num_trials, value, length, rest=()):
        self.scheduler, self.value, self.end = scheduler, value, length
        self.length, self.log = dict.fromkeys(range(num_trials), 0), []
        self.points = {trial: (axis_text(trial), *rest) for trial in self.length}
        for trial, point in self.points.items():
            scheduler.add(trial, point)
        scheduler.complete()

    def run(self):
        queue, over = list(self.length), {}
        while queue:
            trial = queue.pop(0)
            decision = self._train(trial)
            if isinstance(decision, Pause):
                self.scheduler.paused(trial)
            else:
                over[trial] = self.length[trial]
                self.scheduler.ended(trial)
            for number, verdict in decisions(self.scheduler):
                self.log.append((number, verdict))
                if isinstance(verdict, Stop):
                    over[number] = self.length[number]
                else:
                    queue.append(number)
                if isinstance(verdict, Exploit):
                    self.length[number] = self.length[verdict.source]
                    lr, *others = self.points[verdict.source]
                    self.points[number] = (verdict.changes.get("lr", lr), *others)
        return over

    def _train(self, trial):
        while self.length[trial] < self.end:
            self.length[trial] += 1
            decision = self.scheduler.hear(trial, self.length[trial], self.value(trial, self.length[trial]))
            if decision is not None:
                return decision
        return None


def axis_text(trial):
    return repr(1e-4 * 2.0**trial)


def test_the_median_rule_stops_what_is_worse_than_half_of_the_others():
    median = make("median", grace=2, min_trials=2)
    for trial in range(2):
        assert [median.hear(trial, length, 1.0 + trial - 0.1 * length) for length in (1, 2, 3)] == [None] * 3
    assert median.hear(3, 1, 9.0) is None  # grace
    decision = median.hear(3, 2, 9.0)
    assert isinstance(decision, Stop)
    assert decision.reason.startswith("median: 9 at epoch 2 is worse")
    assert median.hear(4, 2, 0.1) is None


def test_the_median_rule_counts_only_who_has_come_as_far():
    median = make("median", Objective(metric="val/accuracy", mode="max"), min_trials=2)
    median.hear(0, 1, 0.9)
    median.hear(1, 1, 0.9)
    assert median.hear(2, 2, 0.1) is None
    median.hear(0, 2, 0.9)
    median.hear(1, 2, math.nan)
    assert median.hear(2, 2, 0.1) is None
    median.hear(1, 3, 0.9)
    assert isinstance(median.hear(2, 2, 0.1), Stop)


def test_the_brackets_of_hyperband_are_those_of_the_paper():
    assert bracket_shapes(27, 1, 3) == [(27, [1, 3, 9]), (12, [3, 9]), (6, [9]), (4, [])]
    assert [size for size, _ in bracket_shapes(81, 1, 3)] == [81, 34, 15, 8, 5]
    assert bracket_shapes(5, 5, 3) == [(1, [])]


def test_hyperband_lets_the_best_of_each_rung_go_on():
    population = Population(make("hyperband", longest=27), 49, lambda trial, length: 100 - trial, 27)
    over = population.run()
    first = [over[trial] for trial in range(27)]
    assert first == [1] * 18 + [3] * 6 + [9] * 2 + [27]
    second = [over[trial] for trial in range(27, 39)]
    assert second == [3] * 8 + [9] * 3 + [27]
    assert [over[trial] for trial in range(45, 49)] == [27] * 4
    reasons = {one.reason for _, one in population.log if isinstance(one, Stop)}
    assert "hyperband: not among the best 9 at epoch 1" in reasons


def test_a_bracket_that_is_not_full_is_halved_all_the_same():
    over = Population(make("hyperband", longest=9), 4, lambda trial, length: trial, 9).run()
    assert over == {0: 9, 1: 1, 2: 1, 3: 1}


def test_hyperband_does_not_wait_for_trials_that_failed():
    hyperband = make("hyperband", longest=9)
    for trial in range(3):
        hyperband.add(trial, ("1",))
    hyperband.complete()
    for trial in range(2):
        assert isinstance(hyperband.hear(trial, 1, float(trial)), Pause)
        hyperband.paused(trial)
    assert decisions(hyperband) == []
    hyperband.ended(2)
    assert [type(decision) for _, decision in decisions(hyperband)] == [GoOn, Stop]


def test_hyperband_has_to_know_how_long_a_trial_is():
    with pytest.raises(ConfigError, match="max_length"):
        make("hyperband")


@pytest.mark.parametrize("name", ["hyperband", "pbt", "pb2", "asha", "median"])
def test_told_of_the_past_a_scheduler_is_where_it_was(name):
    def fresh():
        made = make(name, longest=9, **({"interval": 2} if name.startswith("pb") else {}))
        for trial in range(6):
            made.add(trial, (axis_text(trial),))
        made.complete()
        return made

    lived, told, past = fresh(), fresh(), []
    for trial in range(6):
        for length in (1, 2):
            past.append((trial, length, 1.0 / (trial + 1)))
            if lived.hear(*past[-1]) is not None:
                lived.paused(trial)
                break
    for report in past:
        told.hear(*report)
    for trial in getattr(lived, "_waiting", []):
        told.paused(trial)
    assert decisions(told) == decisions(lived)


def gain(lr):
    return -abs(math.log10(lr) + 1)  # best at 0.1


@pytest.mark.parametrize("name", ["pbt", "pb2"])
def test_the_worst_go_on_from_the_best_with_values_near_theirs(name):
    population = Population(make(name, interval=3), 8, lambda trial, length: gain(float(axis_text(trial))), 12)
    population.scheduler.goal = Objective(metric="score", mode="max")
    over = population.run()
    assert set(over.values()) == {12}
    first = [(trial, one) for trial, one in population.log[:8] if isinstance(one, Exploit)]
    assert {trial for trial, _ in first} == {0, 1}  # the furthest from 0.1
    assert {one.source for _, one in first} <= {6, 7}
    assert [type(one) for _, one in population.log[:8]] == [Exploit] * 2 + [GoOn] * 6  # copies first
    for _, one in first:
        assert 1e-4 <= float(one.changes["lr"]) <= 1


def test_pbt_does_not_copy_what_is_not_better():
    population = Population(make("pbt", interval=2), 4, lambda trial, length: 1.0, 6)
    population.run()
    assert not [one for _, one in population.log if isinstance(one, Exploit)]


@pytest.mark.parametrize("name", ["pbt", "pb2"])
def test_a_trial_that_reports_once_more_what_came_before_a_pause_is_not_paused_there_again(name):
    scheduler = make(name, interval=5)
    scheduler.add(0, ("0.1",))
    scheduler.complete()
    assert [scheduler.hear(0, length, 1.0) for length in range(1, 6)] == [None] * 4 + [Pause()]
    scheduler.paused(0)
    assert decisions(scheduler) == [(0, GoOn())]
    assert scheduler.next_pause(0) == 10
    assert [scheduler.hear(0, length, 1.0) for length in range(1, 11)] == [None] * 9 + [Pause()]


def test_pbt_replaces_trials_whose_metric_is_no_number():
    population = Population(make("pbt", interval=2), 4, lambda trial, length: math.nan if trial == 0 else 1.0, 4)
    population.run()
    assert next(trial for trial, one in population.log if isinstance(one, Exploit)) == 0


def test_values_are_changed_as_in_the_paper():
    rng = random.Random(0)
    assert {round(float(perturbed(LR, "0.1", rng)), 3) for _ in range(20)} == {0.08, 0.12}
    assert {perturbed(LR, "1.0", rng) for _ in range(20)} == {"0.8", "1.0"}
    assert {perturbed(Axis(key="n", low=1, high=9, is_int=True), "2", rng) for _ in range(20)} == {"1", "3"}
    sizes = Axis(key="b", values=("64", "16", "32"))
    assert {perturbed(sizes, "32", rng) for _ in range(20)} == {"16", "64"}
    assert {perturbed(sizes, "16", rng) for _ in range(20)} == {"16", "32"}
    assert perturbed(Axis(key="o", values=("sgd", "adam")), "sgd", rng) == "sgd"


def test_a_number_and_its_place_in_the_interval_belong_together():
    for axis in (LR, Axis(key="x", low=-1.0, high=3.0), Axis(key="n", low=2, high=40, is_int=True)):
        for text in (axis.text(axis.low), axis.text(axis.high), axis.text(axis.low + 1 if axis.is_int else 0.5)):
            assert float(from_unit(axis, unit(axis, text))) == pytest.approx(float(text))


def test_pb2_learns_which_values_bring_most():
    pb2 = make("pb2", interval=1)
    rng = random.Random(1)
    loss = dict.fromkeys(range(8), 10.0)
    points = {trial: (LR.draw(rng),) for trial in loss}
    for trial, point in points.items():
        pb2.add(trial, point)
    pb2.complete()
    chosen = []
    for length in range(1, 26):
        for trial in loss:
            loss[trial] -= 0.3 + gain(float(points[trial][0])) / 10
            assert isinstance(pb2.hear(trial, length, loss[trial]), Pause)
            pb2.paused(trial)
        for trial, one in decisions(pb2):
            if isinstance(one, Exploit):
                loss[trial] = loss[one.source]
                points[trial] = (one.changes.get("lr", points[trial][0]),)
                chosen.append(abs(math.log10(float(points[trial][0])) + 1))
    late = sorted(chosen[-10:])
    assert late[5] < 0.5  # half a power of ten; drawn at random: 1.25


def test_pb2_learns_from_the_past_what_it_had_learned():
    lived, told, past = make("pb2", interval=2), make("pb2", interval=2), []
    loss = dict.fromkeys(range(6), 10.0)
    points = {trial: (axis_text(trial),) for trial in loss}
    for trial, point in points.items():
        lived.add(trial, point)
        told.add(trial, point)
    lived.complete()
    for length in range(1, 9):
        for trial in loss:
            loss[trial] -= 0.3 + gain(float(points[trial][0])) / 10
            past.append(lambda one=(trial, length, loss[trial]): told.hear(*one))
            if lived.hear(trial, length, loss[trial]) is not None:
                lived.paused(trial)
        if length == 8:
            break
        for trial, one in decisions(lived):
            if isinstance(one, Exploit):
                loss[trial], points[trial] = loss[one.source], (one.changes["lr"],)
                past.append(lambda trial=trial, one=one: told.exploited(trial, one))
    for tell in past:
        tell()
    told.complete()
    for trial in loss:
        told.paused(trial)
    assert len(told._seen) == 18
    assert decisions(told) == decisions(lived)


def test_pb2_needs_an_interval():
    with pytest.raises(ConfigError, match="intervals"):
        make("pb2", axes=(Axis(key="o", values=("sgd", "adam")),))


def test_asha_stops_what_is_not_among_the_best_when_it_comes_by():
    asha = make("asha", reduction_factor=2)
    assert [asha.hear(trial, 1, value) is None for trial, value in enumerate((3.0, 4.0, 2.0, 1.0, 5.0))] == [
        *(True, False, True, True, False)
    ]


KEYS = {
    "asha.grace": {"grace": 2},
    "asha.reduction_factor": {"reduction_factor": 2.0},
    "median.grace": {"grace": 6},
    "median.min_trials": {"min_trials": 5},
    "hyperband.grace": {"grace": 2},
    "hyperband.reduction_factor": {"reduction_factor": 2.0},
    "hyperband.max_length": {"max_length": 8},
    **{
        f"{name}.{key}": {key: value}
        for name in ("pbt", "pb2")
        for key, value in {"interval": 2, "quantile": 0.5, "resample": 1.0, "seed": 1}.items()
    },
}


@pytest.mark.parametrize("key", KEYS)
def test_each_key_changes_a_decision(key):
    name = key.partition(".")[0]

    def decided(**conf):
        scheduler = make(name, axes=(LR, SIZE), longest=12, **conf)
        population = Population(scheduler, 8, lambda trial, length: float(trial * 5 % 8), 12, ("8",))
        return population.run(), population.log

    assert decided() == decided()
    assert decided() != decided(**KEYS[key])
