"""The transformers trainer on a GPU."""

import pytest
from gpu_runs import PROBE, TrainsOnGpu

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(180)]


class TestTransformers(TrainsOnGpu):
    config = "transformers"
    # A schedule whose length follows from that of the run would not be resumed for longer.
    overrides = (PROBE, "+trainer.arguments.lr_scheduler_type=constant_with_warmup")
    short, long = "trainer.max_epochs=6", "trainer.max_epochs=12"
    accuracy_within = 0.06  # dropout draws other random numbers on a GPU than on a CPU
