"""``rtrain smoke``: what it finds, how it judges, and that one bad config doesn't stop the others."""

import signal
import sys
import time
from contextlib import nullcontext
from pathlib import Path
from xml.etree import ElementTree

import pytest

import rtrain.smoke
from rtrain import plugins
from rtrain.cli.app import run
from rtrain.errors import ConfigError
from rtrain.process import interrupts
from rtrain.process.interrupts import stop_on_signals, stopped_after
from rtrain.smoke import find_smokes, run_smokes

TREES = """\
defaults: [trainer: xgboost, dataset: digits]
smoke:
  overrides: [num_workers=0, trainer.num_boost_round=2]
  expect: {%s}
"""
OWN = """\
defaults: [trainer: torch, optimizer: sgd, loss: cross_entropy, dataset: digits]
trainer: {model: {_target_: net.Net}}
smoke:
  overrides: [num_workers=0, max_epochs=1]
  expect: {val/accuracy: {min: 0.3}}
"""
NET = """\
import torch


class Net(torch.nn.Sequential):
    def __init__(self):
        print("this is %s")
        super().__init__(torch.nn.Flatten(), torch.nn.Linear(64, 10))
"""


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(path, text):
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_text(text)


def outcomes(*paths, max_seconds=120):
    return {outcome.smoke.name: outcome for outcome in run_smokes(find_smokes(paths), max_seconds)}


def test_smoke_blocks_are_found_in_folders_at_any_depth_but_not_in_runs(folder):
    write("recipes/trees/config.yaml", TREES % "")
    write("recipes/deep/er/forest.yaml", TREES % "")
    write("recipes/plain.yaml", "defaults: [mlp]\n")
    write("recipes/runs/x/config.yaml", TREES % "")
    write("recipes/.hidden/config.yaml", TREES % "")
    assert [smoke.name for smoke in find_smokes([])] == ["forest", "trees"]
    assert [smoke.name for smoke in find_smokes(["recipes/trees", "recipes/trees/config.yaml"])] == ["trees"]


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("nothing", "nothing doesn't exist"),
        ("plain.yaml", "plain.yaml has no smoke block"),
        ("empty", "empty contains no YAML file with a smoke block"),
    ],
)
def test_a_path_without_a_smoke_block_is_an_error(folder, path, message):
    write("plain.yaml", "defaults: [mlp]\n")
    (folder / "empty").mkdir()
    with pytest.raises(ConfigError, match=message):
        find_smokes([path])


def test_each_metric_is_held_to_its_bounds_and_misses_come_first(folder):
    write("good.yaml", TREES % "val/merror: {min: 0, max: 0.5}")
    write("bad.yaml", TREES % "val/merror: {max: 0.5}, val/accuracy: {min: 0.999}, val/acuracy: {min: 0.1}")
    found = outcomes("good.yaml", "bad.yaml")
    assert found["good"].status == "passed"
    assert found["good"].lines[0].startswith("val/merror 0.")
    assert found["good"].lines[0].endswith("(>= 0 and <= 0.5)")
    assert found["bad"].status == "missed"
    low, unknown, good = found["bad"].lines
    assert low.startswith("val/accuracy 0.")
    assert low.endswith(" must be >= 0.999")
    assert unknown == "val/acuracy was not reported; did you mean: val/accuracy"
    assert good.endswith("(<= 0.5)")
    assert found["bad"].run.path.parent == folder / "runs/smoke/bad"


