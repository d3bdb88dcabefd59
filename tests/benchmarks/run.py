"""Compare rtrain with its peers in one run on this machine, and print ratios: ``make bench``.

Seconds are the smallest of several runs; a ratio below 1 means that rtrain is quicker.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

HERE = Path(__file__).parent
PEERS = HERE / "peers"
RTRAIN = str(Path(sys.executable).parent / "rtrain")
MLP = ["fit", "mlp", "trainer.max_epochs=3"]


def _once(command: Sequence[str]) -> float:
    with tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        done = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, env=os.environ | {"RAY_DEDUP_LOGS": "1"}
        )
        spent = time.perf_counter() - began
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)} failed:\n{done.stdout}{done.stderr}")
    return spent


def compare(name: str, ours: Sequence[str], peer: Sequence[str], goal: float, times: int) -> None:
    """Run both commands in turn and print one line."""
    pairs = [(_once(ours), _once(peer)) for _ in range(times)]
    mine, other = (min(column) for column in zip(*pairs, strict=True))
    print(f"{name:<44} {mine:8.2f} s {other:8.2f} s   ratio {mine / other:5.2f}   goal {goal}", flush=True)


def startup(times: int) -> None:
    """Help and config printing."""
    compare("rtrain --help / import typer", [RTRAIN, "--help"], [sys.executable, "-c", "import typer"], 3, times)
    hydra = [sys.executable, str(PEERS / "hydra_app.py"), "--cfg", "job"]
    compare("rtrain fit resnet --cfg job / hydra app", [RTRAIN, "fit", "resnet", "--cfg", "job"], hydra, 2, times)


def whole(times: int) -> None:
    """Whole processes, from nothing to a trained model."""
    for workers, goal in ((0, 0.2), (1, 0.5), (2, 0.5)):
        peer = [sys.executable, str(PEERS / "ray_train_script.py"), str(max(workers, 1))]
        compare(
            f"digits MLP, num_workers={workers} / script", [RTRAIN, *MLP, f"num_workers={workers}"], peer, goal, times
        )


def epochs(times: int) -> None:
    """Seconds per epoch against a plain PyTorch loop, in one process each."""
    for model in ("mlp", "resnet"):
        command = [sys.executable, str(PEERS / "epoch.py"), model, str(times)]
        print(subprocess.run(command, capture_output=True, text=True, check=True).stdout.rstrip(), flush=True)


SUITES: dict[str, tuple[Callable[[int], None], int]] = {
    "startup": (startup, 9),
    "whole": (whole, 3),
    "epochs": (epochs, 5),
}

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("suites", nargs="*", choices=[*SUITES, []], help="which to run; all without a name")
    for suite in parser.parse_args().suites or SUITES:
        function, number = SUITES[suite]
        function(number)
