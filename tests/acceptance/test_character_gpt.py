"""A character GPT on tiny shakespeare reaches the known loss: pytest -m slow tests/acceptance/test_character_gpt.py"""

import os
from pathlib import Path

import numpy as np
import pytest

from rtrain.datasets.base import Dataset, DatasetInfo, ResidentSplit
from rtrain.testing.workers import RecordingChannel, make_worker
from rtrain.trainers.torch.config import Conf
from rtrain.trainers.torch.loop import train

TEXT = Path(os.environ.get("RTRAIN_TEST_DATA", "data")) / "tinyshakespeare" / "input.txt"
BLOCK = 64

CONF = Conf(
    model={
        "_target_": "rtrain.trainers.torch.models.GPT",
        "vocab_size": "auto",
        "block_size": "auto",
        "num_layers": 4,
        "num_heads": 4,
        "width": 128,
        "dropout": 0.0,
        "bias": False,
    },
    optimizer={"_target_": "torch.optim.AdamW", "lr": 1e-3, "betas": [0.9, 0.99], "weight_decay": 0.1},
    scheduler={
        "_target_": "rtrain.trainers.torch.schedules.warmup_cosine",
        "num_training_steps": "auto",
        "num_warmup_steps": 100,
        "final_share": 0.1,
    },
    clip_norm=1.0,
    batch_size=12,
    max_steps=2000,
    eval_every_epochs=None,
    eval_every_steps=1000,
)


def characters(text):
    """The first 90 % of the text to train on and the rest to validate, in blocks one after another."""
    names, codes = np.unique(np.array(list(text)), return_inverse=True)
    cut = int(0.9 * len(codes))
    splits = {name: _blocks(part) for name, part in {"train": codes[:cut], "val": codes[cut:]}.items()}
    info = DatasetInfo(
        name="tinyshakespeare",
        task="language-modeling",
        input_shape=(BLOCK,),
        dtype="int64",
        num_classes=len(names),
        num_rows={name: split.num_rows for name, split in splits.items()},
        fingerprint="",
        memory="resident",
        memory_reason="",
    )
    return Dataset(info, splits)


def _blocks(codes):
    count = (len(codes) - 1) // BLOCK
    x, y = (codes[shift : shift + count * BLOCK].reshape(count, BLOCK).astype("int64") for shift in (0, 1))
    return ResidentSplit({"x": x, "y": y})


@pytest.mark.slow
@pytest.mark.skipif(not TEXT.exists(), reason="RTRAIN_TEST_DATA names no folder with tinyshakespeare/input.txt")
def test_a_character_gpt_on_shakespeare_reaches_a_loss_of_1_93(tmp_path):
    channel = RecordingChannel()
    train(make_worker(tmp_path, CONF, characters(TEXT.read_text()), channel=channel))
    assert channel.of("checkpoint")[-1]["step"] == 2000
    assert channel.metrics["val/loss"] <= 1.93
