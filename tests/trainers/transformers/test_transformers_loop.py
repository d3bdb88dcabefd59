"""Every task is learned, resumed exactly, and predicted from the checkpoint alone."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from epochs_contract import assert_means_by_weight, assert_same_weighing, copied_and_weighted, unequally_weighted
from safetensors.torch import load_file
from transformers_runs import STILL, TINY, dataset, fit, make_conf, predict

from rtrain.datasets.base import Dataset
from rtrain.runs.checkpoints import latest_checkpoint

SHAPES = {
    "sequence-classification": (23, 2),
    "image-classification": (23, 2),
    "regression": (23,),
    "token-classification": (23, 7, 2),
}


def weights(folder, name="model.safetensors"):
    return load_file(latest_checkpoint(folder) / name)


@pytest.mark.parametrize("task", TINY)
def test_a_task_is_learned_and_predicted(tmp_path, task):
    data, conf = dataset(task), make_conf(task, max_epochs=12)
    channel = fit(tmp_path, conf, data)
    losses = [one.metrics["val/loss"] for one in channel.events if "val/loss" in one.metrics]
    assert losses[-1] < 0.95 * losses[0]
    found = predict(tmp_path, conf, data)
    if task in SHAPES:
        assert found.shape == SHAPES[task]
    if task == "sequence-classification":
        right = found.argmax(1) == data.splits["val"].columns["y"]
        assert right.mean() == pytest.approx(channel.metrics["val/accuracy"])
    if found.ndim > 1:
        there = ~np.isnan(found).any(-1)
        np.testing.assert_allclose(found.sum(-1)[there], 1, atol=1e-5)


@pytest.mark.parametrize(
    "task", ["image-classification", "sequence-classification", "regression", "token-classification"]
)
def test_a_weight_of_two_is_a_row_twice_and_the_scale_of_weights_is_nothing(tmp_path, task):
    model = {**TINY[task], "hidden_dropout_prob": 0.0}
    keys = {
        "model": model,
        "max_steps": 1,
        "global_batch_size": 1000,
        "arguments": {"learning_rate": 0.01, "optim": "sgd"},
    }
    data, found = copied_and_weighted(dataset(task)), {}
    if task != "image-classification":
        data.pop("copied")  # a tokenizer made of more texts is another one
    for name, one in data.items():
        found[name] = fit(tmp_path / name, make_conf(task, **keys), one).metrics
    assert_same_weighing(found, lambda name: {key: one.numpy() for key, one in weights(tmp_path / name).items()})


@pytest.mark.parametrize("task", ["image-classification", "sequence-classification", "regression"])
def test_losses_of_several_steps_are_means_by_weight(tmp_path, task):
    keys = {"model": {**TINY[task], "hidden_dropout_prob": 0.0}, "arguments": {"learning_rate": 1e-30, "optim": "sgd"}}
    conf = make_conf(task, shuffle=False, global_batch_size=4, **keys)
    assert_means_by_weight(fit(tmp_path, conf, unequally_weighted(dataset(task)), log_every_steps=1))


def test_losses_of_several_steps_are_means_over_tokens(tmp_path):
    keys = {"packing": False, "arguments": {"learning_rate": 1e-30, "optim": "sgd"}}
    data = dataset("causal-lm")
    split = data.splits["train"]
    data = Dataset(
        replace(data.info, num_rows=dict.fromkeys(data.splits, split.num_rows)), {"train": split, "val": split}
    )
    channel = fit(tmp_path, make_conf("causal-lm", global_batch_size=3, **keys), data)
    assert channel.metrics["train/epoch_loss"] == pytest.approx(channel.metrics["val/loss"], rel=1e-5)


def test_a_stopped_run_resumes_to_the_same_weights(tmp_path):
    conf, data = make_conf(max_epochs=3), dataset()
    fit(tmp_path / "a", conf, data)
    stopped = fit(tmp_path / "b", conf, data, stop_after=5)
    assert stopped.checkpoints[-1]["step"] == 5, "in the middle of an epoch"
    fit(tmp_path / "b", conf, data)
    one, two = weights(tmp_path / "a"), weights(tmp_path / "b")
    assert all(torch.equal(one[name], two[name]) for name in one)


@pytest.mark.parametrize("task", ["sequence-classification", "masked-lm", "causal-lm"])
def test_accumulated_parts_are_one_whole_batch_and_resume_between_steps(tmp_path, task):
    keys = {"model": {**TINY[task], "hidden_dropout_prob": 0.0}} if task != "causal-lm" else {}
    keys["arguments"] = {"learning_rate": 0.01, "lr_scheduler_type": "linear"}
    data, conf = dataset(task), make_conf(task, global_batch_size=4, accumulate_steps=2, **keys)
    whole = fit(tmp_path / "whole", make_conf(task, global_batch_size=8, **keys), data)
    parts = fit(tmp_path / "parts", conf, data)
    for name in ("train/epoch_loss", "train/lr"):
        assert parts.metrics[name] == pytest.approx(whole.metrics[name], rel=1e-4)
    fit(tmp_path / "resumed", conf, data, stop_after=3)
    fit(tmp_path / "resumed", conf, data)
    one, two, three = (weights(tmp_path / name) for name in ("whole", "parts", "resumed"))
    for name in one:
        torch.testing.assert_close(one[name], two[name], rtol=1e-3, atol=1e-4)
        assert torch.equal(two[name], three[name])


def test_an_optimizer_is_read_into_main_memory_first(tmp_path, monkeypatch):
    asked, load = [], torch.load

    def note(*args, **keys):
        asked.append(keys["map_location"])
        return load(*args, **keys)

    fit(tmp_path, make_conf(max_steps=1), dataset())
    monkeypatch.setattr(torch, "load", note)
    fit(tmp_path, make_conf(max_steps=2), dataset())
    assert asked == ["cpu"]  # by name: the device of the model is torch.device("cpu") here, and a GPU elsewhere


@pytest.mark.parametrize(
    "model",
    [
        {"model_type": "distilbert", "dim": 16, "hidden_dim": 32, "n_heads": 2, "n_layers": 1},
        {
            "model_type": "albert",
            "hidden_size": 16,
            "embedding_size": 16,
            "intermediate_size": 32,
            "num_hidden_layers": 1,
        }
        | {"num_attention_heads": 2},
    ],
    ids=lambda one: one["model_type"],
)
def test_adapters_need_no_names_of_modules_where_peft_knows_none(tmp_path, model):
    channel = fit(tmp_path, make_conf(model=model, lora={"r": 2}), dataset())
    facts = channel.worker_facts[-1]
    assert 0 < facts["num_trained_parameters"] < facts["num_parameters"]


def test_adapters_alone_are_trained_and_kept_apart(tmp_path):
    conf = make_conf(model=STILL, lora={"r": 2, "target_modules": ["query", "value"]}, merge_lora=True)
    data = dataset()
    channel = fit(tmp_path, conf, data)
    facts = channel.worker_facts[-1]
    assert facts["num_trained_parameters"] < facts["num_parameters"] / 5
    folder = latest_checkpoint(tmp_path)
    assert (folder / "adapter" / "adapter_model.safetensors").exists()
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    merged = AutoModelForSequenceClassification.from_pretrained(folder / "merged").eval()
    tokens = AutoTokenizer.from_pretrained(folder / "merged")(
        list(data.splits["val"].columns["x"]), padding=True, return_tensors="pt"
    )
    with torch.no_grad():
        expected = merged(input_ids=tokens["input_ids"], attention_mask=tokens["attention_mask"]).logits.softmax(-1)
    np.testing.assert_allclose(predict(tmp_path, conf, data), expected, atol=1e-5)
