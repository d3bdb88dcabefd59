"""A pickle among the files of a checkpoint runs nothing when training goes on from it."""

from __future__ import annotations

import os
import pickle

import pytest
import torch

import rtrain
from rtrain.errors import RtrainError
from rtrain.runs.run import Run
from rtrain.testing.damage import Calls, replace_file

SMALL = (
    *("dataset.limit=200", "trainer.model.config.hidden_size=16", "trainer.model.config.intermediate_size=16"),
    *("trainer.num_threads=1", "+trainer.arguments.lr_scheduler_type=constant"),
)


@pytest.mark.parametrize(
    ("config", "name", "form", "words"),
    [
        ("mlp", "training.pt", "torch", ()),
        ("mlp", "training.pt", "pickle", ()),
        pytest.param("lightning", "lightning.ckpt", "torch", ("trainer.num_threads=1",), marks=pytest.mark.slow),
        pytest.param("transformers", "training.pt", "torch", SMALL, marks=pytest.mark.slow),
        ("sklearn", "estimator.pkl", "pickle", ("trainer.estimator={_target_: sklearn.linear_model.SGDClassifier}",)),
    ],
    ids=["torch", "torch, a bare pickle", "lightning", "transformers", "sklearn"],
)
def test_training_does_not_go_on_from_it(tmp_path, config, name, form, words):
    mark = tmp_path / "it-ran"
    run = rtrain.fit(config, [*words, "num_workers=0", f"run.root_dir={tmp_path}", "trainer.max_epochs=1"])
    evil = {"optimizer": Calls(os.system, f"touch {mark}")}
    if form == "torch":
        torch.save(evil, tmp_path / "evil")
    else:
        (tmp_path / "evil").write_bytes(pickle.dumps(evil))
    for folder in run.checkpoints:
        replace_file(folder, name, (tmp_path / "evil").read_bytes())
    with pytest.raises(RtrainError):
        rtrain.resume(run.path, ["trainer.max_epochs=2"])
    assert not mark.exists()
    assert Run.load(run.path).status == "failed"
