"""Frameworks whose workers talk by NCCL need a GPU for each worker; what GPUs need in the process goes with the run."""

from __future__ import annotations

import os

import pytest
from torch_runs import make_conf, make_worker

import rtrain
from rtrain.cluster.ray_cluster import StartingCluster
from rtrain.errors import ConfigError
from rtrain.trainers.torch.process_settings import CUBLAS_WORKSPACE, torch_settings

SHARED = ["num_workers=2", "use_gpu=true", "scaling.resources_per_worker={GPU: 0.5}"]
SLOW = [pytest.param(name, marks=pytest.mark.slow) for name in ("lightning", "transformers", "jax", "keras")]


@pytest.mark.parametrize("config", ["mlp", "xgboost", *SLOW])
def test_workers_that_would_share_a_gpu_are_refused_before_the_start(config, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(StartingCluster, "_live", lambda cluster: None)  # it would start beside the checks
    with pytest.raises(ConfigError, match=r"^scaling\.resources_per_worker\.GPU: workers of one run can't share a GPU"):
        rtrain.fit(config, SHARED)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("before", [None, ":16:8"])
def test_the_workspace_of_cublas_is_that_of_the_run_only(before, tmp_path, monkeypatch):
    worker = make_worker(tmp_path, make_conf())
    worker.use_gpu = True
    monkeypatch.delenv(CUBLAS_WORKSPACE, raising=False)
    if before:
        monkeypatch.setenv(CUBLAS_WORKSPACE, before)
    with torch_settings(worker, deterministic=True):
        assert os.environ[CUBLAS_WORKSPACE] == (before or ":4096:8")
    assert os.environ.get(CUBLAS_WORKSPACE) == before
