"""What is tried before the first step: honest models pass, and what would fail in the middle of a run fails there."""

import random
from itertools import product

import numpy as np
import pytest
import torch
from torch import nn
from torch_runs import SGD, RecordingChannel, fit, make_conf, make_worker, small_dataset

from rtrain.datasets.base import ResidentSplit, share_of
from rtrain.errors import TrainingError
from rtrain.testing.small_data import in_memory, streamed
from rtrain.trainers.torch.inputs.batch_sizes import backward_rows
from rtrain.trainers.torch.ranks import TorchRanks
from rtrain.trainers.torch.sanity_check import try_model

HERE = __name__
BATCH_NORM = {
    "_target_": "torch.nn.Sequential",
    "_args_": [
        {"_target_": "torch.nn.Flatten"},
        {"_target_": "torch.nn.LazyLinear", "out_features": 4},
        {"_target_": "torch.nn.LazyBatchNorm1d"},
        {"_target_": "torch.nn.Linear", "in_features": 4, "out_features": 3},
    ],
}


class Packed(nn.Module):
    """Reads as much of a row as its first number says."""

    def __init__(self):
        super().__init__()
        self.memory, self.head = nn.GRU(1, 4, batch_first=True), nn.Linear(4, 3)

    def forward(self, x):
        lengths = x[:, 0].long().cpu()
        packed = nn.utils.rnn.pack_padded_sequence(x.unsqueeze(-1), lengths, batch_first=True, enforce_sorted=False)
        return self.head(self.memory(packed)[1][-1])


class OneHot(nn.Module):
    """Takes the first number for a category from 1 to 4."""

    def __init__(self):
        super().__init__()
        self.head = nn.Linear(4, 3)

    def forward(self, x):
        return self.head(nn.functional.one_hot(x[:, 0].long() - 1, 4).float())


class Cholesky(nn.Module):
    """Takes four numbers for a matrix that is positive definite."""

    def __init__(self):
        super().__init__()
        self.head = nn.Linear(4, 3)

    def forward(self, x):
        return self.head(torch.linalg.cholesky(x[:, 1:].view(-1, 2, 2)).flatten(1))


class Directions(nn.Module):
    """Divides rows by their lengths, and checks what comes out as distributions do."""

    def __init__(self):
        super().__init__()
        self.head = nn.Linear(5, 3)

    def forward(self, x):
        return torch.distributions.Categorical(logits=self.head(x / x.norm(dim=1, keepdim=True))).logits


class Groups(nn.Module):
    """Compares rows with those of their group of eight."""

    def __init__(self):
        super().__init__()
        self.head = nn.Linear(5, 3)

    def forward(self, x):
        groups = x.view(-1, 8, 5)
        return self.head((groups - groups.mean(1, keepdim=True)).flatten(0, 1))


class Counting(nn.Module):
    """Changes what it can whenever it is called."""

    def __init__(self):
        super().__init__()
        self.norm, self.head = nn.BatchNorm1d(5), nn.Linear(5, 3)

    def forward(self, x):
        self.norm.train()
        noise = random.random() + float(np.random.rand()) + torch.rand(x.shape)
        return self.head(self.norm(x) + noise)


class OwnBinary(nn.Module):
    """Binary cross entropy of one output."""

    def forward(self, output, target):
        return nn.functional.binary_cross_entropy_with_logits(output, target.float())


class Likelihood(nn.Module):
    """Of a mean and the logarithm of a variance."""

    def forward(self, output, target):
        return ((output[:, 0] - target) ** 2 * (-output[:, 1]).exp() + output[:, 1]).mean()


HONEST = [Packed, OneHot, Cholesky, Directions, Groups]


@pytest.fixture(autouse=True)
def this_file_may_be_named(monkeypatch):
    from rtrain.config.targets import allow_list

    monkeypatch.setattr(allow_list, "FRAMEWORKS", allow_list.FRAMEWORKS | {HERE})


def rows_of(num_rows=16, split=ResidentSplit, num_classes=3):
    places = np.arange(num_rows)
    x = np.stack([places % 4 + 1, *(np.full(num_rows, value) for value in (2, 1, 1, 2))], axis=1).astype("float32")
    return in_memory({"train": {"x": x, "y": places % num_classes}}, "classification", split, num_classes=num_classes)


def conf_of(model, **keys):
    node = model if isinstance(model, dict) else {"_target_": f"{HERE}.{model.__name__}"}
    return make_conf(**{"model": node, "optimizer": {**SGD, "lr": 0.01}, "batch_size": 8, "max_epochs": 1, **keys})


@pytest.mark.parametrize("split", [ResidentSplit, streamed])
@pytest.mark.parametrize("model", HONEST)
def test_a_model_that_takes_the_rows_trains_whatever_it_does_with_zeros(tmp_path, model, split):
    channel, _ = fit(tmp_path, conf_of(model), dataset=rows_of(split=split))
    told = channel.notices
    if split is ResidentSplit or model is Groups:
        assert told == []
    else:
        (text,) = told
        assert text.startswith(f"tried with zeros, as the rows are streamed: trainer.model: {HERE}.{model.__name__}")


