"""Whole sweeps in one process whose scheduler pauses trials, and has them go on from each other's checkpoints."""

import json
from pathlib import Path

import pytest
import torch
import yaml
from safetensors.torch import load_file
from tiny_sweeps import CONFIG, LOOPS, POPULATION, TINY, swept, write_loops

import rtrain.trainers.torch.learner as torch_learner
from rtrain.cli.app import run as rtrain
from rtrain.runs.checkpoints import read_record
from rtrain.runs.run import Run
from rtrain.runs.verify import verify_run
from rtrain.sweeps import scheduling
from rtrain.sweeps.checkpoint_transfer import take_checkpoint
from rtrain.sweeps.record.sweep_record import read_sweep
from rtrain.trainers.torch.checkpoint.state import TRAINING, WEIGHTS

pytestmark = pytest.mark.usefixtures("tiny")
TREES = [*TINY]
NET = [
    *("fit", "mlp", "--multirun", "num_workers=0", "trainer.num_threads=1", "dataset.limit=120"),
    *("sweep.metric=train/epoch_loss", "sweep/scheduler=pbt", "sweep.scheduler.interval=2"),
]


def sweep(*words, code=0):
    return swept(words, code)


def test_hyperband_pauses_trials_and_takes_up_the_best():
    words = [*TREES, "sweep/scheduler=hyperband", "trainer.num_boost_round=9", "trainer.params.eta=0.5,0.001,0.002,0.3"]
    data, folder = sweep(*words)
    assert [one["status"] for one in data["trials"]] == ["succeeded", "stopped", "stopped", "stopped"]
    assert [one["num_starts"] for one in data["trials"]] == [3, 1, 1, 1]
    assert [one["epoch"] for one in data["trials"]][1:] == [1, 1, 1]
    winner = Run.load(folder / data["trials"][0]["name"])
    assert [event.step for event in winner.events()] == list(range(1, 10))
    assert [one["status_before"] for one in winner.manifest.resumes] == ["interrupted", "interrupted"]
    assert winner.manifest.resumes[0]["exit_reason_before"] == "paused by the scheduler"
    loser = Run.load(folder / data["trials"][1]["name"])
    assert loser.status == "succeeded"
    assert loser.manifest.exit_reason == data["trials"][1]["reason"] == "hyperband: not among the best 1 at epoch 1"
    assert len(loser.checkpoints) == 1


@pytest.mark.parametrize("num_workers", [0, pytest.param(2, marks=pytest.mark.slow)])
def test_loops_are_paused_and_taken_up_whatever_was_pruned(num_workers):
    write_loops(Path())
    data, folder = sweep(*LOOPS, f"num_workers={num_workers}", "run.checkpoint.keep=1")
    assert [one["status"] for one in data["trials"]] == ["succeeded", "stopped", "stopped", "stopped"]
    assert data["trials"][0]["num_starts"] in (2, 3), "workers of a quick loop hear late that they are to pause"
    winner = Run.load(folder / data["trials"][0]["name"])
    assert [event.metrics["value"] for event in winner.events()] == [4 * number for number in range(1, 10)]
    assert [path.name for path in winner.checkpoints] == ["report-000009"]


def rates_of(run):
    return json.loads((run.checkpoints[-1] / "rates.json").read_text())


