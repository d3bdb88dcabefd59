"""Numbers as keys of a config come back from JSON, whatever lies around them."""

import json
from dataclasses import dataclass, field
from typing import Any

import pytest

from rtrain.trainers.number_keys import paths_of_number_keys, with_number_keys


@dataclass
class Conf:
    model: dict[str, Any]
    layers: list[Any] = field(default_factory=list)


GIVEN = [
    {0: 1, 4: 2},
    {True: "a", False: "b"},
    {None: 1, 0.5: 3, -1: 4},
    {"0": "text", "a": {1: {2: {"3": [0, {4: 5}]}}}},
    {10**30: 1, float("inf"): 2, 1e-300: 3},
    {},
    {"a.b": {0: 1}},
]


@pytest.mark.parametrize("given", GIVEN, ids=range(len(GIVEN)))
def test_keys_come_back_as_they_were(given):
    conf = Conf({"given": given, "0": 7}, [{"_target_": "a"}, given])
    plain = json.loads(json.dumps(_as_texts({"model": conf.model, "layers": conf.layers})))
    paths = json.loads(json.dumps(list(paths_of_number_keys(conf))))
    found = with_number_keys(plain, [tuple(path) for path in paths])
    assert repr(found) == repr({"model": conf.model, "layers": conf.layers})


def _as_texts(node):
    if isinstance(node, dict):
        return {str(key): _as_texts(value) for key, value in node.items()}
    return [_as_texts(one) for one in node] if isinstance(node, list) else node


@pytest.mark.parametrize("path", [(), ("a",), ("b", "c", "d"), ("a", "0"), ("list", "7"), ("list", "x"), ("list",)])
def test_a_path_that_leads_nowhere_changes_nothing(path):
    node = {"a": {"x": 1}, "list": [1, {"y": 2}], "b": 3}
    assert with_number_keys(node, [path]) == node
