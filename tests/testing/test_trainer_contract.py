"""The contract of trainers finds what a trainer does wrong, and nothing in one that does nothing wrong."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

import rtrain

PACKAGE = Path(__file__).parent / "rtrain_faulty"
CAUGHT = {
    "saves nothing": "it_trains_reports_and_checkpoints",
    "ignores the seed": "the_config_of_a_run_repeats_it_to_the_last_digit",
    "saves untrained weights": "its_checkpoint_alone_gives_the_metrics_of_the_run",
    "predicts with untrained weights": "its_checkpoint_alone_gives_the_metrics_of_the_run",
    "predicts without its file": "a_checkpoint_that_lacks_a_file_is_told",
    "drops the last rows": "each_row_is_seen_once",
    "reads rows twice": "each_row_is_seen_once",
    "drops the last rows in silence": "the_last_row_counts_even_if_rows_are_fewer_than_a_step_takes",
    "ignores a request to stop": "a_request_to_stop_ends_training_early_with_a_checkpoint",
    "ignores checkpoints": "a_stopped_run_resumes_to_the_result_of_an_uninterrupted_one",
    "resumes with fewer digits": "a_stopped_run_resumes_to_the_result_of_an_uninterrupted_one",
    "resumes without its weights": "a_stopped_run_resumes_to_the_result_of_an_uninterrupted_one",
    "imports its framework at once": "the_plugin_imports_no_framework",
}
"""Fault -> the test of the contract that has to fail."""
ONCE_FINISHED = ("ignores checkpoints", "a_finished_run_is_not_trained_again")
CLASS = """
class {name}(TrainerContract):
    config = "digits.yaml"
    overrides = ("trainer.fault='{fault}'",)
    trainer = "{trainer}"
    framework = "rtrain_faulty.loop"
    distributed = False
"""


def name_of(fault):
    return "Test" + fault.title().replace(" ", "")


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory):
    """Return which tests failed, by class and name; one process runs them all."""
    folder = tmp_path_factory.mktemp("faults")
    shutil.copytree(PACKAGE, folder / "rtrain_faulty")
    shutil.copytree(PACKAGE, folder / "rtrain_eager")
    plugin = folder / "rtrain_eager" / "plugin.py"
    plugin.write_text("import rtrain_faulty.loop\n" + plugin.read_text())
    installed = folder / "rtrain_faulty-1.dist-info"
    installed.mkdir()
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: rtrain-faulty\nVersion: 1\n")
    (installed / "entry_points.txt").write_text("[rtrain.trainers]\nfaulty = rtrain_faulty\neager = rtrain_eager\n")
    (folder / "digits.yaml").write_text("defaults: [{dataset: digits}]\ntrainer: {type: faulty}\n")
    classes = [
        CLASS.format(name=name_of(fault), fault=fault, trainer="eager" if fault.startswith("imports") else "faulty")
        for fault in ("", *CAUGHT)
    ]
    text = "from rtrain.testing.trainer_contract import TrainerContract\n"
    (folder / "test_faults.py").write_text(text + "".join(classes))
    chosen = [f"test_faults.py::{name_of(fault)}::test_{test}" for fault, test in (*CAUGHT.items(), ONCE_FINISHED)]
    return run_tests(folder, [*chosen, "test_faults.py::Test"])


def run_tests(folder, chosen):
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--junitxml=found.xml", *chosen]
    paths = os.pathsep.join([str(folder), str(Path(rtrain.__file__).parents[1])])
    done = subprocess.run(
        command, cwd=folder, env={**os.environ, "PYTHONPATH": paths}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1, done.stdout + done.stderr
    cases = ElementTree.parse(folder / "found.xml").iter("testcase")
    return {
        (case.get("classname").rpartition(".")[2], case.get("name")): case.find("failure") is not None
        or case.find("error") is not None
        for case in cases
    }


def test_a_trainer_without_faults_passes(outcomes):
    found = [failed for (name, _), failed in outcomes.items() if name == "Test"]
    assert len(found) > 10
    assert not any(found)


@pytest.mark.parametrize(("fault", "test"), [*CAUGHT.items(), ONCE_FINISHED])
def test_a_fault_is_caught(outcomes, fault, test):
    assert outcomes[name_of(fault), f"test_{test}"], f"a trainer that {fault} passes"
