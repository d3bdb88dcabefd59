"""Keys that are set and have no effect: refused where they are typed, a note in files that make sense otherwise."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from itertools import product
from pathlib import Path
from typing import get_args, get_type_hints

import pytest

from rtrain.cli.app import run
from rtrain.config.diagnostics.meant.keys.schema_keys import all_confs
from rtrain.config.needs import Way, idle_keys
from rtrain.config.session import Session
from rtrain.errors import ConfigError
from rtrain.schemas import schemas

CONFIGS = {"torch": "mlp", "tensorflow": "keras"}
"""The built-in config of each trainer, where its name is another one."""
LOOP = ("trainer.train_loop=loops:train",)
TRAINERS = [(name, CONFIGS.get(name, name), ()) for name in sorted(schemas().trainer)] + [("loop", "mlp", LOOP)]
USUAL = ("num_workers=0", False)
WAYS = [
    pytest.param(way, marks=[] if way[0][0] == "torch" or way[1:] == USUAL else [pytest.mark.slow])
    for way in product(TRAINERS, ("num_workers=0", "num_workers=2"), (False, True))
]


def composed(config, *words, multirun=False):
    with Session(config, words, schemas()) as session:
        return session.trials().probe if multirun else session.check()


def refusal(config, *words, multirun=False):
    with pytest.raises(ConfigError) as caught:
        composed(config, *words, multirun=multirun)
    return caught.value


def all_keys(trainer, dataset="sklearn"):
    """Yield the full key of everything that a config may set, and the dataclass that it stands in."""
    known = schemas()
    for where, conf in all_confs(known, {"trainer": trainer, "dataset": dataset, "sweep": "random"}):
        yield from ((f"{where}.{one.name}".strip("."), conf, one) for one in fields(conf))


RESTS = (
    ("list[dict", "=[{some: 1}]"),
    ("list", "=[some]"),
    ("dict", ".some=1"),
    ("float", "=0.5"),
    ("int", "=30"),
    ("", "=some"),
)
"""What comes after a key in a word, by what its type mentions."""


def some_word(key, conf, one):
    """Return a word that gives a key a value that it may have and has not by default."""
    hint = get_type_hints(conf, include_extras=True)[one.name]
    extras = [extra for part in parts(hint) for extra in getattr(part, "__metadata__", ())]
    schemata = [extra.json_schema for extra in extras if hasattr(extra, "json_schema")]
    choices = [choice for schema in schemata for choice in schema.get("enum", ()) if choice != one.default]
    if choices:
        return f"{key}={choices[-1]}"
    if "bool" in str(hint):
        return f"{key}={one.default is not True}".lower()
    kinds = (
        ("list[dict", "=[{some: 1}]"),
        ("list", "=[some]"),
        ("dict", ".some=1"),
        ("float", "=0.5"),
        ("int", "=30"),
        ("", "=some"),
    )
    found = key + next(rest for kind, rest in kinds if kind in str(hint))
    return f"++{found}" if found.endswith(".some=1") else found


def parts(hint):
    """Return a type hint and all that it is made of."""
    return [hint, *(part for one in get_args(hint) for part in parts(one))]


def way_of(config, words, multirun):
    axis = ("seed=1,2",) if multirun else ()
    probe = composed(config, *words, *axis, multirun=multirun)
    return Way(probe.conf, multirun=multirun)


def words_of_way(way):
    (_, config, own), workers, multirun = way
    return config, (*own, workers), multirun


def name_of_way(way):
    (name, _, _), workers, multirun = way
    return f"{name}-{workers.partition('=')[2]}-{'multirun' if multirun else 'fit'}"


@pytest.fixture(autouse=True)
def loops(tmp_path, monkeypatch):
    """A project with a train loop."""
    (tmp_path / "pyproject.toml").write_text("")
    (tmp_path / "loops.py").write_text("def train(config): pass\n")
    monkeypatch.chdir(tmp_path)


WORDS = {
    "sweep.mode": "sweep.mode=max",
    "sweep.zip": "sweep.zip.seed=[1]",
    "cluster.object_store_bytes": "cluster.object_store_bytes=80000000",
    "datasets": "++datasets.some={type: digits}",
    "trainer.datasets_to_split": "trainer.datasets_to_split=[some]",
    "trainer.strategy_options.zero_stage": "trainer.strategy_options.zero_stage=3",
}
"""Words for keys that not everything of their type may be."""
INSIDE = ("sweep.scheduler", "smoke.expect.", "run.stop.bounds.")
"""Sections of sections that have a name of the user's, and those that a plugin of their own fills."""


