"""The index: the directories are the truth, whatever becomes of the file."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys

import pytest
from made_runs import add_checkpoint, make_run, make_sweep

from rtrain.errors import RtrainError
from rtrain.history import index, rows
from rtrain.history.index import index_path, list_rows
from rtrain.history.query.where import matching
from rtrain.runs.filesystem.lock import locked
from rtrain.runs.labels import change_labels
from rtrain.runs.manifest import read_manifest


def listed(*folders):
    return {row.path.name: row for row in list_rows(folders)}


def test_runs_are_listed_with_their_facts_the_newest_first(project):
    first = make_run(project / "runs", "mlp", "0a1b", config={"trainer": {"type": "torch", "optimizer": {"lr": 0.1}}})
    second = make_run(project / "runs", "trees", "0a1c", minutes=5, losses=(0.3, 0.2))
    add_checkpoint(second, size=500)
    found = list_rows()
    assert [row.path for row in found] == [second, first]
    assert [(row.id, row.name, row.status, row.get("trainer")) for row in found] == [
        ("0a1c", "trees", "succeeded", "torch"),
        ("0a1b", "mlp", "succeeded", "torch"),
    ]
    assert found[1].get("config.trainer.optimizer.lr") == 0.1
    assert (found[0].get("metrics.val/loss"), found[0].get("seconds"), found[0].get("size")) == (0.2, 90.0, 500)


def test_nothing_is_read_again_that_has_not_changed(project, monkeypatch):
    run = make_run(project / "runs")
    other = make_run(project / "runs", short_id="0a1c")
    listed()
    read = []
    monkeypatch.setattr(index, "read_facts", lambda place: read.append(place.path) or rows.read_facts(place))
    assert len(listed()) == 2
    assert read == []
    manifest = read_manifest(run)
    manifest.status = "failed"
    manifest.write(run)
    change_labels(other, lambda labels: labels.tagged(["good"]))
    found = listed()
    assert sorted(read) == sorted([str(run), str(other)])
    assert (found[run.name].status, found[other.name].get("tags")) == ("failed", ["good"])


def test_runs_that_are_gone_are_forgotten(project):
    run = make_run(project / "runs")
    listed()
    for path in run.iterdir():
        path.unlink()
    run.rmdir()
    assert listed() == {}
    with sqlite3.connect(index_path()) as file:
        assert file.execute("SELECT count(*) FROM runs").fetchone() == (0,)


@pytest.mark.parametrize("lost", ["DELETE FROM shapes", "DELETE FROM runs", "UPDATE runs SET shape = 'other'"])
def test_what_the_index_has_lost_is_read_again(lost, project):
    run, sweep = make_run(project / "runs"), make_sweep(project / "runs")
    facts = {name: row.facts for name, row in listed().items()}
    with sqlite3.connect(index_path(), isolation_level=None) as file:
        file.execute(lost)
    assert {name: row.facts for name, row in listed().items()} == facts
    assert {run.name, sweep.name} < set(facts)


def test_runs_share_the_names_of_their_facts_and_a_condition_reads_configs_only_if_it_names_them(project):
    for number in range(3):
        make_run(project / "runs", short_id=f"{number:04x}", config={"trainer": {"type": "torch", "lr": number}})
    listed()
    rows = list_rows()
    assert len({id(row.names) for row in rows}) == 1
    assert len(matching(rows, "trainer == torch and val/loss < 1")) == 3
    assert not any("config" in vars(row) for row in rows)
    assert [row.config["config.trainer.lr"] for row in matching(rows, "lr == 2")] == [2]


def test_folders_beside_the_listed_one_stay_in_the_index(project):
    make_run(project / "runs")
    make_run(project / "runs2", short_id="0a1c")
    assert len(listed("runs", "runs2")) == 2
    assert len(listed("runs")) == 1
    with sqlite3.connect(index_path()) as file:
        assert file.execute("SELECT count(*) FROM runs").fetchone() == (2,)


@pytest.mark.parametrize("content", [b"", b"this is no database" * 100, b"SQLite format 3\0" + bytes(5000)])
def test_a_damaged_index_is_made_again(content, project):
    make_run(project / "runs")
    index_path().parent.mkdir(parents=True)
    index_path().write_bytes(content)
    assert len(listed()) == 1
    with sqlite3.connect(index_path()) as file:
        assert file.execute("SELECT count(*) FROM runs").fetchone() == (1,)


def test_an_index_that_can_not_be_kept_is_done_without(project, tmp_path, monkeypatch):
    make_run(project / "runs")
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert len(listed()) == 1
    monkeypatch.setattr(index, "WAIT_SECONDS", 0.0)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert len(listed()) == 1
    with sqlite3.connect(index_path(), isolation_level=None) as other:
        other.execute("BEGIN EXCLUSIVE")
        make_run(project / "runs", short_id="0a1c")
        assert len(listed()) == 2


def test_nobody_else_can_read_the_index(project):
    make_run(project / "runs")
    listed()
    assert index_path().stat().st_mode & 0o077 == 0


def test_two_processes_at_once(project, start):
    for number in range(40):
        make_run(project / "runs", short_id=f"{number:04x}")
    code = "from rtrain.history.index import list_rows; print(len(list_rows()))"
    processes = [start([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) for _ in range(3)]
    assert [one.communicate()[0] for one in processes] == ["40\n"] * 3
    assert len(listed()) == 40


HEAVY = "{'ray', 'torch', 'pandas', 'sklearn', 'pyarrow', 'numpy', 'xgboost', 'lightgbm'}"


def test_listing_imports_no_framework(project):
    make_run(project / "runs")
    code = "import sys; from rtrain.cli.app import run; code = run(['runs', 'ls', '--where', 'trainer == torch']); "
    code += f"print(code, {HEAVY} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "0 set()"


def test_a_running_run_is_one_that_a_process_works_on(project):
    run = make_run(project / "runs", status="running", host={"hostname": os.uname().nodename})
    elsewhere = make_run(project / "runs", short_id="0a1c", status="running", host={"hostname": "another-machine"})
    (run / ".lock").touch()
    assert {name: row.status for name, row in listed().items()} == {run.name: "killed", elsewhere.name: "running"}
    with locked(run):
        assert listed()[run.name].status == "running"


def test_of_a_run_whose_lock_can_not_be_read_the_manifest_is_believed(project, tmp_path):
    run = make_run(project / "runs", status="running", host={"hostname": os.uname().nodename})
    (run / ".lock").symlink_to(tmp_path / "elsewhere")
    assert listed()[run.name].status == "running"


@pytest.mark.parametrize(
    ("content", "status"),
    [
        ("{", "damaged"),
        ("[]", "damaged"),
        ("null", "damaged"),
        ('{"status": 3, "config": 7}', "damaged"),
        ('{"schema_version": 0, "status": "succeeded", "run_name": "old", "config": {}}', "succeeded"),
        ('{"schema_version": 1, "status": "failed", "run_name": "old", "config": {}}', "failed"),
        ('{"schema_version": 1, "run_name": "x", "status": "failed", "config": {"run": {"tags": 5}}}', "damaged"),
        ('{"schema_version": 1, "status": "failed", "checkpoints": [{"size_bytes": "much"}]}', "damaged"),
        ("{" * 100_000, "damaged"),
    ],
)
def test_a_manifest_that_is_damaged_or_of_another_version_is_a_row_that_says_so(content, status, project):
    run = make_run(project / "runs")
    (run / "manifest.json").write_text(content)
    row = listed()[run.name]
    assert row.status == status
    assert row.get("problem")
    json.dumps(row.facts)


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        (None, "[]", "it is not a mapping"),
        (None, '{"a": "b', "it is not JSON: Unterminated string"),
        ("metrics", "x", "metrics is not a mapping"),
        ("checkpoints", {}, "checkpoints is not a list"),
        ("overrides", 3, "overrides is not a list"),
        ("config", [], "config is not a mapping"),
        ("step", "ten", "step is not a whole number"),
        ("seed", None, "seed is not a whole number"),
    ],
)
def test_what_is_damaged_is_named_with_a_way_to_train_it_again(field, value, said, project):
    run = make_run(project / "runs")
    (run / "config.yaml").touch()
    known = json.loads((run / "manifest.json").read_text())
    (run / "manifest.json").write_text(value if field is None else json.dumps({**known, field: value}))
    assert said in listed()[run.name].get("problem")
    with pytest.raises(RtrainError, match=said) as caught:
        read_manifest(run)
    assert f"rtrain fit {run}/config.yaml" in str(caught.value.hint)


def test_a_manifest_behind_a_link_is_not_read(project, tmp_path):
    run = make_run(project / "runs")
    (run / "manifest.json").rename(tmp_path / "secret.json")
    (run / "manifest.json").symlink_to(tmp_path / "secret.json")
    assert listed()[run.name].status == "damaged"


def test_a_sweep_and_its_trials(project):
    sweep = make_sweep(project / "runs", rates=(0.1, 0.4))
    found = listed()
    row = found[sweep.name]
    assert (row.id, row.kind, row.get("trials"), row.get("best"), row.get("monitor")) == (
        "330826",
        "sweep",
        2,
        0.05,
        "val/loss",
    )
    assert [found[name].id for name in sorted(found) if name != sweep.name] == ["330826/0", "330826/1"]
    (sweep / "sweep.json").write_text("{}")
    assert listed()[sweep.name].status == "damaged"


def test_labels_replace_what_the_config_says(project):
    run = make_run(project / "runs", config={"run": {"tags": ["a", "b"], "notes": "first"}})
    assert (listed()[run.name].get("tags"), listed()[run.name].get("note")) == (["a", "b"], "first")
    change_labels(run, lambda labels: labels.tagged(["c"], ["a"]))
    change_labels(run, lambda labels: labels.noted("second"))
    assert (listed()[run.name].get("tags"), listed()[run.name].get("note")) == (["b", "c"], "second")


def test_other_facts_are_another_version_of_the_index(project):
    """What an index of this version lacks would stay missing: whoever changes this list counts ``VERSION`` up."""
    run, sweep = make_run(project / "runs"), make_sweep(project / "runs")
    facts = {name for row in (listed()[run.name], listed()[sweep.name]) for name in row.facts if "." not in name}
    assert index.VERSION == 2
    assert facts == {
        *("id", "kind", "name", "status", "reason", "trainer", "seed", "started", "ended", "seconds", "step", "epoch"),
        *("best", "monitor", "mode", "checkpoints", "size", "resumes", "overrides", "tags", "note"),
        *("trials", "failed", "search", "best_trial", "axes"),
    }
