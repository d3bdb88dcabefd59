"""Sweeps with ``run.storage``: what is copied, what is said of a copy that is not complete, and how one goes on."""

import json
import shutil
import signal
from pathlib import Path

import pytest
from sweep_results import only_sweep
from test_killed_sweep import IN_TURN, Sweeping, facts
from tiny_sweeps import TINY, swept

from rtrain.cli.app import run as rtrain
from rtrain.storage import fetching
from rtrain.storage.mirror import CopyState, Mirror
from rtrain.sweeps.record.sweep_record import read_sweep

pytestmark = pytest.mark.usefixtures("tiny")


@pytest.fixture
def storage(tiny, monkeypatch):
    monkeypatch.setattr(fetching, "SILENCE_SECONDS", 0.1)
    (tiny / "store").mkdir()
    return f"file://{tiny}/store"


@pytest.fixture
def words(storage):
    return [*TINY, "trainer.num_boost_round=3", "trainer.params.eta=0.1,0.5", f"run.storage={storage}"]


def lacking(name):
    """Return a way to end mirrors that leaves the copies of a name incomplete."""
    finish = Mirror.finish

    def ended(self, *args):
        real = finish(self, *args)
        return CopyState(complete=False, missing=[], error="no luck") if name in self._copy.folder.url else real

    return ended


@pytest.mark.parametrize("launcher", [[], ["hydra/launcher=joblib", "hydra.launcher.n_jobs=1"]], ids=["own", "joblib"])
def test_a_copy_of_a_trial_that_is_not_complete_is_told_and_counts_as_a_failure(words, launcher, monkeypatch, capsys):
    with monkeypatch.context() as patch:
        patch.setattr(Mirror, "finish", lacking("/001-"))
        data, folder = swept([*words, *launcher], code=1)
        assert rtrain([*words, *launcher]) == 1, "it is still not complete"
    assert data["status"] == "succeeded"
    assert [one["lacks_copy"] for one in data["trials"]] == [False, True]
    incomplete = folder / data["trials"][1]["name"]
    told = capsys.readouterr().out
    assert f"copy        of {incomplete.name} is NOT COMPLETE" in told
    assert f"rtrain runs upload {incomplete}" in told
    shutil.rmtree(Path("store") / folder.name / incomplete.name)
    assert rtrain([*words, *launcher]) == 0, "the same command completes it"
    assert (Path("store") / folder.name / incomplete.name / "manifest.json").exists()
    assert [one["lacks_copy"] for one in read_sweep(folder)["trials"]] == [False, False]