@pytest.mark.parametrize("way", WAYS, ids=name_of_way)
def test_each_key_that_has_no_effect_is_refused_where_it_is_typed(way):
    config, words, multirun = words_of_way(way)
    found = idle_keys(way_of(config, words, multirun))
    told: dict[str, list[str]] = {}
    for key, conf, one in all_keys(type(composed(config, *words).conf.trainer).__module__.split(".")[-2]):
        need = next((need for idle, need in found.items() if f"{key}.".startswith(f"{idle}.")), None)
        is_section = any(is_dataclass(part) for part in parts(get_type_hints(conf)[one.name]))
        if need is not None and not is_section and not key.startswith(INSIDE):
            told.setdefault(need.otherwise, []).append(WORDS.get(key) or some_word(key, conf, one))
    assert told
    for reason, idle_words in told.items():
        more = ("sweep=random",) if any(word.startswith("sweep.") for word in idle_words) else ()
        axis = ("seed=1,2",) if multirun else ()
        message = refusal(config, *words, *axis, *more, *idle_words, multirun=multirun).message
        assert reason in message
        assert [word for word in idle_words if word.strip("+").partition("=")[0] not in message] == []


# Files


def written(text):
    Path("mine.yaml").write_text(text)
    return "mine.yaml"


TREES = "trainer: {type: xgboost}\ndataset: {type: sklearn, name: iris}\n"
NETWORK = "defaults: [trainer: torch, optimizer: sgd, _self_]\ntrainer: {train_loop: 'loops:train'}\n"
TWO_WORKERS = "scaling: {num_workers: 2, cpus_per_worker: 2}\ncluster: {start_timeout_seconds: 9}\n"


def test_a_file_for_several_ways_to_run_is_noted_where_one_of_them_leaves_keys_idle():
    config = written(TREES + TWO_WORKERS + "sweep: {type: random, num_trials: 3, params: {seed: 'range(9)'}}\n")
    notices = composed(config, "num_workers=0").notices
    assert [one.partition(" no effect")[0] for one in notices] == [
        "scaling.cpus_per_worker and cluster.start_timeout_seconds have",
        "sweep has",
    ]
    assert [one for one in composed(config).notices if "sweep" not in one] == []
    assert composed(config, multirun=True).notices == ()


def test_a_note_is_shown_once_and_the_run_is_trained(capsys):
    config = written(TREES + TWO_WORKERS)
    assert run(["fit", config, "num_workers=0", "trainer.num_boost_round=2"]) == 0
    assert "".join(capsys.readouterr()).count("have no effect") == 1


def test_a_key_in_a_file_that_never_acts_there_is_refused_with_its_line():
    message = refusal(written(TREES + "run: {log_every_steps: 3}\n")).message
    assert "run.log_every_steps has no effect" in message
    assert "mine.yaml:3" in message


def test_an_option_that_a_file_chooses_in_its_defaults_list_is_named_there():
    message = refusal(written(NETWORK)).message
    assert "trainer.optimizer has no effect: trainer.train_loop does the training" in message
    assert "mine.yaml:1" in message


def test_what_the_command_leaves_idle_in_a_file_is_a_note():
    notices = composed("mlp", *LOOP).notices
    assert len(notices) == 1
    assert "trainer.batch_size" in notices[0]
    assert "trainer.model" in notices[0]


def test_so_is_what_the_command_takes_the_ground_from():
    config = written(
        "trainer: {type: sklearn, estimator: {_target_: sklearn.linear_model.SGDClassifier}, batch_size: 9}\n"
        "dataset: {type: sklearn, name: iris}\n"
    )
    assert composed(config, "epochs=2").notices == ()
    assert composed(config, "epochs=null").notices == (
        "trainer.batch_size has no effect: the estimator is fitted in one call",
    )


def test_so_is_what_a_typed_trainer_takes_the_ground_from():
    config = written("defaults: [dataset: digits]\nrun: {checkpoint: {every_epochs: 2}}\n")
    assert composed(config, "trainer=xgboost").notices == (
        "run.checkpoint.every_epochs has no effect: boosted trees grow in rounds, not in epochs",
    )
    assert "has no effect" in refusal(config, "trainer=xgboost", "run.checkpoint.every_epochs=2").message


@pytest.mark.parametrize(
    ("text", "words"),
    [
        pytest.param(TREES + "run: {log_every_steps: 10}\n", (), id="the-default"),
        pytest.param(TREES + "smoke: {overrides: [seed=1]}\n", (), id="smoke-block"),
        pytest.param(TREES, ("num_workers=0", "run.storage=null"), id="taken-back"),
        pytest.param("defaults: [trainer: torch, _self_]\ntrainer: {train_loop: 'loops:train'}\n", (), id="built-in"),
    ],
)
def test_what_changes_nothing_needs_no_word(text, words):
    assert composed(written(text), *words).notices == ()


def test_what_a_sweep_varies_is_not_idle_as_long_as_one_trial_follows_it():
    config = written(TREES)
    words = ("num_workers=0,2", "scaling.cpus_per_worker=2")
    assert composed(config, *words, multirun=True).notices == ()
    assert "has no effect" in refusal(config, "num_workers=0", *words[1:], "seed=1,2", multirun=True).message


def test_what_a_run_recorded_is_resumed_in_any_way():
    from rtrain import fit, resume

    config = written(TREES + TWO_WORKERS)
    run = fit(config, ["num_workers=0", "trainer.num_boost_round=2"])
    assert resume(run.path, ["trainer.num_boost_round=3"]).status == "succeeded"
    with pytest.raises(ConfigError, match="no effect"):
        resume(run.path, ["trainer.num_boost_round=4", "cluster.start_timeout_seconds=8"])
