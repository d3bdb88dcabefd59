"""A logger that another package brings through an entry point: the example of the docs, with a stand-in for Comet."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tracker_readers import of_events

import rtrain
from rtrain.runs.run import Run

EXAMPLE = Path(__file__).parents[2] / "docs" / "examples" / "rtrain-comet"
COMET = """
import json
from dataclasses import dataclass


def ExperimentConfig(**settings):
    return settings


def start(*, experiment_key, mode, online, project, workspace, experiment_config):
    assert (mode == "get") == (experiment_key is not None)
    return Experiment(experiment_key or "0123456789abcdef0123456789abcdef", experiment_config)


class Experiment:
    def __init__(self, key, config):
        self.key = key
        self.note("start", config["name"], config["tags"])

    def note(self, *what):
        with open("comet.jsonl", "a") as file:
            print(json.dumps(what), file=file)

    def get_key(self):
        return self.key

    def log_parameters(self, parameters):
        self.note("parameters", parameters)

    def log_others(self, others):
        self.note("others", others)

    def log_other(self, key, value):
        self.note("other", key, value)

    def log_metrics(self, dic, *, step, epoch):
        self.note("metrics", dic, step, epoch)

    def end(self):
        self.note("end")
"""


@pytest.fixture
def environment(tmp_path):
    """The environment of a process in which the example and the stand-in are installed."""
    target = tmp_path / "installed"
    about = target / "rtrain_comet-0.1.0.dist-info"
    about.mkdir(parents=True)
    shutil.copy(EXAMPLE / "rtrain_comet.py", target)
    (target / "comet_ml.py").write_text(COMET)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: rtrain-comet\nVersion: 0.1.0\n")
    (about / "entry_points.txt").write_text("[rtrain.loggers]\ncomet = rtrain_comet\n")
    ours = str(Path(rtrain.__file__).parents[1])
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(target), ours])}


def test_it_gets_what_the_run_holds_also_after_a_resume(environment, tmp_path):
    assert 'comet = "rtrain_comet"' in (EXAMPLE / "pyproject.toml").read_text()

    def rtrain_says(*words):
        command = [sys.executable, "-c", "from rtrain.cli import main; main()", *words]
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr

    words = ["num_workers=0", "epochs=1", "run.loggers.comet.project=digits", "run.tags=[first]"]
    rtrain_says("fit", "mlp", *words)
    (folder,) = tmp_path.glob("runs/mlp/*")
    rtrain_says("resume", str(folder), "epochs=2")
    found = [json.loads(line) for line in (tmp_path / "comet.jsonl").read_text().splitlines()]
    assert [one[1:] for one in found if one[0] == "start"] == [[folder.name, ["first"]]] * 2
    sent = {}
    for _, metrics, step, _ in (one for one in found if one[0] == "metrics"):
        for name, value in metrics.items():
            sent.setdefault(name, {})[step] = value
    assert sent == of_events(Run.load(folder))
    assert next(one[1] for one in found if one[0] == "parameters")["trainer.max_epochs"] == 1
    assert found[-2:] == [["other", "status", "succeeded"], ["end"]]
