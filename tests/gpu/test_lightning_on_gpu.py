"""The lightning trainer on a GPU."""

import pytest
from gpu_runs import TrainsOnGpu

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(180)]


class TestLightning(TrainsOnGpu):
    config = "lightning"
    overrides = ("+trainer.trainer_args.callbacks=[{_target_: lightning_probe.Probe}]",)
