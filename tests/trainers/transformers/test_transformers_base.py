"""Checkpoints of adapters hold what was trained, and name the pretrained model that has the rest."""

import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from pretrained_models import TASKS, adapting, pretrained
from safetensors.torch import load_file, save_file
from transformers_runs import BAD, GOOD, THINGS, dataset, fit, make_conf, predict

import rtrain
from rtrain import WorkerCallback
from rtrain.errors import CheckpointError, ConfigError
from rtrain.runs.checkpoints import latest_checkpoint
from rtrain.testing.workers import newest
from rtrain.trainers.transformers.checkpoint.adapted import Adapted
from rtrain.trainers.transformers.checkpoint.base import read_base
from rtrain.trainers.transformers.config import ModelConf
from rtrain.trainers.transformers.learner import TransformersLearner
from rtrain.trainers.transformers.predictor import load_predictor

STILL = {"learning_rate": 0.0}


@pytest.fixture
def whole(monkeypatch):
    """Has checkpoints written as they were before bases were named: with all weights."""

    def all_of(adapted):
        return adapted._model.state_dict(), None

    def writing(write):
        with monkeypatch.context() as patch:
            patch.setattr(Adapted, "kept", all_of)
            write()

    return writing


def weights(folder):
    return load_file(latest_checkpoint(folder) / "adapted.safetensors")


def equal(one, two):
    return one.keys() == two.keys() and all(torch.equal(one[name], two[name]) for name in one)


def changed(folder, by=1e-3):
    """Change one number of a pretrained model."""
    stored = load_file(folder / "model.safetensors")
    next(iter(stored.values())).flatten()[0].add_(by)
    save_file(stored, folder / "model.safetensors", metadata={"format": "pt"})


@pytest.fixture(scope="module", params=TASKS)
def trained(request, tmp_path_factory):
    """A base, and a run of adapters on it: folder of both, dataset and conf."""
    folder = tmp_path_factory.mktemp("trained")
    data, conf = adapting(request.param, pretrained(folder / "base", TASKS[request.param]))
    fit(folder / "run", conf, data)
    return folder, data, conf


def test_no_file_of_a_checkpoint_has_a_weight_of_the_base(trained):
    folder, _, _ = trained
    of_base = {one.numpy().tobytes() for one in load_file(folder / "base" / "model.safetensors").values() if one.ndim}
    files = list(latest_checkpoint(folder / "run").rglob("*.safetensors"))
    assert {file.name for file in files} == {"adapted.safetensors", "adapter_model.safetensors"}
    for file in files:
        for name, one in load_file(file).items():
            assert "running_" in name or one.numpy().tobytes() not in of_base, f"{file.name}: {name}"
    assert read_base(latest_checkpoint(folder / "run")).folder == str(folder / "base")


def test_a_stopped_run_resumes_to_the_same_weights(trained, tmp_path):
    folder, data, conf = trained
    fit(tmp_path, conf, data, stop_after=5)
    fit(tmp_path, conf, data)
    assert equal(weights(tmp_path), weights(folder / "run"))
    assert read_base(latest_checkpoint(tmp_path)) == read_base(latest_checkpoint(folder / "run"))


def test_it_predicts_as_a_checkpoint_of_all_weights_does(trained, tmp_path, whole):
    folder, data, conf = trained
    whole(lambda: fit(tmp_path, conf, data))
    assert len(weights(tmp_path)) > len(weights(folder / "run"))
    np.testing.assert_array_equal(predict(folder / "run", conf, data), predict(tmp_path, conf, data))
    one, two = (load_predictor(newest(place, conf, data)).model for place in (folder / "run", tmp_path))
    assert equal(one.state_dict(), two.state_dict())


