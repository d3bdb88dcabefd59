"""What a person sees of a run that failed: the error once, with the user's own lines, and logs that hold the rest."""

import logging
import re
import sys
import traceback
from pathlib import Path

import pytest

import rtrain
from rtrain.cli.app import run
from rtrain.errors import ConfigError, TrainingError

CODE = """
import numpy
import sklearn.base
import torch

def loop(config):
    step(config["how"])

def step(how):
    known = {"a": 1}
    if how == "key": known["b"]
    if how == "assert":
        assert known["a"] == 2, "a is wrong"
    if how == "import":
        import not_there_at_all
    if how == "shape":
        torch.zeros(3, 4) @ torch.zeros(5, 6)
    if how == "lines":
        raise ValueError("first\\nsecond")
    if how == "escape":
        raise ValueError("\\x1b]0;owned\\x07")
    if how == "exit":
        raise SystemExit(3)
    if how == "loader":
        list(torch.utils.data.DataLoader(Rows(), num_workers=1))

class Rows(list):
    def __len__(self): return 4
    def __getitem__(self, row): return {}["img_7"]

class Net(torch.nn.Module):
    def __init__(self, late):
        super().__init__()
        self.layer, self.late, self.calls = torch.nn.Linear(64 if late else 60, 10), late, 0

    def forward(self, rows):
        self.calls += 1
        if self.late and self.calls > 20:
            raise RuntimeError("late")
        return self.layer(rows.flatten(1))

class Loss(torch.nn.Module):
    def forward(self, output, target):
        return output.no_such_name

def rows():
    return numpy.zeros(3) + numpy.zeros(4)

def objective(predictions, matrix):
    return predictions + 1 + [1, 2, 3]

class Estimator(sklearn.base.ClassifierMixin, sklearn.base.BaseEstimator):
    def fit(self, X, y):
        return self.no_such_name

def chained(config):
    try: {}["b"]
    except KeyError as error: raise RuntimeError("the rows can't be read") from error
"""
LOOP = "trainer: {type: torch, train_loop: 'own:loop', train_loop_config: {how: exit}}"
NET = """
defaults: [trainer: torch, dataset: digits, optimizer: sgd]
trainer: {model: {_target_: own.Net, late: true}, max_epochs: 1}
"""
FOREST = """
defaults: [trainer: sklearn, dataset: digits]
trainer: {estimator: {_target_: own.Estimator}}
"""
LOOPS = {
    "key": """
error: KeyError: 'b'
  --> own.py:11:22 in step
  >   11 | if how == "key": known["b"]
         |                  ^^^^^^^^^^
  --> own.py:7 in loop
  >    7 | step(config["how"])
  more frames: 5 of rtrain
""",
    "assert": """
error: AssertionError: a is wrong
  --> own.py:13:16 in step
  >   13 | assert known["a"] == 2, "a is wrong"
         |        ^^^^^^^^^^^^^^^
""",
    "import": """
error: ModuleNotFoundError: No module named 'not_there_at_all'
  --> own.py:15 in step
  >   15 | import not_there_at_all
  --> own.py:7 in loop
  >    7 | step(config["how"])
  more frames: 5 of rtrain
try: pip install not_there_at_all
or check the spelling of the import
The full traceback is in RUN/logs/worker-0.log
""",
    "shape": """
error: RuntimeError: mat1 and mat2 shapes cannot be multiplied (3x4 and 5x6)
  --> own.py:17 in step
  >   17 | torch.zeros(3, 4) @ torch.zeros(5, 6)
  --> own.py:7 in loop
  >    7 | step(config["how"])
  more frames: 5 of rtrain
Rows of 4 numbers reach a layer for 5: change the layer's in_features, or reshape before it.
""",
    "lines": """
error: ValueError: first
second
  --> own.py:19 in step
""",
    "escape": r"""
error: ValueError: \x1b]0;owned\x07
  --> own.py:21 in step
""",
    "exit": """
error: SystemExit: 3
  --> own.py:23 in step
  >   23 | raise SystemExit(3)
""",
    "loader": """
error: KeyError: 'img_7' (in DataLoader worker process 0)
  --> own.py:29 in __getitem__
  >   29 | def __getitem__(self, row): return {}["img_7"]
  --> own.py:25 in step
""",
}
OTHERS = {
    "model": (
        NET,
        [],
        """
error: RuntimeError: late
  --> own.py:39 in forward
  >   39 | raise RuntimeError("late")
  more frames: 13 (11 of rtrain, 2 of torch)
The full traceback is in RUN/logs/worker-0.log
""",
    ),
    "objective": (
        "defaults: [trainer: xgboost, dataset: digits]",
        ["trainer.objective_function=own.objective"],
        """
error: ValueError: operands could not be broadcast together with shapes (1258,10) (3,)
  --> own.py:50:12 in objective
  >   50 | return predictions + 1 + [1, 2, 3]
         |        ^^^^^^^^^^^^^^^^^^^^^^^^^^^
  more frames: 7 (5 of rtrain, 2 of xgboost)
""",
    ),
    "estimator": (
        FOREST,
        [],
        """
error: AttributeError: 'Estimator' object has no attribute 'no_such_name'
  --> own.py:54:16 in fit
  >   54 | return self.no_such_name
         |        ^^^^^^^^^^^^^^^^^
""",
    ),
}
FIRST_STEP = {
    "model": (
        "trainer.model.late=false",
        "trainer.model: own.Net fails with rows of numbers",
        "own.py:40:16 in forward",
    ),
    "loss": ("+trainer.loss._target_=own.Loss", "trainer.loss", "own.py:44:16 in forward"),
}
DATA = """
error: dataset.function: own:rows failed: ValueError: operands could not be broadcast together with shapes (3,) (4,)
    rtrain fit failing.yaml num_workers=0 dataset=python dataset.function=own:rows
                                                         ^^^^^^^^^^^^^^^^^^^^^^^^^
  --> own.py:47:12 in rows
  >   47 | return numpy.zeros(3) + numpy.zeros(4)
         |        ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
"""