def test_rows_are_tried_as_training_transforms_them(tmp_path):
    data = rows_of()
    data.splits["train"].columns["x"][:, 0] -= 1  # lengths from 0 on, to which the transform adds 1
    first = {"_target_": "torch.add", "other": 1}
    fit(tmp_path / "a", conf_of(OneHot, transform=[first]), dataset=data)
    with pytest.raises(
        TrainingError, match=r"OneHot fails with rows of numbers of shape \(5,\) of small: RuntimeError"
    ):
        fit(tmp_path / "b", conf_of(OneHot), dataset=data)


def test_a_trial_leaves_buffers_random_numbers_and_the_mode_as_they_were(tmp_path):
    model, worker = Counting(), make_worker(tmp_path, conf_of(Counting), dataset=rows_of())
    buffers = {name: buffer.clone() for name, buffer in model.named_buffers()}
    before = torch.get_rng_state(), random.getstate(), np.random.get_state()
    try_model(model, nn.CrossEntropyLoss(), worker, TorchRanks(0, 1, torch.device("cpu")))
    after = torch.get_rng_state(), random.getstate(), np.random.get_state()
    assert torch.equal(before[0], after[0])
    assert before[1] == after[1]
    assert all(np.array_equal(one, other) for one, other in zip(before[2], after[2], strict=True))
    assert model.training
    assert all(torch.equal(buffer, buffers[name]) for name, buffer in model.named_buffers())


@pytest.mark.parametrize(
    ("task", "loss", "outputs", "hint"),
    [
        ("classification", OwnBinary, 1, "dataset.task=regression"),
        ("regression", Likelihood, 2, "trainer.evaluate_split=none"),
    ],
)
def test_outputs_that_only_evaluations_can_not_take_are_told_before_the_first_step(tmp_path, task, loss, outputs, hint):
    columns = {name: {"x": rows_of(8).splits["train"].columns["x"], "y": np.arange(8) % 2} for name in ("train", "val")}
    data = in_memory(columns, task, num_classes=2 if task == "classification" else None)
    model = {"_target_": "torch.nn.Linear", "in_features": 5, "out_features": outputs}
    keys, channel = {"loss": {"_target_": f"{HERE}.{loss.__name__}"}}, RecordingChannel()
    with pytest.raises(TrainingError) as error:
        fit(tmp_path / "a", conf_of(model, **keys), dataset=data, channel=channel)
    assert hint in error.value.hint
    assert channel.events == []
    fit(tmp_path / "b", conf_of(model, **keys, evaluate_split="none"), dataset=data)


@pytest.mark.parametrize(
    ("num_rows", "keys"),
    [
        (17, {"batch_size": 8}),
        (17, {"batch_size": None, "global_batch_size": 16}),
        (16, {"batch_size": 1}),
        (18, {"batch_size": 4, "accumulate_steps": 4}),
    ],
)
def test_a_model_that_needs_several_rows_is_told_of_a_single_one_before_the_first_step(tmp_path, num_rows, keys):
    channel, data = RecordingChannel(), rows_of(num_rows)
    with pytest.raises(TrainingError, match=r"batch of one row, which .*more than 1 value per channel") as error:
        fit(tmp_path / "a", conf_of(BATCH_NORM, **keys), dataset=data, channel=channel)
    assert channel.records == []
    key, size = error.value.hint.splitlines()[0].removeprefix("try: trainer.").split("=")
    fit(tmp_path / "b", conf_of(BATCH_NORM, **{**keys, key: int(size)}), dataset=data)


def test_a_single_row_of_a_stream_is_told_when_it_comes(tmp_path):
    with pytest.raises(TrainingError, match="batch of one row") as error:
        fit(tmp_path, conf_of(BATCH_NORM), dataset=rows_of(17, streamed))
    assert "trainer.batch_size=9" in error.value.hint


def test_a_single_row_that_is_never_reached_is_fine(tmp_path):
    fit(tmp_path, conf_of(BATCH_NORM, max_epochs=None, max_steps=2), dataset=rows_of(17))


def test_the_rows_of_backward_passes_are_those_that_training_has():
    for num_rows, size, ranks, parts in product((1, 2, 7, 16, 17, 33), (1, 3, 8), (1, 2, 3), (1, 2, 4)):
        conf = make_conf(batch_size=size, accumulate_steps=parts)
        per_step, expected = size * ranks * parts, set()
        for start in range(0, num_rows, per_step):
            count = min(per_step, num_rows - start)
            for rank in range(ranks):
                begin, end = share_of(count, rank, ranks)
                expected |= {len(part) for part in torch.tensor_split(torch.arange(end - begin), parts)}
        assert backward_rows(num_rows, conf, ranks) == expected


def test_a_model_that_fails_with_rows_of_this_shape_is_told(tmp_path):
    model = {"_target_": "torch.nn.Linear", "in_features": 7, "out_features": 3}
    with pytest.raises(TrainingError, match=r"Linear fails with rows of numbers of shape \(1, 8, 8\) of small"):
        fit(tmp_path, conf_of(model), dataset=small_dataset())
