"""What of a sweep's config may change when it is resumed, and what is said of the rest."""

import dataclasses
from pathlib import Path

import pytest
from tiny_sweeps import CONFIG, TINY, swept

from rtrain.cli.app import run as rtrain
from rtrain.config.files.locations import builtin_config_dir
from rtrain.config.session import Session
from rtrain.errors import ConfigError
from rtrain.runs.manifest import read_manifest
from rtrain.schemas import schemas
from rtrain.sweeps.same_config import check_source, hash_of

GRID = [*TINY, "sweep.name=same", "trainer.params.eta=0.1,0.2", "trainer.num_boost_round=2"]
FREE = ("run", "scaling", "cluster", "allow", "vars")
FIXED = ("run.seed", "run.init_from")


def leaves(data, where=""):
    for key, value in data.items():
        if isinstance(value, dict) and value:
            yield from leaves(value, f"{where}{key}.")
        else:
            yield f"{where}{key}"


def with_other(data, key):
    """Return a copy of a nested mapping with another value of one of its keys."""
    first, _, rest = key.partition(".")
    return {**data, first: with_other(data[first], rest) if rest else "another value"}


@pytest.mark.parametrize("config", ["mlp", "gbm", "boosted"])
def test_where_and_how_a_trial_is_trained_makes_no_difference_and_all_else_does(config, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "gbm.yaml").write_text("defaults: [{trainer: lightgbm}, {dataset: sklearn}]\n")
    (tmp_path / "boosted.yaml").write_text("defaults: [{trainer: xgboost}, {dataset: sklearn}]\n")
    with Session(config if config == "mlp" else f"{config}.yaml", ["num_workers=0"], schemas()) as session:
        composed = session.check()
    keys = list(leaves(composed.resolved))
    assert {key.partition(".")[0] for key in keys} >= {*FREE, "trainer", "dataset"}
    for key in keys:
        other = dataclasses.replace(composed, resolved=with_other(composed.resolved, key))
        is_free = key.partition(".")[0] in FREE and key not in FIXED
        assert (hash_of(other) == hash_of(composed)) == is_free, key


@pytest.mark.parametrize("form", ["fit", "resume"])
@pytest.mark.parametrize("word", ["run.checkpoint.keep=3", "run.failure.max_failures=7", "run.private=True"])
def test_a_sweep_goes_on_with_another_way_to_keep_its_runs(tiny, form, word):
    before, folder = swept(GRID)
    again = [*GRID, word] if form == "fit" else ["resume", str(folder), word]
    assert rtrain(again) == 0
    more = [one.replace("0.1,0.2", "0.1,0.2,0.3") for one in again]
    assert rtrain(more if form == "fit" else [*more, "trainer.params.eta=0.1,0.2,0.3"]) == 0
    after, _ = swept(more if form == "fit" else again)
    assert after["trials"][:2] == before["trials"]
    key, _, value = word.partition("=")
    found = read_manifest(folder / after["trials"][2]["name"]).config
    for name in key.split("."):
        found = found[name]
    assert str(found) == value


@pytest.mark.parametrize(
    ("word", "line"),
    [
        ("trainer.num_boost_round=3", "trainer.num_boost_round: 2 -> 3"),
        ("run.seed=5", "run.seed: 0 -> 5"),
        ("dataset.limit=50", "dataset.limit: 60 -> 50"),
        ("dataset.name=wine", "dataset.name: iris -> wine"),
        ("trainer.params.max_depth=3", "trainer.params.max_depth: "),
    ],
)
@pytest.mark.parametrize("kept", [0, 1], ids=["its own run", "the run of another trial"])
def test_what_has_changed_is_named(tiny, capsys, word, line, kept):
    record, folder = swept(GRID)
    (folder / record["trials"][0]["name"] / "manifest.json").rename(tiny / "gone") if kept else None
    capsys.readouterr()
    assert rtrain([*GRID, word, "run.checkpoint.keep=4"]) == 2
    told = capsys.readouterr().err
    assert line in told
    assert "eta" not in told.partition("Change the config")[0]
    assert "keep" not in told


def test_a_sweep_of_an_earlier_version_is_known_by_the_hash_that_it_kept(tiny, capsys):
    record, folder = swept(GRID)
    text = (folder / "sweep.json").read_text()
    for trial in record["trials"]:
        text = text.replace(trial["config_hash"], read_manifest(folder / trial["name"]).config_hash)
    (folder / "sweep.json").write_text(text)
    assert rtrain(GRID) == 0
    assert (folder / "sweep.json").read_text() != text
    Path("tiny.yaml").write_text(CONFIG.replace("name: tiny", "name: tiny, seed: 3"))
    capsys.readouterr()
    assert rtrain(GRID) == 2
    assert "run.seed: 0 -> 3" in capsys.readouterr().err


def test_a_copy_of_the_config_is_another_config_and_a_moved_one_is_the_same(tiny, capsys):
    _, folder = swept(GRID)
    command = (folder / "command.yaml").read_text()
    Path("b").mkdir()
    Path("b/tiny.yaml").write_text(CONFIG)
    again = ["fit", "b/tiny.yaml", *GRID[2:]]
    capsys.readouterr()
    assert rtrain(again) == 2
    assert f"{folder} contains the sweep of tiny.yaml; this one is of b/tiny.yaml." in capsys.readouterr().err
    assert (folder / "command.yaml").read_text() == command
    Path("tiny.yaml").unlink()
    assert rtrain(["resume", str(folder)]) == 2
    told = capsys.readouterr().err
    assert "repeat the command of the sweep with its new path" in told
    assert "run.storage" not in told
    assert rtrain(again) == 0
    assert rtrain(["resume", str(folder)]) == 0
    Path("tiny.yaml").symlink_to("b/tiny.yaml")
    assert rtrain(GRID) == 0


def test_a_built_in_config_and_a_copy_of_it_are_two(tmp_path):
    (tmp_path / "command.yaml").write_text("config: mlp\n")
    copy = tmp_path / "mlp.yaml"
    copy.write_text((builtin_config_dir() / "mlp.yaml").read_text())
    check_source(tmp_path, "mlp")
    with pytest.raises(ConfigError, match=r"contains the sweep of mlp; this one is of .*/mlp\.yaml"):
        check_source(tmp_path, str(copy))
