"""What can't take its first step is refused before a run directory exists, whatever the trainer and the part."""

from __future__ import annotations

import random
import socket
import threading

import numpy as np
import pytest

import rtrain
from rtrain.engine.side_effects import looking
from rtrain.errors import ConfigError
from rtrain.trainers.registry import load_trainer

CODE = """
import random
import urllib.request
import lightning.pytorch as pl
import numpy
import torch
from torch.nn.functional import cross_entropy

class Net(torch.nn.Linear):
    def __init__(self, in_features=64, num_classes=10, how=""):
        super().__init__(in_features, num_classes)
        print("built")
        random.random(), numpy.random.rand()
        if how == "fetch":
            urllib.request.urlopen("http://example.invalid/weights")
        if how == "open":
            open("/no/such/file")
        if how == "assert":
            assert in_features == 1, "a mistake"
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, rows):
        self.calls += 1
        return super().forward(rows.flatten(1))

class Loss(torch.nn.Module):
    def forward(self, output, target):
        return (output - target).mean()

class Metric(torch.nn.Module):
    def update(self, output, target):
        output[:, 20]
    def compute(self):
        return 0.0

class Module(pl.LightningModule):
    def __init__(self, num_classes=10, lr=0.1):
        super().__init__()
        self.layer, self.lr = torch.nn.Linear(64, num_classes), lr

    def training_step(self, batch, batch_idx):
        return cross_entropy(self.layer(batch[0].flatten(1)), batch[1])

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=self.lr)
"""
LINEN = "rtrain.models.jax"
OWN = "trainer.model={_target_: mine.Net}"
WRONG = {
    "torch model type": ("mlp", ["model.hidden=[a]"], "trainer.model"),
    "torch classes": ("mlp", ["model.num_classes=2"], "trainer.model.num_classes: the model returns (2,)"),
    "torch shape": ("mlp", ["model.in_features=7"], "trainer.model: "),
    "torch own model": ("mlp", ["trainer.model={_target_: mine.Net, how: assert}"], "a mistake"),
    "torch optimizer": ("mlp", ["optimizer.lr=-1"], "trainer.optimizer.lr: "),
    "torch optimizer step": ("mlp", ["trainer.optimizer={_target_: torch.optim.SparseAdam}"], "the first step fails"),
    "torch scheduler": (
        "mlp",
        ["trainer.scheduler={_target_: torch.optim.lr_scheduler.OneCycleLR, max_lr: 1, total_steps: 9, pct_start: 2}"],
        "trainer.scheduler.pct_start: ",
    ),
    "torch loss": ("mlp", ["trainer.loss={_target_: torch.nn.BCELoss}"], "trainer.loss: "),
    "torch own loss": ("mlp", ["trainer.loss={_target_: mine.Loss}"], "trainer.loss"),
    "torch metric": ("mlp", ["trainer.metrics.mine={_target_: mine.Metric}"], "trainer.metrics.mine"),
    "lightning optimizer": ("lightning", ["trainer.module={_target_: mine.Module, lr: -1}"], "trainer.module"),
    "lightning shape": ("lightning", ["trainer.module.in_features=7"], "trainer.module"),
    "jax classes": ("jax", ["trainer.model.num_classes=2"], "trainer.model.num_classes: the model returns (2,)"),
    "jax model type": ("jax", ["trainer.model.channels=[a]"], "trainer.model"),
    "jax optimizer": ("jax", ["trainer.optimizer.learning_rate.init_value=a"], "trainer.optimizer"),
    "jax loss": ("jax", ["trainer.loss={_target_: optax.l2_loss}"], "trainer.loss"),
    "jax metric": ("jax", ["trainer.metrics.mine={_target_: jax.numpy.vdot}"], "trainer.metrics.mine"),
    "keras classes": ("keras", ["trainer.model.num_classes=2"], "trainer.model.num_classes: the model returns (2,)"),
    "keras shape": ("keras", ["trainer.model.input_shape=[8,8,3]"], "trainer.model"),
    "keras optimizer": ("keras", ["trainer.optimizer.learning_rate=a"], "trainer.optimizer"),
    "keras metric": ("keras", ["trainer.metrics.mine={_target_: keras.metrics.R2Score}"], "trainer.metrics.mine"),
    "keras loss": ("keras", ["trainer.loss={_target_: keras.losses.CTC}"], "trainer.loss"),
    "sklearn": ("sklearn", ["+trainer.estimator.max_depth=-1"], "trainer.estimator"),
    "transformers": ("transformers", ["trainer.model.config.patch_size=-1"], "trainer.model"),
    "transformers classes": ("transformers", ["+trainer.model.config.num_labels=2"], "trainer.model.config: vit"),
    "transformers images": ("transformers", ["+trainer.model.config.image_size=16"], "trainer.model.config: vit"),
    "xgboost": ("xgboost", ["+trainer.params.max_depth=-3"], "trainer.params"),
    "lightgbm": ("lightgbm", ["+trainer.params.num_leaves=-3"], "trainer.params"),
}
FEW = ["num_workers=0", "run.checkpoint.best.keep=1", "run.root_dir=runs"]
SHORT = ["dataset.limit=200", "trainer.max_epochs=1"]


