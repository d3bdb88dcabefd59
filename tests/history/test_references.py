"""Short names of runs."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest
from made_runs import make_run, make_sweep

import rtrain
from rtrain.errors import ConfigError
from rtrain.history.query.fields import OWN
from rtrain.history.references import (
    existing_run,
    find_model,
    find_newest,
    find_run,
    is_a_sweep,
    reference_words,
    with_paths,
)


@pytest.fixture
def runs(project):
    root = project / "runs"
    return {
        "a": make_run(root, "mlp", "0a1b", losses=(0.5,)),
        "b": make_run(root, "mlp", "0a1c", losses=(0.7,), minutes=10),
        "c": make_run(root, "trees", "0a1d", losses=(0.6,), minutes=20),
        "s": make_sweep(root, "resnet", "330826", rates=(0.4, 0.8)),
    }


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("last", "c"),
        ("last:mlp", "b"),
        ("last:m*", "b"),
        ("last:resnet", "s"),
        ("best:mlp", "a"),
        ("0a1b", "a"),
        ("2026-11-01_12-10-00-0a1c", "b"),
        ("2026-11-01_12-10", "b"),
        ("330826", "s"),
        ("resnet-sweep-330826", "s"),
        ("best", "s/000-4d4a7ab0"),
        ("best:resnet", "s/000-4d4a7ab0"),
        ("330826/1", "s/001-4d4a7ab1"),
        ("resnet-sweep-330826/0", "s/000-4d4a7ab0"),
        ("last:resnet/1", "s/001-4d4a7ab1"),
        ("001-4d4a7ab1", "s/001-4d4a7ab1"),
    ],
)
def test_what_short_names_stand_for(text, expected, runs, project):
    key, _, trial = expected.partition("/")
    found = find_run(text)
    assert (project / found) == (runs[key] / trial if trial else runs[key])
    assert not found.is_absolute()


@pytest.mark.parametrize("place", ["runs/resnet-sweep-330826", "{}/runs/resnet-sweep-330826", "../resnet-sweep-330826"])
def test_a_trial_is_named_by_its_number_wherever_its_sweep_is_named_by_a_path(place, runs, project, monkeypatch):
    folder = {"r": project, "{": project / "runs" / "trees", ".": project / "runs" / "mlp"}[place[0]]
    monkeypatch.chdir(folder)
    place = place.format(project)
    for find in (find_run, find_newest, find_model, existing_run):
        for ending in ("1", "001", "1/"):
            assert find(f"{place}/{ending}").samefile(runs["s"] / "001-4d4a7ab1")
    proposed = next(word for word in is_a_sweep(place, runs["s"]).hint.split() if word.startswith(place))
    assert find_run(proposed.rstrip(",")).samefile(runs["s"] / "000-4d4a7ab0"), "what an error proposes works"
    with pytest.raises(ConfigError, match=r"resnet-sweep-330826 has no trial 7"):
        existing_run(f"{place}/7")


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("run.init_from=best:mlp", "run.init_from=runs/mlp/2026-11-01_12-00-00-0a1b"),
        ("run.init_from=last:resnet", "run.init_from=runs/resnet-sweep-330826/000-4d4a7ab0"),
        ("+run.resume=0a1b", "+run.resume=runs/mlp/2026-11-01_12-00-00-0a1b"),
        *((f"run.resume={word}",) * 2 for word in ("auto", "must", "never", "elsewhere", "runs")),
        ("run.init_from=runs", "run.init_from=runs"),
        ("run.name=last", "run.name=last"),
    ],
)
def test_overrides_name_runs_by_short_names(word, expected, runs):
    (runs["s"] / "best").symlink_to("000-4d4a7ab0", target_is_directory=True)
    assert with_paths([word]) == [expected]


@pytest.mark.parametrize("key", ["run.init_from", "run.resume"])
def test_a_copy_in_a_store_has_to_be_fetched_first(key):
    with pytest.raises(ConfigError, match="rtrain runs fetch s3://box/runs/mlp/one"):
        with_paths([f"{key}=s3://box/runs/mlp/one"])


def test_a_path_with_other_signs_is_quoted(project):
    make_run(project / "runs", "my mlp", "0a1b")
    assert with_paths(["run.init_from=last"]) == ["run.init_from='runs/my mlp/2026-11-01_12-00-00-0a1b'"]


def test_a_sweep_stands_for_its_best_trial_where_a_model_is_expected(runs):
    (runs["s"] / "best").symlink_to("000-4d4a7ab0", target_is_directory=True)
    assert find_model("last:resnet").resolve() == runs["s"] / "000-4d4a7ab0"
    assert find_model("runs/resnet-sweep-330826").resolve() == runs["s"] / "000-4d4a7ab0"
    assert find_model("last").resolve() == runs["c"]


def test_the_newest_run_of_a_folder_is_meant_that_is_no_run_itself(project):
    _, newest, _ = (make_run(project / "runs", "mlp", run_id) for run_id in ("0a1b", "0a1c", "0a1d"))
    (project / "runs" / "mlp" / "empty").mkdir()
    os.utime(newest / "manifest.json", (4e9, 4e9))
    assert find_newest("runs/mlp").resolve() == newest.resolve()
    assert find_model("runs/mlp").resolve() == newest.resolve()
    assert find_newest(str(newest)) == newest
    assert str(find_newest("runs/mlp/empty")) == "runs/mlp/empty"
    assert str(find_newest("runs/none")) == "runs/none"


def test_a_path_that_exists_wins(runs, project):
    (project / "last").mkdir()
    (project / "0a1b").mkdir()
    assert str(find_run("last")) == "last"
    assert str(find_run("0a1b")) == "0a1b"


def test_several_runs_of_one_name_are_listed(runs, project):
    make_run(project / "runs", "other", "0a1b", minutes=1)
    with pytest.raises(ConfigError) as error:
        find_run("0a1b")
    lines = error.value.message.split("\n")
    assert lines[0] == "'0a1b' matches 2 runs:"
    assert {line.split()[0] for line in lines[1:]} == {
        str(path.relative_to(project)) for path in (project / "runs").glob("*/*-0a1b")
    }


@pytest.mark.parametrize("text", ["last:nothing", "best:nothing", "330826/7", "last/0"])
def test_what_names_no_run_is_an_error_with_what_there_is(text, runs):
    with pytest.raises(ConfigError) as error:
        find_run(text)
    assert error.value.hint


def test_what_is_no_short_name_is_left_to_the_command(runs):
    assert str(find_run("runs/mlp/nothing")) == "runs/mlp/nothing"
    assert str(find_run("ffff")) == "ffff"
    with pytest.raises(ConfigError, match="ffff"):
        existing_run("ffff")
    with pytest.raises(ConfigError, match="rtrain runs fetch s3://bucket/runs/a"):
        existing_run("s3://bucket/runs/a")


def test_of_equal_runs_the_first_is_the_best_as_of_the_trials_of_a_sweep(project):
    first, second = (make_run(project / "runs", "equal", name, minutes=m) for name, m in (("0b1a", 5), ("0b1b", 9)))
    assert find_run("best:equal").name == first.name
    sweep = make_sweep(project / "runs", "ties", "330827", rates=(0.4, 0.4))
    assert find_run("best:ties").name.startswith("000-")
    assert find_model(str(sweep)).name == find_run("best:ties").name
    assert second.is_dir()


def test_best_of_runs_that_are_judged_differently_asks_for_a_metric(runs, project):
    best = {"monitor": "val/accuracy", "mode": "max", "value": 0.9, "step": 1, "epoch": 1}
    make_run(project / "runs", "mlp", "0a1e", best=best)
    with pytest.raises(ConfigError, match="rtrain runs best --metric"):
        find_run("best:mlp")
    with pytest.raises(ConfigError, match="did you mean: best:trees or best:mlp"):
        find_run("best")


def test_the_fields_of_where_are_those_of_the_docs():
    lines = (Path(rtrain.__file__).parents[1] / "docs" / "runs.md").read_text().splitlines()
    told = next(line for line in lines if line.startswith("| fields |")).split("`")[1].split()
    assert told == list(OWN)


def test_completion_knows_them(runs):
    assert reference_words("la") == ["last", "last:trees", "last:mlp"]
    assert set(reference_words("0a1")) == {"0a1b", "0a1c", "0a1d"}
    assert set(reference_words("330826/")) == {"330826/0", "330826/1"}
    assert reference_words("zz") == []


def test_a_sweep_whose_best_trial_was_removed_says_so(runs, project):
    assert find_model("330826") == find_run("330826/0"), "there is no link to it, but the record names it"
    shutil.rmtree(find_run("330826/0"))
    with pytest.raises(ConfigError, match=r"its best trial, 000-.*, has been removed\.\nName another .* 330826/0"):
        find_model("330826")


def test_a_sweep_without_a_best_trial_says_so(runs, project):
    record = json.loads((runs["s"] / "sweep.json").read_text())
    (runs["s"] / "sweep.json").write_text(json.dumps({**record, "best": None}))
    with pytest.raises(ConfigError, match="has no best trial") as caught:
        find_model("last:resnet")
    assert "330826/0" in str(caught.value)
    assert find_model("330826/0") == find_run("330826/0")


@pytest.mark.parametrize("ask", [find_model, existing_run, lambda url: with_paths([f"run.init_from={url}"])])
def test_a_copy_in_a_store_is_to_be_fetched(ask):
    with pytest.raises(ConfigError, match=r"file:///mnt/runs/a is a copy in a store") as caught:
        ask("file:///mnt/runs/a")
    assert caught.value.hint == "try: rtrain runs fetch file:///mnt/runs/a"
