"""Runs and stores of other accounts send nothing elsewhere, and nothing through links, whatever is in them."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from made_runs import write_events
from small_run import SmallRun
from strange import KINDS, guarded, put_strange

from rtrain.cli.app import run as command
from rtrain.errors import RtrainError
from rtrain.runs.checkpoints import RECORD_NAME
from rtrain.runs.events import Event, read_events
from rtrain.runs.signature import with_signature
from rtrain.storage.fetching import fetch_run, is_alive, stored_run
from rtrain.storage.folders import DiskFolder, read
from rtrain.training.local_copy import root_of

SECRET = "three years of work"


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that is over, and its copy in the store ``mine``, beside a secret."""
    home = tmp_path_factory.mktemp("whole")
    for name in ("victim", "mine"):
        (home / name).mkdir()
    (home / "victim" / "secret.txt").write_text(SECRET)
    run = SmallRun(home / "runs" / "small" / "one")
    run.report(1)
    run.save(1)
    run.end()
    (run.path / ".hydra").mkdir()
    (run.path / ".hydra" / "config.yaml").write_text("a: 1\n")
    (run.path / "logs" / "worker-0.log").write_text("a line\n")
    assert command(["runs", "upload", str(run.path), "--to", f"file://{home}/mine"]) == 0
    return home


@pytest.fixture
def run(whole: Path, tmp_path: Path) -> Path:
    """A run that is over, and names a store; another account wrote its config."""
    for name in ("victim", "runs"):
        shutil.copytree(whole / name, tmp_path / name)
    for name in ("mine", "theirs"):
        (tmp_path / name).mkdir()
    run = tmp_path / "runs" / "small" / "one"
    change(run / "manifest.json", config={"run": {"storage": f"file://{tmp_path}/theirs"}}, storage=None)
    return run


@pytest.fixture
def copy(whole: Path, run: Path, tmp_path: Path) -> Path:
    """Its copy in the store ``mine``."""
    shutil.copytree(whole / "mine", tmp_path / "mine", dirs_exist_ok=True)
    return tmp_path / "mine" / "small" / "one"


def checkpoint_of(run: Path) -> str:
    return next((run / "checkpoints").iterdir()).name


def contents(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file())


def change(path: Path, **changes: object) -> None:
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def upload(run: Path, *words: str) -> int:
    with guarded():
        return command(["runs", "upload", str(run), *words])


def test_the_directory_of_a_stranger_does_not_say_where_its_files_go(run, tmp_path, capsys):
    assert upload(run) == 2
    assert "--to" in capsys.readouterr().err
    assert not list((tmp_path / "theirs").iterdir())
    (run / "config.yaml").write_text(with_signature(f"run: {{storage: 'file://{tmp_path}/mine'}}\n", ""))
    assert upload(run) == 0, "our own config does, and the manifest has no say"
    assert not list((tmp_path / "theirs").iterdir())
    assert (tmp_path / "mine" / "small" / "one" / "manifest.json").exists()


@pytest.fixture
def sealed(copy: Path) -> Path:
    """The copy in the store, as a run of this account has it."""
    (copy / "config.yaml").write_text(with_signature("run: {root_dir: .}\n", ""))
    return copy


@pytest.mark.parametrize("renamed", [False, True])
@pytest.mark.parametrize("started_at", [None, "2026-01-01T00:00:00+00:00"])
def test_a_stranger_does_not_say_which_copy_is_replaced(run, sealed, tmp_path, renamed, started_at):
    before = contents(sealed)
    if renamed:
        run = run.rename(tmp_path / "runs" / "small" / "other")
    change(run / "manifest.json", storage={"url": "file:///x/small/one", "complete": True})
    if started_at:
        change(run / "manifest.json", started_at=started_at)
    code = upload(run, "--to", f"file://{tmp_path}/mine")
    assert contents(sealed) == before
    assert code == (0 if renamed else 2)
    assert (tmp_path / "mine" / "small" / "other").exists() == renamed


def test_a_copied_mark_replaces_no_other_run(run, sealed, tmp_path):
    before = contents(sealed)
    (run / "config.yaml").write_text(with_signature("run: {storage_timeout_seconds: 5}\n", ""))
    change(run / "manifest.json", started_at="2026-01-01T00:00:00+00:00")
    assert upload(run, "--to", f"file://{tmp_path}/mine") == 2
    assert contents(sealed) == before


