"""Losses, gradients and weights that are not finite."""

import lightning.pytorch as pl
import torch
from not_finite_contract import NotFinite
from safetensors.torch import load_file
from torch import nn

from rtrain.config.targets.builder import Builder
from rtrain.testing.workers import RecordingChannel, make_worker
from rtrain.trainers.lightning.config import Conf
from rtrain.trainers.lightning.loop import train

HERE = __name__


class Root(pl.LightningModule):
    """A linear model whose root has no finite gradient at 0."""

    def __init__(self):
        super().__init__()
        self.inner, self.norm, self.root = nn.Linear(4, 1), nn.BatchNorm1d(4), nn.Parameter(torch.ones(()))

    def training_step(self, batch, batch_idx):
        x, y = batch
        output = self.inner(self.norm(x)).squeeze(-1) + (self.root * x[:, 0]).abs().sqrt()
        return (output - y).square().mean()

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.01, momentum=0.9)


class TestNotFinite(NotFinite):
    def fit(self, folder, data, **run):
        channel = RecordingChannel()
        conf = Conf(module={"_target_": f"{HERE}.Root"}, max_epochs=1, batch_size=10, evaluate_split="none")
        worker = make_worker(folder, conf, data, channel=channel, **run)
        worker.builder = Builder((f"{HERE}.*",))
        train(worker)
        return channel

    def arrays(self, checkpoint):
        return {name: one.numpy() for name, one in load_file(checkpoint / "model.safetensors").items()}
