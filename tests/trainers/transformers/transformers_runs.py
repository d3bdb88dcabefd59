"""Small texts, images and confs for the tests of the transformers trainer."""

from __future__ import annotations

import numpy as np

from rtrain.datasets.base import objects
from rtrain.testing.small_data import in_memory
from rtrain.testing.workers import RecordingChannel, make_worker, newest
from rtrain.trainers.transformers.config import Conf, ModelConf, TokenizerConf
from rtrain.trainers.transformers.loop import train
from rtrain.trainers.transformers.predictor import load_predictor

GOOD, BAD, THINGS = ["good", "great", "fine"], ["bad", "awful", "poor"], ["film", "book", "song", "play"]
BERT = {
    "model_type": "bert",
    "hidden_size": 16,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "intermediate_size": 32,
    "hidden_dropout_prob": 0.1,
    "attention_probs_dropout_prob": 0.0,
}
STILL = {**BERT, "hidden_dropout_prob": 0.0}
GPT = {
    "model_type": "gpt2",
    "n_embd": 16,
    "n_layer": 1,
    "n_head": 2,
    "resid_pdrop": 0.0,
    "embd_pdrop": 0.0,
    "attn_pdrop": 0.0,
}
VIT = {
    "model_type": "vit",
    "hidden_size": 16,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "intermediate_size": 32,
    "patch_size": 4,
}
TINY = {
    "sequence-classification": BERT,
    "regression": BERT,
    "token-classification": BERT,
    "masked-lm": BERT,
    "causal-lm": GPT,
    "image-classification": VIT,
}


def sentences(task, count, seed):
    """Sentences of 4 to 8 words, of which the last is good or bad."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, count)
    words = [
        ["the", *rng.choice(THINGS, rng.integers(1, 5)), "is", str(rng.choice(GOOD if label else BAD))] for label in y
    ]
    words = [[str(word) for word in row] for row in words]
    if task == "token-classification":
        return {"x": objects(words), "y": objects([np.isin(row, THINGS).astype("int64") for row in words])}
    texts = objects([" ".join(row) for row in words])
    if task in ("causal-lm", "masked-lm"):
        return {"x": texts, "y": texts}
    return {"x": texts, "y": y if task == "sequence-classification" else y.astype("float32")}


def images(count, seed):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, count)
    x = rng.integers(0, 100, (count, 1, 8, 8)) + 150 * y.reshape(-1, 1, 1, 1)
    return {"x": x.astype("uint8"), "y": y}


def dataset(task="sequence-classification", num_rows=(61, 23)):
    make = images if task == "image-classification" else lambda count, seed: sentences(task, count, seed)
    columns = {
        name: make(count, seed) for seed, (name, count) in enumerate(zip(("train", "val"), num_rows, strict=True))
    }
    ours = {"sequence-classification": "classification", "image-classification": "classification"}
    kind = "language-modeling" if task.endswith("-lm") else ours.get(task, task)
    pictures = task == "image-classification"
    classes = {"num_classes": 2, "class_names": ("no", "yes")} if "classification" in task else {}
    scale = {"mean": (0.5,), "std": (0.5,)} if pictures else {}
    return in_memory(columns, kind, dtype="uint8" if pictures else "object", **classes, **scale)


def make_conf(task="sequence-classification", model=None, **keys):
    limits = {} if keys.keys() & {"max_epochs", "max_steps"} else {"max_epochs": 2}
    defaults = {"global_batch_size": 8, "max_length": 12, "arguments": {"learning_rate": 0.02}}
    tokenizer = TokenizerConf() if task == "image-classification" else TokenizerConf(train="wordpiece", vocab_size=60)
    return Conf(
        **{
            "task": task,
            "model": ModelConf(config=model or TINY[task]),
            "tokenizer": tokenizer,
            **defaults,
            **limits,
            **keys,
        }
    )


def fit(folder, conf, data, **keys):
    channel = RecordingChannel(keys.pop("stop_after", None))
    train(make_worker(folder, conf, data, channel=channel, **keys))
    return channel


def predict(folder, conf, data, split="val"):
    return load_predictor(newest(folder, conf, data)).predict(data.splits[split].columns["x"])
