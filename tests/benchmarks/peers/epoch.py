"""Milliseconds per epoch on digits in memory, as JSON: rtrain's loop against a plain PyTorch loop that does the same.

Usage: epoch.py mlp|resnet TIMES EPOCHS. Both train with one thread and batches of 64, and evaluate after each epoch.
"""

from __future__ import annotations

import json
import statistics
import sys
import time

import torch
from timed import seconds_of
from torch import nn

from rtrain.datasets.base import Dataset
from rtrain.datasets.registry import confs, load_source
from rtrain.models.torch import MLP, ResNet
from rtrain.trainers.torch.config import Conf

BATCH = 64
MODELS = {
    "mlp": (MLP, {"hidden": [128, 128]}, {"in_features": 64}),
    "resnet": (ResNet, {"layers": [1, 1, 1], "width": 16}, {"in_channels": 1}),
}


class Newest:
    """A channel that keeps the newest accuracy of what it gets."""

    stop_reason = save_requested = None
    accuracy = 0.0

    def send(self, record: object) -> None:
        """Note the accuracy that it reports."""
        self.accuracy = getattr(record, "metrics", {}).get("test/accuracy", self.accuracy)


def ours(name: str, dataset: Dataset, num_epochs: int) -> tuple[float, float]:
    """Return the seconds of rtrain's loop, without checkpoints, and the accuracy it reaches."""
    target, shape, inputs = MODELS[name]
    model = {"_target_": f"{target.__module__}.{target.__name__}", **shape, "num_classes": 10, **inputs}
    optimizer = {"_target_": "torch.optim.SGD", "lr": 0.05, "momentum": 0.9}
    conf = Conf(model=model, optimizer=optimizer, batch_size=BATCH, max_epochs=num_epochs)
    channel = Newest()
    return seconds_of(conf, dataset, channel), channel.accuracy


def plain(name: str, dataset: Dataset, num_epochs: int) -> tuple[float, float]:
    """Return the seconds of a loop as one would write it by hand, and the accuracy it reaches."""
    mean, std = dataset.info.mean[0], dataset.info.std[0]
    (x, y), (test_x, test_y) = (
        ((torch.from_numpy(split.columns["x"]) - mean) / std, torch.from_numpy(split.columns["y"]))
        for split in (dataset.splits["train"], dataset.splits["test"])
    )
    target, shape, inputs = MODELS[name]
    model = target(num_classes=10, **shape, **inputs)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    loss_function = nn.CrossEntropyLoss()
    began = time.perf_counter()
    for _ in range(num_epochs):
        model.train()
        for rows in torch.randperm(len(y)).split(BATCH):
            optimizer.zero_grad()
            loss_function(model(x[rows]), y[rows]).backward()
            optimizer.step()
        model.eval()
        correct = 0
        with torch.no_grad():
            for some_x, some_y in zip(test_x.split(256), test_y.split(256), strict=True):
                output = model(some_x)
                correct += (output.argmax(1) == some_y).sum().item()
                loss_function(output, some_y).item()
    return time.perf_counter() - began, correct / len(test_y)


if __name__ == "__main__":
    which, times, num_epochs = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    torch.set_num_threads(1)
    digits = load_source("digits").load(confs()["digits"]())
    pairs = [(ours(which, digits, num_epochs), plain(which, digits, num_epochs)) for _ in range(times + 1)][1:]
    columns = {"ours": [mine for mine, _ in pairs], "peer": [other for _, other in pairs]}
    found = {name: [seconds / num_epochs * 1000 for seconds, _ in column] for name, column in columns.items()}
    reached = [statistics.median(accuracy for _, accuracy in column) for column in columns.values()]
    print(json.dumps({**found, "reached": reached}))