@pytest.fixture(autouse=True)
def project(tmp_path, monkeypatch):
    (tmp_path / "pyproject.toml").write_text("")
    (tmp_path / "mine.py").write_text(CODE)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def written(folder):
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if "__pycache__" not in path.parts}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_part_is_refused_with_nothing_written(name, project, capfd):
    config, words, told = WRONG[name]
    before = written(project)
    with pytest.raises(ConfigError) as caught:
        rtrain.fit(config, [*(FEW[:1] if name == "sklearn" else FEW), *words])  # it keeps no best checkpoint
    assert told in caught.value.message
    assert caught.value.exit_code == 2
    assert len(str(caught.value).splitlines()) < 24
    assert written(project) == before
    assert "built" not in capfd.readouterr().out


@pytest.mark.parametrize("how", ["fetch", "open"])
def test_what_this_machine_lacks_is_left_to_the_workers(how, project, monkeypatch):
    with pytest.raises(rtrain.TrainingError):
        rtrain.fit("mlp", [*FEW, *SHORT, f"trainer.model={{_target_: mine.Net, how: {how}}}"])


@pytest.mark.parametrize(
    ("config", "trainer"),
    [
        ("resnet", "torch"),
        ("jax", "jax"),
        *(
            pytest.param(*one, marks=pytest.mark.slow)
            for one in (("lightning", "lightning"), ("keras", "tensorflow"), ("transformers", "transformers"))
        ),
    ],
)
def test_a_run_with_a_trial_has_the_same_weights_as_one_without(config, trainer, project, monkeypatch):
    metrics = [rtrain.fit(config, [*FEW, *SHORT]).manifest.metrics]
    monkeypatch.setattr(type(load_trainer(trainer)), "try_out", lambda self, job: None)
    metrics.append(rtrain.fit(config, [*FEW, *SHORT]).manifest.metrics)
    kept = [{name: value for name, value in one.items() if "/loss" in name} for one in metrics]
    assert kept[0]
    assert kept[0] == kept[1]


@pytest.mark.parametrize(("word", "num_tried"), [("run.seed=1,2", 1), ("lr=0.1,0.01", 1), ("batch_size=8,16", 2)])
def test_what_trials_of_a_sweep_build_is_tried_once(word, num_tried, project, monkeypatch):
    plugin, tried = type(load_trainer("torch")), []
    monkeypatch.setattr(plugin, "try_out", lambda self, job: tried.append(job))
    rtrain.sweep("mlp", [*FEW, *SHORT, word])
    assert len(tried) == num_tried


def test_a_look_leaves_streams_sockets_and_random_numbers_as_they_were(capsys):
    states, connect = (random.getstate(), np.random.get_state()), socket.socket.connect
    with looking() as look:
        random.random(), np.random.rand()
        print("unseen")
        other = threading.Thread(target=lambda: print("seen"))
        other.start()
        other.join()
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", 1))
    assert look.connects
    assert socket.socket.connect is connect
    assert random.getstate() == states[0]
    assert all(np.array_equal(one, other) for one, other in zip(np.random.get_state(), states[1], strict=True))
    assert capsys.readouterr().out == "seen\n"


def test_a_model_that_is_too_large_is_tried_without_its_numbers(monkeypatch):
    monkeypatch.setattr("rtrain.trainers.torch.memory_limit.MOST_BYTES", 1000)
    with pytest.raises(ConfigError, match=r"trainer.model.num_classes: the model returns \(2,\)"):
        rtrain.fit("mlp", [*FEW, "model.num_classes=2"])
