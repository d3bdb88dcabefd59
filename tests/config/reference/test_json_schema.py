"""The JSON schema for editors."""

from __future__ import annotations

import json

import pytest
from tests_config import SCHEMAS

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
    types = [one["properties"]["type"]["const"] for one in schema["properties"]["trainer"]["anyOf"]]
    assert types == ["torch", "xgboost"]
    torch = schema["properties"]["trainer"]["anyOf"][0]
    assert torch["properties"]["max_epochs"]["minimum"] == 1
    assert torch["properties"]["max_epochs"]["description"] == "Passes over the data."
    assert torch["properties"]["precision"]["enum"] == ["fp32", "bf16"]
    assert torch["required"] == ["type"]


@pytest.mark.parametrize("group", [None, "trainer", "dataset", "scaling", "run", "cluster"])
def test_each_part_is_json_and_complete(group):
    schema = json.loads(json.dumps(json_schema(SCHEMAS, group)))
    assert schema["$schema"].startswith("https://json-schema.org/")
    for reference in references(schema):
        assert reference.removeprefix("#/$defs/") in schema["$defs"]


def test_an_unknown_part():
    with pytest.raises(ConfigError, match="the config has no part 'trainr'; there are: trainer, dataset"):
        json_schema(SCHEMAS, "trainr")


def test_every_key_of_every_trainer_and_dataset_is_explained():
    from rtrain.schemas import schemas

    for group in ("trainer", "dataset"):
        for name, conf in schemas().group(group).items():
            for key in key_docs(conf):
                assert key.text, f"{group} {name}: {key.name} has no docstring"
