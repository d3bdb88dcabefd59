"""Callbacks that record where training computes, or kill it."""

import json
import os
import signal

import rtrain


def device_of(model):
    """Return ``cuda`` or ``cpu``: where a torch module, a Booster or the weights of JAX are."""
    if hasattr(model, "parameters"):
        (found,) = {one.device.type for one in model.parameters()}
        return found
    if hasattr(model, "save_config"):
        return json.loads(model.save_config())["learner"]["generic_param"]["device"].partition(":")[0]
    import jax

    (found,) = {one.platform for leaf in jax.tree.leaves(model) for one in leaf.devices()}
    return "cuda" if found == "gpu" else found


def record(folder, **found):
    with (folder / "devices.jsonl").open("a") as file:
        file.write(json.dumps(found) + "\n")


class Probe(rtrain.WorkerCallback):
    """Record where the model and, of torch, the rows of the last step were."""

    def __init__(self):
        self._rows = None

    def step_end(self, training, batch):
        device = getattr(getattr(batch, "x", None), "device", None)
        self._rows = getattr(device, "type", None)

    def train_end(self, training):
        record(training.run_dir, model=device_of(training.model), rows=self._rows)


class KillOnce(rtrain.WorkerCallback):
    """Kill this process after a step, the first time that it is reached."""

    def __init__(self, after_step):
        self._after_step = after_step

    def step_end(self, training, batch):
        marker = training.run_dir / "killed"
        if training.step == self._after_step and not marker.exists():
            marker.touch()
            os.kill(os.getpid(), signal.SIGKILL)
