"""Trainers that compute on CPUs, as they are installed, refuse a GPU."""

import pytest
from gpu_runs import fit

from rtrain.errors import ConfigError, TrainingError

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(180)]


def test_scikit_learn_refuses_a_gpu(project):
    with pytest.raises(ConfigError, match=r"^scaling\.use_gpu: scikit-learn computes on CPUs"):
        fit(project, "sklearn", device="cuda")


def test_lightgbm_without_cuda_refuses_it(project):
    """Its wheel knows OpenCL, and takes the GPU where the machine has a driver for that."""
    with pytest.raises(ConfigError, match=r"^scaling\.use_gpu: LightGBM can't use device_type=cuda"):
        fit(project, "lightgbm", "+trainer.params.device_type=cuda", device="cuda")


def test_tensorflow_without_cuda_refuses_a_gpu(project):
    tensorflow = pytest.importorskip("tensorflow")
    if tensorflow.config.list_physical_devices("GPU"):
        pytest.skip("TensorFlow has a GPU")
    with pytest.raises(TrainingError, match=r"needs a GPU, but its TensorFlow .* sees none"):
        fit(project, "keras", device="cuda")
