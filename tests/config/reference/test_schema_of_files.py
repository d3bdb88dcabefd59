"""The JSON schema and the files that people write: those of the project are accepted, misspelt ones are not."""

from __future__ import annotations

import copy
import re
from functools import cache
from pathlib import Path

import pytest
import yaml
from jsonschema import Draft7Validator
from small_project import write

import rtrain
from rtrain.config.files.yaml_file import read_yaml
from rtrain.config.reference.json_schema import json_schema
from rtrain.config.session import Session
from rtrain.schemas import schemas

ROOT = Path(rtrain.__file__).parent.parent
CONFIGS = [*sorted((ROOT / "configs").glob("*.yaml")), *sorted((ROOT / "recipes").glob("*/config.yaml"))]
OPTIONS = sorted((ROOT / "configs").glob("*/**/*.yaml"))
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
FREE = re.compile(
    r"trainer\.((model|optimizer|scheduler|loss|module|estimator)\.(?!_target_)|(train_loop_config|params|lora)\.)"
    r"|trainer\.(arguments|trainer_args)\.|dataset\.arguments\.|smoke\.expect\.[^.]*$|sweep\.params\."
)
"""Keys that only a library, or the user's own code, knows."""


def shown(path):
    return path.relative_to(ROOT).as_posix()


@cache
def validator(group=None):
    return Draft7Validator(json_schema(schemas(), group))


def refusals(data, group=None):
    return [f"{error.json_path}: {error.message[:200]}" for error in validator(group).iter_errors(data)]


def examples():
    """Yield the configs that pages show, with the group of an option; other YAML has no key of theirs."""
    for page in PAGES:
        for number, text in enumerate(re.findall(r"```yaml\n(.*?)```", page.read_text(), re.DOTALL)):
            data, group = yaml.safe_load(text), re.match(r"# configs/(\S+)/\w+\.yaml", text)
            if set(data) & {"trainer", "dataset", "run", "scaling", "defaults"}:
                yield pytest.param(data, group and group[1], id=f"{shown(page)}-{number}")


@pytest.mark.parametrize("path", CONFIGS, ids=shown)
def test_accepts_configs(path):
    assert refusals(read_yaml(path)[0]) == []


@pytest.mark.parametrize("path", OPTIONS, ids=shown)
def test_accepts_options_by_the_schema_of_their_group(path):
    assert refusals(read_yaml(path)[0], path.parent.relative_to(ROOT / "configs").as_posix()) == []


@pytest.mark.parametrize(("data", "group"), list(examples()))
def test_accepts_the_examples_of_the_docs(data, group):
    assert refusals(data, group) == []


@pytest.mark.parametrize("name", [path.stem for path in CONFIGS if path.stem != "config"])
def test_accepts_whole_configs_as_run_directories_hold_them(name):
    with Session(name, ["run.loggers=[csv]"], schemas()) as session:
        assert refusals(yaml.safe_load(session.show_cfg("job", None, True))) == []


ACCEPTED = [
    "epochs: 3\nlr: 0.1\nbatch_size: 8\nnum_workers: 0\nseed: 1\nuse_gpu: false\nname: mine",
    "model: {_target_: my.Net, width: 3}\noptimizer: {_target_: torch.optim.SGD, lr: 1}",
    "defaults: [_self_, resnet, {override /trainer/optimizer: adamw}, {optional experiment: x}, {dataset: null}]",
    "defaults: [{trainer: mine}, {trainer/model@trainer.model: mlp}, {hydra/launcher: joblib}, {experiment: [a, b]}]",
    "defaults: [{trainer: torch}]\nepochs: '${vars.n}'\ntrainer: {early_stopping: '${vars.s}'}\nvars: {a: {b: 1}}",
    "trainer: {type: torch, max_epochs: '${oc.env:EPOCHS}', channels_last: '${vars.fast}', precision: '${vars.p}'}",
    "trainer: {type: torch, max_seconds: 1h30m, max_epochs: '???'}",
    "trainer: ${vars.trainer}\nrun: {checkpoint: '${vars.saving}', stop: {target: {val/loss: '${vars.goal}'}}}",
    "run: {loggers: [csv, tensorboard], tags: ['${vars.a}']}",
    "run: {loggers: csv}",
    "run: {loggers: {csv: null, mlflow: {experiment: x}}}",
    "scaling: {num_workers: [1, 8]}",
    "scaling: {num_workers: {min: 1, max: '${vars.most}'}}",
    "datasets: {train: {type: csv, path: a.csv}, val: '${datasets.train}'}",
    "sweep: {type: optuna, sampler: tpe, scheduler: asha, params: {lr: [1, 2]}, metric: [a, b]}",
    "sweep: {num_trials: 3, scheduler: {type: asha, grace: 2}}",
    "sweep: {scheduler: null}\ndataset: null",
    "hydra: {searchpath: [other]}\nallow: [mine.*]",
]


@pytest.mark.parametrize("text", ACCEPTED)
def test_accepts_all_forms(text):
    assert refusals(yaml.safe_load(text)) == []


