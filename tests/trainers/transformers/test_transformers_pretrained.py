"""Models that were trained before, every kind of tokenizer, and what saves memory."""

from dataclasses import replace

import pytest
from safetensors.torch import load_file
from torch.testing import assert_close
from transformers import AutoModel, AutoTokenizer, BertConfig, BertForMaskedLM
from transformers_runs import BERT, STILL, dataset, fit, make_conf

from rtrain.config.schema import RtrainConf
from rtrain.errors import ConfigError
from rtrain.runs.checkpoints import latest_checkpoint
from rtrain.testing.workers import make_job
from rtrain.trainers.transformers.config import ModelConf, TokenizerConf
from rtrain.trainers.transformers.plugin import Plugin


def val_losses(channel):
    return [one.metrics["val/loss"] for one in channel.events if "val/loss" in one.metrics]


def weights(folder):
    return load_file(latest_checkpoint(folder) / "model.safetensors")


@pytest.mark.parametrize("kind", ["bpe", "characters"])
@pytest.mark.parametrize("task", ["sequence-classification", "causal-lm"])
def test_every_tokenizer_serves_texts_and_gives_them_back(tmp_path, kind, task):
    tokenizer = TokenizerConf(train=kind, vocab_size=300)
    losses = val_losses(fit(tmp_path, make_conf(task, tokenizer=tokenizer, max_epochs=6), dataset(task)))
    assert losses[-1] < losses[0]
    made = AutoTokenizer.from_pretrained(latest_checkpoint(tmp_path))
    assert made.decode(made("the film is good")["input_ids"]) == "the film is good"


def test_fine_tuning_begins_with_the_weights_of_a_local_folder(tmp_path):
    data = dataset("causal-lm")
    scratch = make_conf("causal-lm", max_epochs=6)
    learned = val_losses(fit(tmp_path / "first", scratch, data))
    folder = str(latest_checkpoint(tmp_path / "first"))
    tuned = replace(
        scratch,
        model=ModelConf(pretrained=folder),
        tokenizer=TokenizerConf(),
        arguments={"learning_rate": 1e-9},
        max_epochs=1,
    )
    assert val_losses(fit(tmp_path / "second", tuned, data))[0] == pytest.approx(learned[-1], rel=1e-4)


def test_a_language_model_brings_its_embeddings_to_other_tasks(tmp_path):
    fit(tmp_path, make_conf("causal-lm", max_epochs=1), dataset("causal-lm"))
    _, told = AutoModel.from_pretrained(latest_checkpoint(tmp_path), output_loading_info=True)
    assert not told["missing_keys"]


def test_a_folder_without_a_tokenizer_is_refused_before_training(tmp_path):
    config = {name: value for name, value in BERT.items() if name != "model_type"}
    BertForMaskedLM(BertConfig(vocab_size=60, **config)).save_pretrained(tmp_path)
    conf = replace(make_conf(), model=ModelConf(pretrained=str(tmp_path)), tokenizer=TokenizerConf())
    with pytest.raises(ConfigError, match=r"trainer\.model\.pretrained: there is no tokenizer at"):
        Plugin().check(make_job(RtrainConf(trainer=conf), dataset(), "transformers"))


def test_activation_checkpointing_changes_no_weight_and_bf16_changes_them_a_little(tmp_path):
    for name in ("plain", "activation_checkpointing", "bf16"):
        more = {} if name == "plain" else {name: True}
        fit(tmp_path / name, make_conf(model=STILL, arguments={"learning_rate": 0.001, **more}), dataset())
    plain, checkpointed, half = (weights(tmp_path / name) for name in ("plain", "activation_checkpointing", "bf16"))
    assert_close(checkpointed, plain)
    assert_close(half, plain, rtol=0.1, atol=0.02)
    assert any((half[name] != plain[name]).any() for name in plain)


def test_a_pretrained_model_and_the_adapters_around_it_are_looked_at_before_anything_starts(tmp_path):
    config = BertConfig(**{name: value for name, value in BERT.items() if name != "model_type"}, vocab_size=50)
    BertForMaskedLM(config).save_pretrained(tmp_path / "bert")

    def check(task, folder, **keys):
        conf = replace(make_conf(task), model=ModelConf(config=None, pretrained=str(folder)), **keys)
        Plugin().check(make_job(RtrainConf(trainer=conf), dataset(task), "transformers"))

    check("sequence-classification", tmp_path / "bert", lora={"target_modules": ["query"]})
    with pytest.raises(ConfigError, match=r"target_modules=\[query,value\]\navailable: .*query, key, value"):
        check("sequence-classification", tmp_path / "bert", lora={"target_modules": ["q_proj", "value"]})
    with pytest.raises(ConfigError, match=r"has no layer 'queryy'.\ntry: trainer.lora.target_modules=\[query\]"):
        check("sequence-classification", tmp_path / "bert", lora={"target_modules": ["queryy"]})
    with pytest.raises(ConfigError, match=r"trainer\.model: there is no model at .*nothing$"):
        check("image-classification", tmp_path / "nothing")