def test_a_run_begins_with_its_weights_new_layers_too(trained, tmp_path):
    folder, data, conf = trained
    still = replace(conf, arguments=STILL, max_epochs=None, max_steps=1)
    fit(tmp_path, still, data, init_from=str(latest_checkpoint(folder / "run")), seed=7)
    before, after = weights(folder / "run"), weights(tmp_path)
    assert equal(*({name: one for name, one in some.items() if "running_" not in name and "num_batches" not in name}
                   for some in (before, after)))  # fmt: skip


def test_a_checkpoint_of_all_weights_resumes_and_leaves_the_base_out_from_then_on(trained, tmp_path, whole):
    folder, data, conf = trained
    whole(lambda: fit(tmp_path, conf, data, stop_after=5))
    assert read_base(latest_checkpoint(tmp_path)) is None
    fit(tmp_path, conf, data)
    assert equal(weights(tmp_path), weights(folder / "run"))
    assert read_base(latest_checkpoint(tmp_path)) == read_base(latest_checkpoint(folder / "run"))


@pytest.fixture
def run(tmp_path):
    """A run that was stopped, on a base that a test may change."""
    data, conf = adapting("sequence-classification", pretrained(tmp_path / "base"))
    fit(tmp_path / "run", conf, data, stop_after=5)
    return tmp_path, data, conf


def moved(conf, place):
    return replace(conf, model=ModelConf(config=None, pretrained=str(place)))


def test_a_base_that_has_changed_is_told(run):
    folder, data, conf = run
    before = predict(folder / "run", conf, data)
    shutil.copytree(folder / "base", folder / "kept")
    changed(folder / "base")
    checkpoint = str(latest_checkpoint(folder / "run"))
    ways = [
        lambda: predict(folder / "run", conf, data),
        lambda: fit(folder / "run", conf, data),
        lambda: fit(folder / "new", conf, data, init_from=checkpoint),
    ]
    for way in ways:
        with pytest.raises(CheckpointError, match=rf"{folder}/base as it was in training") as raised:
            way()
        assert "trainer.model.pretrained=FOLDER" in raised.value.hint
    np.testing.assert_array_equal(predict(folder / "run", moved(conf, folder / "kept"), data), before)
    fit(folder / "run", moved(conf, folder / "kept"), data)
    assert read_base(latest_checkpoint(folder / "run")).folder == str(folder / "kept")


def test_a_base_of_another_kind_is_told(run):
    folder, data, conf = run
    shutil.rmtree(folder / "base")
    pretrained(folder / "base", intermediate_size=48)
    with pytest.raises(CheckpointError, match=r"base as it was in training"):
        predict(folder / "run", conf, data)


def test_a_base_that_is_gone_is_looked_for_where_it_was(run, monkeypatch):
    folder, data, conf = run
    (folder / "base").rename(folder / "away")
    with pytest.raises(CheckpointError, match=rf"{folder}/base, which can't be loaded: .* does not exist") as raised:
        predict(folder / "run", conf, data)
    assert "trainer.model.pretrained=FOLDER" in raised.value.hint
    with pytest.raises(ConfigError, match=rf"there is no model at {folder}/base"):
        fit(folder / "run", conf, data)


def test_a_relative_base_is_found_from_elsewhere_and_after_a_move_of_both(run, monkeypatch):
    folder, data, conf = run
    near = moved(conf, "base")
    monkeypatch.chdir(folder)
    fit(folder / "near", near, data)
    before = predict(folder / "near", near, data)
    monkeypatch.chdir("/")
    np.testing.assert_array_equal(predict(folder / "near", near, data), before)
    (folder / "base").rename(folder / "run" / "base")
    monkeypatch.chdir(folder / "run")
    np.testing.assert_array_equal(predict(folder / "near", near, data), before)


