"""Whole processes, from nothing to a trained model: start-up, a small network, boosted trees, a killed worker."""

from __future__ import annotations

import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from measured import PEERS, RTRAIN, Row, compared, last_number, medians, once, output_of

MLP = ["fit", "mlp", "trainer.max_epochs=3"]


def startup(times: int) -> Iterator[Row]:
    """Processes that print something and train nothing."""
    hydra = [sys.executable, str(PEERS / "hydra_app.py"), "--cfg", "job"]
    typer = [sys.executable, "-c", "import typer"]
    for name, ours, peer, goal in (
        ("rtrain --help / import typer", [RTRAIN, "--help"], typer, 3),
        ("rtrain fit resnet --cfg job / the same by a Hydra app", [RTRAIN, "fit", "resnet", "--cfg", "job"], hydra, 2),
    ):
        yield compared([(once(ours), once(peer)) for _ in range(times)], name, goal)


def whole(times: int, max_workers: int = 2) -> Iterator[Row]:
    """Three epochs of a perceptron on scikit-learn's digits, whole processes.

    The peer is Ray Train's documented script with as many workers; without workers, with one. `its own loop` runs the
    function of that script as a [train loop](train-loops.md).
    """
    with tempfile.TemporaryDirectory() as project:
        (Path(project) / "pyproject.toml").touch()
        for file in ("loop.yaml", "ray_train_script.py"):
            shutil.copy(PEERS / file, project)
        for workers, goal in ((0, 0.12), (1, 0.30), (2, 0.33))[: max_workers + 1]:
            peer = [sys.executable, str(PEERS / "ray_train_script.py"), str(max(workers, 1))]
            for name, fit, reached in (
                ("digits MLP", MLP, _metric_of("val/accuracy")),
                ("its own loop", ["fit", str(Path(project) / "loop.yaml")], _metric_of("accuracy")),
            ):
                ours = [RTRAIN, *fit, f"num_workers={workers}"]
                pairs = [(once(ours, reached=reached), once(peer, reached=last_number)) for _ in range(times)]
                yield compared(pairs, f"{name}, num_workers={workers} / Ray Train's script", goal)


def ready(times: int) -> Iterator[Row]:
    """A run of `whole` where `rtrain up` has a cluster and the imports ready, which it has before each one again."""
    with tempfile.TemporaryDirectory() as folder:
        place = {"RTRAIN_UP": f"{folder}/up"}
        ours = [RTRAIN, *MLP, "num_workers=1"]
        peer = [sys.executable, str(PEERS / "ray_train_script.py"), "1"]
        pairs = []
        for _ in range(times):
            with made_ready(place) as project:
                fit = once(ours, reached=_metric_of("val/accuracy"), folder=project, variables=place)
            pairs.append((fit, once(peer, reached=last_number)))
    yield compared(pairs, "digits MLP, num_workers=1, after rtrain up / Ray Train's script", 0.12)


@contextmanager
def made_ready(variables: Mapping[str, str]) -> Iterator[Path]:
    """Return a folder for whose commands everything is ready."""
    with tempfile.TemporaryDirectory() as project:
        once([RTRAIN, "up"], folder=Path(project), variables=variables)
        yield Path(project)
        once([RTRAIN, "down"], folder=Path(project), variables=variables)


def _metric_of(name: str) -> Callable[[Path, str], float]:
    """Return what reads a metric from the only run in a folder."""

    def read(folder: Path, output: str) -> float:
        (manifest,) = folder.glob("runs/*/*/manifest.json")
        return float(json.loads(manifest.read_text())["metrics"][name])

    return read


def boosting(times: int, num_rows: int = 1_000_000, num_rounds: int = 100) -> Iterator[Row]:
    """100 rounds on a table of Parquet, whole processes, two threads in all.

    The peak memory is that of the largest process. The script with Ray Train, which takes minutes, runs once.
    """
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "rows.parquet"
        write_rows(file, num_rows, num_features=28)
        for library in ("xgboost", "lightgbm"):
            yield from _boosting_with(library, file, times, num_rounds, f"{library}, {num_rows / 1e6:g}M x 28")


