"""Checking a config does not import torch's compiler, which takes as long as torch itself."""

import subprocess
import sys

CODE = """
import inspect, sys
import torch
from rtrain.trainers.torch.checks import _without_compiler

def made(name):
    rows = [torch.nn.Parameter(torch.zeros(2, 2))]
    return getattr(torch.optim, name)([("w", rows[0])] if name == "Muon" else rows)

classes = {name: kind for name, kind in vars(torch.optim).items() if inspect.isclass(kind)}
kinds = [name for name, kind in classes.items() if issubclass(kind, torch.optim.Optimizer) and name != "Optimizer"]
for name in kinds:
    with _without_compiler():
        made(name)
assert len(kinds) > 10, kinds
assert "torch._dynamo" not in sys.modules, "its import takes more than a second of each start"
one = made("SGD")
assert "torch._dynamo" in sys.modules, "torch is as it was"
with _without_compiler():
    made("SGD")
one.param_groups[0]["params"][0].grad = torch.ones(2, 2)
one.step()
assert one.param_groups[0]["params"][0].sum().item() < 0
"""


def test_an_optimizer_is_made_without_it():
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
