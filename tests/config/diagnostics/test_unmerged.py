"""A list where the config has a mapping, or the other way round: the error says what the key takes."""

import shlex

import pytest

from rtrain.config.session import Session
from rtrain.errors import ConfigError
from rtrain.schemas import schemas

LOOP = "trainer: {type: torch, train_loop: 'own_loop:train', train_loop_config: {d: {x: 1}, l: [1]}}\n"
PATHS = "{train: a, test: b}"
FORMS = "must be a file, a folder, a glob, or {train: ..., val: ..., test: ...}, not ['a', 'b']"


@pytest.fixture
def compose(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pyproject.toml").write_text("")
    (tmp_path / "own_loop.py").write_text("def train(config):\n    pass\n")

    def composed(text, *words):
        (tmp_path / "own.yaml").write_text(text)
        with Session("own.yaml", words, schemas()) as session:
            return session.trials() if any("],[" in word for word in words) else session.check()

    return composed


@pytest.mark.parametrize(
    ("dataset", "key"),
    [("csv", "path"), ("parquet", "path"), ("json", "path"), ("sql", "query"), ("numpy", "path"), ("libsvm", "path")],
)
@pytest.mark.parametrize("word", ["dataset.{}=[a,b]", "++dataset.{}=[a,b]", "dataset.{}=[a,b],[b]", None])
def test_a_key_that_takes_a_mapping_among_others_names_all_that_it_takes(compose, tmp_path, dataset, key, word):
    (tmp_path / "dataset").mkdir()
    (tmp_path / "dataset" / "mine.yaml").write_text(f"defaults: [{dataset}, _self_]\n{key}: {PATHS}\n")
    own = "" if word else f"dataset: {{{key}: [a, b]}}\n"
    text = f"defaults: [trainer: xgboost, dataset: mine, _self_]\n{own}"
    with pytest.raises(ConfigError) as refused:
        compose(text, *([word.format(key)] if word else []))
    assert f"dataset.{key}: {FORMS}" in str(refused.value)


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("trainer.train_loop_config.d=[1,2]", "a list can't be merged with a mapping"),
        ("trainer.train_loop_config.l={x: 1}", "a mapping can't be merged with a list"),
        ("vars.d=[1,2]", "a list can't be merged with a mapping"),
    ],
)
def test_what_the_user_defines_is_replaced_by_the_proposed_words(compose, word, said):
    text = f"{LOOP}vars: {{d: {{x: 1}}}}\n"
    with pytest.raises(ConfigError, match=said) as refused:
        compose(text, word)
    words = shlex.split(str(refused.value).partition("try: ")[2])[3:]
    found = compose(text, *words).resolved
    for name in word.partition("=")[0].split("."):
        found = found[name]
    assert found in ([1, 2], {"x": 1})


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("dataset.split=[a,b]", "must be a mapping, not a list"),
        ("model.hidden={a: 1}", "must be a list, not a mapping"),
    ],
)
def test_a_key_that_takes_nothing_else_says_so(compose, word, said):
    with pytest.raises(ConfigError, match=said):
        compose("defaults: [trainer: torch, model: mlp, dataset: digits, _self_]\ndataset: {split: {val: 0.1}}\n", word)
