"""A module for Lightning."""

import lightning
import torch


class Net(lightning.LightningModule):
    """One layer."""

    def __init__(self, num_classes):
        super().__init__()
        self.layer = torch.nn.Linear(64, num_classes)

    def training_step(self, batch, index):
        x, y = batch
        return torch.nn.functional.cross_entropy(self.layer(x.flatten(1)), y)

    def validation_step(self, batch, index):
        self.log("val_loss", self.training_step(batch, index))

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)