def test_a_config_that_is_wrong_is_told_apart_and_the_others_are_tried(folder, capsys):
    write("good.yaml", TREES % "")
    write("wrong.yaml", (TREES % "").replace("num_boost_round", "num_bost_round"))
    write("listless.yaml", "defaults: [mlp]\nsmoke: {overrides: num_workers=0}\n")
    write("lost.yaml", (TREES % "").replace("num_workers=0", "num_workers=0, dataset=csv, dataset.path=no.csv"))
    found = outcomes("good.yaml", "wrong.yaml", "listless.yaml", "lost.yaml")
    assert {name: outcome.status for name, outcome in found.items()} == {
        "listless": "wrong",
        "wrong": "wrong",
        "lost": "wrong",
        "good": "passed",
    }
    assert "did you mean: trainer.num_boost_round" in "\n".join(found["wrong"].lines)
    assert "smoke.overrides" in found["listless"].lines[0]
    assert run(["smoke", "good.yaml", "wrong.yaml", "lost.yaml", "--junit", "smoke.xml"]) == 1
    assert "1 passed, 0 missed, 2 wrong, 0 skipped" in capsys.readouterr().out
    root = ElementTree.parse("smoke.xml").getroot()
    assert (root.get("failures"), root.get("errors")) == ("0", "2")
    assert len(list(root.iter("error"))) == 2


def test_projects_may_have_modules_of_the_same_name(folder):
    paths = list(sys.path)
    for name in ("one", "two"):
        write(f"{name}/config.yaml", OWN)
        write(f"{name}/net.py", NET % name)
        write(f"{name}/pyproject.toml", "")
    found = outcomes("one", "two")
    assert [(outcome.status, outcome.output) for outcome in found.values()] == [
        ("passed", "this is one\n"),
        ("passed", "this is two\n"),
    ]
    assert sys.path == paths
    assert "net" not in sys.modules


def test_what_takes_too_long_is_stopped_and_has_missed(folder):
    write("endless.yaml", (TREES % "").replace("num_boost_round=2", "num_boost_round=10000000"))
    (outcome,) = outcomes("endless.yaml", max_seconds=2).values()
    assert (outcome.status, outcome.lines) == ("missed", ("was still training after 2 seconds",))
    write("good.yaml", TREES % "")
    assert outcomes("good.yaml")["good"].status == "passed"


def test_what_takes_too_long_before_it_trains_says_so(folder):
    write(
        "slow.yaml", (TREES % "").replace("num_workers=0", "num_workers=0, dataset=python, dataset.function=slow:load")
    )
    write("slow.py", "import time\n\n\ndef load():\n    time.sleep(60)\n")
    (outcome,) = outcomes("slow.yaml", max_seconds=1).values()
    assert (outcome.status, outcome.lines) == ("missed", ("had not started to train after 1 seconds",))


def test_what_takes_too_long_since_its_workers_share_the_cores_says_so(folder, monkeypatch):
    monkeypatch.setattr("rtrain.smoke.connect", lambda *_: nullcontext())
    monkeypatch.setattr("rtrain.smoke.fit_session", lambda *_: time.sleep(60))
    write("crowded.yaml", (TREES % "").replace("num_workers=0", "num_workers=100"))
    (outcome,) = outcomes("crowded.yaml", max_seconds=1).values()
    assert "100 workers share" in outcome.lines[1]


def test_configs_of_the_same_name_are_told_apart(folder, capsys):
    for place in ("c.yaml", "one/c.yaml", "two/c.yaml", "other.yaml"):
        write(place, (TREES % "").replace("num_boost_round", "num_bost_round"))
    assert run(["smoke", ".", "--junit", "smoke.xml"]) == 1
    rows = [line for line in capsys.readouterr().out.splitlines() if " wrong " in line]
    assert [row.split()[0] for row in rows[:4]] == ["c.yaml", "one/c.yaml", "other", "two/c.yaml"]
    cases = [(case.get("classname"), case.get("name")) for case in ElementTree.parse("smoke.xml").iter("testcase")]
    assert cases == [(".", "c"), ("one", "c"), (".", "other"), ("two", "c")]


def test_what_lacks_a_framework_is_skipped_with_the_way_to_install_it(folder, monkeypatch, capsys):
    missing = plugins.missing_modules
    monkeypatch.setattr(
        plugins, "missing_modules", lambda names: ("xgboost",) if "xgboost" in names else missing(names)
    )
    write("good.yaml", TREES % "")
    (outcome,) = outcomes("good.yaml").values()
    assert outcome.status == "skipped"
    assert outcome.lines[1] == "try: pip install 'rtrain[xgboost]'"
    assert run(["smoke", "good.yaml"]) == 1, "when everything was skipped, nothing is known to work"