def test_a_trial_that_is_uploaded_by_hand_goes_below_its_sweep(words, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(Mirror, "finish", lacking("/001-"))
        data, folder = swept(words, code=1)
    assert rtrain(["runs", "upload", str(folder / data["trials"][1]["name"])]) == 0
    assert [path.name for path in Path("store").iterdir()] == [folder.name]
    assert rtrain(words) == 0


def test_the_files_of_the_sweep_itself_are_copied(words, monkeypatch, capsys):
    _, folder = swept(words)
    files = ("sweep.json", "multirun.yaml", "optimization_results.yaml", "command.yaml")
    assert [(Path("store") / folder.name / name).read_bytes() for name in files] == [
        (folder / name).read_bytes() for name in files
    ]
    monkeypatch.setattr(Mirror, "finish", lacking(folder.name))
    assert rtrain(words) == 1
    assert "lacks files of the sweep itself (no luck)" in capsys.readouterr().err


def test_a_store_that_refuses_is_told_before_the_first_trial(words, tiny, capsys):
    assert rtrain([*words, f"run.storage=file://{tiny}/nowhere"]) == 2
    assert "does not exist" in capsys.readouterr().err
    assert not list(tiny.glob("runs/*/*"))


@pytest.mark.slow
def test_the_same_command_goes_on_where_another_machine_was_killed(storage, tmp_path):
    words = [*IN_TURN, f"run.storage={storage}"]
    sweeping = Sweeping(tmp_path / "runs", words)
    sweeping.until(lambda: len(list(tmp_path.glob("runs/*/*/events.jsonl"))) == 2 and sweeping.num_events() > 30)
    sweeping.process.send_signal(signal.SIGKILL)
    sweeping.process.wait()
    shutil.rmtree(tmp_path / "runs")
    assert rtrain([*words, f"run.root_dir={tmp_path}/runs"]) == 0
    folder = only_sweep(tmp_path / "runs")
    after = read_sweep(folder)
    assert [one["status"] for one in after["trials"]] == ["succeeded"] * 4
    assert len(after["resumes"]) == 1
    assert sum(bool(json.loads(path.read_text())["resumes"]) for path in folder.glob("*/manifest.json")) <= 1
    assert rtrain([*IN_TURN, f"run.root_dir={tmp_path}/whole"]) == 0
    assert facts(folder) == facts(only_sweep(tmp_path / "whole"))


def test_a_sweep_is_gone_on_with_by_its_url(words, storage, tiny, capsys):
    before, folder = swept(words)
    shutil.rmtree("runs")
    url = f"{storage}/{folder.name}"
    assert rtrain(["resume", url, "sweep.max_failed=1"]) == 0
    assert facts(folder) == {one["name"]: (one["status"], one["values"], one["step"]) for one in before["trials"]}
    assert (folder / "best").resolve().name == before["trials"][before["best"]]["name"]
    (tiny / "tiny.yaml").unlink()
    shutil.rmtree("runs")
    capsys.readouterr()
    assert rtrain(["resume", url]) == 2
    assert "tiny.yaml, the config of this sweep, is not on this machine" in capsys.readouterr().err


def test_a_trial_whose_name_leads_out_of_its_sweep_is_refused(words, tiny, capsys):
    _, folder = swept(words)
    (tiny / "precious").mkdir()
    stored = tiny / "store" / folder.name / "sweep.json"
    data = json.loads(stored.read_text())
    data["trials"][0] |= {"name": "../../precious", "status": "planned"}
    stored.write_text(json.dumps(data))
    shutil.rmtree("runs")
    assert rtrain(words) == 2
    assert "'../../precious' would be outside the folder of the sweep" in capsys.readouterr().err
    assert not list((tiny / "precious").iterdir())


def test_a_sweep_of_another_machine_wants_trust(words, storage, monkeypatch, tmp_path, capsys):
    _, folder = swept(words)
    shutil.rmtree("runs")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "other"))
    assert rtrain(["resume", f"{storage}/{folder.name}"]) == 2
    assert "--trust" in capsys.readouterr().err
    assert not Path("runs").exists()
    assert rtrain(["resume", f"{storage}/{folder.name}", "--trust"]) == 0
    assert [one["num_starts"] for one in read_sweep(folder)["trials"]] == [1, 1]


def said(capsys, *words):
    capsys.readouterr()
    assert rtrain(["runs", *words]) == 0
    return capsys.readouterr().out


def label(capsys, place, tag, note):
    said(capsys, "tag", str(place), tag)
    said(capsys, "note", str(place), note)


def test_labels_of_a_sweep_and_its_trials_survive_the_store(words, storage, tiny, capsys):
    data, folder = swept(words)
    trial, url = data["trials"][1]["name"], f"{storage}/{folder.name}"
    label(capsys, folder, "paper", "for the table")
    label(capsys, folder / trial, "odd", "look again")
    assert said(capsys, "upload", str(folder)) == f"{url}: complete\n"
    shutil.rmtree("runs")
    shown = said(capsys, "show", url)
    assert "\ntags: paper\nnote: for the table\n" in shown
    assert "look again" in said(capsys, "show", f"{url}/{trial}")
    listed = [json.loads(said(capsys, "ls", place, "--json", "-t")) for place in (storage, url)]
    labels = {row["id"]: (row["tags"], row["note"]) for row in listed[0] if row["tags"]}
    assert sorted(labels.values()) == [(["odd"], "look again"), (["paper"], "for the table")]
    assert len(listed[0]) == len(listed[1]) == 3
    fetched = Path(said(capsys, "fetch", url).strip())
    assert fetched == Path("runs") / folder.name
    assert said(capsys, "tag", str(fetched)) == "paper\n"
    assert said(capsys, "note", str(fetched / trial)) == "look again\n"


