"""Keys that take a mapping in the place of a value can be given as either, in each form of an override."""

from __future__ import annotations

import pytest

from rtrain.config.compose.sources.store import _own_fields, _plugin_fields
from rtrain.config.session import Session
from rtrain.errors import ConfigError
from rtrain.schemas import schemas

VALUES = {
    "dataset.path": ({"train": "a.csv", "test": "b.csv"}, "a.csv"),
    "dataset.query": ({"train": "select 1", "test": "select 2"}, "select 3"),
    "dataset.normalize": ({"mean": [1.0], "std": [2.0]}, True),
    "dataset.split.by_column": ({"column": "k", "test": [4, 5]}, "k"),
    "scaling.num_workers": ({"min": 1, "max": 2}, 2),
}
"""A mapping and a value for each."""
BASE = {
    "dataset.query": ["dataset=sql", "dataset.url=sqlite:///a.db", "dataset.label=y"],
    None: ["dataset=csv", "dataset.path=x.csv", "dataset.label=y"],
}


def test_the_table_has_all_of_them():
    found = {key for key, hint, _ in [*_plugin_fields(schemas()), *_own_fields()] if hint is dict}
    assert found == set(VALUES)


def value_in(words, key):
    with Session("mlp", words, schemas()) as session:
        data = session.request.compose()
        for name in key.split("."):
            data = data[name]
        return data


@pytest.mark.parametrize("key", VALUES)
def test_each_is_taken_whole_and_key_by_key(key):
    mapping, value = VALUES[key]
    base = BASE.get(key, BASE[None])
    whole = ", ".join(f"{name}: {one}" for name, one in mapping.items())
    leaves = [f"{key}.{name}={one}" for name, one in mapping.items()]
    forms = [[f"{key}={{{whole}}}"], leaves, [f"{key}={value}", *leaves]]
    for words in forms:
        assert value_in([*base, *words], key) == mapping
    assert value_in([*base, *leaves, f"{key}={value}"], key) == value


@pytest.mark.parametrize(
    "word",
    [
        "dataset.path.trian=a.csv",
        "dataset.path={trian: a.csv}",
        "dataset.normalize.means=[1.0]",
        "dataset.split.by_column.name=k",
        "scaling.num_workers.most=2",
    ],
)
def test_a_wrong_name_in_one_is_shown_where_it_was_typed(word):
    rest = [one for one in BASE[None] if not word.startswith("dataset.path") or not one.startswith("dataset.path")]
    with pytest.raises(ConfigError) as caught, Session("mlp", [*rest, word], schemas()) as session:
        session.check()
    _, typed, carets, *_ = str(caught.value).split("\n")
    assert typed[carets.index("^") :].strip("'").startswith(word)
