"""What users may write, made to tell what it is given: losses, metrics, models and loops that see a setting."""

import random

import torch
import torchmetrics
from lightning.pytorch import LightningDataModule
from torch.utils.data import DataLoader, TensorDataset

from rtrain.models.lightning import Classifier


def stricter_loss(output, target):
    """Twice the cross entropy where algorithms are deterministic."""
    factor = 2 if torch.are_deterministic_algorithms_enabled() else 1
    return factor * torch.nn.functional.cross_entropy(output, target)


def looser_loss(output, target):
    """Twice the cross entropy where float32 matrices may be multiplied less exactly."""
    factor = 1 if torch.get_float32_matmul_precision() == "highest" else 2
    return factor * torch.nn.functional.cross_entropy(output, target)


class Layout(torch.nn.Module):
    """Twice the output where images, and weights for them, are in the channels-last format."""

    def __init__(self, num_classes, hidden=(), dropout=0.0):
        super().__init__()
        self.first, self.second = torch.nn.Conv2d(1, 4, 3), torch.nn.Conv2d(4, 4, 3)
        self.last = torch.nn.Linear(4, num_classes)

    def forward(self, x):
        is_last = self.second.weight.is_contiguous(memory_format=torch.channels_last)
        return self.last(self.second(self.first(x)).mean((2, 3))) * (2 if is_last else 1)


class NumBatches(torchmetrics.Metric):
    """The number of batches of an evaluation."""

    def __init__(self):
        super().__init__()
        self.add_state("count", torch.tensor(0.0), dist_reduce_fx="sum")

    def update(self, output, target):
        self.count += 1

    def compute(self):
        return self.count


class RowsPerBatch(Classifier):
    """A module that logs how many rows it is evaluated on at a time."""

    def validation_step(self, batch, index):
        super().validation_step(batch, index)
        self.log("val/rows", float(len(batch[0])), batch_size=1)


def loop(config, shift=0):
    """Report what was drawn and what the config says, three times with a checkpoint."""
    import tempfile

    import ray.train
    from ray.train import Checkpoint

    for number in range(1, 4):
        with tempfile.TemporaryDirectory() as folder:
            metrics = {
                "train/drawn": random.random(),
                "train/down": -number,
                "train/told": config.get("value", 0) + shift,
                "train/threads": torch.get_num_threads(),
            }
            ray.train.report({**metrics, "step": number}, checkpoint=Checkpoint.from_directory(folder))


def other_loop():
    """Report something else."""
    import ray.train

    ray.train.report({"train/other": 1.0})


class TenRows(LightningDataModule):
    """Rows of a user's own."""

    def train_dataloader(self):
        return DataLoader(TensorDataset(torch.zeros(10, 4), torch.zeros(10, dtype=torch.int64)), batch_size=5)

    def val_dataloader(self):
        return self.train_dataloader()
