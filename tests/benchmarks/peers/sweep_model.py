"""What the peers of a sweep train: digits with rtrain's ResNet, in a loop as one would write it by hand."""

from __future__ import annotations

import numpy as np
import torch
from sklearn.datasets import load_digits
from torch import nn

from rtrain.models.torch import ResNet

LRS = [0.2, 0.1, 0.05, 0.01]
"""Each is tried with several seeds."""
BATCH = 64


def epochs(lr: float, seed: int, num_epochs: int):
    """Train, and yield the accuracy on the test rows after each epoch."""
    torch.set_num_threads(1)
    torch.manual_seed(seed)
    digits = load_digits()
    order = np.random.default_rng(0).permutation(len(digits.target))
    x = torch.tensor(digits.images[order], dtype=torch.float32)[:, None]
    y = torch.tensor(digits.target[order])
    x = (x - x[:1437].mean()) / x[:1437].std()
    model = ResNet(num_classes=10, layers=[1, 1, 1], width=16, in_channels=1).to(memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9, weight_decay=5e-4)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, num_epochs * -(-1437 // BATCH))
    loss_function = nn.CrossEntropyLoss()
    for _ in range(num_epochs):
        model.train()
        for rows in torch.randperm(1437).split(BATCH):
            optimizer.zero_grad()
            loss_function(model(x[rows]), y[rows]).backward()
            optimizer.step()
            schedule.step()
        model.eval()
        with torch.no_grad():
            yield (model(x[1437:]).argmax(1) == y[1437:]).float().mean().item()