def test_a_fault_of_rtrain_is_a_miss_with_its_traceback(folder, monkeypatch):
    def fail(*_):
        raise ZeroDivisionError("by zero")

    monkeypatch.setattr(rtrain.smoke, "fit_session", fail)
    write("good.yaml", TREES % "")
    (outcome,) = outcomes("good.yaml").values()
    assert (outcome.status, outcome.lines) == ("missed", ("ZeroDivisionError: by zero",))
    assert "in fail" in outcome.output


def test_ctrl_c_ends_all_of_it(folder, monkeypatch):
    def interrupt(*_):
        signal.raise_signal(signal.SIGINT)
        time.sleep(0)

    monkeypatch.setattr(rtrain.smoke, "fit_session", interrupt)
    write("good.yaml", TREES % "")
    assert run(["smoke", "good.yaml"]) == 130


def test_the_command_prints_a_table_and_writes_junit(folder, capsys):
    write("good.yaml", TREES % "val/accuracy: {min: 0.5}")
    write("bad.yaml", TREES % "val/accuracy: {min: 0.999}")
    assert run(["smoke", "good.yaml", "--junit", "out/smoke.xml"]) == 0
    assert run(["smoke", "good.yaml", "bad.yaml", "--junit", "out/smoke.xml"]) == 1
    good, bad, config, made, total = capsys.readouterr().out.splitlines()[2:]
    assert bad.split()[:2] == ["bad", "missed"]
    assert config.split() == ["config", "bad.yaml"]
    assert made.split()[1].startswith("runs/smoke/bad/")
    assert good.split()[:2] == ["good", "passed"]
    assert total.startswith("1 passed, 1 missed, 0 skipped in ")
    root = ElementTree.parse("out/smoke.xml").getroot()
    assert (root.get("tests"), root.get("failures"), root.get("skipped")) == ("2", "1", "0")
    cases = {case.get("name"): case for case in root.iter("testcase")}
    assert "must be >= 0.999" in cases["bad"].find("failure").get("message")
    assert cases["good"].find("failure") is None


def test_a_limit_of_time_stops_first_gently_then_at_once(monkeypatch):
    monkeypatch.setattr(interrupts, "GRACE_SECONDS", 0.2)
    before = signal.getsignal(signal.SIGALRM)
    asked = []

    def work_on():
        with stop_on_signals() as request, stopped_after(0.1) as limit:
            while True:
                if limit.passed and not asked:
                    asked.append(request.reason)

    with pytest.raises(KeyboardInterrupt):
        work_on()
    assert asked == ["interrupted"]
    assert signal.getsignal(signal.SIGALRM) is before


def test_a_limit_that_is_kept_changes_nothing():
    with stopped_after(60) as limit:
        pass
    assert not limit.passed


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("trainer.train_loop_config.new=1", "try: smoke.overrides: +trainer.train_loop_config.new=1 seed=1"),
        ("trainer.max_epoch=1", "trainer.train_loop does the training"),
        ("num_worker=0", "try: smoke.overrides: num_workers=0 seed=1"),
        ("dataset=digitz", "try: smoke.overrides: dataset=digits seed=1"),
        ("seed=1,2", "'seed=1,2' has several values"),
        ("epochs=4", "trainer.max_epochs has no effect"),
        ("run.notes=[a", "can't be read"),
    ],
)
def test_a_wrong_word_of_a_smoke_block_is_shown_in_its_block_and_not_in_a_command(folder, word, said):
    (folder / "own_loop.py").write_text("def train(config):\n    pass\n")
    loop = "trainer: {type: torch, train_loop: 'own_loop:train', train_loop_config: {lr: 0.1}}\nnum_workers: 0\n"
    write("own.yaml", f"{loop}smoke: {{overrides: ['{word}', seed=1]}}\n")
    outcome = outcomes("own.yaml")["own"]
    text = "\n".join(outcome.lines)
    assert (outcome.status, said in text) == ("wrong", True), text
    assert f"    smoke.overrides: {word} seed=1" in outcome.lines
    assert "rtrain fit" not in text
    assert "run.root_dir" not in text
