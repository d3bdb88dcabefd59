"""A pickle among the files of a checkpoint runs nothing when training goes on from it."""

from __future__ import annotations

import json
import os
import pickle

import pytest
import torch
from attacks import watched

import rtrain
from rtrain.cli.app import run as command
from rtrain.errors import RtrainError
from rtrain.runs.checkpoints import RECORD_NAME
from rtrain.runs.run import Run
from rtrain.runs.signature import is_signed, sign, signature_of, signing_key
from rtrain.testing.damage import Calls, replace_file
from rtrain.trainers.registry import load_trainer, packages
from rtrain.trainers.trained import read_about

SMALL = (
    *("dataset.limit=200", "trainer.model.config.hidden_size=16", "trainer.model.config.intermediate_size=16"),
    *("trainer.num_threads=1", "+trainer.arguments.lr_scheduler_type=constant_with_warmup"),
)


@pytest.mark.parametrize(
    ("config", "name", "form", "words"),
    [
        ("mlp", "training.pt", "torch", ()),
        ("mlp", "training.pt", "pickle", ()),
        pytest.param("lightning", "lightning.ckpt", "torch", ("trainer.num_threads=1",), marks=pytest.mark.slow),
        pytest.param("transformers", "training.pt", "torch", SMALL, marks=pytest.mark.slow),
        ("sklearn", "estimator.skops", "pickle", ("trainer.estimator={_target_: sklearn.linear_model.SGDClassifier}",)),
    ],
    ids=["torch", "torch, a bare pickle", "lightning", "transformers", "sklearn"],
)
def test_training_does_not_go_on_from_it(tmp_path, config, name, form, words):
    mark = tmp_path / "it-ran"
    run = rtrain.fit(config, [*words, "num_workers=0", f"run.root_dir={tmp_path}", "trainer.max_epochs=1"])
    evil = {"optimizer": Calls(os.system, f"touch {mark}")}
    if form == "torch":
        torch.save(evil, tmp_path / "evil")
    else:
        (tmp_path / "evil").write_bytes(pickle.dumps(evil))
    for folder in run.checkpoints:
        replace_file(folder, name, (tmp_path / "evil").read_bytes())
    with pytest.raises(RtrainError):
        rtrain.resume(run.path, ["trainer.max_epochs=2"])
    assert not mark.exists()
    assert Run.load(run.path).status == "failed"


WORDS = ("num_workers=0", "trainer.num_threads=1", "dataset=synthetic", "dataset.num_rows=100")
DATA = "trainer.estimator={_target_: sklearn.linear_model.SGDClassifier}"


def as_strangers(monkeypatch, folder):
    """Let this process have another account's key from now on."""
    monkeypatch.setenv("XDG_STATE_HOME", str(folder / "other"))


def test_training_goes_on_from_the_data_of_somebody_else(tmp_path, monkeypatch):
    words = [*WORDS, DATA, f"run.root_dir={tmp_path}/runs"]
    run = rtrain.fit("sklearn", [*words, "trainer.max_epochs=1"])
    as_strangers(monkeypatch, tmp_path)
    with watched() as events:
        resumed = rtrain.fit("sklearn", [*words, "trainer.max_epochs=2", f"run.resume={run.path}"])
    assert resumed.status == "succeeded"
    assert not [event for event in events if "pickle.find_class" in event]


def pickled_run(tmp_path, monkeypatch, *words):
    """Train something that is written as a pickle, by changing what the file is for nothing else does."""
    from rtrain.trainers.sklearn.estimator_file import content

    monkeypatch.setattr(content, "_held_as_data", lambda *_: None)
    return rtrain.fit("sklearn", [*WORDS, DATA, f"run.root_dir={tmp_path}/runs", *words])


def test_a_pickle_of_this_account_is_resumed_as_before(tmp_path, monkeypatch):
    run = pickled_run(tmp_path, monkeypatch, "trainer.max_epochs=1")
    assert (run.best_checkpoint / "estimator.pkl").exists()
    assert rtrain.resume(run.path, ["trainer.max_epochs=2"]).status == "succeeded"
    assert rtrain.evaluate(run.path)


def test_a_pickle_of_somebody_else_is_resumed_only_if_it_is_trusted(tmp_path, monkeypatch, capfd):
    run = pickled_run(tmp_path, monkeypatch, "trainer.max_epochs=1")
    as_strangers(monkeypatch, tmp_path)
    words = [*WORDS, DATA, f"run.root_dir={tmp_path}/runs", "trainer.max_epochs=2"]
    for how in (str(run.path), "must", "auto"):
        if how != str(run.path):
            cut_off(run.path)
        with watched() as events:
            assert command(["fit", "sklearn", *words, f"run.resume={how}"]) == 2
        assert "--trust" in capfd.readouterr().err
        assert not [event for event in events if "find_class ('sklearn." in event]
    assert command(["resume", str(run.path), "trainer.max_epochs=2", "--trust"]) == 0


