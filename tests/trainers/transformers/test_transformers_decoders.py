"""Decoders come without a token to pad with; they are tuned for classification all the same."""

from dataclasses import replace

import numpy as np
import pytest
import transformers
from transformers import AutoConfig, AutoModelForCausalLM, AutoModelForSequenceClassification
from transformers_runs import dataset, fit, make_conf, predict

from rtrain.config.schema import RtrainConf
from rtrain.runs.checkpoints import latest_checkpoint
from rtrain.testing.workers import make_job, newest
from rtrain.trainers.transformers.config import ModelConf, TokenizerConf
from rtrain.trainers.transformers.plugin import Plugin
from rtrain.trainers.transformers.predictor import load_predictor
from rtrain.trainers.transformers.token_splits import SplitTexts
from rtrain.trainers.transformers.tokens import train_tokenizer

SIZES = {
    "hidden_size": 8,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "intermediate_size": 16,
    "head_dim": 4,
    "word_embed_proj_dim": 8,
    "ffn_dim": 16,
    "rotary_dim": 2,
    "max_position_embeddings": 32,
    "vocab_size": 80,
}
DECODERS = [
    "bloom", "falcon", "gemma", "gemma2", "gpt2", "gpt_bigcode", "gpt_neo", "gpt_neox", "gptj", "granite", "llama",
    "mistral", "mixtral", "mpt", "olmo2", "opt", "phi", "phi3", "qwen2", "qwen3", "smollm3", "stablelm", "starcoder2",
]  # fmt: skip


def pretrained(folder, kind):
    """A tiny decoder with a tokenizer, as they lie on the hub: without a token to pad with."""
    usual = AutoConfig.for_model(kind)
    fixed = {name for name in SIZES if isinstance(getattr(type(usual), name, None), property)}
    known = {name: size for name, size in SIZES.items() if hasattr(usual, name) and name not in fixed}
    if kind == "gpt_neo":
        known |= {"num_layers": 1, "attention_types": [[["global"], 1]], "num_hidden_layers": 1, "num_heads": 2}
    config = AutoConfig.for_model(kind, **known)
    config.pad_token_id = None
    AutoModelForCausalLM.from_config(config).save_pretrained(folder)
    texts = SplitTexts(dataset().splits["train"])
    tokenizer = train_tokenizer(TokenizerConf(train="wordpiece", vocab_size=60), texts, 12)
    tokenizer.pad_token = None
    tokenizer.save_pretrained(folder)
    assert AutoConfig.from_pretrained(folder).pad_token_id is None


def conf_of(folder, **keys):
    conf = make_conf(max_epochs=1, arguments={"learning_rate": 1e-3}, **keys)
    return replace(conf, model=ModelConf(pretrained=str(folder)), tokenizer=TokenizerConf())


@pytest.mark.parametrize("kind", [kind for kind in DECODERS if kind in transformers.CONFIG_MAPPING])
def test_a_decoder_without_a_token_to_pad_with_learns_to_classify(tmp_path, kind):
    if type(AutoConfig.for_model(kind)) not in AutoModelForSequenceClassification._model_mapping:
        pytest.skip("transformers has no classifier of this kind")
    pretrained(tmp_path / "model", kind)
    data, conf = dataset(num_rows=(16, 9)), conf_of(tmp_path / "model")
    Plugin().check(make_job(RtrainConf(trainer=conf), data, "transformers"))
    sent = fit(tmp_path / "run", conf, data)
    assert np.isfinite(sent.metrics["val/loss"])
    found = predict(tmp_path / "run", conf, data)
    right = (found.argmax(1) == data.splits["val"].columns["y"]).mean()
    assert right == pytest.approx(sent.metrics["val/accuracy"])
    assert AutoConfig.from_pretrained(latest_checkpoint(tmp_path / "run")).pad_token_id is not None


def test_padding_of_a_batch_changes_no_prediction(tmp_path):
    pretrained(tmp_path / "model", "llama")
    data, conf = dataset(num_rows=(16, 9)), conf_of(tmp_path / "model")
    fit(tmp_path / "run", conf, data)
    together = predict(tmp_path / "run", conf, data)
    alone = load_predictor(newest(tmp_path / "run", conf, data))
    one_by_one = np.concatenate([alone.predict(data.splits["val"].columns["x"][row : row + 1]) for row in range(9)])
    np.testing.assert_allclose(together, one_by_one, rtol=1e-4, atol=1e-6)
