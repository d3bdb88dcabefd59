"""Runs that go on: to the same end as one that was never interrupted, and not with what can't work."""

import shutil
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import yaml
from safetensors.torch import load_file

import rtrain
from rtrain.cli.app import run as command
from rtrain.errors import ConfigError
from rtrain.runs.filesystem.lock import is_locked, locked
from rtrain.runs.manifest import read_manifest
from rtrain.runs.run import Run
from rtrain.trainers.registry import load_trainer, packages
from rtrain.training.resuming import Resumption

RTRAIN = Path(sys.executable).with_name("rtrain")
STEPS_PER_EPOCH = 20
TO_THE_END = ["trainer.max_steps=null", "trainer.max_epochs=2"]


def fit(folder, *overrides, config="mlp"):
    length = [] if any("max_steps=" in word for word in overrides) else ["trainer.max_epochs=2"]
    return rtrain.fit(config, ["num_workers=0", f"run.root_dir={folder}", *length, *overrides])


def weights(run):
    return load_file(run.checkpoints[-1] / "model.safetensors")


def assert_same(one, other):
    assert one.keys() == other.keys()
    for name, tensor in one.items():
        assert tensor.equal(other[name]), name


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Two epochs without an interruption."""
    return fit(tmp_path_factory.mktemp("whole"))


@pytest.fixture(scope="module")
def half(tmp_path_factory):
    """The same, but ended after 30 steps, inside the second epoch."""
    return fit(tmp_path_factory.mktemp("half"), "trainer.max_steps=30")


@pytest.fixture
def begun(half, tmp_path):
    """A copy of the half run, in a place of its own."""
    path = tmp_path / "runs" / "mlp" / half.path.name
    path.parent.mkdir(parents=True)
    subprocess.run(["cp", "-r", half.path, path], check=True)
    return Run.load(path)


def test_a_run_that_goes_on_ends_bit_by_bit_as_one_without_an_interruption(begun, whole):
    run = rtrain.resume(begun.path, TO_THE_END)
    assert run.path == begun.path
    assert_same(weights(run), weights(whole))
    for name in ("val/accuracy", "val/loss", "train/epoch_loss"):
        assert run.metrics[name] == whole.metrics[name]


def test_a_finished_run_is_extended(whole, tmp_path):
    run = fit(tmp_path, "trainer.max_epochs=1")
    run = rtrain.resume(run.path, ["trainer.max_epochs=2"])
    assert_same(weights(run), weights(whole))
    assert [event.step for event in run.events()] == [event.step for event in whole.events()]


@pytest.mark.parametrize(
    ("config", "keys", "key"),
    [
        ("mlp", ["+trainer.scheduler={_target_: torch.optim.lr_scheduler.CosineAnnealingLR, T_max: auto}"], "T_max"),
        ("jax", [], "trainer.optimizer.learning_rate.decay_steps"),
    ],
)
def test_a_run_whose_schedule_is_as_long_as_the_run_is_not_extended(tmp_path, config, keys, key):
    run = fit(tmp_path, "trainer.max_epochs=1", "dataset.limit=100", *keys, config=config)
    with pytest.raises(ConfigError, match=rf"{key} depends on its length:\n  trainer.max_epochs: 1 -> 2"):
        rtrain.resume(run.path, ["trainer.max_epochs=2"])


@pytest.mark.parametrize(
    ("config", "key", "unit"),
    [
        *[(config, "max_epochs", "epochs") for config in ("mlp", "lightning", "sklearn")],
        *[(config, "max_steps", "steps") for config in ("mlp", "lightning")],
        *[(config, "num_boost_round", "steps") for config in ("xgboost", "lightgbm")],
    ],
)
def test_a_run_is_not_made_shorter_than_it_is(tmp_path, config, key, unit):
    rows = [] if config in ("xgboost", "lightgbm") else ["dataset.limit=100"]
    online = ["trainer.estimator={_target_: sklearn.linear_model.SGDClassifier}"] if config == "sklearn" else []
    endless = ["trainer.max_epochs=null"] if key == "max_steps" else []
    run = rtrain.fit(
        config, ["num_workers=0", f"run.root_dir={tmp_path}", f"trainer.{key}=3", *rows, *online, *endless]
    )
    before = files_of(run.path)
    with pytest.raises(ConfigError, match=rf"has already trained 3 {unit}: trainer\.{key}=2 would end it before that"):
        rtrain.resume(run.path, [f"trainer.{key}=2"])
    assert files_of(run.path) == before


def files_of(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_its_record_goes_on_too(begun):
    run = rtrain.resume(begun.path, TO_THE_END)
    (entry,) = run.manifest.resumes
    assert entry["command"] == ["rtrain", "resume", str(begun.path.absolute()), *TO_THE_END]
    assert entry["changed"] == ["trainer.max_epochs: 20 -> 2", "trainer.max_steps: 30 -> None"]
    assert (entry["status_before"], run.status) == ("succeeded", "succeeded")
    assert (run.manifest.run_id, run.manifest.started_at) == (begun.manifest.run_id, begun.manifest.started_at)
    assert [attempt["from_step"] for attempt in run.manifest.attempts] == [0, 30]
    steps = [event.step for event in run.events()]
    assert steps == sorted(steps)
    assert command(["runs", "verify", str(run.path)]) == 0


@pytest.mark.parametrize("override", ["optimizer.lr=0.5", "run.seed=1", "model.hidden=[7]", "trainer.precision=bf16"])
def test_what_the_checkpoint_depends_on_can_not_be_changed(begun, override):
    before = begun.manifest
    with pytest.raises(ConfigError) as raised:
        rtrain.resume(begun.path, [override])
    assert override.partition("=")[0].rpartition(".")[2] in str(raised.value)
    assert f"run.init_from={begun.path}" in str(raised.value)
    assert Run.load(begun.path).manifest == before, "the run was touched"


def test_a_trainer_names_keys_of_its_own_that_a_resumed_run_may_change(begun, monkeypatch):
    words = [*TO_THE_END, "trainer.clip_norm=2"]
    with pytest.raises(ConfigError, match=r"trainer\.clip_norm"):
        rtrain.resume(begun.path, words)
    kind = type(load_trainer("torch"))
    monkeypatch.setattr(kind, "resumable", kind.resumable | {"clip_norm"})
    run = rtrain.resume(begun.path, words)
    assert run.manifest.config["trainer"]["clip_norm"] == 2


@pytest.mark.parametrize("trainer", sorted(packages()))
def test_a_new_run_gets_the_weights_only_where_its_trainer_takes_them(trainer, tmp_path):
    manifest = SimpleNamespace(config={"trainer": {"type": trainer, "train_loop": None}})
    said = Resumption(run_dir=tmp_path, manifest=manifest, changed={}).how_to_begin_again
    assert ("run.init_from" in said) == load_trainer(trainer, None).can_init
    manifest.config["trainer"]["train_loop"] = "mine:train"
    assert "run.init_from" not in Resumption(run_dir=tmp_path, manifest=manifest, changed={}).how_to_begin_again


def test_other_data_are_refused(begun):
    with pytest.raises(ConfigError, match=r"dataset\.limit"):
        rtrain.resume(begun.path, ["dataset.limit=100"])
    assert Run.load(begun.path).manifest == begun.manifest


def test_a_damaged_newest_checkpoint_is_told_and_the_one_before_serves(begun, whole, capsys):
    newest = begun.checkpoints[-1]
    content = (newest / "model.safetensors").read_bytes()
    (newest / "model.safetensors").write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    assert command(["runs", "verify", str(begun.path)]) == 1
    assert command(["resume", str(begun.path), *TO_THE_END]) == 0
    told = capsys.readouterr()
    assert f"the checkpoint {newest.name} is damaged (model.safetensors: damaged)" in told.err
    run = Run.load(begun.path)
    assert run.manifest.attempts[-1]["from_step"] == STEPS_PER_EPOCH
    assert_same(weights(run), weights(whole))


def cut(record):
    record.write_text(record.read_text()[:100])


@pytest.mark.parametrize("damage", [cut, Path.unlink])
def test_a_newest_checkpoint_whose_record_is_damaged_is_told_and_written_again(whole, tmp_path, capsys, damage):
    path = shutil.copytree(whole.path, tmp_path / "run")
    damage(path / "checkpoints" / whole.checkpoints[-1].name / "checkpoint.json")
    assert command(["resume", str(path)]) == 0
    assert f"the checkpoint {whole.checkpoints[-1].name} is damaged (checkpoint.json: " in capsys.readouterr().err
    run = Run.load(path)
    assert run.manifest.attempts[-1]["from_step"] == STEPS_PER_EPOCH
    assert [one.name for one in run.checkpoints] == [one.name for one in whole.checkpoints]
    assert_same(weights(run), weights(whole))


def test_what_another_process_did_with_the_run_since_it_was_found_stays_in_its_record(begun, monkeypatch):
    def locked_late(path):
        manifest = read_manifest(path)
        manifest.resumes, manifest.metrics["seen"] = [{"command": ["of", "another"]}], 5.0
        manifest.write(path)
        return locked(path)

    monkeypatch.setattr("rtrain.training.recording.locked", locked_late)
    manifest = rtrain.resume(begun.path, TO_THE_END).manifest
    assert [one["command"] for one in manifest.resumes][:-1] == [["of", "another"]]
    assert manifest.metrics["seen"] == 5.0


def test_auto_goes_on_with_the_newest_unfinished_run_and_else_begins_a_new_one(begun, tmp_path):
    begun.manifest.status = "preempted"
    begun.manifest.write(begun.path)
    again = ["run.resume=auto", "trainer.max_steps=33"]
    run = fit(tmp_path / "runs", *again)
    assert (run.path, run.status) == (begun.path, "succeeded")
    assert fit(tmp_path / "runs", *again).path != begun.path
    assert fit(tmp_path / "runs", "run.resume=auto", "run.name=other", "trainer.max_steps=1").status == "succeeded"


def test_must_needs_a_run_of_this_config(begun, tmp_path):
    begun.manifest.status = "running"  # as a killed one stays
    begun.manifest.write(begun.path)
    with pytest.raises(ConfigError, match=r"no unfinished run of this config.*\n.* differs: trainer.optimizer.lr"):
        fit(tmp_path / "runs", "run.resume=must", "optimizer.lr=0.3")
    assert fit(tmp_path / "runs", "run.resume=must", "trainer.max_steps=31").path == begun.path


def test_auto_leaves_a_run_alone_that_another_process_works_on(begun, tmp_path):
    begun.manifest.status = "running"
    begun.manifest.write(begun.path)
    with locked(begun.path):
        assert is_locked(begun.path)
        assert fit(tmp_path / "runs", "run.resume=auto", "trainer.max_steps=1").path != begun.path
        with pytest.raises(ConfigError, match=r"is in use by process \d+ on "):
            rtrain.resume(begun.path)
        with pytest.raises(ConfigError, match=rf"\n{begun.path.name} is in use by process \d+ on "):
            fit(tmp_path / "runs", "run.resume=must", "trainer.max_steps=31")
    assert not is_locked(begun.path)


def test_a_new_run_does_not_take_the_folder_of_another(begun, tmp_path):
    taken = begun.path.rename(tmp_path / "my run")
    with pytest.raises(ConfigError, match=rf"already contains a run.\nTo resume it: rtrain resume '{taken}'\."):
        fit("ignored", f"hydra.run.dir={taken}")
    assert Run.load(taken).manifest == begun.manifest


def test_what_is_no_run_can_not_go_on(tmp_path, capsys):
    assert command(["resume", str(tmp_path / "nothing")]) != 0
    assert "is not a run directory" in capsys.readouterr().err
    with pytest.raises(ConfigError, match="is not a run directory"):
        fit(tmp_path, f"run.resume={tmp_path}")


def test_a_run_begins_with_the_weights_of_another(whole, tmp_path):
    run = fit(tmp_path, f"run.init_from={whole.path}", "trainer.max_epochs=1", "optimizer.lr=1e-12")
    assert run.metrics["val/accuracy"] == whole.metrics["val/accuracy"]
    assert run.manifest.parent_run == str(whole.best_checkpoint)
    assert run.manifest.attempts[0]["from_step"] == 0


def test_a_run_that_goes_on_needs_the_one_it_began_with_no_more(whole, tmp_path):
    parent = shutil.copytree(whole.path, tmp_path / "parent")
    run = fit(tmp_path / "runs", f"run.init_from={parent}", "trainer.max_epochs=1")
    shutil.rmtree(parent)
    longer = rtrain.resume(run.path, ["trainer.max_epochs=2"])
    assert longer.manifest.epoch == 2
    assert longer.manifest.parent_run == run.manifest.parent_run


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (["model.hidden=[7]"], "does not contain the weights of this model"),
        (["config=sklearn"], "the sklearn trainer can't start with the weights of another run"),
        (["config=xgboost"], "was written by the trainer torch, not xgboost"),
        (["config=jax"], "was written by the trainer torch, not jax"),
        (["run.init_from=nowhere"], "nowhere does not exist"),
    ],
)
def test_weights_that_do_not_fit_are_refused(whole, tmp_path, overrides, message):
    config = next((word.partition("=")[2] for word in overrides if word.startswith("config=")), "mlp")
    words = [word for word in overrides if not word.startswith("config=")]
    limit = [] if config in ("xgboost", "sklearn") else ["trainer.max_epochs=1"]
    with pytest.raises(rtrain.RtrainError, match=message):
        rtrain.fit(config, ["num_workers=0", f"run.root_dir={tmp_path}", f"run.init_from={whole.path}", *limit, *words])


@pytest.mark.parametrize(
    ("stop", "reason"),
    [
        ("{target: {val/accuracy: 0.5}}", "val/accuracy reached its target of 0.5"),
        ("{target: {val/loss: 5}}", "val/loss reached its target of 5"),
        ("{bounds: {train/loss: {max: 0.001}}}", "train/loss left its bounds with"),
        ("{max_seconds: 0.000001}", "time limit"),
    ],
)
def test_a_run_stops_for_a_metric_or_the_time(tmp_path, stop, reason):
    run = fit(tmp_path, "trainer.max_epochs=50", f"run.stop={stop}")
    assert run.status == "succeeded"
    assert run.manifest.exit_reason.startswith(reason)
    assert run.manifest.epoch < 5


def test_boosted_trees_stop_for_a_metric_too(tmp_path):
    words = ["num_workers=0", f"run.root_dir={tmp_path}", "trainer.num_boost_round=50"]
    run = rtrain.fit("xgboost", [*words, "run.stop={target: {val/accuracy: 0.5}}"])
    assert run.manifest.exit_reason == "val/accuracy reached its target of 0.5"
    assert run.manifest.step == 1


def test_the_best_checkpoints_and_the_newest_stay(tmp_path):
    cadence = "run.checkpoint={keep: 1, best: {monitor: train/epoch_loss, mode: max, keep: 2}}"
    run = fit(tmp_path, "trainer.max_epochs=6", "dataset.limit=200", cadence)
    assert [record["epoch"] for record in run.manifest.checkpoints] == [1, 2, 6]
    assert run.manifest.best["epoch"] == 1


def test_seconds_between_checkpoints(tmp_path):
    cadence = "run.checkpoint={every_epochs: null, every_seconds: 0.000001, keep: 100}"
    run = fit(tmp_path, "trainer.max_steps=5", cadence)
    assert [record["step"] for record in run.manifest.checkpoints] == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGTERM, 143), pytest.param(signal.SIGINT, 130, marks=pytest.mark.slow)]
)
def test_a_signal_saves_marks_the_run_and_it_goes_on_to_the_same_end(start, tmp_path, whole, number, code):
    words = [RTRAIN, "fit", "mlp", "num_workers=0", f"run.root_dir={tmp_path}", "trainer.max_epochs=2000"]
    words += ["run.checkpoint.every_epochs=100", "run.log_every_steps=1"]
    process = start(words, stdout=subprocess.PIPE, text=True)
    for _ in process.stdout:
        if next(tmp_path.glob("mlp/*/events.jsonl"), None) is not None and "epoch 1/" in _:
            break
    process.send_signal(number)
    rest = process.stdout.read()
    assert process.wait(timeout=60) == code
    (path,) = tmp_path.glob("mlp/*")
    run = Run.load(path)
    assert run.status == {130: "interrupted", 143: "preempted"}[code]
    assert f"rtrain resume {path}" in rest
    assert run.manifest.checkpoints[-1]["step"] == run.manifest.step == max(event.step for event in run.events())
    if run.manifest.epoch < 2:
        assert_same(weights(rtrain.resume(path, ["trainer.max_epochs=2"])), weights(whole))


@pytest.mark.parametrize(
    ("config", "limit"), [("mlp", "trainer.max_epochs=1"), ("xgboost", "trainer.num_boost_round=2")]
)
def test_a_goal_that_is_never_reported_is_told(tmp_path, config, limit):
    words = ["num_workers=0", f"run.root_dir={tmp_path}", limit, "run.stop.target={val/acuracy: 0.5}"]
    with pytest.raises(rtrain.RtrainError, match=r"run.stop.target: .*val/acuracy"):
        rtrain.fit(config, words)


@pytest.mark.parametrize("config", ["mlp", "xgboost", "lightgbm", "jax"])
def test_a_goal_of_a_file_is_taken_back_by_null(tmp_path, monkeypatch, config):
    monkeypatch.chdir(tmp_path)
    goals = "{val/accuracy: 0.0, val/loss: 100, val/mlogloss: 100}"
    Path("goals.yaml").write_text(f"defaults: [{config}]\nrun: {{stop: {{target: {goals}}}}}\n")
    none = "run.stop.target={val/accuracy: null, val/loss: null, val/mlogloss: null}"
    run = rtrain.fit("goals.yaml", ["num_workers=0", "dataset.limit=100", none, "run.name=goals"])
    assert run.manifest.status == "succeeded"
    assert "run.stop.target" not in str(run.manifest.exit_reason)


def test_a_run_that_had_set_a_key_without_effect_goes_on(tmp_path, monkeypatch):
    words = ["dataset=sklearn", "dataset.name=make_moons", "dataset.target=1", "num_workers=0", "trainer.max_epochs=1"]
    with pytest.raises(rtrain.RtrainError, match=r"dataset\.target has no effect"):
        rtrain.fit("mlp", [*words, f"run.root_dir={tmp_path}"])
    with monkeypatch.context() as before:
        before.setattr("rtrain.datasets.without_effect.changed", lambda conf, keys: [])
        run = rtrain.fit("mlp", [*words, f"run.root_dir={tmp_path}"])
    assert rtrain.resume(run.path, ["trainer.max_epochs=2"]).manifest.epoch == 2
    assert rtrain.evaluate(run.path)["num_rows"] > 0
    assert rtrain.predict(run.path, tmp_path / "out.csv") > 0


@pytest.mark.parametrize("word", ["run.resume=never", "run.resume=auto", "run.root_dir=other", "run.init_from=last"])
def test_a_key_that_chooses_another_run_is_refused_where_the_run_is_named(tmp_path, word):
    run = fit(tmp_path, "trainer.max_epochs=1", "dataset.limit=50")
    with pytest.raises(ConfigError, match=rf"{word.partition('=')[0]} has no effect"):
        rtrain.resume(run, [word, "trainer.max_epochs=2"])
    assert read_manifest(run.path) == run.manifest


@pytest.mark.parametrize("keys", ["{0: 2.0, 1: 1.0}", "{true: 2.0, false: 1.0}", "{'0': 2.0, '1': 1.0}", "{0.5: 1}"])
def test_keys_that_are_numbers_are_numbers_again_when_the_run_goes_on(tmp_path, monkeypatch, keys):
    monkeypatch.chdir(tmp_path)
    Path("own.py").write_text(OWN)
    Path("own.yaml").write_text(
        "defaults: [{dataset: digits}, {trainer: torch}]\n"
        "trainer: {batch_size: 64, max_epochs: 1, optimizer: {_target_: torch.optim.SGD, lr: 0.1}, model: "
        f"{{_target_: own.Net, in_features: auto, out_features: auto, given: {keys}}}}}\n"
    )
    first = rtrain.fit("own.yaml", ["num_workers=0"])
    again = rtrain.resume(first.path, ["trainer.max_epochs=2"])
    assert again.status == "succeeded"
    expected, written = yaml.safe_load(keys), yaml.safe_load((first.path / "config.yaml").read_text())
    assert rtrain.load_checkpoint(first.path).predict(np.zeros((2, 1, 8, 8), "float32")).shape == (2, 10)
    assert set(Path("given.txt").read_text().splitlines()) == {repr(expected)}, "in both, and to predict"
    given = written["trainer"]["model"]["given"]
    assert (given, list(map(type, given))) == (expected, list(map(type, expected)))


OWN = """
import torch


class Net(torch.nn.Linear):
    def __init__(self, in_features, out_features, given):
        super().__init__(in_features, out_features)
        with open("given.txt", "a") as file:
            print(given, file=file)

    def forward(self, x):
        return super().forward(x.flatten(1))
"""