def with_new_list(checkpoint, name):
    replace_file(checkpoint, name, (checkpoint / name).read_bytes() + b" ")


def beside_the_list(checkpoint, name):
    record = json.loads((checkpoint / RECORD_NAME).read_text())
    del record["files"][name]
    (checkpoint / RECORD_NAME).write_text(json.dumps(record))


def without_a_signature(checkpoint, name):
    record = json.loads((checkpoint / RECORD_NAME).read_text())
    del record["seal"]
    (checkpoint / RECORD_NAME).write_text(json.dumps(record))


def with_a_list_of_names(checkpoint, name):
    record = json.loads((checkpoint / RECORD_NAME).read_text())
    record["seal"] = ["\udcff"]
    (checkpoint / RECORD_NAME).write_text(json.dumps(record))


@pytest.mark.parametrize("way", [with_new_list, beside_the_list, without_a_signature, with_a_list_of_names])
def test_a_pickle_that_somebody_put_into_a_run_of_mine_is_not_opened(tmp_path, monkeypatch, capfd, way):
    run = pickled_run(tmp_path, monkeypatch, "trainer.max_epochs=1")
    for checkpoint in run.checkpoints:
        way(checkpoint, "estimator.pkl")
    assert read_about(run.best_checkpoint).seal
    for words in (["evaluate", str(run.path)], ["resume", str(run.path), "trainer.max_epochs=2"]):
        with watched() as events:
            assert command(words) != 0
        assert "--trust" in capfd.readouterr().err
        assert not [event for event in events if "find_class ('sklearn." in event]
    assert command(["resume", str(run.path), "trainer.max_epochs=2", "--trust"]) == 0


def as_before_signatures(checkpoint):
    """Make the checkpoint what this account wrote before it signed lists of files."""
    without_a_signature(checkpoint, "")
    about = json.loads((checkpoint / "about.json").read_text())
    del about["signs_files"], about["seal"]
    mark = signature_of(json.dumps(about, sort_keys=True))
    replace_file(checkpoint, "about.json", json.dumps({**about, "seal": mark}).encode())


def test_a_pickle_that_this_account_wrote_before_it_signed_files_still_loads(tmp_path, monkeypatch):
    run = pickled_run(tmp_path, monkeypatch, "trainer.max_epochs=1")
    for checkpoint in run.checkpoints:
        as_before_signatures(checkpoint)
    assert rtrain.evaluate(run.path)
    assert rtrain.resume(run.path, ["trainer.max_epochs=2"]).status == "succeeded"


def test_a_worker_signs_without_the_key_of_the_account(tmp_path, monkeypatch):
    mark = signature_of("about")
    key = signing_key(mark)
    as_strangers(monkeypatch, tmp_path)
    signature = sign(key, "files")
    assert not is_signed(mark, "files", signature)
    monkeypatch.undo()
    assert is_signed(mark, "files", signature)
    assert not is_signed(mark, "other files", signature)
    assert not is_signed(signature_of("other"), "files", signature)
    assert not is_signed("", "files", sign("", "files"))


def cut_off(run_dir):
    """Make the run look like one that was killed."""
    path = run_dir / "manifest.json"
    path.write_text(path.read_text().replace('"succeeded"', '"running"'))


def test_a_trial_of_somebody_else_is_not_unpickled(tmp_path, monkeypatch, capfd):
    from rtrain.trainers.sklearn.estimator_file import content

    monkeypatch.setattr(content, "_held_as_data", lambda *_: None)
    words = ["sklearn", *WORDS, DATA, f"run.root_dir={tmp_path}/runs", "trainer.max_epochs=1,2", "--multirun"]
    assert command(["fit", *words]) == 0
    as_strangers(monkeypatch, tmp_path)
    for manifest in tmp_path.glob("runs/**/manifest.json"):
        cut_off(manifest.parent)
    for record in tmp_path.glob("runs/**/sweep.json"):
        record.write_text(record.read_text().replace('"succeeded"', '"running"'))
    capfd.readouterr()
    with watched() as events:
        assert command(["fit", *words]) == 1
    assert "estimator.pkl" in "".join(capfd.readouterr())
    assert not [event for event in events if "find_class ('sklearn." in event]


def test_only_listed_files_of_a_trainer_are_pickles():
    assert {name: load_trainer(name).pickles for name in packages() if load_trainer(name).pickles} == {
        "sklearn": ("estimator.pkl",)
    }
