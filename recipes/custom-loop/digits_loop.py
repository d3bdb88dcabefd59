"""A train loop for Ray Train; nothing in it knows of rtrain."""

import tempfile
from pathlib import Path

import ray.train
import ray.train.torch
import torch
from torch import nn


def train_loop_per_worker(config):
    """Train a perceptron; report its accuracy after each epoch, with a checkpoint of worker 0."""
    model = nn.Sequential(nn.Flatten(), nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10))
    model = ray.train.torch.prepare_model(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=config["lr"], momentum=0.9)
    for _ in range(config["max_epochs"]):
        for batch in _batches("train", config["batch_size"]):
            loss = nn.functional.cross_entropy(model(batch["x"]), batch["y"])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        _report(model, {"loss": loss.item(), "accuracy": _accuracy(model, config["batch_size"])})


def _batches(split, batch_size):
    shard = ray.train.get_dataset_shard(split)
    return shard.iter_torch_batches(batch_size=batch_size, drop_last=False)


def _accuracy(model, batch_size):
    """Return the share of right answers among the test rows of this worker."""
    model.eval()
    with torch.inference_mode():
        right = [model(batch["x"]).argmax(1) == batch["y"] for batch in _batches("test", batch_size)]
    model.train()
    return torch.cat(right).float().mean().item()


def _report(model, metrics):
    with tempfile.TemporaryDirectory() as folder:
        if ray.train.get_context().get_world_rank() == 0:
            torch.save(model.state_dict(), Path(folder) / "model.pt")
            checkpoint = ray.train.Checkpoint.from_directory(folder)
        else:
            checkpoint = None
        ray.train.report(metrics, checkpoint=checkpoint)
