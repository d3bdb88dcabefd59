"""Transforms of single rows: repeatable, for any number of ranks, the same in evaluations and predictions."""

import random
import re
import sys
from dataclasses import fields
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import torch
import yaml
from test_torch_plugin import check
from torch_runs import EXACT, MLP, RecordingChannel, assert_same, fit, fit_rank, make_conf, make_worker, weights

from rtrain.config.session import Session
from rtrain.config.targets.builder import Builder
from rtrain.errors import ConfigError
from rtrain.runs.events import Event
from rtrain.schemas import schemas
from rtrain.testing.small_data import small_dataset, streamed
from rtrain.testing.workers import newest
from rtrain.trainers.torch.config import Conf
from rtrain.trainers.torch.inputs.row_transform import RowTransform
from rtrain.trainers.torch.loop import train, training
from rtrain.trainers.torch.predictor import load_predictor

DROP = {"_target_": "torch.nn.Dropout", "p": 0.3}
FLIP = {"_target_": "torch.flip", "dims": [2]}
PAD = {"_target_": "torch.nn.ZeroPad2d", "padding": 1}


@pytest.fixture
def own_code(monkeypatch):
    """A module of the user's, which the config allows."""
    module = ModuleType("row_code")
    module.seen = []

    def look(row, factor=1.0):
        module.seen.append(row.clone())
        return row * factor

    def draw(row):
        return row + np.float32(np.random.random() + random.random()) + torch.rand(())

    for function in (look, draw):
        function.__module__ = "row_code"
        setattr(module, function.__name__, function)
    module.Text = type("Text", (), {"__module__": "row_code", "__call__": lambda self, row: "row"})
    module.Nothing = type("Nothing", (), {"__module__": "row_code"})
    monkeypatch.setitem(sys.modules, "row_code", module)
    return module


def fit_code(folder, conf, dataset):
    """Train with targets of the user's."""
    worker = make_worker(folder, conf, dataset=dataset, channel=RecordingChannel())
    worker.builder = Builder(("row_code.*",))
    train(worker)
    return weights(folder)


@pytest.mark.parametrize(
    "keys", [{}, {"dtype": "uint8"}, {"split": streamed}], ids=lambda keys: "".join(keys) or "plain"
)
def test_the_same_seed_trains_the_same_and_another_differently(tmp_path, keys):
    dataset = small_dataset(**keys)
    conf = make_conf(transform=[DROP])
    _, first = fit(tmp_path / "first", conf, dataset=dataset)
    torch.rand(3), random.random(), np.random.random()
    _, second = fit(tmp_path / "second", conf, dataset=dataset)
    assert_same(first, second, **EXACT)
    _, plain = fit(tmp_path / "plain", make_conf(), dataset=dataset)
    assert any(not torch.equal(first[name], plain[name]) for name in first)


def test_two_ranks_give_each_row_the_random_numbers_that_one_gives_it(world, tmp_path):
    # 129 rows in steps of 64: the last step has one row, so that a rank gets none.
    dataset = small_dataset(num_rows=(129, 37))
    conf = make_conf(global_batch_size=64, transform=[DROP, PAD], eval_transform=[PAD])
    one, expected = fit(tmp_path / "one", conf, dataset=dataset)
    records, _ = world.run(fit_rank, str(tmp_path / "two"), conf, dataset=dataset)
    assert_same(expected, weights(tmp_path / "two"), rtol=1e-4, atol=1e-6)
    losses = [one.metrics.get("test/loss") for one in records if isinstance(one, Event)]
    assert losses[-1] == pytest.approx(one.metrics["test/loss"], rel=1e-4)


@pytest.mark.parametrize("split", [{}, {"split": streamed}], ids=lambda keys: "".join(keys) or "plain")
def test_a_resumed_run_goes_on_with_the_same_random_numbers(tmp_path, split):
    dataset = small_dataset(**split)
    conf = make_conf(max_epochs=3, batch_size=32, transform=[DROP])
    _, expected = fit(tmp_path / "whole", conf, dataset=dataset)
    fit(tmp_path / "parts", conf, dataset=dataset, channel=RecordingChannel(stop_after=7))
    _, found = fit(tmp_path / "parts", conf, dataset=dataset)
    assert_same(found, expected, **EXACT)


def test_rows_differ_from_each_other_and_from_epoch_to_epoch(own_code):
    rows = torch.zeros((40, 1, 2, 2))
    transform = RowTransform([{"_target_": "row_code.draw"}], "trainer.transform", Builder(("row_code.*",)))
    seeds = np.arange(40, dtype=np.uint32)
    first = transform(rows, seeds)
    assert len(first[:, 0, 0, 0].unique()) == 40
    assert torch.equal(transform(rows, seeds), first)
    assert torch.equal(transform(rows[:3], seeds[5:8]), first[5:8])
    assert not torch.equal(transform(rows, seeds + 100), first)
    assert len(transform(rows, np.zeros_like(seeds))[:, 0, 0, 0].unique()) == 1


def test_other_random_numbers_go_on_as_if_there_were_no_transform(own_code):
    transform = RowTransform([{"_target_": "row_code.draw"}], "trainer.transform", Builder(("row_code.*",)))

    def draw():
        return float(torch.rand(())), random.random(), np.random.random()

    for start in (torch.manual_seed, random.seed, np.random.seed):
        start(1)
    expected = [draw(), draw()]
    for start in (torch.manual_seed, random.seed, np.random.seed):
        start(1)
    found = [draw()]
    transform(torch.zeros((4, 1, 2, 2)), np.arange(4))
    assert [*found, draw()] == expected


