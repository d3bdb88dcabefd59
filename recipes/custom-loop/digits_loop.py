"""The train loop of this recipe: plain Ray Train and PyTorch, nothing of rtrain."""

import tempfile
from pathlib import Path

import ray.train
import ray.train.torch
import torch
from ray.train import Checkpoint
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import distributed, nn
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset


def train_loop_per_worker(config):
    """Train a perceptron; each worker takes its share of every epoch's rows, and gradients are averaged."""
    torch.manual_seed(config["seed"])
    train, test = digits()
    loader = ray.train.torch.prepare_data_loader(DataLoader(train, batch_size=config["batch_size"], shuffle=True))
    net = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10))
    model = ray.train.torch.prepare_model(net)
    optimizer = torch.optim.AdamW(model.parameters(), lr=config["lr"])
    for epoch in range(resumed(net, optimizer), config["num_epochs"]):
        if ray.train.get_context().get_world_size() > 1:
            loader.sampler.set_epoch(epoch)
        for x, y in loader:
            loss = functional.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        report(epoch + 1, net, optimizer, {"loss": loss.item(), "accuracy": accuracy(net, test)})


def digits():
    """Return the rows to train on and those to test on."""
    x, y = load_digits(return_X_y=True)
    parts = train_test_split(x / 16, y, test_size=0.2, stratify=y, random_state=0)
    x_train, x_test, y_train, y_test = (torch.from_numpy(part) for part in parts)
    return TensorDataset(x_train.float(), y_train), TensorDataset(x_test.float(), y_test)


def accuracy(net, test):
    """Return the accuracy on the test rows; each worker evaluates every n-th row, and the counts are added."""
    context = ray.train.get_context()
    device, ours = ray.train.torch.get_device(), slice(context.get_world_rank(), None, context.get_world_size())
    x, y = (part[ours].to(device) for part in test.tensors)
    with torch.no_grad():
        right = (net(x).argmax(1) == y).sum()
    if context.get_world_size() > 1:
        distributed.all_reduce(right)
    return right.item() / len(test)


def resumed(net, optimizer):
    """Take up the newest checkpoint after a failure, and return the epochs that it has seen."""
    checkpoint = ray.train.get_checkpoint()
    if checkpoint is None:
        return 0
    with checkpoint.as_directory() as folder:
        state = torch.load(Path(folder) / "state.pt", weights_only=True)
    net.load_state_dict(state["net"])
    optimizer.load_state_dict(state["optimizer"])
    return state["epoch"]


def report(epoch, net, optimizer, metrics):
    """Report an epoch; the first worker adds a checkpoint."""
    with tempfile.TemporaryDirectory() as folder:
        checkpoint = None
        if ray.train.get_context().get_world_rank() == 0:
            state = {"net": net.state_dict(), "optimizer": optimizer.state_dict(), "epoch": epoch}
            torch.save(state, Path(folder) / "state.pt")
            checkpoint = Checkpoint.from_directory(folder)
        ray.train.report({"epoch": epoch, **metrics}, checkpoint=checkpoint)