REFUSED = [
    "trainer: {type: trch}",
    "trainer: {type: torch, num_boost_round: 3}",
    "trainer: {max_epoch: 3}",
    "trainer: {type: torch, max_epochs: three}",
    "trainer: {type: torch, max_epochs: 0}",
    "trainer: {type: torch, precision: fp33}",
    "trainer: {type: torch, channels_last: 2}",
    "trainer: {type: torch, max_seconds: soon}",
    "trainer: {type: torch, early_stopping: {patienc: 3}}",
    "trainer: {type: torch, optimizer: {_traget_: torch.optim.SGD}}",
    "trainer: {type: torch, callbacks: [{_target: my.Own}]}",
    "trainer: torch",
    "run:",
    "defaults: [{trainer: xgboost}]\ntrainer: {max_epochs: 3}",
    "defaults: [{trainer: xgboost}]\nepochs: 3",
    "defaults: [{/trainer: xgboost}]\ntrainer: {max_epochs: 3}",
    "defaults: [{dataset: csv}]\ndataset: {paht: a.csv}",
    "defaults: [{dataset: csv}]\ndataset: {delimiter: 3}",
    "defaults: [{sweep: random}]\nsweep: {sampler: tpe}",
    "defaults: [{modle: mlp}]",
    "defaults: [{override trainr: torch}]",
    "defaults: [{trainer: 3}]",
    "defaults: {trainer: torch}",
    "epochs: three",
    "lr: fast",
    "seed: -1",
    "lrr: 0.1",
    "model: mlp",
    "scaling: {num_workers: {min: 1}}",
    "scaling: {num_wokers: 1}",
    "run: {loggers: [tensorbord]}",
    "run: {loggers: {mlflow: {experimnt: x}}}",
    "run: {checkpoint: {best: {mode: most}}}",
    "datasets: {train: {type: csv, paht: a}}",
    "sweep: {type: optuna, scheduler: {type: asha, grac: 3}}",
    "smoke: {expect: {accuracy: {mn: 3}}}",
    "hydra: {serchpath: []}",
]


@pytest.mark.parametrize("text", REFUSED)
def test_refuses_what_can_not_be(text):
    assert refusals(yaml.safe_load(text))


def edits(word):
    """Yield a word with one edit of each kind."""
    middle = len(word) // 2
    other = "x" if word[middle] != "x" else "y"
    yield word[:middle] + word[middle + 1 :]
    yield word[:middle] + word[middle] + word[middle:]
    yield word[:middle] + other + word[middle + 1 :]
    yield word[:-2] + word[:-3:-1]
    yield f"{word}s"
    yield word.replace("_", "", 1)
    yield word.capitalize()


def keys_of(node, path=()):
    for key, value in node.items() if isinstance(node, dict) else enumerate(node):
        if isinstance(key, str):
            yield (*path, key)
        if isinstance(value, dict | list):
            yield from keys_of(value, (*path, key))


def misspelt(path):
    """Yield the content of a config with each key misspelt in turn, and that key: the kinds of edits take turns."""
    data = read_yaml(path)[0]
    for number, keys in enumerate(keys_of(data)):
        changed = copy.deepcopy(data)
        node = changed
        for key in keys[:-1]:
            node = node[key]
        words = [word for word in edits(keys[-1]) if word not in node]
        word = words[number % len(words)]
        items = [(word if key == keys[-1] else key, value) for key, value in node.items()]
        node.clear()
        node.update(items)
        yield ".".join(map(str, keys)), word, changed


def test_refuses_misspelt_keys_of_configs_but_those_that_only_others_know():
    cases = [case for path in CONFIGS for case in misspelt(path)]
    accepted = [(key, word) for key, word, data in cases if validator().is_valid(data)]
    assert [one for one in accepted if not FREE.match(one[0])] == []
    assert len(cases) > 400
    assert len(accepted) < 0.25 * len(cases)


def test_knows_the_options_of_the_current_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write("configs/trainer/mine.yaml", "type: xgboost\nnum_boost_round: 3\n")
    write("configs/trainer/bigger.yaml", "defaults: [mine]\n")
    write("configs/models/small.yaml", "a: 1\n")
    accepts = Draft7Validator(json_schema(schemas())).is_valid
    assert accepts({"defaults": [{"trainer": "mine"}], "trainer": {"num_boost_round": 3}})
    assert not accepts({"defaults": [{"trainer": "mine"}], "trainer": {"max_epochs": 3}})
    assert accepts({"defaults": [{"trainer": "bigger"}], "trainer": {"max_epochs": 3}})
    assert accepts({"defaults": [{"models": "small"}]})


@pytest.mark.parametrize(
    ("group", "text", "is_right"),
    [
        ("trainer", "max_epochs: 3\ndefaults: [{optimizer: sgd}]", True),
        ("trainer", "type: xgboost\nmax_epochs: 3", False),
        ("trainer", "num_boost_rounds: 3", False),
        ("trainer", "defaults: [{optimzer: sgd}]", False),
        ("run", "checkpoint: {keep: 3}", True),
        ("run", "checkpoint: {kep: 3}", False),
        ("optimizer", "_target_: torch.optim.SGD\nlr: 1", True),
        ("optimizer", "_taget_: torch.optim.SGD\nlr: 1", False),
    ],
)
def test_options_of_a_group(group, text, is_right):
    assert bool(refusals(yaml.safe_load(text), group)) is not is_right


def test_every_key_shows_what_it_means():
    schema = validator().schema
    for name, section in schema["$defs"].items():
        for key, value in section.get("properties", {}).items():
            inner = value.get("anyOf", [{}])[0].get("$ref", "")
            text = value.get("description") or schema["$defs"].get(inner.removeprefix("#/$defs/"), {}).get(
                "description"
            )
            assert text, f"{name}: {key}"
    for key, value in schema["properties"].items():
        assert value.get("description") or value.get("anyOf"), key
