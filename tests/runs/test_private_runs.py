"""``run.private``: whatever writes it, a file of the run is for the account alone."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import rtrain
from rtrain.cli.app import run as command


def open_to_others(folder: Path) -> list[str]:
    """Return what other accounts may do something with."""
    return [f"{path} {path.lstat().st_mode:o}" for path in (folder, *folder.rglob("*")) if path.stat().st_mode & 0o077]


@pytest.fixture(autouse=True)
def usual_umask():
    """Let the test run under the umask that most accounts have."""
    before = os.umask(0o022)
    yield
    assert os.umask(before) == 0o022, "the run left its umask behind"


def test_every_file_and_folder_of_a_run_here(tmp_path):
    words = ["num_workers=0", f"run.root_dir={tmp_path}/runs", "trainer.max_epochs=2"]
    run = rtrain.fit("mlp", [*words, "run.private=true"])
    assert len(list(run.path.rglob("*"))) > 8
    assert not open_to_others(run.path)
    assert open_to_others(rtrain.fit("mlp", words).path), "without the key, others can read"


@pytest.mark.parametrize("config", ["mlp", "jax", "lightning", "xgboost"])
def test_without_the_key_every_file_has_the_umask_that_it_should(tmp_path, config):
    words = ["num_workers=0", f"run.root_dir={tmp_path}/runs", "dataset.limit=100"]
    run = rtrain.fit(config, [*words, "trainer.num_boost_round=2" if config == "xgboost" else "trainer.max_epochs=1"])
    files = [path for path in run.path.rglob("checkpoints/*/*") if path.is_file()]
    assert {f"{path.name} {path.stat().st_mode & 0o777:o}" for path in files} == {f"{path.name} 644" for path in files}


def test_every_file_of_a_sweep(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words = ["num_workers=0", "trainer.max_epochs=1", "run.private=true", "optimizer.lr=0.1,0.2"]
    assert command(["fit", "mlp", "-m", *words]) == 0
    assert (tmp_path / "runs").is_dir()
    assert not open_to_others(tmp_path / "runs")


@pytest.mark.parametrize("axis", ["seed=1", "seed=1,2"])
def test_every_file_of_a_copy_that_is_fetched(axis, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "store").mkdir()
    words = ["num_workers=0", "trainer.max_epochs=1", "run.private=true", f"run.storage=file://{tmp_path}/store", axis]
    assert command(["fit", "mlp", *(["-m"] if "," in axis else []), *words]) == 0
    (made,) = (tmp_path / "runs").glob("mlp-sweep-*" if "," in axis else "mlp/*")
    place = made.relative_to(tmp_path / "runs")
    assert command(["runs", "fetch", f"file://{tmp_path}/store/{place}", "again"]) == 0
    assert len(list((tmp_path / "again").rglob("*"))) > 8
    assert not open_to_others(tmp_path / "again")


@pytest.mark.slow
def test_every_file_of_a_run_on_ray_and_the_folder_of_its_session(tmp_path, kept_sessions):
    run = rtrain.fit("mlp", ["num_workers=2", f"run.root_dir={tmp_path}/runs", "run.private=true"])
    assert not open_to_others(run.path)
    (session,) = kept_sessions.glob("ray/session_2*")
    files = [path for path in session.rglob("*") if path.is_file() and not path.is_symlink()]
    assert files
    assert not [path for path in files if path.stat().st_mode & 0o077]
