"""Tiny pretrained models on disk, with their tokenizers, for the tests of adapters."""

from __future__ import annotations

from dataclasses import replace

import torch
import transformers
from transformers import AutoConfig
from transformers_runs import BERT, GPT, VIT, dataset, make_conf

from rtrain.trainers.transformers.config import ModelConf, TokenizerConf
from rtrain.trainers.transformers.token_splits import SplitTexts
from rtrain.trainers.transformers.tokens import train_tokenizer

RESNET = {"model_type": "resnet", "embedding_size": 8, "hidden_sizes": [8, 8], "depths": [1, 1]}
KINDS = {
    "bert": (BERT, "AutoModelForMaskedLM", ["query"]),
    "gpt2": (GPT, "AutoModelForCausalLM", ["c_attn"]),
    "vit": (VIT, "AutoModel", "all-linear"),
    "resnet": ({**RESNET, "layer_type": "basic"}, "AutoModel", ["convolution"]),
}
"""Configuration, class and layers to adapt, by type of model."""
TASKS = {
    "sequence-classification": "bert",
    "regression": "bert",
    "token-classification": "bert",
    "masked-lm": "bert",
    "causal-lm": "gpt2",
    "image-classification": "vit",
    "image-classification, with batch norm": "resnet",
}
"""Type of model by what is learned."""


def pretrained(folder, kind="bert", seed=0, **changes):
    """Write a model of random weights, none of which is 0 or 1 as new layers have them, and return the folder."""
    torch.manual_seed(seed)
    config, maker, _ = KINDS[kind]
    sizes = {"num_channels": 1} if kind in ("vit", "resnet") else {"vocab_size": 60}
    sizes |= {"image_size": 8} if kind == "vit" else {}
    model = getattr(transformers, maker).from_config(AutoConfig.for_model(**{**config, **sizes, **changes}))
    with torch.no_grad():
        for weight in model.parameters():
            weight += 0.02 * torch.randn_like(weight)
    model.save_pretrained(folder)
    if kind in ("bert", "gpt2"):
        texts = SplitTexts(dataset().splits["train"])
        train_tokenizer(TokenizerConf(train="wordpiece", vocab_size=60), texts, 12).save_pretrained(folder)
    return folder


def adapting(what, base, lora=None, **keys):
    """Return dataset and conf of adapters for what is learned, ``TASKS`` say, on a pretrained model."""
    task, kind = what.partition(",")[0], TASKS[what]
    lora = {"r": 2, "target_modules": KINDS[kind][2]} if lora is None else lora
    conf = make_conf(task, lora=lora, **{"max_epochs": 2, **keys})
    return dataset(task), replace(conf, model=ModelConf(config=None, pretrained=str(base)), tokenizer=TokenizerConf())
