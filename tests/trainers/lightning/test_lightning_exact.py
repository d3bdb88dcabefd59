"""What modules, callbacks and loaders of the user's do between steps is part of an exact resume."""

import copy

import lightning.pytorch as pl
import pytest
import torch
from exactness import assert_exact
from lightning.pytorch.utilities import CombinedLoader
from lightning_runs import Data, Noisy, NoisyData, Normed, arrays, make_conf
from torch.utils.data import DataLoader, IterableDataset, WeightedRandomSampler

from rtrain.config.targets.builder import Builder
from rtrain.testing.workers import make_worker
from rtrain.trainers.lightning.loop import train

HERE = "test_lightning_exact"
NORMED = {"_target_": "lightning_runs.Normed", "in_features": 6, "num_classes": 3}
STOPS = {"inside of epochs": [2, 3, 4], "at the end of one": [5], "late": [12]}  # an epoch has 5 steps


class Momentum(Normed):
    """Has a second network that follows the first one after each step, as BYOL and MoCo do."""

    def __init__(self, in_features, num_classes):
        super().__init__(in_features, num_classes)
        self.target = copy.deepcopy(self.layers).requires_grad_(False)

    def on_train_batch_end(self, outputs, batch, batch_idx):
        with torch.no_grad():
            for own, other in zip(self.target.parameters(), self.layers.parameters(), strict=True):
                own.mul_(0.9).add_(other, alpha=0.1)


class Thawing(Normed):
    """Freezes its first layer in the first epoch."""

    def on_train_epoch_start(self):
        self.layers[2].requires_grad_(self.current_epoch >= 1)


class Freezing(Normed):
    """Freezes its first layer after the first epoch."""

    def on_train_epoch_start(self):
        self.layers[2].requires_grad_(self.current_epoch < 1)


class OfTheRest(Normed):
    """Gives its optimizer what is not frozen at the start."""

    def configure_optimizers(self):
        return torch.optim.SGD([one for one in self.parameters() if one.requires_grad], lr=0.1, momentum=0.9)


class Finetuning(pl.callbacks.BaseFinetuning):
    """Lightning's own way to thaw a layer, which then has a group of the optimizer to itself."""

    def freeze_before_training(self, pl_module):
        self.freeze(pl_module.layers[2])

    def finetune_function(self, pl_module, epoch, optimizer):
        if epoch == 1:
            self.unfreeze_and_add_param_group(pl_module.layers[2], optimizer, lr=0.01)


class Combined(Data):
    """Two loaders at once, the shorter one over and over."""

    def __init__(self, shuffle):
        super().__init__()
        self._shuffle = shuffle

    def _loader(self, num_rows, batch_size):
        rows = Noisy(*map(torch.tensor, arrays(num_rows, 0)))
        return DataLoader(rows, batch_size=batch_size, shuffle=self._shuffle)

    def train_dataloader(self):
        return CombinedLoader([self._loader(75, 16), self._loader(30, 8)], "max_size_cycle")


class OfTwo(Normed):
    """Takes both batches of ``Combined``."""

    def training_step(self, batch, batch_idx):
        return sum(super(OfTwo, self).training_step(one, batch_idx) for one in batch)


class Sampled(NoisyData):
    """Some rows more often than others."""

    def train_dataloader(self):
        rows = Noisy(*map(torch.tensor, arrays(75, 0)))
        sampler = WeightedRandomSampler([1.0, 2.0, 3.0] * 25, 75)
        return DataLoader(rows, batch_size=16, sampler=sampler, num_workers=self._num_workers)


class Drawn(IterableDataset):
    """Rows in a random order, whose number is not known before."""

    def __iter__(self):
        x, y = map(torch.tensor, arrays(75, 0))
        for row in torch.randperm(75).tolist():
            yield x[row], y[row]


class Streamed(Data):
    """Rows of ``Drawn``."""

    def train_dataloader(self):
        return DataLoader(Drawn(), batch_size=16)


OWN = {
    "a momentum network": {"module": {**NORMED, "_target_": f"{HERE}.Momentum"}},
    "a layer that thaws": {"module": {**NORMED, "_target_": f"{HERE}.Thawing"}},
    "a layer that is frozen later": {"module": {**NORMED, "_target_": f"{HERE}.Freezing"}},
    "finetuning": {
        "module": {**NORMED, "_target_": f"{HERE}.OfTheRest"},
        "trainer_args": {"callbacks": [{"_target_": f"{HERE}.Finetuning"}]},
    },
    "64 bits": {"trainer_args": {"precision": "64-true"}},
    "two loaders": {
        "module": {**NORMED, "_target_": f"{HERE}.OfTwo"},
        "datamodule": {"_target_": f"{HERE}.Combined", "shuffle": False},
    },
    "two loaders in random order": {
        "module": {**NORMED, "_target_": f"{HERE}.OfTwo"},
        "datamodule": {"_target_": f"{HERE}.Combined", "shuffle": True},
    },
    "a sampler": {"datamodule": {"_target_": f"{HERE}.Sampled", "num_workers": 0}},
    "a sampler, rows read by a process": {"datamodule": {"_target_": f"{HERE}.Sampled", "num_workers": 1}},
    "a sampler, validated inside": {
        "datamodule": {"_target_": f"{HERE}.Sampled", "num_workers": 0},
        "trainer_args": {"val_check_interval": 2},
    },
    "a sampler, loaders made anew": {
        "datamodule": {"_target_": f"{HERE}.Sampled", "num_workers": 0},
        "trainer_args": {"reload_dataloaders_every_n_epochs": 1},
    },
    "rows without a number": {"datamodule": {"_target_": f"{HERE}.Streamed"}},
}


def go(name):
    keys = {"module": NORMED, "datamodule": {"_target_": "lightning_runs.Data"}, "global_batch_size": None}

    def train_in(folder, channel):
        worker = make_worker(folder, make_conf(**keys | OWN[name]), None, channel=channel)
        worker.builder = Builder(("lightning_runs.*", f"{HERE}.*"))
        train(worker)

    return train_in


@pytest.mark.parametrize("stops", STOPS)
@pytest.mark.parametrize("name", OWN)
def test_an_interrupted_run_ends_with_the_same_weights(tmp_path, name, stops):
    compared = ("lightning.ckpt/state_dict", "lightning.ckpt/optimizer_states", "model")
    assert_exact(tmp_path, go(name), STOPS[stops], only=compared)