def test_weights_of_a_checkpoint_of_another_base_are_all_kept(run, whole):
    folder, data, conf = run
    other = moved(conf, pretrained(folder / "other", seed=1))
    whole(lambda: fit(folder / "old", other, data))
    still = replace(conf, arguments=STILL)
    fit(folder / "new", still, data, init_from=str(latest_checkpoint(folder / "old")))
    assert read_base(latest_checkpoint(folder / "new")) is None
    assert equal(weights(folder / "new"), weights(folder / "old"))
    np.testing.assert_array_equal(predict(folder / "new", still, data), predict(folder / "old", other, data))


def test_a_model_from_scratch_is_kept_whole(tmp_path):
    data, conf = dataset(), make_conf(lora={"r": 2, "target_modules": ["query"]})
    fit(tmp_path, conf, data)
    assert read_base(latest_checkpoint(tmp_path)) is None
    assert equal(weights(tmp_path), load_predictor(newest(tmp_path, conf, data)).model.state_dict())


CHANGING = {
    "sequence-classification": [
        *({"init_lora_weights": name} for name in ("pissa", "olora", "orthogonal", "gaussian", False)),
        {"modules_to_save": ["LayerNorm"]},
        {"layers_to_transform": [0], "use_rslora": True},
    ],
    "causal-lm": [
        {"init_lora_weights": "pissa"},
        {"use_dora": True},
        {"bias": "all"},
        {"modules_to_save": ["wte"]},
        {"trainable_token_indices": [3, 5]},
        {"target_modules": ["c_attn", "wte"]},
    ],
}
"""Adapters that change, or add, more than weights next to a layer."""


@pytest.mark.parametrize(("task", "lora"), [(task, lora) for task, some in CHANGING.items() for lora in some], ids=str)
def test_whatever_adapters_change_of_the_base_is_kept(tmp_path, whole, task, lora):
    base = pretrained(tmp_path / "base", TASKS[task])
    layers = {"r": 2, "target_modules": ["query"] if TASKS[task] == "bert" else ["c_attn"]}
    data, conf = adapting(task, base, {**layers, **lora}, max_steps=3)
    fit(tmp_path / "run", conf, data)
    whole(lambda: fit(tmp_path / "old", conf, data))
    assert len(weights(tmp_path / "run")) < len(weights(tmp_path / "old"))
    np.testing.assert_array_equal(predict(tmp_path / "run", conf, data), predict(tmp_path / "old", conf, data))
    fit(tmp_path / "run", replace(conf, max_steps=4), data)


def test_embeddings_that_have_grown_are_kept(tmp_path, whole):
    base = pretrained(tmp_path / "base", "gpt2", vocab_size=40)  # fewer than the tokenizer has
    data, conf = adapting("causal-lm", base)
    fit(tmp_path / "run", conf, data)
    assert any("wte" in name for name in weights(tmp_path / "run"))
    whole(lambda: fit(tmp_path / "old", conf, data))
    np.testing.assert_array_equal(predict(tmp_path / "run", conf, data), predict(tmp_path / "old", conf, data))


class Scaling(WorkerCallback):
    """Changes a weight of the base."""

    def step_begin(self, training, batch):
        if training.step == 2:
            with torch.no_grad():
                training.model.get_input_embeddings().weight.mul_(1.5)


def test_a_weight_of_the_base_that_something_else_changes_in_training_is_kept(tmp_path, whole, monkeypatch):
    monkeypatch.setattr(TransformersLearner, "callbacks", lambda learner: [Scaling()])
    data, conf = adapting("sequence-classification", pretrained(tmp_path / "base"), max_steps=6)
    conf = replace(conf, max_epochs=None)
    fit(tmp_path / "run", conf, data)
    whole(lambda: fit(tmp_path / "old", conf, data))
    name = "base_model.model.bert.embeddings.word_embeddings.weight"
    assert torch.equal(weights(tmp_path / "run")[name], weights(tmp_path / "old")[name])
    np.testing.assert_array_equal(predict(tmp_path / "run", conf, data), predict(tmp_path / "old", conf, data))


