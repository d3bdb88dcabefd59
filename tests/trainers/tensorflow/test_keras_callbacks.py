"""Callbacks take back the numbers they counted, and no text: folders and files are those of the config."""

from __future__ import annotations

import json

import pytest

keras = pytest.importorskip("keras")

from rtrain.errors import TrainingError  # noqa: E402
from rtrain.trainers.tensorflow.callbacks import FILE_NAME, Callbacks  # noqa: E402


@pytest.fixture
def model():
    return keras.Sequential([keras.layers.Input((2,)), keras.layers.Dense(1)])


def own(folder):
    return [
        keras.callbacks.BackupAndRestore(str(folder / "backup")),
        keras.callbacks.ModelCheckpoint(str(folder / "a.weights.h5"), save_weights_only=True),
        keras.callbacks.RemoteMonitor(),
        keras.callbacks.ReduceLROnPlateau(patience=2),
    ]


@pytest.mark.parametrize("value", ["/elsewhere", ["/elsewhere"], {"a": 1}, 7, None, True])
def test_only_numbers_are_taken_and_no_arguments(tmp_path, model, value):
    callbacks = own(tmp_path)
    before = [dict(vars(one)) for one in callbacks]
    taking = Callbacks(callbacks, model, 2)
    state = [dict.fromkeys([*vars(one), "not_there"], value) for one in callbacks]
    (tmp_path / FILE_NAME).write_text(json.dumps({"epoch": 1, "in_epoch": False, "callbacks": state}))
    taking.load(tmp_path)
    for one, was in zip(callbacks, before, strict=True):
        now = vars(one)
        assert "not_there" not in now
        assert {name: now[name] for name in was if isinstance(was[name], str)} == {
            name: was[name] for name in was if isinstance(was[name], str)
        }
        assert not [name for name in now if now[name] == "/elsewhere"]
    assert callbacks[3].patience == 2
    assert callbacks[3].wait == (value if isinstance(value, int | None) else 0)


def test_numbers_are_counted_on(tmp_path, model):
    model.stop_training = False
    first, second = (Callbacks([keras.callbacks.EarlyStopping("loss", mode="min")], model, 9) for _ in range(2))
    for epoch in range(1, 4):
        first.begin_step(epoch)
        first.end_epoch(epoch, {"loss": float(epoch)})
    assert first.state()["callbacks"] != second.state()["callbacks"]
    (tmp_path / FILE_NAME).write_text(json.dumps(first.state()))
    second.load(tmp_path)
    assert second.state() == first.state()


@pytest.mark.parametrize("when", ["epoch_end", "epoch_begin", "train_batch_end", "train_batch_begin"])
def test_weights_that_were_evaluated_stay(model, when):
    def change(self, *args, **keys):
        self.model.set_weights([one + 1 for one in self.model.get_weights()])

    changing = type("Changing", (keras.callbacks.Callback,), {f"on_{when}": change})()
    told = Callbacks([keras.callbacks.EarlyStopping(restore_best_weights=True), changing], model, 2)
    model.stop_training = False
    told.begin_step(0)
    told.end_step(0, 1.0)
    if when != "epoch_end":
        assert told.end_epoch(1, {"val_loss": 1.0}) == ""
        return
    with pytest.raises(TrainingError, match="Changing changes weights at the end of epoch 1"):
        told.end_epoch(1, {"val_loss": 1.0})
