"""Scripts for Ray Train run unchanged: those in Ray's own wheel, and loops after its guides.

    pytest -m slow tests/acceptance/test_ray_scripts.py

They are trained in this process, on one worker and on two; the losses of one worker are those of Ray's own trainer. The
table of docs/train-loops.md, if there is one, is made here: ``RTRAIN_UPDATE_DOCS=1``.
"""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from itertools import takewhile
from pathlib import Path

import pytest

from rtrain.runs.run import Run

HERE = Path(__file__).parent
RTRAIN = Path(sys.executable).with_name("rtrain")
DOCS = HERE.parents[1] / "docs" / "train-loops.md"
FIRST_LINE = (
    "| script | trainer | loss in this process, on 1 worker, on 2 | by Ray's trainer | edits |\n|---|---|---|---|---|\n"
)


@dataclass(frozen=True)
class Script:
    """A function of a script, and how it is trained."""

    trainer: str
    loop: str
    config: dict = field(default_factory=lambda: {"lr": 0.1})
    edits: str = "none"
    reports: bool = True
    datasets: dict = field(default_factory=dict)
    split: list | str = "all"
    alone: bool = True
    """False: it asks for what Ray gives to several workers only."""

    @property
    def name(self) -> str:
        module, _, function = self.loop.rpartition(":")
        return f"guides/{function}" if module == "guides" else self.shown

    @property
    def shown(self) -> str:
        return SHOWN.get(self.loop) or self.loop.removeprefix("ray.train.examples.").replace(".", "/").split(":")[0]


SHOWN = {"tf_examples:mnist": "tf/tensorflow_mnist_example", "tf_examples:quick_start": "tf/tensorflow_quick_start"}
PYTORCH, TF = "ray.train.examples.pytorch", "ray.train.examples.tf"
VISION = "a stand-in for torchvision"
ROWS = "`datasets` in place of rows from S3"
MNIST = "`load_data` of MNIST gives scikit-learn's digits"
SCRIPTS = [
    Script("torch", f"{PYTORCH}.torch_quick_start:train_func_distributed", {}, VISION, reports=False),
    Script("torch", f"{PYTORCH}.torch_linear_example:train_func", {"lr": 0.01, "epochs": 3, "batch_size": 4}),
    Script(
        "torch",
        f"{PYTORCH}.torch_fashion_mnist_example:train_func_per_worker",
        {"lr": 0.01, "epochs": 2, "batch_size_per_worker": 32},
        VISION,
    ),
    Script(
        "torch",
        f"{PYTORCH}.torch_regression_example:train_func",
        {"lr": 0.01, "epochs": 3, "batch_size": 4},
        ROWS,
        datasets={
            "train": {"type": "python", "function": "example_data:regression"},
            "validation": {"type": "python", "function": "example_data:regression", "arguments": {"start": 300}},
        },
        split=["train"],
        alone=False,
    ),
    Script(
        "tensorflow",
        f"{TF}.tensorflow_regression_example:train_func",
        {"lr": 0.001, "epochs": 3, "batch_size": 32},
        ROWS,
        datasets={"train": {"type": "python", "function": "example_data:regression"}},
    ),
    Script(
        "tensorflow",
        "tf_examples:mnist",
        {"lr": 0.01, "epochs": 2, "batch_size": 32, "steps_per_epoch": 20},
        MNIST,
    ),
    Script("tensorflow", "tf_examples:quick_start", {}, MNIST, reports=False),
    Script("torch", "guides:torch_checkpoints", {"lr": 0.01}),
    Script("torch", "guides:accelerate"),
    Script("lightning", "guides:lightning"),
    Script("transformers", "guides:transformers", {"lr": 0.001}),
    Script("tensorflow", "guides:tensorflow"),
    Script("jax", "guides:jax"),
    Script("xgboost", "guides:xgboost"),
    Script("lightgbm", "guides:lightgbm"),
]
GUIDES = [one for one in SCRIPTS if one.loop.startswith("guides:")]
BY_NAME = {"argvalues": SCRIPTS, "ids": lambda one: one.name}


@pytest.fixture
def project(tmp_path):
    """A project with the scripts, and with stand-ins for what they import or download."""
    shutil.copytree(HERE / "ray_scripts", tmp_path, dirs_exist_ok=True)
    shutil.copytree(HERE.parent / "support" / "stand_ins", tmp_path, dirs_exist_ok=True)
    (tmp_path / "pyproject.toml").write_text("")
    return tmp_path


def command(script: Script, project: Path, *words: str) -> list[str]:
    trainer = {"type": script.trainer, "train_loop": script.loop, "train_loop_config": script.config}
    if script.split != "all":
        trainer["datasets_to_split"] = script.split
    data = {"datasets": script.datasets} if script.datasets else {}
    (project / "script.yaml").write_text(json.dumps({"trainer": trainer, **data}))
    if script.edits != VISION:  # libraries that find it ask for more of torchvision
        shutil.rmtree(project / "torchvision", ignore_errors=True)
    return [str(RTRAIN), "fit", "script.yaml", "run.seed=7", f"run.root_dir={project}/runs", *words]


