"""A checkpoint of another account gives Lightning's callbacks, modules and hooks numbers, and no names of files."""

from __future__ import annotations

import json
from pathlib import Path

import lightning.pytorch as pl
import pytest
import torch
from lightning.pytorch.callbacks import EarlyStopping, ModelCheckpoint, StochasticWeightAveraging, Timer

import rtrain
from rtrain.errors import RtrainError
from rtrain.models.lightning import Classifier
from rtrain.runs.run import Run
from rtrain.testing.damage import replace_file
from rtrain.trainers.lightning.checkpoint.untrusted import takes_place, without_texts

WORDS = (
    *("dataset=synthetic", "dataset.num_rows=100", "num_workers=0", "trainer.num_threads=1"),
    "allow=[test_lightning_strange.*]",
)


class Keeper(Classifier):
    """A module that brings its own ModelCheckpoint, as many do."""

    def configure_callbacks(self):
        folder = Path(self.trainer.default_root_dir) / "mine"
        return [ModelCheckpoint(folder, monitor="val_loss", save_top_k=1, mode="max")]

    def validation_step(self, batch, batch_idx):
        self.log("val_loss", float(self.current_epoch))


class Deletes(pl.Callback):
    """A callback of a user's that removes the file it wrote before."""

    def __init__(self):
        self.number, self.last = 0, ""

    def state_dict(self):
        return {"number": self.number, "last": self.last}

    def load_state_dict(self, state_dict):
        self.number, self.last = state_dict["number"], state_dict["last"]

    def on_train_epoch_end(self, trainer, pl_module):
        self.number += 1
        if self.last:
            Path(self.last).unlink()


class Hooked(Classifier):
    """A module that keeps the name of a file by a hook."""

    last = ""

    def on_save_checkpoint(self, checkpoint):
        checkpoint["of_mine"] = {"last": self.last}

    def on_load_checkpoint(self, checkpoint):
        Path(checkpoint["of_mine"]["last"]).unlink()


class Counted(pl.Callback):
    """A callback that counts."""

    def __init__(self):
        self.epochs = 0

    def state_dict(self):
        return {"epochs": self.epochs}

    def load_state_dict(self, state_dict):
        self.epochs = state_dict["epochs"]

    def on_train_epoch_end(self, trainer, pl_module):
        self.epochs += 1


def words_of(folder, kind, epochs):
    words = [*WORDS, f"run.root_dir={folder}/runs", f"trainer.max_epochs={epochs}"]
    if kind in (Keeper, Hooked):
        return [*words, f"trainer.module._target_=test_lightning_strange.{kind.__name__}"]
    place = f"lightning.pytorch.callbacks.{kind.__name__}" if kind is EarlyStopping else f"{__name__}.{kind.__name__}"
    more = ", monitor: val_loss, patience: 9" if kind is EarlyStopping else ""
    return [*words, f"+trainer.trainer_args.callbacks=[{{_target_: {place}{more}}}]"]


def poison(run, victim):
    """Name the victim wherever the state of a callback or a hook names a file."""
    for folder in run.checkpoints:
        stored = torch.load(folder / "lightning.ckpt", weights_only=True)
        for state in [*stored["callbacks"].values(), stored.get("of_mine", {})]:
            if "last" in state:
                state["last"] = str(victim)
            if "best_k_models" in state:
                way = f"{state['dirpath']}/{'../' * 40}{victim}"
                state |= {
                    "best_k_models": {way: torch.tensor(-1.0)},
                    "kth_best_model_path": way,
                    "last_model_path": way,
                }
        torch.save(stored, folder / "poisoned")
        replace_file(folder, "lightning.ckpt", (folder / "poisoned").read_bytes())
        (folder / "poisoned").unlink()


@pytest.mark.parametrize("of_mine", [False, True], ids=["of a stranger", "of mine, changed by a stranger"])
@pytest.mark.parametrize("kind", [Keeper, Deletes, Hooked])
def test_no_file_is_deleted_that_a_state_names(tmp_path, monkeypatch, kind, of_mine):
    victim = tmp_path / "thesis.tex"
    victim.write_text("years of work")
    run = rtrain.fit("lightning", words_of(tmp_path, kind, 1))
    poison(run, victim)
    if not of_mine:
        monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "other"))
    with pytest.raises(RtrainError, match="trust=True"):
        rtrain.fit("lightning", [*words_of(tmp_path, kind, 3), f"run.resume={run.path}"])
    assert victim.exists()
    assert Run.load(run.path).status == "failed"


@pytest.mark.parametrize("kind", [Counted, EarlyStopping])
def test_training_goes_on_from_the_numbers_of_a_stranger_to_the_same_end(tmp_path, monkeypatch, kind):
    straight = rtrain.fit("lightning", words_of(tmp_path, kind, 2))
    run = rtrain.fit("lightning", words_of(tmp_path, kind, 1))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "other"))
    resumed = rtrain.fit("lightning", [*words_of(tmp_path, kind, 2), f"run.resume={run.path}"])
    ends = [torch.load(one.checkpoints[-1] / "lightning.ckpt", weights_only=True) for one in (straight, resumed)]
    for name, weight in ends[0]["state_dict"].items():
        assert torch.equal(weight, ends[1]["state_dict"][name])
    assert str(ends[0]["callbacks"]) == str(ends[1]["callbacks"])


def test_whoever_wrote_it_is_trusted_if_the_user_says_so(tmp_path, monkeypatch):
    run = rtrain.fit("lightning", words_of(tmp_path, Deletes, 1))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "other"))
    assert rtrain.resume(run.path, ["trainer.max_epochs=2"], trust=True).status == "succeeded"


def test_a_run_of_mine_is_resumed_with_all_that_its_callbacks_keep(tmp_path):
    run = rtrain.fit("lightning", words_of(tmp_path, Keeper, 1))
    assert rtrain.resume(run.path, ["trainer.max_epochs=2"]).status == "succeeded"
    assert "seal" in json.loads((run.checkpoints[-1] / "checkpoint.json").read_text())


@pytest.mark.parametrize("callback", [EarlyStopping("loss"), Timer(), StochasticWeightAveraging(0.1)])
def test_states_of_lightnings_callbacks_are_numbers_when_they_begin(callback):
    assert takes_place(callback.state_dict(), callback.state_dict())


@pytest.mark.parametrize(
    ("then", "now", "fits"),
    [
        ({"a": 1}, {"a": 0, "b": 0}, True),
        ({"a": torch.ones(2)}, {"a": None}, True),
        ({"a": "x"}, {"a": "x"}, True),
        ({"a": "y"}, {"a": "x"}, False),
        ({"a": "y"}, {"a": None}, False),
        ({"a": b"y"}, {"a": 1}, False),
        ({"a": 1}, {"a": "x"}, False),
        ({"file": 1}, {}, False),
        ({"a": {"file": 1}}, {"a": {}}, False),
        ({"a": {"file": 1}}, {"a": None}, False),
        ({"a": ["file"]}, {"a": []}, False),
        ({"a": []}, {"a": [1]}, False),
        ({"a": [1]}, {"a": [2]}, True),
        ([1], {"a": 1}, False),
    ],
)
def test_a_state_takes_the_place_of_one_that_is_like_it(then, now, fits):
    assert takes_place(then, now) is fits


def test_texts_are_left_out_at_any_depth():
    stored = {"a": 1, "b": "x", "c": [{"d": b"y", "e": torch.ones(1)}, "z", (1, "w")]}
    assert without_texts(stored) == {"a": 1, "c": [{"e": torch.ones(1)}, (1,)]}