def test_a_sweep_that_goes_on_copies_what_is_written_on_it(words, storage, monkeypatch, capsys):
    monkeypatch.setattr("rtrain.storage.mirror.INTERVAL_SECONDS", 0.05)
    _, folder = swept(words)
    label(capsys, folder, "paper", "first")
    assert rtrain([*words, "sweep.max_failed=1"]) == 0
    assert said(capsys, "tag", f"{storage}/{folder.name}") == "paper\n"


def test_a_fetched_sweep_is_whole_and_goes_on(words, storage, tiny, capsys):
    before, folder = swept(words)
    shutil.rmtree("runs")
    url = f"{storage}/{folder.name}"
    assert said(capsys, "fetch", url) == f"runs/{folder.name}\n"
    best = before["trials"][before["best"]]["name"]
    assert (Path("runs") / folder.name / "best").resolve().name == best
    assert said(capsys, "verify", f"runs/{folder.name}/best").endswith(": nothing lost\n")
    assert rtrain(["resume", f"runs/{folder.name}"]) == 0
    assert rtrain(["runs", "fetch", url]) == 1
    assert f"try: rtrain resume runs/{folder.name}" in capsys.readouterr().err
    assert said(capsys, "fetch", url, "elsewhere/mine") == "elsewhere/mine\n"
    assert sorted(path.name for path in Path("elsewhere").iterdir()) == ["mine"]


def test_a_sweep_is_uploaded_as_it_is_to_a_store_that_it_did_not_name(words, tiny, capsys):
    _, folder = swept([word for word in words if not word.startswith("run.storage")])
    assert rtrain(["runs", "upload", str(folder)]) == 2
    assert "--to s3://bucket/runs" in capsys.readouterr().err
    assert said(capsys, "upload", str(folder), "--to", f"file://{tiny}/store").endswith(": complete\n")
    assert rtrain(["runs", "fetch", f"file://{tiny}/store/{folder.name}", "again"]) == 0
    assert (Path("again") / "sweep.json").read_bytes() == (folder / "sweep.json").read_bytes()


def extended(words, values):
    return [word.replace("eta=0.1,0.5", f"eta={values}") for word in words]


@pytest.fixture
def extended_elsewhere(words):
    """A sweep as it was before its copy was extended from another folder; yields it and the name of the new trial."""
    _, folder = swept(words)
    before = shutil.copytree(folder, Path("elsewhere") / folder.name, symlinks=True)
    assert rtrain(extended(words, "0.1,0.5,0.7")) == 0
    trained = {one["name"] for one in read_sweep(folder)["trials"]}
    folder.rename(Path("elsewhere") / "longer")
    before.rename(folder)
    (name,) = trained - {path.name for path in folder.iterdir()}
    return folder, name


@pytest.mark.parametrize("status", ["succeeded", "failed", "running", "interrupted"])
def test_a_copy_that_was_extended_from_another_folder_is_not_replaced(status, extended_elsewhere, words, capsys):
    folder, name = extended_elsewhere
    stored = Path("store") / folder.name / "sweep.json"
    data = json.loads(stored.read_text())
    data["trials"][-1]["status"] = status
    stored.write_text(json.dumps(data))
    before = stored.read_bytes()
    capsys.readouterr()
    assert rtrain(extended(words, "0.1,0.5,0.9")) == 2
    said = capsys.readouterr().err
    assert f"has trials that {folder} lacks: {name}." in said
    assert "try: rtrain resume file://" in said
    assert stored.read_bytes() == before


def test_a_copy_that_another_machine_is_extending_is_left_alone(extended_elsewhere, words, monkeypatch, capsys):
    folder, name = extended_elsewhere
    stored = (Path("store") / folder.name / "sweep.json").read_bytes()
    monkeypatch.setattr("rtrain.sweeps.record.remote.is_alive", lambda run: run.run_id == name)
    capsys.readouterr()
    assert rtrain(extended(words, "0.1,0.5,0.9")) == 2
    assert "is in use by another machine." in capsys.readouterr().err
    assert (Path("store") / folder.name / "sweep.json").read_bytes() == stored
