"""The documented, hand-written way: a TorchTrainer script that trains an MLP on digits with NUM_WORKERS workers."""

import sys
import tempfile
from pathlib import Path

import ray.train
import torch
from ray.train import Checkpoint, RunConfig, ScalingConfig
from ray.train.torch import TorchTrainer
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

EPOCHS = 3


def train_loop_per_worker() -> None:
    torch.manual_seed(0)
    digits = load_digits()
    rows = torch.tensor(digits.images, dtype=torch.float32).reshape(-1, 64) / 16
    labels = torch.tensor(digits.target)
    loader = DataLoader(TensorDataset(rows[:1437], labels[:1437]), batch_size=64, shuffle=True)
    loader = ray.train.torch.prepare_data_loader(loader)
    model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 10))
    model = ray.train.torch.prepare_model(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    loss_function = nn.CrossEntropyLoss()
    for epoch in range(EPOCHS):
        if ray.train.get_context().get_world_size() > 1:
            loader.sampler.set_epoch(epoch)
        for x, y in loader:
            loss = loss_function(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        with torch.no_grad():
            accuracy = (model(rows[1437:]).argmax(1) == labels[1437:]).float().mean().item()
        metrics = {"loss": loss.item(), "accuracy": accuracy, "epoch": epoch}
        with tempfile.TemporaryDirectory() as folder:
            checkpoint = None
            if ray.train.get_context().get_world_rank() == 0:
                inner = model.module if hasattr(model, "module") else model
                torch.save(inner.state_dict(), Path(folder) / "model.pt")
                checkpoint = Checkpoint.from_directory(folder)
            ray.train.report(metrics, checkpoint=checkpoint)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as storage:
        trainer = TorchTrainer(
            train_loop_per_worker,
            scaling_config=ScalingConfig(num_workers=int(sys.argv[1])),
            run_config=RunConfig(storage_path=storage),
        )
        print(trainer.fit().metrics["accuracy"])
