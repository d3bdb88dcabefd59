"""Loops for Ray Train on a GPU: in this process and on a worker, model and rows are where Ray puts them."""

import json

import pytest
from gpu_runs import DEVICE, IN_PROCESS_AND_ON_A_WORKER, fit_loop

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(180)]


@IN_PROCESS_AND_ON_A_WORKER
@pytest.mark.parametrize("trainer", ["torch", "lightning", "transformers", "jax", "xgboost"])
def test_a_loop_finds_the_gpu(project, trainer, num_workers):
    conf = {"type": trainer, "train_loop": f"loops:{trainer}"}
    conf["train_loop_config"] = {"lr": 0.01, "gpu": DEVICE == "cuda"}
    (project / f"loop_{trainer}.yaml").write_text(json.dumps({"trainer": conf}))
    run = fit_loop(project, f"loop_{trainer}.yaml", num_workers)
    first, last = (list(run.events())[place].metrics for place in (0, -1))
    assert (last["model_on_gpu"], last["gpu_given"]) == (DEVICE == "cuda",) * 2
    assert last["loss"] < first.get("loss", 0.7)
