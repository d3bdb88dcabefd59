"""The documented, hand-written way to survive a killed worker: a TorchTrainer script that resumes from its checkpoint.

It trains on digits with 2 workers until FOLDER has a file ``done``.
"""

import sys
import tempfile
from pathlib import Path
from typing import Any

import ray.train
import ray.train.collective
import torch
from ray.train import Checkpoint, FailureConfig, RunConfig, ScalingConfig
from ray.train.torch import TorchTrainer
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def train_loop_per_worker(config: dict[str, Any]) -> None:
    sys.path.insert(0, config["here"])
    from recovery_model import NotedModel

    digits = load_digits()
    rows = torch.tensor(digits.images, dtype=torch.float32).reshape(-1, 64) / 16
    loader = DataLoader(TensorDataset(rows[:1437], torch.tensor(digits.target)[:1437]), batch_size=64, shuffle=True)
    loader = ray.train.torch.prepare_data_loader(loader)
    model, start = NotedModel(config["folder"]), 0
    checkpoint = ray.train.get_checkpoint()
    state = None
    if checkpoint is not None:
        with checkpoint.as_directory() as folder:
            state = torch.load(Path(folder) / "state.pt")
            model.load_state_dict(state["model"])
            start = state["epoch"] + 1
    model = ray.train.torch.prepare_model(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    if state is not None:
        optimizer.load_state_dict(state["optimizer"])
    loss_function = nn.CrossEntropyLoss()
    for epoch in range(start, 10_000):
        loader.sampler.set_epoch(epoch)
        for x, y in loader:
            loss = loss_function(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        with tempfile.TemporaryDirectory() as folder:
            checkpoint = None
            if ray.train.get_context().get_world_rank() == 0:
                state = {"model": model.module.state_dict(), "optimizer": optimizer.state_dict(), "epoch": epoch}
                torch.save(state, Path(folder) / "state.pt")
                checkpoint = Checkpoint.from_directory(folder)
            ray.train.report({"loss": loss.item(), "epoch": epoch}, checkpoint=checkpoint)
        if ray.train.collective.broadcast_from_rank_zero((Path(config["folder"]) / "done").exists()):
            return


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as storage:
        trainer = TorchTrainer(
            train_loop_per_worker,
            train_loop_config={"folder": sys.argv[1], "here": str(Path(__file__).parent)},
            scaling_config=ScalingConfig(num_workers=2),
            run_config=RunConfig(storage_path=storage, failure_config=FailureConfig(max_failures=3)),
        )
        trainer.fit()
