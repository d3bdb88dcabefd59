"""The GPT, and language modelling with it."""

import math

import numpy as np
import pytest
import torch
from torch.nn import functional
from torch_runs import GPT, RecordingChannel, assert_same, fit, fit_rank, make_conf, token_dataset, weights

from rtrain.errors import ConfigError
from rtrain.models.torch import GPT as Model
from rtrain.models.torch.gpt import Attention
from rtrain.runs.events import Event
from rtrain.testing.workers import newest
from rtrain.trainers.torch.build import fill_from_dataset
from rtrain.trainers.torch.predictor import load_predictor

ADAM = {"_target_": "torch.optim.Adam", "lr": 0.01}


def test_a_place_sees_itself_and_what_came_before():
    torch.manual_seed(0)
    model = Model(7, 8, num_layers=2, num_heads=2, width=16).eval()
    tokens = torch.randint(0, 7, (3, 8))
    changed = tokens.clone()
    changed[:, 5] = (changed[:, 5] + 1) % 7
    before, after = model(tokens), model(changed)
    torch.testing.assert_close(before[:, :5], after[:, :5], rtol=0, atol=0)
    assert not torch.isclose(before[:, 5:], after[:, 5:]).all(-1).any()


def test_attention_is_the_formula_of_the_paper():
    torch.manual_seed(0)
    part = Attention(width=12, num_heads=3, dropout=0.0, bias=True)
    x = torch.randn(2, 5, 12)
    rows = []
    for head in range(3):
        query, key, value = part.enter(x)[..., 12 * head : 12 * (head + 1)].split(4, dim=-1)
        scores = query @ key.transpose(1, 2) / math.sqrt(4)
        scores = scores.masked_fill(torch.ones(5, 5).triu(1).bool(), -math.inf)
        rows.append(scores.softmax(-1) @ value)
    torch.testing.assert_close(part(x), part.leave(torch.cat(rows, dim=-1)))


def test_it_starts_as_gpt_2_does():
    torch.manual_seed(0)
    model = Model(65, 64, num_layers=8, width=128, bias=False)
    assert model.head.weight is model.tokens.weight
    assert model.tokens.weight.std().item() == pytest.approx(0.02, rel=0.05)
    assert model.blocks[0].attention.enter.weight.std().item() == pytest.approx(0.02, rel=0.05)
    assert model.blocks[0].leave.weight.std().item() == pytest.approx(0.02 / math.sqrt(16), rel=0.05)
    assert functional.cross_entropy(model(torch.zeros(1, 64).long())[0], torch.zeros(64).long()).item() < 5


def test_the_small_gpt_2_has_the_known_number_of_weights():
    with torch.device("meta"):
        model = Model(50257, 1024, num_layers=12, num_heads=12, width=768)
    assert sum(parameter.numel() for parameter in model.parameters()) == 124_439_808


def test_what_does_not_fit_is_refused():
    with pytest.raises(ValueError, match="num_heads=3 does not divide width=16"):
        Model(7, 8, num_heads=3, width=16)
    with pytest.raises(ValueError, match="9 tokens, but block_size is 8"):
        Model(7, 8)(torch.zeros(1, 9).long())
    with pytest.raises(ValueError, match="4 heads can't be shared by 3 workers"):
        Model(7, 8).tensor_parallel_plan(3)


def test_a_language_model_learns_and_predicts_each_place(tmp_path):
    dataset, conf = token_dataset(), make_conf(model=GPT, optimizer=ADAM, batch_size=16, max_epochs=20)
    channel, stored = fit(tmp_path, conf, dataset=dataset)
    metrics = channel.metrics
    assert metrics["val/perplexity"] == pytest.approx(math.exp(metrics["val/loss"]))
    assert metrics["val/accuracy"] > 0.85
    assert metrics["val/loss"] < 0.6
    assert channel.checkpoints[-1]["score"]["monitor"] == "val/loss"
    assert "head.weight" not in stored or "tokens.weight" not in stored, "the shared weights are stored twice"
    rows = dataset.splits["val"].columns
    found = load_predictor(newest(tmp_path, conf, dataset)).predict(rows["x"], batch_size=5)
    assert found.shape == (14, 8, 7)
    right = np.take_along_axis(found, rows["y"][..., None], axis=2)
    assert -np.log(right).mean() == pytest.approx(metrics["val/loss"], rel=1e-4)
    assert (found.argmax(2) == rows["y"]).mean() == pytest.approx(metrics["val/accuracy"])


def test_two_workers_train_a_language_model_like_one(world, tmp_path):
    dataset = token_dataset(num_train=33)
    # Not Adam: it divides the noise of gradients that are zero in exact numbers, those of the keys' biases.
    conf = make_conf(model=GPT, global_batch_size=16, accumulate_steps=2)
    one, expected = fit(tmp_path / "one", conf, dataset=dataset)
    records, _ = world.run(fit_rank, str(tmp_path / "two"), conf, dataset=dataset)
    assert_same(expected, weights(tmp_path / "two"), rtol=1e-3, atol=1e-5)
    found = [record.metrics for record in records if isinstance(record, Event)][-1]
    assert found["val/loss"] == pytest.approx(one.metrics["val/loss"], rel=1e-4)
    assert found["val/accuracy"] == one.metrics["val/accuracy"]


def test_resuming_inside_an_epoch_changes_nothing(tmp_path):
    dataset = token_dataset()
    conf = make_conf(model={**GPT, "dropout": 0.2}, optimizer=ADAM, batch_size=16)
    _, expected = fit(tmp_path / "a", conf, dataset=dataset)
    fit(tmp_path / "b", conf, dataset=dataset, channel=RecordingChannel(stop_after=3))
    assert_same(expected, fit(tmp_path / "b", conf, dataset=dataset)[1], rtol=0, atol=0)


def test_tokens_are_needed_where_a_vocabulary_is():
    from torch_runs import small_dataset

    with pytest.raises(ConfigError, match="dataset=text"):
        fill_from_dataset(GPT, small_dataset(shape=(5,)).info)
