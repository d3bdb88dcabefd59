"""Commands that texts name can be pasted, also where a folder's name has a blank."""

import shlex
from dataclasses import replace

import pytest

from rtrain.cli.app import run as rtrain
from rtrain.config.files.locations import find_primary
from rtrain.displays.sweep_lines import end_lines as sweep_end_lines
from rtrain.displays.sweep_lines import sweep_report
from rtrain.errors import ConfigError, DamagedSweepError
from rtrain.run_lines import end_lines
from rtrain.runs.filesystem.files import unwritable
from rtrain.searches.base import Objective
from rtrain.sweeps.record.sweep_record import SweepRecord, read_sweep
from rtrain.sweeps.record.trial import Trial
from rtrain.testing.workers import make_manifest


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "my work"
    folder.mkdir()
    return folder


def words_of(line, command):
    """Return the words of the command that a line ends with, as a shell takes them."""
    return shlex.split(line[line.index(command) :])


@pytest.mark.parametrize(
    ("status", "words"),
    [
        ("failed", ["less", "{}/logs/driver.log"]),
        ("interrupted", ["rtrain", "resume", "{}"]),
        ("succeeded", ["rtrain", "runs", "show", "{}"]),
    ],
)
def test_the_end_of_a_run(folder, status, words):
    (folder / "logs").mkdir()
    (folder / "logs" / "driver.log").write_text("why")
    manifest = replace(make_manifest(), status=status, timings_seconds={"total": 1.0})
    assert words_of(end_lines(folder, manifest)[-1], words[0]) == [word.format(folder) for word in words]


def test_the_end_and_the_report_of_a_sweep(folder):
    record = SweepRecord(folder, {"search": "grid", "axes": []})
    record.goals = [Objective(metric="val/loss", mode="min")]
    record.trials = [Trial(number=0, point=("1",), overrides=["a=1"], name="000-abc", config_hash="x", lacks_copy=True)]
    *_, copy, _, again = sweep_end_lines(record)
    assert words_of(copy, "rtrain runs")[-1] == f"{folder}/000-abc"
    assert words_of(again, "rtrain resume") == ["rtrain", "resume", str(folder)]
    assert words_of(sweep_report(record)[-1], "rtrain resume") == ["rtrain", "resume", str(folder)]


def test_what_rebuilds_a_sweep(folder):
    (folder / "sweep.json").write_text("{")
    with pytest.raises(DamagedSweepError) as error:
        read_sweep(folder)
    assert words_of(str(error.value), "rtrain resume") == ["rtrain", "resume", str(folder)]


def test_what_resumes_a_run_that_could_not_be_written(folder):
    (folder / "manifest.json").touch()
    text = str(unwritable(folder, OSError(28, "No space left on device")))
    assert words_of(text.partition(". For new runs")[0], "rtrain resume") == ["rtrain", "resume", str(folder)]


@pytest.mark.parametrize(
    ("there", "given", "words"),
    [
        ("sweep.json", "", ["rtrain", "resume", "{}"]),
        ("a b.yaml", "", ["rtrain", "fit", "{}/a b.yaml"]),
        ("a.txt", "a.txt", ["rtrain", "fit", "{}/a.yaml"]),
        ("a.yml", "a.yml", ["mv", "{}/a.yml", "{}/a.yaml"]),
    ],
)
def test_a_config_that_is_none(folder, there, given, words):
    (folder / there).touch()
    with pytest.raises(ConfigError) as error:
        find_primary(str(folder / given))
    assert words_of(str(error.value), " ".join(words[:1]) + " ") == [word.format(folder) for word in words]


def test_a_recipe_that_was_copied(folder, capsys):
    assert rtrain(["recipes", "cp", "custom-loop", str(folder / "mine")]) == 0
    assert words_of(capsys.readouterr().out, "rtrain fit") == ["rtrain", "fit", str(folder / "mine")]


def test_an_option_with_another_ending(folder, capsys):
    (folder / "dataset").mkdir()
    (folder / "net.yaml").write_text("defaults: [trainer: torch, dataset: digits, model: mlp]\n")
    (folder / "dataset" / "own.yml").touch()
    assert rtrain(["fit", str(folder / "net.yaml"), "dataset=own", "--cfg", "job"]) == 2
    option = f"{folder}/dataset/own"
    assert words_of(capsys.readouterr().err, "mv ") == ["mv", f"{option}.yml", f"{option}.yaml"]
