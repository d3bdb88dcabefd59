"""The same training, written by hand with torch alone, gives the same weights and numbers."""

import numpy as np
import pytest
import torch
from torch.nn import functional
from torch_runs import GPT, MLP, assert_same, fit, make_conf, small_dataset, token_dataset

from rtrain.models.torch import GPT as GPTModel
from rtrain.models.torch import MLP as MLPModel

SEED, ROWS, EPOCHS, RATE = 3, 16, 3, 0.01


OPTIMIZERS = {"classification": "Adam", "language-modeling": "SGD"}
"""Biases of attention's keys have no gradient but rounding errors, which Adam would blow up to whole steps."""


def train_by_hand(model, optimizer, x, y, num_steps):
    """Train along half a cosine, in the order that rtrain documents: one permutation per epoch."""
    optimizer = getattr(torch.optim, optimizer)(model.parameters(), lr=RATE)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=num_steps)
    for epoch in range(EPOCHS):
        order = torch.from_numpy(np.random.default_rng((SEED, epoch)).permutation(len(x)))
        for rows in order.split(ROWS):
            optimizer.zero_grad()
            functional.cross_entropy(model(x[rows]).flatten(0, -2), y[rows].flatten()).backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5)
            optimizer.step()
            schedule.step()


def standardized(dataset, name):
    mean, std = (torch.tensor(values).reshape(1, -1, 1, 1) for values in (dataset.info.mean, dataset.info.std))
    return (torch.from_numpy(dataset.splits[name].columns["x"]) - mean) / std


@pytest.mark.parametrize("kind", OPTIMIZERS)
def test_one_worker_gives_the_weights_of_a_loop_by_hand(tmp_path, kind):
    tokens = kind == "language-modeling"
    dataset, split = (token_dataset(), "val") if tokens else (small_dataset(), "test")
    schedule = {"_target_": "torch.optim.lr_scheduler.CosineAnnealingLR", "T_max": "auto"}
    optimizer = {"_target_": f"torch.optim.{OPTIMIZERS[kind]}", "lr": RATE}
    conf = make_conf(
        model=GPT if tokens else MLP,
        optimizer=optimizer,
        scheduler=schedule,
        batch_size=ROWS,
        max_epochs=EPOCHS,
        clip_norm=0.5,
    )
    channel, found = fit(tmp_path, conf, dataset=dataset, seed=SEED)

    torch.manual_seed(SEED)
    model = GPTModel(7, 8, num_layers=2, num_heads=2, width=16) if tokens else MLPModel(64, 3, hidden=[16])
    x, held_out = (
        torch.from_numpy(dataset.splits[name].columns["x"]) if tokens else standardized(dataset, name)
        for name in ("train", split)
    )
    y, expected = (torch.from_numpy(dataset.splits[name].columns["y"]) for name in ("train", split))
    train_by_hand(model, OPTIMIZERS[kind], x, y, num_steps=EPOCHS * -(-len(x) // ROWS))
    by_hand = model.state_dict()
    assert_same(found, {name: by_hand[name] for name in found}, rtol=1e-6, atol=1e-7)
    with torch.no_grad():
        scores = model(held_out).flatten(0, -2)
    loss = functional.cross_entropy(scores, expected.flatten()).item()
    accuracy = (scores.argmax(1) == expected.flatten()).float().mean().item()
    assert channel.metrics[f"{split}/loss"] == pytest.approx(loss, rel=1e-6)
    assert channel.metrics[f"{split}/accuracy"] == pytest.approx(accuracy, rel=1e-6)
