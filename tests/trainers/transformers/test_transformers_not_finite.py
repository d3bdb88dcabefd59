"""Losses, gradients and weights that are not finite."""

from typing import ClassVar

import numpy as np
import pytest
import torch
from not_finite_contract import NotFinite
from safetensors.torch import load_file
from transformers_runs import dataset, fit, make_conf

from rtrain.trainers.transformers.learner import TransformersLearner


class TestNotFinite(NotFinite):
    """Its models can't be made to measure: the losses of the steps that have a bad row are spoilt instead."""

    arguments: ClassVar = {"learning_rate": 1e-3}

    @pytest.fixture(autouse=True)
    def spoilt(self, monkeypatch):
        self.monkeypatch = monkeypatch

    def fit(self, folder, data, **run):
        first = next(data.splits["train"].own_rows(0, 1))["x"][:, 0]
        bad = {row // 10 for row in np.flatnonzero(~((first >= 0.5) & (first <= 1.5)))}
        kind = {0.0: "gradient"}.get(first.min(), "inf" if first.max() > 1e9 else "nan")
        take, losses, steps = TransformersLearner.train_step, TransformersLearner._losses, []

        def count(learner, batch, step):
            steps.append(step)
            return take(learner, batch, step)

        def spoil(learner, output, target, smoothing):
            found = losses(learner, output, target, smoothing)
            if not learner.model.training or steps[-1] not in bad:
                return found
            if kind == "gradient":
                return found + (next(learner.model.parameters()).flatten()[0] * 0).sqrt()
            return found * (torch.inf if kind == "inf" else torch.nan)

        self.monkeypatch.setattr(TransformersLearner, "train_step", count)
        self.monkeypatch.setattr(TransformersLearner, "_losses", spoil)
        conf = make_conf(global_batch_size=10, max_epochs=1, arguments=self.arguments)
        try:
            return fit(folder, conf, dataset(num_rows=(60, 20)), **run)
        finally:
            self.monkeypatch.undo()

    def arrays(self, checkpoint):
        return {name: one.numpy() for name, one in load_file(checkpoint / "model.safetensors").items()}


class TestNotFiniteWithoutClipping(TestNotFinite):
    arguments: ClassVar = {"learning_rate": 1e-3, "max_grad_norm": 0.0}
