"""``rtrain check``: what ``fit`` would refuse is refused, and nothing is begun."""

import shlex
from pathlib import Path

import pytest
import ray

from rtrain.cli.app import run
from rtrain.config.files.locations import config_names


@pytest.fixture(autouse=True)
def project(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rows.csv").write_text("a,y\n" + "".join(f"{one},{one % 2}\n" for one in range(50)))


def check(line):
    """Return the exit code of a command that leaves nothing behind."""
    before = sorted(Path().rglob("*"))
    code = run(shlex.split(line))
    assert sorted(Path().rglob("*")) == before
    assert not ray.is_initialized()
    return code


@pytest.mark.parametrize("config", config_names())
def test_the_shipped_configs_are_right(config, capsys):
    assert check(f"check {config} --no-data") == 0, capsys.readouterr().err


TABLE = "dataset=csv dataset.path=rows.csv dataset.label=y"


@pytest.mark.parametrize(
    "line",
    [
        "check mlp",
        "check mlp num_workers=8",
        f"check xgboost {TABLE}",
        "fit mlp --dry-run",
        "check mlp lr=0.1,0.01 --multirun",
        "fit mlp lr=0.1,0.01 --multirun --dry-run",
    ],
)
def test_what_can_be_trained_is_ok(line, capsys):
    assert check(line) == 0, capsys.readouterr().err
    assert capsys.readouterr().out.rpartition("\n")[0].rpartition("\n")[2].startswith("ok: ")


@pytest.mark.parametrize(
    ("line", "without_data", "said"),
    [
        ("mlp trainer.max_epoch=3", 2, "max_epochs"),
        ("mlp lr=fast", 0, "lr"),
        (f"xgboost {TABLE}s", 0, "y"),
        ("mlp model.hidden=[]  trainer.optimizer._target_=torch.optim.Adamm", 0, "Adamm"),
        ("resnet model.num_classes=2", 0, "classes"),
        ("xgboost trainer.params.max_depht=3", 0, "max_depth"),
        ("mlp lr=0.1,0.01", 2, "--multirun"),
        ("mlp run.init_from=last", 2, "there is no run"),
        ("mlp lr=fast,0.01 --multirun", 0, "lr"),
    ],
)
def test_what_is_wrong_is_told_as_fit_tells_it(line, without_data, said, capsys):
    assert check(f"check {line}") == 2
    told = capsys.readouterr().err
    assert said in told
    assert check(f"fit {line} --dry-run") == 2
    assert capsys.readouterr().err.replace("rtrain fit", "rtrain check").split("\n")[0] == told.split("\n")[0]
    assert check(f"check {line} --no-data") == without_data


@pytest.mark.parametrize(
    "line",
    [
        "resnett",
        "configs/resnet.yaml lr=0.1",
        "rows.csv",
        "lr=0.1",
        "trainer=xgboost",
        "lora",
        "",
        "there.yml",
    ],
)
def test_a_config_that_is_not_found_leads_to_the_same_command(line, capsys):
    Path("there.yml").write_text("trainer: {type: torch}\n")
    assert run(["check", *(shlex.split(line) or [""])]) == 2
    said = capsys.readouterr().err
    assert "rtrain fit" not in said
    assert "rtrain check" in said or "mv there.yml" in said


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("use_gpu=true num_workers=2", "1 GPU"),
        ("num_workers=1 scaling.resources_per_worker={camera:2}", "2 camera"),
        ("num_workers=1", None),
        ("num_workers=0", None),
    ],
)
def test_what_only_the_cluster_knows_is_told_not_to_be_checked(words, said, capsys):
    assert check(f"check mlp {words}") == 0
    lines = capsys.readouterr().out.splitlines()
    told = [line for line in lines if line.startswith("not checked")]
    assert told == ([] if said is None else [f"not checked: whether the cluster has {said} for each worker"])


MODULE = """
import lightning.pytorch as pl


class Net(pl.LightningModule):
    pass


class Data(pl.LightningDataModule):
    pass


def loop(config):
    raise RuntimeError
"""


CONFIGS = {
    "lightning": "{type: lightning, module: {_target_: checked_code.Net}, "
    "datamodule: {_target_: checked_code.Data}, max_epochs: 1}",
    "torch": "{type: torch, train_loop: checked_code.loop}",
    "sklearn": "{type: sklearn, estimator: {_target_: sklearn.svm.SVC}}\ndataset: {type: digits}",
}


@pytest.mark.parametrize(("trainer", "own"), [("lightning", True), ("torch", True), ("sklearn", False)])
def test_code_that_only_training_can_try_is_told_of(trainer, own, capsys, monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "checked_code.py").write_text(MODULE)
    (tmp_path / "mine.yaml").write_text(f"scaling: {{num_workers: 0}}\ntrainer: {CONFIGS[trainer]}\n")
    assert run(["check", "mine.yaml"]) == 0, capsys.readouterr().err
    assert ("were not run" in capsys.readouterr().out) == own


SWEEPS = {
    "a metric that no trial reports": ["sweep.metric=val/foo"],
    "a scheduler without a metric": ["sweep/scheduler=asha"],
    "several metrics for one": [
        "sweep=random",
        "sweep.num_trials=2",
        "sweep/scheduler=asha",
        "sweep.metric=[val/loss,val/accuracy]",
    ],
    "modes without a metric": ["sweep.mode=min"],
    "trials that resume": ["run.resume=auto"],
    "a value of the second trial": ["seed=1,abc"],
    "a value that the second trial's optimizer refuses": ["trainer.optimizer.weight_decay=0,-1"],
    "an end of an interval": [
        "sweep=optuna",
        "sweep.num_trials=2",
        "sweep.metric=val/loss",
        "batch_size=interval(0,4)",
    ],
    "a scheduler that pauses": ["sweep/scheduler=pbt", "sweep.metric=val/loss", "run.checkpoint.on_exit=false"],
}


@pytest.mark.parametrize("name", SWEEPS)
def test_what_a_sweep_refuses_is_found_without_training(tmp_path, monkeypatch, capsys, name):
    monkeypatch.chdir(tmp_path)
    words = ["mlp", "lr=0.1,0.2", "dataset.limit=60", "num_workers=0", *SWEEPS[name], "--multirun"]
    told = []
    for verb in ("check", "fit"):
        assert run([verb, *words]) == 2
        told.append(capsys.readouterr().err.partition("\n")[0])
    assert told[0] == told[1]
    assert not Path("runs").exists()


def test_a_command_that_would_check_a_sweep_checks_one(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert run(["check", "mlp", "lr=0.1,0.2", "--multirun", "sweep.metric=val/los"]) == 2
    attempt = capsys.readouterr().err.splitlines()[-1].removeprefix("  try: rtrain ").split()
    assert attempt == ["check", "mlp", "--multirun", "lr=0.1,0.2", "sweep.metric=val/loss"]
    assert run(attempt) == 0