def losses(script: Script, project: Path, num_workers: int) -> list[float]:
    """Train; return the loss of each report."""
    done = subprocess.run(
        command(script, project, f"num_workers={num_workers}"), cwd=project, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    run = newest(project)
    assert run.status == "succeeded"
    return [event.metrics["loss"] for event in run.events() if "loss" in event.metrics]


def newest(project: Path) -> Run:
    return Run.load(max(project.glob("runs/script/*/"), key=lambda one: one.stat().st_mtime))


def losses_by_ray(script: Script, project: Path, num_workers: int) -> list[float]:
    """Train by Ray's trainer; return the loss of each report."""
    words = [script.trainer, script.loop, json.dumps(script.config), str(project / "reports")]
    words += [json.dumps(script.datasets), json.dumps(script.split), str(num_workers)]
    environment = {**os.environ, "PYTHONPATH": str(project), "RAY_TRAIN_V2_ENABLED": "1", "TF_USE_LEGACY_KERAS": "1"}
    done = subprocess.run(
        [sys.executable, "reference.py", *words],
        cwd=project,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    reports = [json.loads(line) for line in (project / "reports").read_text().splitlines()]
    return [metrics["loss"] for metrics in reports if metrics]


@pytest.mark.timeout(600)
@pytest.mark.parametrize("script", **BY_NAME)
def test_a_script_trains_as_by_rays_own_trainer(script, project):
    found = {size: losses(script, project, size) for size in ((0, 1, 2) if script.alone else (2,))}
    if not script.reports:
        assert not any(found.values())
        update(script, "ends; it reports nothing", "")
        return
    by_ray = losses_by_ray(script, project, 1 if script.alone else 2)
    assert len(by_ray) >= 2
    if script.alone:
        assert found[0] == pytest.approx(by_ray, rel=1e-3)
        assert found[1] == pytest.approx(by_ray, rel=1e-3)
        assert len(found[2]) == len(by_ray)
        assert found[2][-1] < found[2][0]
    else:
        assert found[2] == pytest.approx(by_ray, rel=1e-3)
    shown = ", ".join(f"{found[size][-1]:.4f}" if size in found else "(2 only)" for size in (0, 1, 2))
    update(script, shown, f"{by_ray[-1]:.4f}")


def update(script: Script, found: str, by_ray: str) -> None:
    """Write the row of a script into the table of the docs, if that is asked for."""
    if "RTRAIN_UPDATE_DOCS" not in os.environ:
        return
    before, table, after = parts()
    row = f"| `{script.name}` | `{script.trainer}` | {found} | {by_ray} | {script.edits} |\n"
    rows = {name_of(one): one for one in table} | {script.name: row}
    DOCS.write_text(before + FIRST_LINE + "".join(rows[one.name] for one in SCRIPTS if one.name in rows) + after)


def parts() -> tuple[str, list[str], str]:
    """Return the docs before the table, the table's rows, and the docs behind it."""
    before, _, rest = DOCS.read_text().partition(FIRST_LINE)
    lines = rest.splitlines(keepends=True)
    rows = list(takewhile(lambda line: line.startswith("|"), lines))
    return before, rows, "".join(lines[len(rows) :])


def name_of(row: str) -> str:
    return row.split("`")[1]


@pytest.mark.timeout(600)
@pytest.mark.parametrize("num_workers", [0, 2])
@pytest.mark.parametrize("script", GUIDES, ids=lambda one: one.name)
def test_a_script_that_is_killed_goes_on_to_the_same_loss(script, project, start, num_workers):
    whole = losses(script, project, num_workers)
    process = start(
        command(script, project, f"num_workers={num_workers}"),
        cwd=project,
        start_new_session=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    before = {one.name for one in project.glob("runs/script/*/")}
    while process.poll() is None and not any(
        any(one.glob("checkpoints/*/checkpoint.json"))
        for one in project.glob("runs/script/*/")
        if one.name not in before
    ):
        time.sleep(0.02)
    time.sleep(random.uniform(0, 0.5))
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    run = newest(project)
    if run.status != "succeeded":
        done = subprocess.run([RTRAIN, "resume", run.path], cwd=project, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
    last = [event.metrics["loss"] for event in Run.load(run.path).events()][-1]
    assert last == pytest.approx(whole[-1], rel=1e-2)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("script", GUIDES, ids=lambda one: one.name)
def test_a_script_is_swept(script, project):
    words = ["num_workers=0", "trainer.train_loop_config.lr=0.001,0.01", "sweep.metric=loss", "--multirun"]
    done = subprocess.run(command(script, project, *words), cwd=project, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "lr=0.01" in done.stdout
