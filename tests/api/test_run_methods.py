"""What a run does in Python: it is evaluated, predicts, is resumed and is shown."""

from __future__ import annotations

import dataclasses
import os
import shutil
import signal
import sys
from functools import partial
from html.parser import HTMLParser
from pathlib import Path
from types import ModuleType

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import rtrain
from rtrain.config.calls.call import Call
from rtrain.displays.notebook import WarningObserver
from rtrain.runs.observer import SilentObserver
from rtrain.runs.run import Run
from rtrain.sweeps.record.folder import resuming_sweep

QUICK = {"num_workers": 0, "epochs": 2, "dataset.limit": 100}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("runs")


@pytest.fixture(scope="module")
def run(folder):
    return rtrain.fit("mlp", QUICK, run={"root_dir": str(folder)}, model={"hidden": [8]})


@pytest.fixture(scope="module")
def sweep(folder):
    lr = rtrain.choice(0.1, 0.01)
    return rtrain.sweep("mlp", QUICK, epochs=1, lr=lr, run={"root_dir": str(folder)}, model={"hidden": [8]})


def test_a_run_stands_for_its_path(run):
    assert os.fspath(run) == str(run.path)
    assert run.evaluate() == rtrain.evaluate(run) == rtrain.evaluate(run.path) == rtrain.evaluate(str(run.path))
    assert rtrain.load_checkpoint(run).path == run.best_checkpoint


def test_what_has_a_path_can_be_a_key(run, sweep):
    changed = Run.load(run.path)
    changed.manifest.exit_reason = "another manifest of the same run"
    assert {run, Run.load(run.path), sweep.best} == {run, sweep.best}
    assert hash(changed) == hash(run)
    assert len({*sweep.trials, *sweep.trials}) == len(sweep.trials)
    checkpoint = rtrain.load_checkpoint(run)
    assert {checkpoint: 1}[checkpoint] == 1
    assert hash(sweep)


@pytest.mark.parametrize("table", [pd.DataFrame({"a": [1]}), pl.DataFrame({"a": [1]}), pa.table({"a": [1]})], ids=type)
def test_a_table_in_the_place_of_overrides_says_where_rows_come_from(run, table):
    for call in (run.evaluate, run.resume, lambda table: run.predict(overrides=table), partial(rtrain.fit, "mlp")):
        with pytest.raises(rtrain.ConfigError, match=r"overrides are words of a config, not a \w+\.\n.*dataset\.path"):
            call(table)
    with pytest.raises(rtrain.ConfigError, match=r"output must be a path or None, not a table\."):
        run.predict(table)


def test_overrides_in_the_place_of_the_output_are_named(run):
    with pytest.raises(rtrain.ConfigError, match=r"a path or None, not \['dataset.limit=3'\]\.\n.*overrides="):
        rtrain.predict(run, ["dataset.limit=3"])


def test_short_names_work_wherever_a_run_is_expected(run, folder, monkeypatch):
    (folder / "elsewhere" / "runs" / "mlp").mkdir(parents=True)
    shutil.copytree(run.path, folder / "elsewhere" / "runs" / "mlp" / run.path.name)
    monkeypatch.chdir(folder / "elsewhere")
    assert rtrain.evaluate("last") == rtrain.evaluate(run)
    assert rtrain.load_checkpoint("last").path.name == run.best_checkpoint.name
    assert rtrain.Run.load("last").manifest.run_id == run.manifest.run_id
    assert rtrain.load_checkpoint("best:mlp").path.name == run.best_checkpoint.name


def test_the_folder_of_a_sweep_stands_for_its_best_trial_and_one_of_runs_for_the_newest(sweep, run, folder):
    assert rtrain.evaluate(sweep) == rtrain.evaluate(sweep.path) == sweep.best.evaluate()
    newest = max((folder / "mlp").glob("*/manifest.json"), key=lambda path: path.stat().st_mtime).parent
    assert rtrain.evaluate(folder / "mlp") == rtrain.evaluate(newest)


def test_a_prediction_without_output_is_the_table_that_would_be_written(run, tmp_path):
    table = run.predict(split="test")
    assert isinstance(table, pa.Table)
    assert run.predict(tmp_path / "out.parquet", split="test") == len(table) > 0
    assert pq.read_table(tmp_path / "out.parquet").equals(table)
    assert rtrain.predict(run.path, None, ["num_workers=0"], split="test").equals(table)


