"""Values of nested mappings by their paths."""

from __future__ import annotations

from types import MappingProxyType

import pytest

from rtrain.runs.nested import flat


@pytest.mark.parametrize(
    ("nested", "separator", "found"),
    [
        ({"a": 1, "b": {"c": None, "d": {"e": "x"}}}, ".", {"a": 1, "b.c": None, "b.d.e": "x"}),
        ({"val": {"loss": 0.5}}, "/", {"val/loss": 0.5}),
        ({"a": {}, "b": [{"c": 1}]}, ".", {"a": {}, "b": [{"c": 1}]}),
        (MappingProxyType({"a": MappingProxyType({"b": 1})}), ".", {"a.b": 1}),
        ({1: {2: 3}}, ".", {"1.2": 3}),
    ],
)
def test_each_value_has_the_name_of_its_path(nested, separator, found):
    assert dict(flat(nested, separator)) == found
    assert dict(flat(nested, separator, "config.")) == {f"config.{name}": value for name, value in found.items()}
