"""Compare rtrain with its peers in one run on this machine, and print ratios: ``make bench``.

``--smoke`` runs the same code on next to nothing, in seconds, to see that it works; its numbers say nothing.

Seconds are the smallest of several runs, each of rtrain next to one of its peer; of sweeps, which take most of a
minute, those of the pair with the median ratio. A ratio below 1 means that rtrain is quicker. On a machine that does
something else as well, the seconds of the processor tell more than those of the clock.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
PEERS = HERE / "peers"
RTRAIN = str(Path(sys.executable).parent / "rtrain")
MLP = ["fit", "mlp", "trainer.max_epochs=3"]


@dataclass(frozen=True)
class Spent:
    """What a process took, from its start to its end."""

    seconds: float
    cpu_seconds: float
    """User and system time; that of Ray's processes, which outlive their parents, is not in it."""
    peak_bytes: int
    """Largest resident set of the process, or of one of its children."""


def _once(command: Sequence[str], code: int = 0) -> Spent:
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryFile() as output:
        environment = os.environ | {"RAY_DEDUP_LOGS": "1"}
        began = time.perf_counter()
        process = subprocess.Popen(command, cwd=folder, stdout=output, stderr=output, env=environment)
        _, status, used = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - began
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != code:
            output.seek(0)
            sys.exit(f"{' '.join(command)} failed:\n{output.read().decode()}")
    return Spent(seconds, used.ru_utime + used.ru_stime, used.ru_maxrss * 1024)


def _print(name: str, mine: float, other: float, goal: float | None, unit: str = "s") -> None:
    shown = "" if goal is None else f"goal {goal}"
    print(f"{name:<52} {mine:8.2f} {unit:<2} {other:8.2f} {unit:<2}   ratio {mine / other:5.2f}   {shown}", flush=True)


def compare(name: str, ours: Sequence[str], peer: Sequence[str], goal: float, times: int) -> None:
    """Run both commands in turn and print one line."""
    pairs = [(_once(ours), _once(peer)) for _ in range(times)]
    mine, other = (min(spent.seconds for spent in column) for column in zip(*pairs, strict=True))
    _print(name, mine, other, goal)


def startup(times: int) -> None:
    """Help and config printing."""
    compare("rtrain --help / import typer", [RTRAIN, "--help"], [sys.executable, "-c", "import typer"], 3, times)
    hydra = [sys.executable, str(PEERS / "hydra_app.py"), "--cfg", "job"]
    compare("rtrain fit resnet --cfg job / hydra app", [RTRAIN, "fit", "resnet", "--cfg", "job"], hydra, 2, times)


def whole(times: int, max_workers: int = 2) -> None:
    """Whole processes, from nothing to a trained model: a declared one, and the script's own function as a loop."""
    with tempfile.TemporaryDirectory() as project:
        (Path(project) / "pyproject.toml").touch()
        for file in ("loop.yaml", "ray_train_script.py"):
            shutil.copy(PEERS / file, project)
        for workers, goal in ((0, 0.2), (1, 0.5), (2, 0.5))[: max_workers + 1]:
            peer = [sys.executable, str(PEERS / "ray_train_script.py"), str(max(workers, 1))]
            for name, fit in (("digits MLP", MLP), ("its loop", ["fit", str(Path(project) / "loop.yaml")])):
                ours = [RTRAIN, *fit, f"num_workers={workers}"]
                compare(f"{name}, num_workers={workers} / script", ours, peer, goal, times)


def epochs(times: int, num_epochs: int = 20) -> None:
    """Seconds per epoch against a plain PyTorch loop, in one process each."""
    for model in ("mlp", "resnet"):
        _print_of("epoch.py", model, times, num_epochs)


def _print_of(script: str, *arguments: object) -> None:
    """Print what a script of the peers prints; end with its error."""
    command = [sys.executable, str(PEERS / script), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)} failed:\n{done.stdout}{done.stderr}")
    print(done.stdout.rstrip(), flush=True)


def boosting(times: int, num_rows: int = 1_000_000, num_rounds: int = 100) -> None:
    """Whole processes that boost rounds on rows of 28 numbers from Parquet, with 2 threads in all.

    The script with Ray Train, which takes minutes, runs once.
    """
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "rows.parquet"
        write_rows(file, num_rows, num_features=28)
        for library in ("xgboost", "lightgbm"):
            table = ["dataset=parquet", f"dataset.path={file}", "dataset.label=y", "dataset.split.test=0"]
            boost = [f"trainer.num_boost_round={num_rounds}", "trainer.eval_splits=[]"]
            fit = [RTRAIN, "fit", library, *table, *boost]
            alone = [*fit, "num_workers=0", "trainer.num_threads=2"]
            plain = [sys.executable, str(PEERS / "boosting_script.py"), library, str(file), str(num_rounds)]
            pairs = [(_once(alone), _once(plain)) for _ in range(times)]
            ours, peer = zip(*pairs, strict=True)
            name = f"{library}, {num_rows / 1e6:g}M x 28"
            _compare_all(name, ours, peer)
            shared = _once([*fit, "num_workers=2", "trainer.num_threads=1"])
            quickest = min(spent.seconds for spent in peer)
            _print(f"{name}, 2 workers x 1 thread / plain", shared.seconds, quickest, None)
            ray = _once([sys.executable, str(PEERS / "boosting_ray_script.py"), library, str(file), str(num_rounds)])
            _print(f"{name} / Ray Train", min(spent.seconds for spent in ours), ray.seconds, 0.2)


