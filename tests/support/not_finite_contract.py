"""Tests of losses and gradients that are not finite; those of each trainer that can leave steps out inherit them."""

from typing import Any, ClassVar

import numpy as np
import pytest

from rtrain.config.run_conf import FailureConf
from rtrain.errors import TrainingError
from rtrain.runs.checkpoints import all_checkpoints
from rtrain.testing.small_data import in_memory
from rtrain.trainers.loops.not_finite import NotFiniteError

KINDS = ("nan", "inf", "gradient")
"""The loss of a row is NaN, or infinite; or it is finite, and its gradient is NaN."""
BAD = {"nan": np.nan, "inf": 1e30, "gradient": 0.0}
"""What the first feature of such a row is, for a model that adds the root of a weight times that feature."""
SKIPPED = "train/skipped_batch"


def dataset(kind, bad_rows=(17,)):
    """60 rows of 4 features that are positive, but for the bad rows."""
    rng, columns = np.random.default_rng(0), {}
    for name, count in (("train", 60), ("test", 20)):
        x = rng.uniform(0.5, 1.5, (count, 4)).astype("float32")
        columns[name] = {"x": x, "y": x.sum(1)}
    columns["train"]["x"][list(bad_rows), 0] = BAD[kind]
    return in_memory(columns, "regression", dtype="float32")


class NotFinite:
    """What a trainer's tests say: the model, and how to train."""

    model: ClassVar[Any] = None
    """It adds ``sqrt(abs(w * x[0]))`` to its output; its first weights are positive."""

    def fit(self, folder, data, **keys):
        """Train one epoch in 6 steps of 10 rows each, and return the channel; ``keys`` are of ``RunConf``."""
        raise NotImplementedError

    def arrays(self, checkpoint):
        """Return what a checkpoint holds, by name."""
        raise NotImplementedError

    def assert_finite(self, folder):
        """Check all checkpoints of a run, and return how many there are."""
        found = all_checkpoints(folder)
        for checkpoint in found:
            spoilt = [name for name, one in self.arrays(checkpoint).items() if not np.isfinite(one).all()]
            assert not spoilt, checkpoint
        return len(found)

    @pytest.mark.parametrize("kind", KINDS)
    def test_a_step_is_left_out_for_its_loss_or_its_gradients(self, tmp_path, kind):
        sent = self.fit(tmp_path, dataset(kind), failure=FailureConf(nan_loss="skip"))
        assert sum(SKIPPED in record.metrics for record in sent.events) == 1
        assert self.assert_finite(tmp_path) > 0

    @pytest.mark.parametrize("mode", ["raise", "stop"])
    @pytest.mark.parametrize("kind", KINDS)
    def test_weights_that_are_spoilt_are_not_saved(self, tmp_path, kind, mode):
        run = {"failure": FailureConf(nan_loss=mode), "checkpoint": {"every_steps": 1, "every_epochs": None, "keep": 9}}
        if mode == "raise":
            with pytest.raises(NotFiniteError):
                self.fit(tmp_path, dataset(kind), **run)
        else:
            assert self.fit(tmp_path, dataset(kind), **run).end_reasons
        assert self.assert_finite(tmp_path) < 6

    @pytest.mark.parametrize("kind", KINDS)
    def test_a_run_that_leaves_out_step_after_step_fails(self, tmp_path, kind):
        failure = FailureConf(nan_loss="skip", max_skipped_steps=3)
        with pytest.raises(TrainingError) as error:
            self.fit(tmp_path, dataset(kind, range(60)), failure=failure)
        assert "run.failure.max_skipped_steps" in error.value.hint
        assert self.assert_finite(tmp_path) == 0

    def test_a_run_all_of_whose_steps_were_left_out_fails(self, tmp_path):
        with pytest.raises(TrainingError):
            self.fit(tmp_path, dataset("nan", range(60)), failure=FailureConf(nan_loss="skip"))