@pytest.fixture
def project(tmp_path, monkeypatch):
    (tmp_path / "own.py").write_text(CODE)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def fail(capsys, text, *overrides):
    """Return the exit code, and what is shown of a run, its folder written as RUN."""
    Path("failing.yaml").write_text(text)
    code = run(["fit", "failing.yaml", "num_workers=0", *overrides])
    out, err = capsys.readouterr()
    lines = [line.rstrip() for line in re.sub(r"runs/failing/[\w-]+", "RUN", err).split("\n")]
    return code, out, "\n".join(lines)


@pytest.mark.parametrize("how", LOOPS)
def test_an_error_of_a_loop_is_shown_once_with_the_lines_of_the_loop(project, capsys, how):
    code, out, err = fail(capsys, LOOP, f"trainer.train_loop_config.how={how}")
    assert code == 1
    screen = LOOPS[how].lstrip("\n")
    if how == "assert" and sys.version_info[:2] == (3, 12):  # there the whole statement raises: nothing is marked
        screen = screen.replace(":13:16 ", ":13 ").replace("\n         |        ^^^^^^^^^^^^^^^\n", "\n")
    assert err.startswith(screen), err
    first = LOOPS[how].strip().split("\n")[0].removeprefix("error: ")
    assert (out + err).count(first) == 1
    assert "Error" not in out


@pytest.mark.parametrize("kind", OTHERS)
def test_an_error_of_what_a_config_names_is_shown_with_its_lines(project, capsys, kind):
    text, overrides, screen = OTHERS[kind]
    code, _, err = fail(capsys, text, *overrides)
    assert code == 1
    assert err.startswith(screen.lstrip("\n")), err


@pytest.mark.parametrize("kind", FIRST_STEP)
def test_an_error_of_the_first_step_is_one_of_the_config_with_its_lines(project, capsys, kind):
    word, message, line = FIRST_STEP[kind]
    code, out, err = fail(capsys, NET, word)
    assert (code, out) == (2, "")
    assert err.startswith(f"error: {message}"), err
    assert line in err
    assert not Path("runs").exists()


def test_an_error_of_a_function_that_makes_the_data_is_shown_with_its_lines(project, capsys):
    code, out, err = fail(capsys, NET, "dataset=python", "dataset.function=own:rows")
    assert (code, out, err) == (2, "", DATA.lstrip("\n"))
    assert not Path("runs").exists()


