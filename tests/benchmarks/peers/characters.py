"""Print the seconds in which a character GPT trains, by rtrain and by a plain PyTorch loop, as JSON.

Usage: characters.py TIMES STEPS. Both train nanoGPT's model for CPUs (4 layers of 128, 12 rows of 64 characters) on the
reference manual that Python ships, with AdamW, clipped gradients and one thread, and evaluate it at the end.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from pydoc_data import topics

import numpy as np
import torch
from timed import seconds_of
from torch.nn import functional

from rtrain.datasets.base import Dataset
from rtrain.datasets.conf import TableSplitConf
from rtrain.datasets.registry import confs, load_source
from rtrain.models.torch import GPT
from rtrain.testing.workers import RecordingChannel
from rtrain.trainers.torch.config import Conf

BATCH_SIZE, BLOCK_SIZE = 12, 64
ADAMW = {"lr": 1e-3, "betas": (0.9, 0.99), "weight_decay": 0.1}
CLIP_NORM = 1.0


def ours(dataset: Dataset, num_steps: int) -> tuple[float, float]:
    """Return the seconds of rtrain's loop, without checkpoints, and the accuracy on the rows of val."""
    shape = {"vocab_size": dataset.info.num_classes, "block_size": BLOCK_SIZE}
    conf = Conf(
        model={"_target_": f"{GPT.__module__}.{GPT.__name__}", **shape},
        optimizer={"_target_": "torch.optim.AdamW", **ADAMW},
        clip_norm=CLIP_NORM,
        batch_size=BATCH_SIZE,
        max_epochs=None,
        max_steps=num_steps,
        eval_every_epochs=None,
        eval_every_steps=num_steps,
    )
    channel = RecordingChannel()
    return seconds_of(conf, dataset, channel), channel.metrics["val/accuracy"]


def plain(dataset: Dataset, num_steps: int) -> tuple[float, float]:
    """Return the same of a loop as one would write it by hand, whose rows begin anywhere in the text."""
    train, val = (torch.from_numpy(dataset.splits[name].columns["x"]).long().flatten() for name in ("train", "val"))
    span = torch.arange(BLOCK_SIZE)
    model = GPT(dataset.info.num_classes, BLOCK_SIZE)
    optimizer = torch.optim.AdamW(model.parameters(), **ADAMW)
    began = time.perf_counter()
    model.train()
    for _ in range(num_steps):
        places = torch.randint(len(train) - BLOCK_SIZE, (BATCH_SIZE, 1)) + span
        optimizer.zero_grad()
        output = model(train[places])
        functional.cross_entropy(output.flatten(0, 1), train[places + 1].flatten()).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), CLIP_NORM)
        optimizer.step()
    model.eval()
    correct = []
    with torch.no_grad():
        for starts in torch.arange(0, len(val) - BLOCK_SIZE, BLOCK_SIZE).split(256):
            places = starts[:, None] + span
            output, targets = model(val[places]), val[places + 1]
            functional.cross_entropy(output.flatten(0, 1), targets.flatten()).item()
            correct.append((output.argmax(-1) == targets).float().flatten())
    return time.perf_counter() - began, float(np.mean(torch.cat(correct).numpy()))


def main(times: int, num_steps: int) -> None:
    """Measure both in turn."""
    torch.set_num_threads(1)
    text = confs()["text"](
        path=topics.__file__,
        tokenizer="characters",
        block_size=BLOCK_SIZE,
        split=TableSplitConf(val=0.05, test=0),
    )
    dataset = load_source("text").load(text)
    pairs = [(ours(dataset, num_steps), plain(dataset, num_steps)) for _ in range(times + 1)][1:]
    columns = [*zip(*pairs, strict=True)]
    (mine, other), reached = ([[one[index] for one in column] for column in columns] for index in (0, 1))
    print(json.dumps({"ours": mine, "peer": other, "reached": [*map(statistics.median, reached)]}))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