@pytest.fixture
def precious(copy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of the user's; the copy in the store has its name, and would be put in its place."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "work" / "precious").mkdir(parents=True)
    (tmp_path / "work" / "precious" / "thesis.txt").write_text(SECRET)
    copy = copy.rename(copy.with_name("precious"))
    copy = copy.parent.rename(copy.parent.with_name("work")) / "precious"
    change(copy / "manifest.json", config={"run": {"root_dir": "."}})
    return copy


@pytest.mark.parametrize("words", [[], ["--trust"]], ids=["", "trust"])
@pytest.mark.parametrize("mark", ["none", "own"])
def test_a_copy_takes_the_place_of_nothing_but_its_run(precious, tmp_path, mark, words):
    if mark == "own":
        (precious / "config.yaml").write_text(with_signature("run: {root_dir: .}\n", ""))
    assert command(["resume", f"file://{precious}", *words]) == 2
    assert [path.name for path in (tmp_path / "work").iterdir()] == ["precious"]
    assert [path.name for path in (tmp_path / "work" / "precious").iterdir()] == ["thesis.txt"]


def test_nothing_of_a_stranger_is_brought(precious, tmp_path, capsys):
    shutil.rmtree(tmp_path / "work")
    assert command(["resume", f"file://{precious}"]) == 2
    assert "--trust" in capsys.readouterr().err
    assert not (tmp_path / "work").exists()


def test_the_marked_config_says_where_a_copy_goes(precious):
    (precious / "config.yaml").write_text(with_signature("run: {root_dir: mine}\n", ""))
    assert str(root_of(stored_run(f"file://{precious}"), trust=False)) == "mine"


NOW = "2026-01-01T00:00:00"
STORAGE = [
    *(["x"], "x", {"complete": 1}, {"url": "x"}),
    *({"complete": False, "copied_at": at} for at in (NOW, "garbage", 5, ["x"])),
]


@pytest.mark.parametrize("changes", [*({"storage": one} for one in STORAGE), {"config": {"run": ["x"]}}])
def test_a_copy_whose_manifest_has_wrong_types_is_told(run, copy, tmp_path, changes):
    change(copy / "manifest.json", **changes)
    change(run / "manifest.json", **changes)
    assert command(["resume", f"file://{copy}", "--trust"]) == 2
    assert command(["runs", "fetch", f"file://{copy}", str(tmp_path / "fetched")]) == 2
    assert command(["runs", "verify", str(run)]) == 1
    assert upload(run, "--to", f"file://{tmp_path}/mine") == 1


@pytest.mark.parametrize("changes", [{"storage": {"complete": False}}, {"config": {}}])
def test_a_copy_may_lack_what_is_not_needed(copy, changes):
    change(copy / "manifest.json", **changes)
    stored = stored_run(f"file://{copy}")
    assert not is_alive(stored)
    assert str(root_of(stored, trust=False)) == "runs"


NAMES = ["{secret}", "../../../../victim/secret.txt", "a/../../b", "", ".", "..", "a\\b", "a\0b", "/", "a//b", "./a"]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("where", ["manifest", "both"])
def test_names_of_files_that_lead_elsewhere_are_refused_before_anything_is_sent(run, tmp_path, name, where):
    name = name.format(secret=tmp_path / "victim" / "secret.txt")
    manifest = json.loads((run / "manifest.json").read_text())
    (record,) = manifest["checkpoints"]
    record["files"] = {name: {"size_bytes": len(SECRET), "sha256": "0" * 64}}
    (run / "manifest.json").write_text(json.dumps(manifest))
    if where == "both":
        (run / "checkpoints" / record["name"] / RECORD_NAME).write_text(json.dumps(record))
    assert upload(run, "--to", f"file://{tmp_path}/mine") == 1
    assert not list((tmp_path / "mine").iterdir())


@pytest.mark.parametrize("changes", [{"run_id": "../../x"}, {"run_id": "/x"}, {"storage": {"url": "file:///a/../b"}}])
def test_the_place_in_the_store_is_below_it(run, tmp_path, changes):
    change(run / "manifest.json", **changes)
    assert upload(run, "--to", f"file://{tmp_path}/mine/inner") in (1, 2)
    assert not list((tmp_path / "mine").iterdir())


def test_a_file_is_hashed_before_it_is_sent(run, tmp_path):
    name = checkpoint_of(run)
    (run / "checkpoints" / name / "model.bin").write_text(SECRET)
    assert upload(run, "--to", f"file://{tmp_path}/mine") == 1
    assert SECRET.encode() not in contents(tmp_path / "mine")


FILES = (
    *("manifest.json", "config.yaml", "events.jsonl", "logs", "logs/worker-0.log", ".hydra", ".hydra/config.yaml"),
    *("checkpoints", "checkpoints/{name}", "checkpoints/{name}/model.bin", "checkpoints/{name}/parts"),
    *("checkpoints/{name}/parts/0.bin", "checkpoints/{name}/checkpoint.json", ".lock"),
)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("file", FILES)
def test_a_run_with_something_strange_in_it_is_not_sent(run, tmp_path, file, kind):
    place = run / file.format(name=checkpoint_of(run))
    put_strange(place, kind, tmp_path / "victim")
    harmless = kind == "folder" and file == "logs/worker-0.log"
    assert (upload(run, "--to", f"file://{tmp_path}/mine") == 0) == harmless
    assert SECRET.encode() not in contents(tmp_path / "mine") + contents(tmp_path / "theirs")
    assert (tmp_path / "victim" / "secret.txt").read_text() == SECRET
    assert len(list((tmp_path / "victim").iterdir())) == 1


@pytest.mark.parametrize("kind", ["fifo", "zero", "link", "folder"])
@pytest.mark.parametrize("file", FILES[:-1])
def test_a_store_with_something_strange_in_it_is_not_followed(run, copy, tmp_path, file, kind):
    into = tmp_path / "fetched"
    put_strange(copy / file.format(name=checkpoint_of(run)), kind, tmp_path / "victim")
    url = f"file://{copy}"
    for act in (lambda: fetch_run(stored_run(url), into, print), lambda: command(["runs", "verify", url])):
        with guarded():
            refused(act)
    assert SECRET.encode() not in contents(into)
    (run / "config.yaml").write_text(with_signature("run: {storage_timeout_seconds: 0.1}\n", ""))
    upload(run, "--to", f"file://{tmp_path}/mine")
    assert (tmp_path / "victim" / "secret.txt").read_text() == SECRET
    assert len(list((tmp_path / "victim").iterdir())) == 1


def refused(act: Callable[[], object]) -> bool:
    try:
        act()
    except RtrainError:
        return True
    return False


@pytest.mark.parametrize("text", ["[" * 100_000, "[" * 500 + "]" * 500, "5", "null", "", "\udcff", '{"a": 1}'])
@pytest.mark.parametrize("file", ["manifest.json", "checkpoints/{name}/checkpoint.json"])
def test_a_store_whose_json_makes_no_sense_is_told(run, copy, tmp_path, file, text):
    (copy / file.format(name=checkpoint_of(run))).write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(RtrainError):
        fetch_run(stored_run(f"file://{copy}"), tmp_path / "fetched", print)
    assert not (tmp_path / "fetched").exists()
    assert command(["runs", "verify", f"file://{copy}"]) in (1, 2)


def test_damaged_bytes_of_events_are_copied_and_fetched_like_others(run, tmp_path):
    with (run / "events.jsonl").open("ab") as file:
        file.write(b"\xff\xfe\n5\n")
    write_events(run / "events.jsonl", [Event.at(0.0, step=2, epoch=0, metrics={})])
    assert upload(run, "--to", f"file://{tmp_path}/mine") == 0
    fetch_run(stored_run(f"file://{tmp_path}/mine/small/one"), tmp_path / "fetched", print)
    assert [event.step for event in read_events(tmp_path / "fetched" / "events.jsonl")] == [1, 2]


def test_a_disk_may_be_reached_by_a_link(run, tmp_path):
    (tmp_path / "bigdisk").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "bigdisk")
    shutil.move(tmp_path / "runs", tmp_path / "bigdisk" / "runs")
    (tmp_path / "runs").symlink_to(tmp_path / "bigdisk" / "runs")
    assert upload(run, "--to", f"file://{tmp_path}/link") == 0
    assert read(DiskFolder(tmp_path / "link" / "small" / "one"), "config.yaml")
