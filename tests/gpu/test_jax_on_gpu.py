"""The jax trainer on a GPU."""

import pytest
from gpu_runs import PROBE, TrainsOnGpu

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(180)]


class TestJax(TrainsOnGpu):
    config = "jax"
    # A schedule whose length follows from that of the run would not be resumed for longer.
    overrides = (PROBE, "trainer.optimizer.learning_rate=0.003", "trainer.model.dropout=0")
