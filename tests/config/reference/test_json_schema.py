"""The JSON schema for editors."""

from __future__ import annotations

import json
from dataclasses import field, make_dataclass, replace

import pytest
from jsonschema import Draft7Validator
from small_project import SCHEMAS

from rtrain.config.reference.json_schema import json_schema
from rtrain.config.reference.key_docs import key_docs
from rtrain.errors import ConfigError


def references(node):
    if isinstance(node, dict):
        if "$ref" in node:
            yield node["$ref"]
        for value in node.values():
            yield from references(value)
    elif isinstance(node, list):
        for value in node:
            yield from references(value)


def test_the_whole_config():
    schema = json_schema(SCHEMAS)
    assert {"trainer", "dataset", "scaling", "run", "cluster", "defaults", "hydra"} <= set(schema["properties"])
    assert schema["additionalProperties"] is False
    torch = schema["$defs"]["trainer.torch"]["properties"]
    assert torch["type"]["const"] == "torch"
    assert torch["max_epochs"]["anyOf"][0] == {"type": "integer", "minimum": 1}
    assert torch["max_epochs"]["description"] == "Passes over the data."
    assert torch["max_epochs"]["markdownDescription"] == "Passes over the data.\n\nDefault: `1`"
    assert torch["precision"]["anyOf"][0]["enum"] == ["fp32", "bf16"]


@pytest.mark.parametrize(
    "group",
    [None, "trainer", "dataset", "sweep", "sweep/scheduler", "scaling", "run", "cluster", "model", "trainer/model"],
)
def test_each_part_is_json_and_complete(group):
    schema = json.loads(json.dumps(json_schema(SCHEMAS, group)))
    Draft7Validator.check_schema(schema)
    for reference in references(schema):
        assert reference.removeprefix("#/$defs/") in schema["$defs"]


@pytest.mark.parametrize("group", ["trainr", "defaults", "allow"])
def test_an_unknown_group(group):
    with pytest.raises(ConfigError, match=f"no config group '{group}'"):
        json_schema(SCHEMAS, group)


def test_two_plugins_whose_classes_have_one_name():
    inner = [make_dataclass("Inner", [(name, int)]) for name in ("mine", "yours")]
    first, second = (make_dataclass("Conf", [("inner", one, field(default=None))]) for one in inner)
    for number, one in enumerate([*inner, first, second]):
        one.__module__ = f"module{number}"
    schema = json_schema(replace(SCHEMAS, trainer={"a": first, "b": second}))
    accepts = Draft7Validator(schema).is_valid
    assert accepts({"trainer": {"type": "a", "inner": {"mine": 2}}})
    assert accepts({"trainer": {"type": "b", "inner": {"yours": 2}}})
    assert not accepts({"trainer": {"type": "a", "inner": {"yours": 2}}})


def test_every_key_of_every_trainer_and_dataset_is_explained():
    from rtrain.schemas import schemas

    for group in ("trainer", "dataset"):
        for name, conf in schemas().group(group).items():
            for key in key_docs(conf):
                assert key.text, f"{group} {name}: {key.name} has no docstring"