def test_images_of_bytes_come_as_numbers_from_0_to_1(tmp_path, own_code):
    dataset = small_dataset(dtype="uint8")
    fit_code(tmp_path, make_conf(max_epochs=1, transform=[{"_target_": "row_code.look"}]), dataset)
    seen = torch.stack(own_code.seen[-150:])  # those before are for the shape, and to try the model
    assert seen.dtype == torch.float32
    expected = dataset.splits["train"].columns["x"].astype("float32") / 255
    np.testing.assert_allclose(np.sort(seen.numpy(), axis=None), np.sort(expected, axis=None), rtol=1e-6)


def test_a_transform_that_changes_nothing_trains_the_same_weights(tmp_path, own_code):
    for dtype in ("float32", "uint8"):
        dataset = small_dataset(dtype=dtype)
        _, plain = fit(tmp_path / f"plain {dtype}", make_conf(), dataset=dataset)
        same = make_conf(transform=[{"_target_": "torch.nn.Identity"}], eval_transform=[{"_target_": "row_code.look"}])
        assert_same(fit_code(tmp_path / dtype, same, dataset), plain, rtol=1e-6, atol=1e-7)


def test_predictions_go_through_the_transform_of_evaluations(tmp_path):
    dataset = small_dataset(shape=(1, 4, 6))
    crop = {"_target_": "torch.narrow", "dim": 2, "start": 1, "length": 4}
    conf = make_conf(max_epochs=3, transform=[DROP, crop], eval_transform=[crop, FLIP])
    with training(make_worker(tmp_path, conf, dataset=dataset, channel=RecordingChannel())) as loop:
        loop.run()
    assert 16 in {values.shape[-1] for values in weights(tmp_path).values()}
    rows = dataset.splits["test"].columns
    found = load_predictor(newest(tmp_path, conf, dataset)).predict(rows["x"])
    loss = -np.log(found[np.arange(len(found)), rows["y"]]).mean()
    assert loss == pytest.approx(loop.progress.metrics["test/loss"], rel=1e-4)
    unflipped = make_conf(max_epochs=3, transform=[DROP, crop], eval_transform=[crop])
    other = load_predictor(newest(tmp_path, unflipped, dataset)).predict(rows["x"])
    assert np.abs(other - found).max() > 0.01


def test_features_of_tables_can_be_transformed(tmp_path):
    dataset = small_dataset(shape=(5,), task="regression")
    channel, _ = fit(tmp_path, make_conf(transform=[{"_target_": "torch.nn.Dropout", "p": 0.1}]), dataset=dataset)
    assert np.isfinite(channel.metrics["test/loss"])


@pytest.mark.parametrize(
    ("node", "message"),
    [
        ({"p": 0.3}, r"trainer.transform\[0\] has no _target_"),
        ({"_target_": "torch.nn.Dropoutt"}, "Dropout"),
        ({"_target_": "torch.nn.Dropout", "q": 0.3}, "has no argument 'q'"),
        ({"_target_": "subprocess.run"}, "not allowed"),
        (
            {"_target_": "torch.nn.Linear", "in_features": 3, "out_features": 1},
            r"failed with a row of zeros.*\(1, 4, 4\)",
        ),
        (
            {"_target_": "torch.nn.Flatten", "start_dim": 0},
            r"shape \(16,\), but small is standardized by .* 1 channels",
        ),
        ({"_target_": "torch.nn.Identity"}, None),
    ],
)
@pytest.mark.parametrize("key", ["transform", "eval_transform"])
def test_a_transform_is_tried_before_training(key, node, message):
    conf = make_conf(**{key: [node]})
    if message is None:
        check(conf, dataset=small_dataset())
        return
    with pytest.raises(ConfigError, match=message.replace("trainer.transform", f"trainer.{key}")):
        check(conf, dataset=small_dataset())


def test_what_no_row_can_go_through_is_named(own_code):
    with pytest.raises(ConfigError, match=r"trainer.transform\[0\]: a Nothing can't be called with a row"):
        RowTransform([{"_target_": "row_code.Nothing"}], "trainer.transform", Builder(("row_code.*",)))
    text = RowTransform([{"_target_": "row_code.Text"}], "trainer.transform", Builder(("row_code.*",)))
    with pytest.raises(ConfigError, match="transform returns a str for a row, not a tensor"):
        text(torch.zeros((1, 1, 2, 2)), np.arange(1))


def test_the_shape_after_the_transform_is_what_auto_fills_in():
    conf = make_conf(model={**MLP, "in_features": "auto"}, transform=[PAD], eval_transform=[PAD])
    check(conf, dataset=small_dataset())


def test_the_command_line_can_name_transforms():
    words = ["trainer.transform=[{_target_: torch.nn.Dropout, p: 0.5}, {_target_: torch.nn.Identity}]"]
    with Session("mlp", words, schemas(), None) as session:
        conf = session.check().conf.trainer
    assert [node["_target_"] for node in conf.transform] == ["torch.nn.Dropout", "torch.nn.Identity"]


def test_the_example_of_the_docs_works(own_code):
    text = (Path(__file__).parents[3] / "docs" / "data.md").read_text()
    nodes = yaml.safe_load(re.search(r"```yaml\n(trainer:\n  transform:.*?)```", text, re.DOTALL)[1])["trainer"]
    assert set(nodes) <= {field.name for field in fields(Conf)}
    exec(re.search(r"```python\n# my_project/rows.py\n(.*?)```", text, re.DOTALL)[1], {"torch": torch}, vars(own_code))
    own_code.add_noise.__module__ = "row_code"
    node = {**nodes["transform"][1], "_target_": "row_code.add_noise"}
    transform = RowTransform([node], "trainer.transform", Builder(("row_code.*",)))
    found = transform(torch.zeros((1, 3, 50, 50)), np.arange(1))
    assert float(found.std()) == pytest.approx(0.05, rel=0.05)