@pytest.mark.parametrize("num_workers", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_a_loop_goes_on_from_the_checkpoint_of_a_better_one_with_a_config_of_its_own(num_workers):
    write_loops(Path())
    data, folder = sweep(*POPULATION, f"num_workers={num_workers}")
    (poor, good) = data["trials"]
    assert [one["status"] for one in (poor, good)] == ["succeeded", "succeeded"]
    assert poor["lineage"]
    assert not good["lineage"]
    run = Run.load(folder / poor["name"])
    made_by = rates_of(run)
    assert made_by[:3] == [8, 8, 8], "the first steps are those of the other trial"
    assert len(made_by) == 8
    now = run.manifest.config["trainer"]["train_loop_config"]["rate"]
    assert poor["overrides"] == [f"trainer.train_loop_config.rate={now}"]
    assert made_by[-1] == list(run.events())[-1].metrics["rate"] == now
    assert poor["values"][0] == sum(made_by) > 8
    assert verify_run(run.path) == []


def test_values_that_nothing_was_trained_with_are_no_trial_s(capsys):
    """A loop that reports for the last time where trials are compared is called once more, and returns at once."""
    write_loops(Path())
    words = ["num_workers=0", "trainer.train_loop_config.length=6", "sweep.scheduler.resample=0"]
    data, folder = sweep(*POPULATION, *words)
    assert any(one["lineage"] for one in data["trials"])
    for one in data["trials"]:
        run = Run.load(folder / one["name"])
        made_by = rates_of(run)
        assert one["overrides"] == [f"trainer.train_loop_config.rate={made_by[-1]}"]
        assert one["values"] == [sum(made_by)]
        written = yaml.safe_load((run.path / "config.yaml").read_text())
        for config in (run.manifest.config, written):
            assert config["trainer"]["train_loop_config"]["rate"] == made_by[-1]
        assert [entry["changes"] for entry in run.manifest.lineage] == [entry["changes"] for entry in one["lineage"]]
        assert verify_run(run.path) == []
    assert rtrain(["resume", str(folder)]) == 0
    assert "did not train after taking" in capsys.readouterr().err


@pytest.mark.parametrize("every", [2, 100])
def test_loops_with_fewer_checkpoints_than_pauses_come_to_their_end(every, capsys):
    write_loops(Path())
    data, folder = sweep(*POPULATION, "num_workers=0", f"trainer.train_loop_config.every={every}")
    assert [one["status"] for one in data["trials"]] == ["succeeded", "succeeded"]
    assert [len(one["lineage"]) > 0 for one in data["trials"]] == [every == 2, False]
    assert ("has no complete checkpoint" in capsys.readouterr().err) == (every == 100)
    assert Run.load(folder / data["trials"][0]["name"]).manifest.step == 8


def test_a_checkpoint_takes_the_place_of_one_with_the_same_name_and_fewer_steps():
    write_loops(Path())
    # The loop calls all of them by one name, which is free again once the one before was removed.
    for name, length in (("near", 1), ("far", 3)):
        words = ["num_workers=0", "run.checkpoint.keep=1", f"trainer.train_loop_config.length={length}"]
        assert rtrain(["fit", "growing.yaml", *words, f"hydra.run.dir={name}"]) == 0
    take_checkpoint(Path("near"), Path("far"), {"time": "2026-01-01", "changes": {}})
    assert [path.name for path in Run.load("near").checkpoints] == ["state"]
    taken, given = (read_record(Path(name) / "checkpoints" / "state") for name in ("near", "far"))
    assert {**taken, "time": given["time"]} == given, "what the loop has reported, too"
    assert given["step"] == 3


def test_the_length_of_a_loop_is_not_that_of_declared_training(capsys):
    write_loops(Path())
    config = Path("growing.yaml")
    config.write_text(config.read_text().replace("torch", "xgboost"))  # num_boost_round has a default
    words = [word for word in POPULATION if "scheduler" not in word]
    assert rtrain([*words, "num_workers=0", "sweep/scheduler=hyperband"]) == 2
    assert "sweep.scheduler.max_length" in capsys.readouterr().err


def test_paused_trials_wait_for_a_sweep_that_goes_on(monkeypatch):
    words = [*TREES, "sweep/scheduler=hyperband", "trainer.num_boost_round=9", "trainer.params.eta=0.5,0.001,0.3"]

    def cut(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(scheduling, "end_run", cut)
        sweep(*words, code=130)
    (found,) = Path("runs").glob("*/sweep.json")
    assert {one["status"] for one in read_sweep(found.parent)["trials"]} <= {"paused", "planned", "stopped"}
    data, _ = sweep(*words)
    assert [one["status"] for one in data["trials"]] == ["succeeded", "stopped", "stopped"]
    assert [one["num_starts"] for one in data["trials"]] == [3, 1, 1]


def test_a_trial_goes_on_from_the_weights_of_a_better_one_at_a_rate_of_its_own(monkeypatch, capsys):
    loaded = []
    load = torch_learner.TorchLearner.load

    def recording(self, folder):
        load(self, folder)
        weights = {name: one.clone() for name, one in self.state.model.state_dict().items()}
        loaded.append((folder, weights, self.learning_rate(), dict(self.state.optimizer.param_groups[0])))

    copies, take = [], scheduling.take_checkpoint

    def keeping(run_dir, source, entry):
        newest = Run.load(source).checkpoints[-1]
        momenta = torch.load(newest / TRAINING, weights_only=True)["optimizer"]["state"]
        copies.append((run_dir, source, load_file(newest / WEIGHTS), momenta, dict(entry["changes"])))
        return take(run_dir, source, entry)

    monkeypatch.setattr(torch_learner.TorchLearner, "load", recording)
    monkeypatch.setattr(scheduling, "take_checkpoint", keeping)
    rates = ["sweep=random", "sweep.num_trials=4", "trainer.optimizer.lr=tag(log,interval(0.000001,0.01))"]
    data, folder = sweep(*NET, *rates, "trainer.max_epochs=6")

    exploited = [one for one in data["trials"] if one["lineage"]]
    assert exploited
    assert {one["status"] for one in data["trials"]} == {"succeeded"}
    for run_dir, source, weights, _, changes in copies:
        # What the run went on with: the other one's weights, at the rate that was chosen for it.
        going = [one for one in loaded if one[0].parent.parent == run_dir.absolute()]
        same = [one for one in going if all(torch.equal(one[1][name], weights[name]) for name in weights)]
        assert same, (run_dir, source)
        assert same[0][2] == float(changes["trainer.optimizer.lr"])
    first = exploited[0]
    run = Run.load(folder / first["name"])
    entry = run.manifest.lineage[0]
    assert entry["changes"] == first["lineage"][0]["changes"]
    assert entry["checkpoint"] == first["lineage"][0]["checkpoint"]
    assert entry["run"].endswith(data["trials"][first["lineage"][0]["source"]]["name"])
    assert run.manifest.parent_run == run.manifest.lineage[-1]["run"]
    assert run.manifest.config["trainer"]["optimizer"]["lr"] == float(
        run.manifest.lineage[-1]["changes"]["trainer.optimizer.lr"]
    )
    assert first["overrides"] == [f"trainer.optimizer.lr={run.manifest.lineage[-1]['changes']['trainer.optimizer.lr']}"]
    assert run.manifest.epoch == 6
    capsys.readouterr()
    assert rtrain(["sweep", "show", str(folder)]) == 0
    best = data["trials"][data["best"]]
    shown = capsys.readouterr().out.splitlines()
    assert ("continued from other trials' checkpoints" in shown[-2]) == bool(best["lineage"])
    assert best["overrides"][0] in shown[-1]
    assert verify_run(run.path) == []


def test_events_stay_those_of_each_run():
    data, folder = sweep(*NET, "trainer.optimizer.lr=0.00001,0.01", "trainer.max_epochs=4")
    (poor, good) = data["trials"]
    assert len(poor["lineage"]) == 1, "none at the end, where nothing would come of it"
    events = {one["name"]: list(Run.load(folder / one["name"]).events()) for one in (poor, good)}
    times = [{event.time for event in found} for found in events.values()]
    assert not times[0] & times[1]
    assert [event.epoch for event in events[poor["name"]] if "train/epoch_loss" in event.metrics][-2:] == [3, 4]
    # What a trial is judged by is what it had with the weights that it has now.
    copied = poor["lineage"][0]
    since = [event for event in events[poor["name"]] if event.time > copied["time"]]
    there = [event.metrics["train/epoch_loss"] for event in since if "train/epoch_loss" in event.metrics]
    assert poor["values"][0] <= min(there)
    assert poor["values"][0] < 1.5


@pytest.mark.parametrize("trainer", ["xgboost", "lightgbm"])
def test_boosted_trees_go_on_with_other_parameters(trainer):
    Path("tiny.yaml").write_text(CONFIG.replace("xgboost", trainer))
    rate = "eta" if trainer == "xgboost" else "learning_rate"
    metric = "test/loss"
    words = [*(word for word in TREES if "metric" not in word), f"sweep.metric={metric}", "trainer.num_boost_round=9"]
    words += ["sweep/scheduler=pb2", "sweep.scheduler.interval=3", "sweep=random", "sweep.num_trials=4"]
    data, folder = sweep(*words, f"trainer.params.{rate}=tag(log,interval(0.0001,0.5))")
    changed = [one for one in data["trials"] if one["lineage"]]
    assert changed
    for one in changed:
        run = Run.load(folder / one["name"])
        assert run.manifest.epoch == 9
        assert run.manifest.model["num_rounds"] == 9
        assert str(run.manifest.config["trainer"]["params"][rate]) == one["overrides"][0].partition("=")[2]


def test_an_exploit_that_was_cut_off_is_done_when_the_sweep_goes_on(monkeypatch):
    words = [*NET, "trainer.optimizer.lr=0.00001,0.01", "trainer.max_epochs=4"]

    def cut(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(scheduling, "take_checkpoint", cut)
        sweep(*words, code=130)
    data, folder = sweep(*words)
    assert [one["status"] for one in data["trials"]] == ["succeeded", "succeeded"]
    poor = data["trials"][0]
    (entry,) = Run.load(folder / poor["name"]).manifest.lineage
    assert entry["changes"] == poor["lineage"][0]["changes"]
    assert poor["values"][0] < 1.5


def test_what_can_not_be_exploited_is_found_before_anything_starts(capsys, tmp_path):
    pbt = ["sweep/scheduler=pbt", "sweep.scheduler.interval=2"]
    assert rtrain([*TREES, *pbt, "trainer.params.booster=gbtree,dart"]) == 2
    assert "trainer.params.booster: a scheduler that moves checkpoints" in capsys.readouterr().err
    assert rtrain([*NET, "trainer.model.hidden=[8],[16]"]) == 2
    assert "trainer.model.hidden: a scheduler" in capsys.readouterr().err
    assert rtrain([*TREES, *pbt, "trainer.params.eta=0.1,0.2", "run.checkpoint.on_exit=false"]) == 2
    assert "run.checkpoint.on_exit" in capsys.readouterr().err
    assert rtrain([*TREES, *pbt, "trainer.params.eta=0.1,0.2", "sweep=optuna"]) == 2
    assert "sweep=random" in capsys.readouterr().err
    assert rtrain([*TREES, *pbt, "trainer.params.eta=0.1,0.2", f"run.storage=file://{tmp_path}"]) == 2
    assert "run.storage: sweep/scheduler=pbt" in capsys.readouterr().err
    words = [word for word in TREES if "metric" not in word]
    assert rtrain([*words, *pbt, "trainer.params.eta=0.1,0.2", "sweep.metric=[a,b]", "sweep.mode=min"]) == 2
    assert "one metric" in capsys.readouterr().err
    assert not Path("runs").exists() or not list(Path("runs").glob("*/*"))


def test_the_copy_says_what_it_is():
    data, folder = sweep(*NET, "trainer.optimizer.lr=0.00001,0.01", "trainer.max_epochs=4", "run.checkpoint.keep=9")
    poor = data["trials"][0]
    copied = folder / poor["name"] / "checkpoints" / poor["lineage"][0]["checkpoint"]
    record = read_record(copied)
    assert "events.jsonl" not in record["files"]
    assert json.loads((copied / "about.json").read_text())["trainer"]["optimizer"]["lr"] == 0.01