def _compare_all(name: str, ours: Sequence[Spent], peer: Sequence[Spent]) -> None:
    """Print a line each for wall time, time of the processor and memory."""
    for what, goal, unit, number in (
        ("seconds", 1.5, "s", lambda spent: spent.seconds),
        ("CPU seconds", None, "s", lambda spent: spent.cpu_seconds),
        ("peak memory", 2, "MB", lambda spent: spent.peak_bytes / 1e6),
    ):
        _print(f"{name} / plain script, {what}", min(map(number, ours)), min(map(number, peer)), goal, unit)


def recovery(times: int) -> None:
    """Seconds from kill -9 of one of two workers to the next training step; both sides checkpoint each epoch."""
    config = "defaults: [{dataset: digits}, {trainer: torch}]\n"
    config += "trainer: {batch_size: 64, max_epochs: 1000000, optimizer: {_target_: torch.optim.AdamW, lr: 0.001}}\n"
    peer = [sys.executable, str(PEERS / "recovery_ray_script.py")]
    pairs = []
    for _ in range(times):
        with tempfile.TemporaryDirectory() as folder:
            place = Path(folder)
            (place / "pyproject.toml").touch()
            (place / "noted.yaml").write_text(config)
            (place / "recovery_model.py").write_text((PEERS / "recovery_model.py").read_text())
            model = f"+trainer.model={{_target_: recovery_model.NotedModel, folder: {folder}}}"
            ours = _recovered(place, [RTRAIN, "fit", str(place / "noted.yaml"), "num_workers=2", model])
        with tempfile.TemporaryDirectory() as folder:
            pairs.append((ours, _recovered(Path(folder), [*peer, folder])))
    mine, other = (min(column) for column in zip(*pairs, strict=True))
    _print("kill -9 of a worker to the next step / Ray Train", mine, other, 1)


def _recovered(folder: Path, command: Sequence[str]) -> float:
    """Start, kill a worker when training is under way, and return the seconds until others train."""
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(command, cwd=folder, stdout=output, stderr=output)
        try:
            first = _steps_of_another(folder, process, "0")[0]
            time.sleep(5)
            os.kill(int(_steps_of_another(folder, process, "1")[0]), signal.SIGKILL)
            killed = time.time()
            seconds = float(_steps_of_another(folder, process, "0", than=first)[1]) - killed
        except TimeoutError:
            output.seek(0)
            sys.exit(f"{' '.join(command)} did not train again:\n{output.read().decode()}")
        finally:
            (folder / "done").touch()
            if "fit" in command:
                process.terminate()
            process.wait()
    return seconds


def _steps_of_another(folder: Path, process: subprocess.Popen[bytes], rank: str, than: str = "") -> list[str]:
    """Wait for a step of ``rank`` in another process ``than`` the one given; return its process id and time."""
    path, deadline = folder / f"steps-{rank}", time.monotonic() + 180
    while time.monotonic() < deadline and process.poll() is None:
        # The last line may not be complete yet.
        lines = [line.split() for line in (path.read_text().splitlines() if path.exists() else [])[:-1]]
        found = next((line for line in lines if line[0] != than), None)
        if found is not None:
            return found
        time.sleep(0.1)
    raise TimeoutError


def write_rows(file: Path, num_rows: int, num_features: int) -> None:
    """Write a table of two classes that depend on some of its float32 columns."""
    import pyarrow as pa
    from pyarrow import parquet

    rng = np.random.default_rng(0)
    x = rng.standard_normal((num_rows, num_features), np.float32)
    margin = x[:, :8] @ rng.normal(size=8) + x[:, 8] * x[:, 9] + np.sin(3 * x[:, 10])
    y = (margin + rng.logistic(size=num_rows) > 0).astype(np.int64)
    parquet.write_table(pa.table({f"f{index}": column for index, column in enumerate(x.T)} | {"y": y}), file)


def records(times: int, num_megabytes: int = 500, seconds: int = 10) -> None:
    """What checkpoints, manifest and events cost a training that goes on."""
    _print_of("blocked.py", times, num_megabytes)
    _print_of("overhead.py", seconds)
    _print_of("tracked.py", seconds)


