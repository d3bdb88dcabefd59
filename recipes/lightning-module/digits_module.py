"""A convolutional network as a LightningModule."""

import lightning.pytorch as pl
import torch
from torch import nn
from torch.nn import functional


class DigitsModule(pl.LightningModule):
    """Two convolutions and a linear layer, trained by SGD with a one-cycle schedule."""

    def __init__(self, num_classes, width, lr):
        super().__init__()
        self.save_hyperparameters()
        self.layers = nn.Sequential(
            nn.Conv2d(1, width, 3, padding=1),
            nn.BatchNorm2d(width),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(width, 2 * width, 3, padding=1),
            nn.BatchNorm2d(2 * width),
            nn.ReLU(),
            nn.Flatten(),
            nn.LazyLinear(num_classes),
        )
        self.layers(torch.zeros(2, 1, 8, 8))

    def forward(self, x):
        """Return logits, (rows, classes), of pictures, (rows, 1, 8, 8)."""
        return self.layers(x)

    def training_step(self, batch, batch_idx):
        """Return the loss of a batch."""
        x, y = batch
        return functional.cross_entropy(self(x), y)

    def validation_step(self, batch, batch_idx):
        """Log loss and accuracy; ``sync_dist`` adds up the rows of all workers."""
        x, y = batch
        logits = self(x)
        self.log("val_loss", functional.cross_entropy(logits, y), sync_dist=True)
        self.log("val_accuracy", (logits.argmax(1) == y).float().mean(), sync_dist=True)

    def configure_optimizers(self):
        """Return SGD, and a rate that rises and falls once over the whole run, step by step."""
        lr, total_steps = self.hparams.lr, self.trainer.estimated_stepping_batches
        optimizer = torch.optim.SGD(self.parameters(), lr=lr, momentum=0.9)
        scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, 10 * lr, total_steps=total_steps)
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": scheduler, "interval": "step"}}