def test_the_base_is_hashed_once_in_a_run(tmp_path, monkeypatch):
    from rtrain.trainers.transformers.checkpoint import adapted

    counted, digest = [], adapted.digest
    monkeypatch.setattr(adapted, "digest", lambda weights: counted.append(1) or digest(weights))
    data, conf = adapting("sequence-classification", pretrained(tmp_path / "base"))
    channel = fit(tmp_path / "run", conf, data, checkpoint={"every_steps": 2, "keep": 10}, stop_after=5)
    assert len(channel.checkpoints) > 2
    assert len(counted) == 1
    fit(tmp_path / "run", conf, data, checkpoint={"every_steps": 2, "keep": 10})
    assert len(counted) == 2


def test_the_commit_of_training_is_found_in_the_cache_without_a_network(tmp_path):
    script = Path(__file__).with_name("hub_script.py")
    cache = {"HF_HUB_OFFLINE": "1", "HF_HUB_CACHE": str(tmp_path / "cache")}
    done = subprocess.run(
        [sys.executable, str(script), str(tmp_path)], env={**os.environ, **cache}, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


CONFIG = """\
defaults: [{trainer: transformers}, {dataset: text}]
dataset: {path: FOLDER/texts.tsv, label: label}
trainer:
  model: {pretrained: FOLDER/base}
  lora: {r: 2, target_modules: [query]}
  arguments: {learning_rate: 0.01, lr_scheduler_type: constant}
  max_length: 12
  max_epochs: 1
  global_batch_size: 15
scaling: {num_workers: 0}
run: {root_dir: FOLDER/runs}
"""


def test_a_user_names_another_place_for_the_base_wherever_a_checkpoint_is_opened(tmp_path):
    pretrained(tmp_path / "base")
    rows = [f"the {THINGS[row % 4]} is {(GOOD, BAD)[row % 2][row % 3]}\t{row % 2}" for row in range(60)]
    (tmp_path / "texts.tsv").write_text("\n".join(["text\tlabel", *rows]) + "\n")
    config = tmp_path / "config.yaml"
    config.write_text(CONFIG.replace("FOLDER", str(tmp_path)))
    run = rtrain.fit(str(config))
    table, model = rtrain.predict(run.path), rtrain.load_checkpoint(run.path).model
    (tmp_path / "base").rename(tmp_path / "away")
    moved = [f"trainer.model.pretrained={tmp_path}/away"]
    for way in (rtrain.predict, rtrain.evaluate, rtrain.load_checkpoint):
        with pytest.raises(CheckpointError, match="can't be loaded") as raised:
            way(run.path)
        assert "trainer.model.pretrained=FOLDER" in raised.value.hint
    with pytest.raises(CheckpointError, match=rf"can't be loaded from {tmp_path}/nothing: "):
        rtrain.predict(run.path, overrides=[f"trainer.model.pretrained={tmp_path}/nothing"])
    assert rtrain.predict(run.path, overrides=moved).equals(table)
    assert equal(rtrain.load_checkpoint(run.path, moved).model.state_dict(), model.state_dict())
    with pytest.raises(ConfigError, match=rf"trainer\.model\.pretrained: there is no .* at {tmp_path}/base"):
        rtrain.resume(run.path, ["trainer.max_epochs=2"])
    resumed = rtrain.resume(run.path, ["trainer.max_epochs=2", *moved])
    assert f"trainer.model.pretrained: {tmp_path}/base -> {tmp_path}/away" in resumed.manifest.resumes[-1]["changed"]
    assert read_base(resumed.checkpoints[-1]).folder == f"{tmp_path}/away"
    new = rtrain.fit(str(config), [*moved, f"run.init_from={run.path}"])
    assert read_base(new.best_checkpoint) is not None
    whole = rtrain.fit(str(config), [*moved, "trainer.lora=null"])
    with pytest.raises(ConfigError, match=r"has no effect: .* holds the whole model"):
        rtrain.predict(whole.path, overrides=moved)
