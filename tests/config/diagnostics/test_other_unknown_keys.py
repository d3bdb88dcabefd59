"""A file with several unknown keys: the first is explained, and all others are named with their lines."""

from __future__ import annotations

import pytest
import yaml

from rtrain.config.compose.aliases import GROUPS, KEYS
from rtrain.config.diagnostics.meant.keys.schema_keys import all_keys
from rtrain.config.diagnostics.meant.keys.wrong_keys import WrongKeys
from rtrain.config.files.locations import builtin_config_dir
from rtrain.config.session import Session
from rtrain.errors import ConfigError
from rtrain.schemas import schemas

SHIPPED = [
    *sorted(builtin_config_dir().glob("*.yaml")),
    *sorted((builtin_config_dir().parent / "recipes").glob("*/config.yaml")),
]
WRONG = """\
defaults: [{trainer: torch}, {model: mlp}, {optimizer: adamw}, {dataset: digits}]
trainer:
  max_epoch: 3
  batch_size: 64
  early_stopping: {pateince: 3}
run:
  tagz: [a]
  stop: {target: {val/accuracy: 0.9}, bounds: {val/loss: {max: 3}}}
scalling: {num_workers: 2}
lr: 0.1
smoke: {expect: {val/accuracy: {min: 0.1}}}
vars: {anything: 1}
"""


def said_of(path):
    with pytest.raises(ConfigError) as caught, Session(str(path), [], schemas()) as session:
        session.check()
    return str(caught.value)


def test_all_unknown_keys_of_a_file_are_named(tmp_path):
    (tmp_path / "wrong.yaml").write_text(WRONG)
    said = said_of(tmp_path / "wrong.yaml")
    assert "there is no key 'max_epoch' here" in said
    assert "did you mean: max_epochs" in said
    others = "trainer.early_stopping.pateince (line 5), run.tagz (line 7), scalling (line 9)"
    assert said.endswith(f"also unknown: {others}")


def test_a_single_unknown_key_has_no_such_line(tmp_path):
    (tmp_path / "wrong.yaml").write_text(
        WRONG.replace("pateince", "patience").replace("tagz", "tags").replace("ll", "l")
    )
    assert "also unknown" not in said_of(tmp_path / "wrong.yaml")


@pytest.mark.parametrize("config", SHIPPED, ids=lambda path: str(path.relative_to(path.parents[2])))
def test_what_a_shipped_config_sets_is_not_unknown(config, tmp_path):
    data = yaml.safe_load(config.read_text())
    data.setdefault("run", {})["zzzz"] = 1
    (tmp_path / "configs").mkdir()
    copy = tmp_path / "configs" / config.name
    copy.write_text(yaml.safe_dump(data, sort_keys=False))
    said = said_of(copy)
    assert "there is no key 'zzzz'" in said
    assert "also unknown" not in said


@pytest.mark.parametrize("trainer", sorted(schemas().trainer))
@pytest.mark.parametrize("dataset", ["csv", "images", "python", "huggingface"])
def test_no_key_of_the_schemas_is_unknown(trainer, dataset, tmp_path):
    (tmp_path / "some.yaml").write_text(f"trainer: {{type: {trainer}}}\ndataset: {{type: {dataset}}}\n")
    data: dict = {}
    keys = {key for key in all_keys(schemas(), trainer, dataset) if key.partition(".")[0] not in {*KEYS, *GROUPS}}
    for key in sorted(keys, key=lambda key: key.count(".")):
        *parents, last = key.split(".")
        node = data
        for parent in parents:
            if not isinstance(node.get(parent), dict):
                node[parent] = {}
            node = node[parent]
        node.setdefault(last, 1)
    with Session(str(tmp_path / "some.yaml"), [], schemas()) as session:
        known = WrongKeys(session.request, schemas(), lambda overrides: None).known
        assert list(known.unknown_in(data)) == []
        assert list(known.unknown_in({**data, "zzzz": 1})) == ["zzzz"]
        assert list(known.unknown_in({"trainer": {"zzzz": {"a": 1}}, "run": {"checkpoint": {"kep": 1}}})) == [
            "trainer.zzzz",
            "run.checkpoint.kep",
        ]
