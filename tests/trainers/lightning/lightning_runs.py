"""Modules, data and confs for the tests of the lightning trainer."""

from __future__ import annotations

import random

import lightning.pytorch as pl
import numpy as np
import torch
from torch.utils.data import DataLoader, TensorDataset

from rtrain.config.targets.builder import Builder
from rtrain.models.lightning import Classifier
from rtrain.testing.small_data import in_memory
from rtrain.testing.workers import RecordingChannel, make_worker
from rtrain.trainers.lightning.config import Conf
from rtrain.trainers.lightning.loop import train

MODULE = {
    "_target_": "rtrain.models.lightning.Classifier",
    "in_features": "auto",
    "num_classes": "auto",
    "hidden": [8],
}


def arrays(count, seed):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, count)
    return (rng.normal(size=(count, 6)) + 2 * np.eye(3, 6)[y]).astype("float32"), y


def dataset(num_rows=(75, 23)):
    columns = {}
    for seed, (name, count) in enumerate(zip(("train", "val"), num_rows, strict=True)):
        x, y = arrays(count, seed)
        columns[name] = {"x": x, "y": y}
    return in_memory(columns, "classification", num_classes=3)


class Data(pl.LightningDataModule):
    """The rows of ``dataset`` as a user would give them."""

    def train_dataloader(self):
        x, y = arrays(75, 0)
        return DataLoader(TensorDataset(torch.tensor(x), torch.tensor(y)), batch_size=16, shuffle=True)

    def val_dataloader(self):
        x, y = arrays(23, 1)
        return DataLoader(TensorDataset(torch.tensor(x), torch.tensor(y)), batch_size=8)


class Noisy(TensorDataset):
    """Rows with noise of three kinds, drawn anew whenever one is read."""

    def __getitem__(self, row):
        x, y = super().__getitem__(row)
        return x + torch.rand(6) + random.random() + np.float32(np.random.random()), y


class NoisyData(Data):
    """The same, with noise."""

    def __init__(self, num_workers):
        super().__init__()
        self._num_workers = num_workers

    def train_dataloader(self):
        rows = Noisy(*map(torch.tensor, arrays(75, 0)))
        return DataLoader(rows, batch_size=16, shuffle=True, num_workers=self._num_workers)


class Normed(Classifier):
    """A model with batch statistics, and an optimizer with a memory."""

    def __init__(self, in_features, num_classes):
        super().__init__(in_features, num_classes)
        self.layers.insert(1, torch.nn.BatchNorm1d(in_features))

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1, momentum=0.9, weight_decay=0.1)


class ByHand(Normed):
    """The same, which takes its steps by itself, two of each batch."""

    def __init__(self, in_features, num_classes):
        super().__init__(in_features, num_classes)
        self.automatic_optimization = False

    def training_step(self, batch, batch_idx):
        for _ in range(2):
            loss = super().training_step(batch, batch_idx)
            self.optimizers().zero_grad()
            self.manual_backward(loss)
            self.optimizers().step()
        return loss


def make_conf(**keys):
    return Conf(**{"module": MODULE, "max_epochs": 3, "global_batch_size": 16, **keys})


def fit(folder, conf, data=None, **keys):
    channel = RecordingChannel(keys.pop("stop_after", None))
    worker = make_worker(folder, conf, data, channel=channel, **keys)
    worker.builder = Builder(("lightning_runs.*", "test_lightning_loop.*"))
    train(worker)
    return channel
