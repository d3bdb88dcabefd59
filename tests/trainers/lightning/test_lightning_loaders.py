"""The loaders of a user's datamodule give their own batches, and several workers share the rows of them."""

import pytest
import torch
from lightning_runs import Data, arrays, make_conf
from torch.utils.data import BatchSampler, DataLoader, RandomSampler, SequentialSampler, TensorDataset

from rtrain.config.targets.builder import Builder
from rtrain.errors import TrainingError
from rtrain.models.lightning import Classifier
from rtrain.testing.workers import RecordingChannel, make_worker
from rtrain.trainers.lightning.inputs import SharedData
from rtrain.trainers.lightning.loop import train
from rtrain.trainers.loops.epochs.progress import EpochProgress
from rtrain.trainers.torch.ranks import TorchRanks

HERE = __name__
NUM_ROWS = 57


class Numbered(Data):
    """The first number of each row for validation is its place.

    Args:
        keys: Of the loader.
    """

    def __init__(self, **keys):
        super().__init__()
        self.keys = {"batch_size": 16, **keys}

    def val_dataloader(self):
        x, y = (torch.tensor(one) for one in arrays(NUM_ROWS, 1))
        x[:, 0] = torch.arange(NUM_ROWS)
        return DataLoader(TensorDataset(x, y), **self.keys)


class Training(Numbered):
    """The same rows for training."""

    train_dataloader = Numbered.val_dataloader

    def __init__(self, **keys):
        super().__init__()
        self.keys = keys


class Logging(Classifier):
    """Logs how many rows the validation had, and the sum of their places."""

    def validation_step(self, batch, batch_idx):
        self.log("val_rows", float(len(batch[1])), reduce_fx="sum")
        self.log("val_batches", 1.0, reduce_fx="sum")
        self.log("val_places", batch[0][:, 0].sum(), reduce_fx="sum")


def shared(inner, size=1):
    every = [TorchRanks(rank, size, torch.device("cpu")) for rank in range(size)]
    return [SharedData(inner, ranks, 0, EpochProgress(), validates=True) for ranks in every]


def fit(folder, keys, **args):
    module = {"_target_": f"{HERE}.Logging", "in_features": 6, "num_classes": 3}
    data, channel = {"_target_": f"{HERE}.Numbered", **keys}, RecordingChannel()
    conf = make_conf(module=module, datamodule=data, global_batch_size=None, max_epochs=1, trainer_args=args)
    worker = make_worker(folder, conf, None, channel=channel)
    worker.builder = Builder((f"{HERE}.*",))
    train(worker)
    return channel


@pytest.mark.parametrize(
    ("limit", "keys", "batches", "rows"),
    [(1.0, {}, 4, 57), (2, {}, 2, 32), (0.5, {}, 2, 32), (1.0, {"drop_last": True}, 3, 48)],
)
def test_one_worker_is_validated_on_the_first_batches_of_the_loader(tmp_path, limit, keys, batches, rows):
    sent = fit(tmp_path, keys, limit_val_batches=limit)
    found = {name: sent.metrics[f"val/{name}"] for name in ("batches", "rows", "places")}
    assert found == {"batches": batches, "rows": rows, "places": sum(range(rows))}
    assert sent.worker_facts[-1]["num_rows"]["val"] == (48 if keys else NUM_ROWS)


@pytest.mark.parametrize("keys", [{}, {"shuffle": True, "drop_last": True}, {"sampler": range(NUM_ROWS)}], ids=str)
def test_one_worker_has_the_loader_itself(keys):
    (data,) = shared(Numbered(**keys))
    inner = data._inner.val_dataloader()
    data._inner.val_dataloader = lambda: inner
    assert data.val_dataloader() is inner


@pytest.mark.parametrize(
    ("batch_size", "size", "sizes"),
    [
        (16, 2, [[16, 12], [16, 13]]),
        (14, 2, [[14, 13, 1], [14, 14, 1]]),
        (19, 3, [[19], [19], [19]]),
        (28, 2, [[27, 1], [28, 1]]),
        (1, 2, [[1] * 28, [1] * 27 + [2]]),
    ],
)
def test_several_workers_take_a_part_each_in_as_many_batches(batch_size, size, sizes):
    every = [list(data.val_dataloader()) for data in shared(Numbered(batch_size=batch_size), size)]
    assert [[len(y) for _, y in batches] for batches in every] == sizes
    places = torch.cat([x[:, 0] for batches in every for x, _ in batches])
    assert places.tolist() == list(range(NUM_ROWS)), "one part after the other"


def test_several_workers_leave_out_the_rows_of_a_last_batch_that_the_loader_drops():
    every = [list(data.val_dataloader()) for data in shared(Numbered(drop_last=True), 2)]
    assert torch.cat([x[:, 0] for batches in every for x, _ in batches]).tolist() == list(range(48))


def test_rows_are_counted_once_if_the_loader_is_opened_again():
    (data,) = shared(Numbered())
    for _ in range(2):
        data.val_dataloader()
    assert data.num_own_rows == {"val": NUM_ROWS}


@pytest.mark.parametrize("kind", [RandomSampler, SequentialSampler])
def test_a_plain_batch_sampler_is_shared_out_as_the_loader_of_its_keywords(kind):
    cut = BatchSampler(kind(range(NUM_ROWS)), 10, drop_last=True)
    every = shared(Training(batch_sampler=cut), 2)
    steps = [list(data.train_dataloader().batch_sampler) for data in every]
    assert [len(rows) for batches in steps for rows in batches] == [10, 10] * 2
    rows = [row for first, second in zip(*steps, strict=True) for row in (*first, *second)]
    assert (rows == list(range(40))) == (kind is SequentialSampler)


@pytest.mark.parametrize("keys", [{"replacement": True}, {"num_samples": 20}], ids=str)
def test_a_sampler_that_does_not_take_each_row_once_is_left_alone_or_refused(keys):
    inner = Training(sampler=RandomSampler(range(NUM_ROWS), **keys))
    (data,) = shared(inner)
    assert isinstance(data.train_dataloader().sampler, RandomSampler)
    assert data.train_batches is None
    with pytest.raises(TrainingError, match="train_dataloader of the datamodule has a custom sampler"):
        shared(inner, 2)[0].train_dataloader()
