"""Mappings whose names only the user's code knows: a new name is added with ``+``, a misspelt one of theirs is told."""

import shlex

import pytest

from rtrain.config.session import Session
from rtrain.errors import ConfigError
from rtrain.schemas import schemas
from rtrain.searches import grid

TRAINERS = ("lightning", "transformers", "tensorflow", "jax", "xgboost", "lightgbm")
OF_OTHERS = ("sleep", "num_steps", "momentum", "max_epochs", "batch", "epochs", "optim.momentum", "seed", "device")
"""Names that mean something elsewhere."""
VARIED = (
    "{params: {trainer.train_loop_config.%s: [1, 2]}}",
    "{params: {trainer: {train_loop_config: {%s: [1, 2]}}}}",
    "{params: {trainer.train_loop_config.%s: 'choice(1,2)'}}",
    "{params: {+trainer.train_loop_config.%s: [1, 2]}}",
    "{zip: {trainer.train_loop_config.%s: [1, 2], run.seed: [1, 2]}}",
    "{zip: {+trainer.train_loop_config.%s: [1, 2], run.seed: [1, 2]}}",
)
"""Sections of a config that vary a key."""


def compose(tmp_path, trainer, words):
    (tmp_path / "pyproject.toml").write_text("")
    (tmp_path / "own_loop.py").write_text("def train(config):\n    pass\n")
    config = tmp_path / "own.yaml"
    config.write_text(f"trainer: {{type: {trainer}, train_loop: 'own_loop:train', train_loop_config: {{lr: 0.1}}}}\n")
    with Session(str(config), words, schemas()) as session:
        return session.check()


@pytest.mark.parametrize(
    ("trainer", "name"), [*(("torch", name) for name in OF_OTHERS), *((trainer, "max_epochs") for trainer in TRAINERS)]
)
def test_a_new_name_is_added_by_the_proposed_word(tmp_path, trainer, name):
    with pytest.raises(ConfigError) as refused:
        compose(tmp_path, trainer, [f"trainer.train_loop_config.{name}=3"])
    text = str(refused.value)
    assert "did you mean" not in text
    attempt = shlex.split(text.partition("try: ")[2])
    (word,) = [one for one in attempt if "train_loop_config" in one]
    assert word == f"+trainer.train_loop_config.{name}=3"
    found = compose(tmp_path, trainer, [word]).resolved["trainer"]["train_loop_config"]
    for part in name.split("."):
        found = found[part]
    assert found == 3


def test_a_misspelt_name_is_told_and_may_be_added_all_the_same(tmp_path):
    with pytest.raises(ConfigError) as refused:
        compose(tmp_path, "torch", ["trainer.train_loop_config.lrr=0.2"])
    text = str(refused.value)
    assert "did you mean: trainer.train_loop_config.lr" in text
    assert "or add it with +trainer.train_loop_config.lrr=0.2" in text


@pytest.mark.parametrize("trainer", ["xgboost", "lightgbm"])
def test_a_limit_that_a_loop_has_not_is_not_replaced_by_a_key_without_effect(tmp_path, trainer):
    with pytest.raises(ConfigError) as refused:
        compose(tmp_path, trainer, ["trainer.max_steps=3"])
    assert "trainer.train_loop does the training" in str(refused.value)
    assert "did you mean" not in str(refused.value)


@pytest.mark.parametrize("values", ["{z: 3}", "{x: 1},{z: 3}", "{x: 1},{z: 3},null", "{x: 1, z: {y: 2}},5"])
def test_names_in_a_mapping_are_added_by_the_proposed_word_whatever_the_other_values_are(tmp_path, values):
    config = tmp_path / "own.yaml"
    (tmp_path / "pyproject.toml").write_text("")
    (tmp_path / "own_loop.py").write_text("def train(config):\n    pass\n")
    config.write_text("trainer: {type: torch, train_loop: 'own_loop:train', train_loop_config: {d: {x: 1}, lr: 0.1}}\n")

    def plan(word):
        with Session(str(config), [word, "seed=1,2"], schemas()) as session:
            trials = session.trials()
            search = grid.Search(trials.conf, trials.axes, [])
            return [trials.plan(number, search.propose(number)) for number in range(search.num_trials)]

    with pytest.raises(ConfigError) as refused:
        plan(f"trainer.train_loop_config.d={values}")
    attempt = shlex.split(str(refused.value).partition("try: ")[2])
    (word,) = [one for one in attempt if "train_loop_config" in one]
    assert "{" in word
    assert plan(word)


@pytest.mark.parametrize(
    ("trainer", "varied", "name"),
    [
        *(("torch", varied, name) for varied in VARIED for name in ("new", "epochs", "optim.momentum")),
        *((trainer, VARIED[0], "new") for trainer in TRAINERS),
    ],
)
def test_a_sweep_in_a_config_adds_names_as_the_rest_of_the_file_does(tmp_path, trainer, varied, name):
    assert [one["train_loop_config"] for one in trials_of(tmp_path, trainer, varied % name, "{lr: 0.1}")] == [
        {"lr": 0.1, **nested(name, value)} for value in (1, 2)
    ]


def test_a_sweep_in_a_config_adds_names_where_there_are_none_and_in_mappings(tmp_path):
    varied = "{params: {trainer.train_loop_config.d: [{a: 1}, {b: 2}, null]}}"
    found = [one["train_loop_config"]["d"] for one in trials_of(tmp_path, "torch", varied, "{}")]
    assert found == [{"a": 1}, {"b": 2}, None]


def test_a_sweep_in_a_config_adds_no_keys_that_rtrain_would_know(tmp_path):
    with pytest.raises(ConfigError, match="no key 'max_epoch'"):
        trials_of(tmp_path, "torch", "{params: {trainer.max_epoch: [1, 2]}}", "{lr: 0.1}")


def nested(name, value):
    first, _, rest = name.partition(".")
    return {first: nested(rest, value) if rest else value}


def trials_of(tmp_path, trainer, varied, loop_config):
    config = tmp_path / "own.yaml"
    (tmp_path / "pyproject.toml").write_text("")
    (tmp_path / "own_loop.py").write_text("def train(config):\n    pass\n")
    loop = f"train_loop: 'own_loop:train', train_loop_config: {loop_config}"
    config.write_text(f"trainer: {{type: {trainer}, {loop}}}\nsweep: {varied}\n")
    with Session(str(config), [], schemas()) as session:
        trials = session.trials()
        search = grid.Search(trials.conf, trials.axes, [])
        plans = [trials.plan(number, search.propose(number)) for number in range(search.num_trials)]
        return [plan.composed.resolved["trainer"] for plan in plans]
