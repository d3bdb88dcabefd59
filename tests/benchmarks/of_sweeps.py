"""Many trials: against other ways to run them, and what a trial and its planning cost."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from measured import PEERS, RTRAIN, Row, compared, last_number, once


def sweeps(times: int, num_epochs: int = 15, num_seeds: int = 4) -> Iterator[Row]:
    """Trials of the digits ResNet, whole commands, two trials at a time.

    The script with Ray Tune, which takes minutes, runs once.
    """
    seeds = ",".join(map(str, range(1, num_seeds + 1)))
    sweep = [RTRAIN, "fit", "resnet", "--multirun", "lr=0.2,0.1,0.05,0.01", f"seed={seeds}"]
    sweep += ["sweep.metric=val/accuracy", f"trainer.max_epochs={num_epochs}"]
    sizes = [str(num_epochs), str(num_seeds)]
    joblib, tune = ([sys.executable, str(PEERS / file), *sizes] for file in ("sweep_joblib.py", "sweep_tune.py"))
    pairs = [(once(sweep, reached=_best_value), once(joblib, reached=last_number)) for _ in range(times)]
    name = f"{4 * num_seeds} trials of the digits ResNet"
    yield compared(pairs, f"{name} / joblib loop", 1.15)
    ours = [one.seconds for one, _ in pairs]
    yield Row(f"{name} / Ray Tune with TorchTrainer", "s", ours, [once(tune, reached=last_number).seconds], 0.3)
    grid, asha = (_steps_and_best(sweep, words) for words in ([], ["sweep/scheduler=asha", "sweep.scheduler.grace=2"]))
    yield Row("steps of the sweep, ASHA / grid", "steps", [asha[0]], [grid[0]], 0.6, [asha[1], grid[1]])


def _best_value(folder: Path, output: str) -> float:
    (file,) = folder.glob("runs/*/sweep.json")
    data = json.loads(file.read_text())
    return float(data["trials"][data["best"]]["values"][0])


def _steps_and_best(sweep: Sequence[str], words: Sequence[str]) -> tuple[float, float]:
    """Return the steps of all trials of a sweep, and the best accuracy."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([*sweep, *words], check=True, capture_output=True, cwd=folder)
        (file,) = Path(folder).glob("runs/*/sweep.json")
        steps = sum(one["step"] for one in json.loads(file.read_text())["trials"])
        return float(steps), _best_value(Path(folder), "")


def many(num_trials: int = 200, num_values: int = 100) -> Iterator[Row]:
    """Trials that train next to nothing, and the planning of many."""
    import rtrain

    with tempfile.TemporaryDirectory() as folder:
        words = ["num_workers=1", "trainer.num_boost_round=1", "dataset.limit=60", f"run.root_dir={folder}"]
        began = time.perf_counter()
        rtrain.sweep("xgboost", [*words, f"seed=range(0,{num_trials})"])
        yield Row(
            f"each of {num_trials} trials of one round", "s", [(time.perf_counter() - began) / num_trials], goal=0.3
        )
    yield _composing(num_values)
    axes = ["lr=" + ",".join(f"{0.001 * n:g}" for n in range(1, 5 * num_values + 1)), "seed=1,2"]
    words = ["fit", "resnet", *axes, "num_workers=0", "sweep.max_seconds=0.01", "--multirun"]
    planned = once([RTRAIN, *words], code=130)  # interrupted before the first trial starts
    name = f"{10 * num_values} trials planned and checked, the whole command"
    yield Row(name, "s", [planned.seconds], goal=30)
    yield Row(f"{name}, peak memory", "MB", [planned.peak_bytes / 1e6])


def _composing(num_values: int) -> Row:
    """Compose the config of each trial of a grid."""
    from rtrain.config.session import Session
    from rtrain.schemas import schemas
    from rtrain.searches import grid

    axes = ["lr=" + ",".join(f"{0.001 * n:g}" for n in range(1, num_values + 1)), "seed=range(0,10)"]
    with Session("resnet", axes, schemas()) as session:
        began = time.perf_counter()
        trials = session.trials()
        search = grid.Search(trials.conf, trials.axes, [])
        for number in range(search.num_trials):
            trials.plan(number, search.propose(number) or ())
        each = (time.perf_counter() - began) / search.num_trials
    return Row(f"composing a trial of {search.num_trials}", "ms", [each * 1000], goal=40)
