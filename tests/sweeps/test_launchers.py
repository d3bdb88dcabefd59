"""Hydra's own launchers, where a user names one."""

from pathlib import Path

import pytest
from tiny_sweeps import TINY

from rtrain.cli.app import run as rtrain
from rtrain.runs.run import Run
from rtrain.sweeps.record.sweep_record import read_sweep

pytestmark = pytest.mark.usefixtures("tiny")
WORDS = [*TINY, "trainer.num_boost_round=3", "trainer.params.eta=0.1,0.5", "run.name=${hydra:job.name}"]


@pytest.mark.parametrize("launcher", ["joblib", pytest.param("submitit_local", marks=pytest.mark.slow)])
def test_trials_of_a_launcher_are_those_of_rtrains_own(launcher):
    assert rtrain(WORDS) == 0
    assert rtrain([*WORDS, f"hydra/launcher={launcher}", "sweep.name=launched"]) == 0
    assert Path("runs/launched/.submitit").exists() == (launcher == "submitit_local")
    assert len(list(Path("runs").iterdir())) == 2, "files of the launcher lie elsewhere"
    own, launched = (read_sweep(path.parent) for path in sorted(Path("runs").glob("*/sweep.json"), reverse=True))
    assert [one["values"] for one in own["trials"]] == [one["values"] for one in launched["trials"]]
    for one in launched["trials"]:
        run = Run.load(Path("runs/launched") / one["name"])
        assert run.status == "succeeded"
        assert one["seconds"] == run.manifest.timings_seconds["total"], "not the time of the whole sweep"
    assert (Path("runs/launched/best")).resolve().name == own["trials"][own["best"]]["name"]


def test_what_a_launcher_can_not_do_is_refused(capsys):
    words = [*WORDS, "hydra/launcher=joblib"]
    assert rtrain([*words, "sweep/scheduler=asha"]) == 2
    assert "can't be controlled while they train" in capsys.readouterr().err
    assert rtrain([*words, "sweep.max_seconds=60"]) == 2
    assert "run.stop.max_seconds" in capsys.readouterr().err
    assert rtrain([*words, "+vars.token=hunter2"]) == 2
    assert "are not passed to the processes" in capsys.readouterr().err
    assert not list(Path("runs").glob("*/*"))


def test_a_launcher_whose_program_is_not_there_is_refused_before_anything_is_written(capsys):
    assert rtrain([*WORDS, "hydra/launcher=submitit_slurm", "sweep.name=queued"]) == 2
    assert "SlurmLauncher starts trials with 'srun', which is not on this machine" in capsys.readouterr().err
    assert not Path("runs").exists()


def test_a_sweep_whose_launcher_failed_is_resumed(capsys, monkeypatch):
    words = [*WORDS, "hydra/launcher=joblib", "sweep.name=launched"]
    with monkeypatch.context() as patched:
        patched.setattr("joblib.Parallel.__call__", lambda *_: 1 / 0)
        assert rtrain(words) == 1
    said = capsys.readouterr().err
    assert "JoblibLauncher failed: ZeroDivisionError" in said
    assert "Traceback" not in said
    data = read_sweep(Path("runs/launched"))
    assert data["status"] == "interrupted"
    assert [(one["status"], one["seconds"], one["num_starts"]) for one in data["trials"]] == [("planned", 0, 0)] * 2
    assert rtrain(["resume", "runs/launched"]) == 0
    assert read_sweep(Path("runs/launched"))["status"] == "succeeded"


def test_of_a_launcher_that_was_cut_off_each_trial_has_the_status_that_it_reached(monkeypatch):
    """As by a second Ctrl-C: the first trial has ended, the second one has not begun."""

    def cut_off(_, jobs):
        function, args, keywords = next(iter(jobs))
        function(*args, **keywords)
        raise RuntimeError("cut off")

    monkeypatch.setattr("joblib.Parallel.__call__", cut_off)
    assert rtrain([*WORDS, "hydra/launcher=joblib", "sweep.name=launched"]) == 1
    ended, planned = read_sweep(Path("runs/launched"))["trials"]
    assert (ended["status"], ended["num_starts"]) == ("succeeded", 1)
    assert ended["values"]
    assert (planned["status"], planned["num_starts"], planned["seconds"]) == ("planned", 0, 0)