def test_a_run_is_resumed_in_each_form(run, recwarn):
    longer = run.resume({"trainer.max_epochs": 3})
    assert (longer.path, longer.manifest.epoch, run.manifest.epoch) == (run.path, 3, 2)
    assert rtrain.resume(longer, "trainer.max_epochs=4").manifest.epoch == 4
    assert "trainer.max_epochs: 2 -> 3" in str(recwarn[0].message)


def test_events_are_a_table(run):
    frame = run.frame()
    events = list(run.events())
    assert isinstance(frame, pd.DataFrame)
    assert list(frame.columns[:3]) == ["step", "epoch", "time"]
    assert frame["step"].tolist() == [one.step for one in events]
    assert str(frame["time"].dt.tz) == "UTC"
    for name in events[-1].metrics:
        assert frame[name].iloc[-1] == events[-1].metrics[name]


class Texts(HTMLParser):
    """Checks that what is opened is closed, and keeps the texts."""

    def __init__(self, html):
        super().__init__()
        self.texts, self.open = [], []
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)


def test_a_run_is_shown_in_a_few_lines(run):
    lines = repr(run).splitlines()
    assert 2 < len(lines) < 6
    shown = Texts(run._repr_html_())
    assert not shown.open
    for text in (repr(run), " ".join(shown.texts)):
        assert str(run.path) in text
        assert run.status in text
        assert run.manifest.best["monitor"] in text


@pytest.mark.parametrize("changed", [{"best": None}, {"metrics": {}, "best": None}, {"status": "running"}], ids=str)
def test_a_run_that_lacks_something_is_shown_as_well(run, changed):
    other = rtrain.Run(run.path, dataclasses.replace(run.manifest, timings_seconds={}, **changed))
    assert len(repr(other).splitlines()) < 6
    assert str(run.path) in other._repr_html_()


def test_what_others_have_written_into_a_manifest_is_shown_as_text(run):
    reason = f"<b>\x1b[2J{'long ' * 100}\nline"
    other = rtrain.Run(run.path, dataclasses.replace(run.manifest, exit_reason=reason))
    assert "\x1b" not in repr(other) + other._repr_html_()
    assert "<b>\\" not in other._repr_html_()
    assert max(map(len, repr(other).splitlines())) < 150


def test_a_sweep_has_trials_and_the_best_of_them(sweep):
    assert sweep.status == "succeeded"
    assert [one.params for one in sweep.trials] == [{"trainer.optimizer.lr": 0.1}, {"trainer.optimizer.lr": 0.01}]
    ((metric, best),) = max((one.values for one in sweep.trials), key=lambda one: next(iter(one.values()))).items()
    assert sweep.best.manifest.best["value"] == best
    assert sweep.best.manifest.best["monitor"] == metric
    assert {one.run.path for one in sweep.trials} == {one.path for one in sweep.trials}


def test_a_sweep_is_a_table(sweep):
    frame = sweep.frame()
    assert frame.index.tolist() == [0, 1]
    assert frame["trainer.optimizer.lr"].tolist() == [0.1, 0.01]
    assert {"status", "epoch", "seconds", "error", "path", *sweep.trials[0].values} <= set(frame.columns)
    assert len(repr(sweep).splitlines()) == 3
    assert str(sweep.path) in repr(sweep)
    assert "<table" in sweep._repr_html_()


def test_a_sweep_is_the_path_that_it_was(sweep):
    path = sweep.path
    assert os.fspath(sweep) == str(sweep) == str(path)
    assert sweep / "sweep.json" == path / "sweep.json"
    assert sweep == path
    assert path == sweep
    assert {sweep: 1}[path] == 1
    assert sweep.exists()
    assert sorted(sweep.glob("0*")) == sorted(path.glob("0*"))
    assert (sweep.name, sweep.parent) == (path.name, path.parent)
    assert not hasattr(sweep, "trails")