def sweeps(times: int, num_epochs: int = 15, num_seeds: int = 4) -> None:
    """Trials of the digits ResNet on two cores, against a joblib loop and against Ray Tune with TorchTrainer.

    The script with Tune, which takes minutes, runs once.
    """
    seeds = ",".join(map(str, range(1, num_seeds + 1)))
    ours = [RTRAIN, "fit", "resnet", "--multirun", "lr=0.2,0.1,0.05,0.01", f"seed={seeds}"]
    ours += ["sweep.metric=val/accuracy", f"trainer.max_epochs={num_epochs}"]
    peer = [sys.executable, str(PEERS / "sweep_joblib.py"), str(num_epochs), str(num_seeds)]
    pairs = [(_once(ours).seconds, _once(peer).seconds) for _ in range(times)]
    mine, other = sorted(pairs, key=lambda pair: pair[0] / pair[1])[times // 2]  # the machine's speed drifts meanwhile
    name = f"{4 * num_seeds} trials of the digits ResNet"
    _print(f"{name} / joblib loop", mine, other, 1.3)
    tune = _once([sys.executable, str(PEERS / "sweep_tune.py"), str(num_epochs), str(num_seeds)])
    _print(f"{name} / Ray Tune", mine, tune.seconds, 0.3)
    _sweep_steps(ours)


def _sweep_steps(sweep: Sequence[str]) -> None:
    """Print the steps that ASHA takes against those of the grid, and the best accuracy of both."""
    found = []
    for words in ([], ["sweep/scheduler=asha", "sweep.scheduler.grace=2"]):
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([*sweep, *words, f"run.root_dir={folder}"], check=True, capture_output=True)
            (file,) = Path(folder).glob("*/sweep.json")
            data = json.loads(file.read_text())
            best = data["trials"][data["best"]]
            found.append(sum(one["step"] for one in data["trials"]))
            print(
                f"{'asha' if words else 'grid'}: {best['values'][0]:.4f} by {' '.join(best['overrides'])}", flush=True
            )
    _print("ASHA / grid, steps", found[1], found[0], 0.6, "")


def many(num_trials: int = 200, num_values: int = 100) -> None:
    """What a trial costs that trains nothing, and what planning costs: composing alone, and the whole command."""
    import rtrain
    from rtrain.config.session import Session
    from rtrain.schemas import schemas
    from rtrain.searches import grid

    with tempfile.TemporaryDirectory() as folder:
        words = ["num_workers=1", "trainer.num_boost_round=1", "dataset.limit=60", f"run.root_dir={folder}"]
        began = time.perf_counter()
        rtrain.sweep("xgboost", [*words, f"seed=range(0,{num_trials})"])
        seconds = (time.perf_counter() - began) / num_trials
        print(f"{num_trials} trials of one round: {seconds:.3f} s each   goal 0.3", flush=True)
    axes = ["lr=" + ",".join(f"{0.001 * n:g}" for n in range(1, num_values + 1)), "seed=range(0,10)"]
    with Session("resnet", axes, schemas()) as session:
        began, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        trials = session.trials()
        search = grid.Search(trials.conf, trials.axes, [])
        for number in range(search.num_trials):
            trials.plan(number, search.propose(number) or ())
        spent, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        print(f"composing a trial of {search.num_trials}: {spent / search.num_trials * 1000:.1f} ms   goal 40")
        print(f"all: {spent:.1f} s   peak memory {before / 1e3:.0f} -> {after / 1e3:.0f} MB", flush=True)
    axes = ["lr=" + ",".join(f"{0.001 * n:g}" for n in range(1, 5 * num_values + 1)), "seed=1,2"]
    words = ["fit", "resnet", *axes, "num_workers=0", "sweep.max_seconds=0.01", "--multirun"]
    planned = _once([RTRAIN, *words], code=130)  # interrupted before the first trial starts
    print(
        f"{10 * num_values} trials planned and checked, the whole command: {planned.seconds:.1f} s   goal 30; ", end=""
    )
    print(f"peak memory {planned.peak_bytes / 1e6:.0f} MB", flush=True)


SUITES: dict[str, tuple[Callable[..., None], dict[str, int], dict[str, int]]] = {
    "startup": (startup, {"times": 9}, {"times": 1}),
    "whole": (whole, {"times": 3}, {"times": 1, "max_workers": 1}),
    "epochs": (epochs, {"times": 5}, {"times": 1, "num_epochs": 1}),
    "boosting": (boosting, {"times": 3}, {"times": 1, "num_rows": 1000, "num_rounds": 2}),
    "recovery": (recovery, {"times": 3}, {"times": 1}),
    "records": (records, {"times": 6}, {"times": 2, "num_megabytes": 1, "seconds": 1}),
    "sweeps": (sweeps, {"times": 5}, {"times": 1, "num_epochs": 1, "num_seeds": 1}),
    "many": (many, {}, {"num_trials": 2, "num_values": 2}),
}
"""Each with its sizes, and those of ``--smoke``."""

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("suites", nargs="*", choices=[*SUITES, []], help="which to run; all without a name")
    parser.add_argument("--smoke", action="store_true", help="only see that they work, in seconds")
    arguments = parser.parse_args()
    for suite in arguments.suites or SUITES:
        function, sizes, small = SUITES[suite]
        function(**(small if arguments.smoke else sizes))