def test_the_next_command_shows_a_log_with_the_whole_traceback_and_the_drivers_log_has_what_was_shown(project, capsys):
    _, out, err = fail(capsys, LOOP, "trainer.train_loop_config.how=escape")
    (log,) = re.findall(r"next +less (\S+)", out)
    out = re.sub(r"runs/failing/[\w-]+/logs", "RUN/logs", out)
    assert "in step" in Path(log).read_text()
    driver = Path(log).with_name("driver.log").read_text()
    shown = [*out.splitlines(), *err.removeprefix("error: ").splitlines()]
    assert [line for line in shown if line not in re.sub(r"runs/failing/[\w-]+/logs", "RUN/logs", driver)] == []
    assert "\x1b" not in driver


def test_logging_is_as_before_after_a_run(project, capsys):
    def state():
        found = [logging.getLogger(name) for name in ("rtrain", "ray")]
        return [(one.level, one.propagate, list(one.handlers)) for one in found]

    before = state()
    fail(capsys, LOOP)
    assert state() == before


def test_in_python_an_error_has_the_run_and_is_short(project):
    Path("failing.yaml").write_text(LOOP)
    with pytest.raises(TrainingError) as caught:
        rtrain.fit("failing.yaml", ["num_workers=0", "trainer.train_loop_config.how=key"])
    error = caught.value
    assert error.run.status == "failed"
    assert error.run.path == error.run_dir
    assert error.run.manifest.error["frames"]["lines"][0]["function"] == "step"
    assert isinstance(error.cause, KeyError)
    assert str(error).startswith("KeyError: 'b'\n")
    assert len("".join(traceback.format_exception(error)).splitlines()) <= 15
    assert error._render_traceback_()[0] == "TrainingError: KeyError: 'b'"


@pytest.mark.parametrize("verb", [rtrain.fit, rtrain.sweep], ids=["fit", "sweep"])
def test_in_python_a_wrong_config_is_short_and_has_no_run(project, verb):
    Path("failing.yaml").write_text(LOOP)
    with pytest.raises(ConfigError) as caught:
        verb("failing.yaml", ["num_wrkers=0"])
    assert caught.value.run is None
    assert len("".join(traceback.format_exception(caught.value)).splitlines()) <= 15


def test_a_notebook_shows_the_first_lines_of_a_long_message():
    error = ConfigError("\n".join(f"key_{number} is wrong" for number in range(30)), "Remove these rows.")
    shown = error._render_traceback_()
    assert len(shown) == 15
    assert shown[0] == "ConfigError: key_0 is wrong"
    assert shown[-1] == "... 17 more lines: print(error) shows all of them"
    assert len(ConfigError("\n".join("x" * 15))._render_traceback_()) == 15


CHAIN = """
error: RuntimeError: the rows can't be read
caused by KeyError: 'b'
  --> own.py:57:10 in chained
  >   57 | try: {}["b"]
         |      ^^^^^^^
"""


def test_an_error_raised_from_another_shows_both_messages_once(project, capsys):
    code, out, err = fail(capsys, LOOP, "trainer.train_loop=own:chained")
    assert code == 1
    assert err.startswith(CHAIN.lstrip("\n")), err
    assert [(out + err).count(text) for text in ("RuntimeError: the", "KeyError: 'b'")] == [1, 1]


def test_in_python_a_config_is_a_path_or_a_text(project):
    Path("failing.yaml").write_text(LOOP)
    for call in (rtrain.fit, rtrain.sweep):
        for config in ("failing.yaml", Path("failing.yaml")):
            with pytest.raises(ConfigError, match="num_wrkers"):
                call(config, ["num_wrkers=0"])


def test_without_a_log_of_the_worker_the_next_command_names_the_drivers(project, capsys, monkeypatch):
    monkeypatch.setattr("rtrain.training.recording.check_rows", lambda manifest: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        fail(capsys, LOOP, "trainer.train_loop_config.how=fine")
    (log,) = re.findall(r"next +less (\S+)", capsys.readouterr().out)
    assert Path(log).name == "driver.log"
    assert "ZeroDivisionError" in Path(log).read_text()