def test_what_a_mapping_trains_can_be_trained_again_by_a_command_and_its_sweep_by_a_call(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    config = {"defaults": ["/mlp"], **QUICK, "dataset": {"limit": 100}, "epochs": 1}
    del config["dataset.limit"]
    single = rtrain.fit(config)
    *command, place = single.manifest.command
    assert command == ["rtrain", "fit"]
    assert rtrain.fit(place).manifest.config_hash == single.manifest.config_hash
    first = rtrain.sweep(config, lr=rtrain.choice(0.1))
    with pytest.raises(rtrain.ConfigError, match="call"), resuming_sweep(first.path, ()):
        pass
    assert len(rtrain.sweep(config, lr=rtrain.choice(0.1, 0.01)).trials) == 2
    assert len(list(Path("runs").glob("*-sweep-*"))) == 1


def test_a_failed_trial_says_why(tmp_path):
    found = rtrain.sweep("mlp", QUICK, lr=rtrain.choice(0.1, 1e30), run={"root_dir": str(tmp_path)})
    assert [one.status for one in found.trials] == ["succeeded", "failed"]
    assert found.trials[1].error
    assert found.trials[0].error is None
    assert found.best.path == found.trials[0].path


@pytest.mark.parametrize("call", ["fit", "resume", "sweep"])
def test_one_ctrl_c_ends_a_loop_and_saves_the_run(call, folder, tmp_path, monkeypatch):
    begun = rtrain.fit("mlp", QUICK, run={"root_dir": str(tmp_path)}) if call == "resume" else None
    started = []

    def stop(*_):
        os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(SilentObserver, "event", stop, raising=False)
    monkeypatch.setattr(SilentObserver, "trial_changed", stop, raising=False)
    words = {**QUICK, "epochs": 1000, "run.root_dir": str(tmp_path)}
    calls = {
        "fit": lambda seed: rtrain.fit("mlp", words, seed=seed),
        "sweep": lambda seed: rtrain.sweep("mlp", words, seed=rtrain.choice(seed, 10)),
        "resume": lambda seed: begun.resume({"trainer.max_epochs": 1000 + seed}),
    }

    def loop():
        for seed in range(3):
            started.append(seed)
            calls[call](seed)

    with pytest.raises(KeyboardInterrupt):
        loop()
    monkeypatch.undo()
    assert started == [0]
    newest = rtrain.runs(tmp_path)[0]
    assert newest.status == "interrupted"
    assert newest.checkpoints or call == "sweep"


@pytest.fixture
def ipython(monkeypatch):
    """A module as IPython's is while it runs a cell."""
    module = ModuleType("IPython")
    module.get_ipython = lambda: object()
    monkeypatch.setitem(sys.modules, "IPython", module)
    return module


@pytest.mark.parametrize(("quiet", "shows"), [(None, True), (False, True), (True, False)])
def test_a_notebook_shows_progress_unless_it_is_to_be_quiet(quiet, shows, ipython, tmp_path, capsys):
    words = {**QUICK, "run.root_dir": str(tmp_path)}
    begun = rtrain.fit("mlp", words, quiet=quiet)
    assert ("epoch 1/2" in capsys.readouterr().out) is shows
    begun.resume({"trainer.max_epochs": 3}, quiet=quiet)
    assert ("epoch 3/3" in capsys.readouterr().out) is shows
    found = rtrain.sweep("mlp", words, epochs=1, seed=rtrain.choice(1, 2), quiet=quiet)
    assert (found.trials[1].path.name in capsys.readouterr().out) is shows


@pytest.mark.parametrize(("quiet", "shows"), [(None, False), (False, True), (True, False)])
def test_a_script_shows_nothing_unless_that_is_asked_for(quiet, shows, tmp_path, capsys):
    rtrain.fit("mlp", QUICK, run={"root_dir": str(tmp_path)}, quiet=quiet)
    assert bool(capsys.readouterr().out) is shows


def test_an_imported_ipython_that_runs_nothing_is_no_notebook(ipython, tmp_path, capsys):
    ipython.get_ipython = lambda: None
    rtrain.fit("mlp", QUICK, run={"root_dir": str(tmp_path)})
    assert not capsys.readouterr().out


def test_notes_are_warnings_where_nothing_is_shown():
    with pytest.warns(UserWarning, match="told"):
        WarningObserver(Call("fit", "mlp")).notice("told")
