"""Runs on a GPU that are killed in the middle of an epoch end as those that were not."""

import signal
import subprocess
import sys

import numpy as np
import pytest
from gpu_runs import DEVICE, digits, fit, words

import rtrain
from rtrain.runs.run import Run

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(240)]
COMMAND = "import sys; from rtrain.cli.app import run; sys.exit(run(sys.argv[1:]))"
KILLED = "trainer.callbacks=[{_target_: probes.KillOnce, after_step: 25}]"
EPOCHS = ("trainer.max_epochs=2", "run.checkpoint.every_steps=8")
CONFIGS = {
    "mlp": EPOCHS,
    "transformers": EPOCHS,
    "jax": EPOCHS,
    "xgboost": ("trainer.num_boost_round=40", "run.checkpoint.every_steps=8"),
}
FP16 = pytest.param("mlp", "trainer.precision=fp16", marks=pytest.mark.skipif(DEVICE == "cpu", reason="needs a GPU"))
WITHIN = {"rtol": 1e-3, "atol": 1e-4}
"""Kernels that add up in any order are not the same twice; rtrain asks for others where a framework has them."""
OF_JAX = {"rtol": 1e-2, "atol": 1e-2}
"""Less than XLA allows: with the flag of ``conftest.py`` two whole runs had the very same weights."""


def end_of(run: Run) -> dict[str, np.ndarray]:
    """Return what the last checkpoint has: its weights, if they are arrays, and what it predicts."""
    from safetensors.numpy import load_file

    found = rtrain.load_checkpoint(run.path, checkpoint="latest")
    weights = found.path / "model.safetensors"
    predicted = {"predictions": found.predict(digits(run)[0])}
    return {**predicted, **(load_file(weights) if weights.exists() else {})}


def assert_same_end(run: Run, whole: Run) -> None:
    first, second = end_of(run), end_of(whole)
    assert first.keys() == second.keys()
    within = OF_JAX if run.manifest.run_name == "jax" else WITHIN
    for name in first:
        np.testing.assert_allclose(first[name], second[name], **within, err_msg=name)


def assert_resumed_in_the_middle(run: Run) -> None:
    first, second = (attempt["from_step"] for attempt in run.manifest.attempts)
    assert first == 0 < second < 25, "the last checkpoint before the kill is the newest that was complete"


@pytest.mark.parametrize(("config", "more"), [*((name, "run.seed=0") for name in CONFIGS), FP16])
def test_a_killed_process_is_resumed_to_the_same_end(project, config, more):
    overrides = (*CONFIGS[config], more)
    whole = fit(project, config, *overrides)
    command = [sys.executable, "-c", COMMAND, "fit", config, *words(0), *overrides, KILLED, "run.root_dir=killed"]
    before = set(project.glob("killed/*/*"))
    done = subprocess.run(command, cwd=project, capture_output=True, text=True, check=False)
    assert done.returncode == -signal.SIGKILL, done.stdout + done.stderr
    (path,) = set(project.glob("killed/*/*")) - before
    assert Run.load(path).status == "killed"
    with pytest.warns(UserWarning, match="it was killed"):
        run = rtrain.resume(path)
    assert_resumed_in_the_middle(run)
    assert_same_end(run, whole)


@pytest.mark.parametrize("config", ["mlp", "jax"])
def test_a_killed_worker_gets_the_gpu_again(project, config):
    whole = fit(project, config, *CONFIGS[config])
    run = fit(project, config, *CONFIGS[config], KILLED, num_workers=1)
    assert_resumed_in_the_middle(run)
    assert run.manifest.workers["0"]["device"].startswith(DEVICE)
    assert_same_end(run, whole)