def _boosting_with(library: str, file: Path, times: int, num_rounds: int, name: str) -> Iterator[Row]:
    table = ["dataset=parquet", f"dataset.path={file}", "dataset.label=y", "dataset.split.test=0"]
    fit = [RTRAIN, "fit", library, *table, f"trainer.num_boost_round={num_rounds}", "trainer.eval_splits=[]"]
    alone = [*fit, "num_workers=0", "trainer.num_threads=2"]
    arguments = [library, str(file), str(num_rounds)]
    plain = [sys.executable, str(PEERS / "boosting_script.py"), *arguments]

    def auc(folder: Path, output: str) -> float:
        return _auc_of(folder, library, file)

    pairs = [(once(alone, reached=auc), once(plain, reached=auc)) for _ in range(times)]
    ours, peer = zip(*pairs, strict=True)
    yield compared(pairs, f"{name} / plain script", 1.05)
    for what, unit, goal, number in (
        ("processor", "s", None, lambda spent: spent.cpu_seconds),
        ("peak memory", "MB", 2, lambda spent: spent.peak_bytes / 1e6),
    ):
        yield Row(f"{name} / plain script, {what}", unit, [*map(number, ours)], [*map(number, peer)], goal)
    shared = [once([*fit, "num_workers=2", "trainer.num_threads=1"], reached=auc)]
    seconds = [statistics.median(one.seconds for one in peer)]
    reached = medians(shared, peer)
    yield Row(f"{name}, 2 workers x 1 thread / plain script", "s", [shared[0].seconds], seconds, 1.5, reached)
    ray = once([sys.executable, str(PEERS / "boosting_ray_script.py"), *arguments])
    yield Row(f"{name} / Ray Train's script", "s", [one.seconds for one in ours], [ray.seconds], 0.2)


def _auc_of(folder: Path, library: str, file: Path) -> float:
    """Return the AUC that the model in a folder reaches on the first rows of the table."""
    from pyarrow import parquet
    from sklearn.metrics import roc_auc_score

    table = next(parquet.ParquetFile(file).iter_batches(100_000))
    y = table.column("y").to_numpy()
    x = np.column_stack([table.column(name).to_numpy() for name in table.schema.names if name != "y"])
    model = next(folder.rglob("model.ubj" if library == "xgboost" else "model.txt"))
    if library == "xgboost":
        import xgboost

        return float(roc_auc_score(y, xgboost.Booster(model_file=model).inplace_predict(x)))
    import lightgbm

    return float(roc_auc_score(y, lightgbm.Booster(model_file=model).predict(x)))


def write_rows(file: Path, num_rows: int, num_features: int, row_group_size: int | None = None) -> None:
    """Write a table, in a process of its own, which takes as much memory."""
    output_of("rows.py", file, num_rows, num_features, row_group_size or num_rows)


def recovery(times: int) -> Iterator[Row]:
    """From `kill -9` of one of two workers to the next training step; both sides save a checkpoint each epoch."""
    config = "defaults: [{dataset: digits}, {trainer: torch}]\n"
    config += "trainer: {batch_size: 64, max_epochs: 1000000, optimizer: {_target_: torch.optim.AdamW, lr: 0.001}}\n"
    peer = [sys.executable, str(PEERS / "recovery_ray_script.py")]
    ours, theirs = [], []
    for _ in range(times):
        with tempfile.TemporaryDirectory() as folder:
            place = Path(folder)
            (place / "pyproject.toml").touch()
            (place / "noted.yaml").write_text(config)
            (place / "recovery_model.py").write_text((PEERS / "recovery_model.py").read_text())
            model = f"+trainer.model={{_target_: recovery_model.NotedModel, folder: {folder}}}"
            ours.append(_recovered(place, [RTRAIN, "fit", str(place / "noted.yaml"), "num_workers=2", model]))
        with tempfile.TemporaryDirectory() as folder:
            theirs.append(_recovered(Path(folder), [*peer, folder]))
    yield Row("kill -9 of a worker to the next step / Ray Train's script", "s", ours, theirs, 1)


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
