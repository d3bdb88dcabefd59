"""Hydra's own life cycle under rtrain: run folders, callbacks, sweeps, and what ``--cfg`` and ``--info`` show."""

from __future__ import annotations

import logging
import re
import shutil
import sys
from contextlib import suppress
from pathlib import Path

import pytest
import yaml
from hydra.conf import HydraConf
from hydra.core.global_hydra import GlobalHydra
from hydra.core.hydra_config import HydraConfig
from hydra.core.utils import JobStatus
from omegaconf import DictConfig, OmegaConf
from small_project import SCHEMAS, check, each_trial, refused, write

from rtrain.config.session import Session
from rtrain.errors import ConfigError
from rtrain.searches import grid

# Hydra's life cycle


def test_check_writes_nothing(project):
    before = sorted(project.rglob("*"))
    check("digits")
    assert sorted(path for path in project.rglob("*") if "__pycache__" not in str(path)) == before


def test_a_run_has_hydras_folder_and_config(project):
    def task(composed, folder):
        assert HydraConfig.get().runtime.output_dir == str(folder)
        assert HydraConfig.get().overrides.task == ["run.seed=3"]
        return composed, folder

    with Session("digits", ["seed=3"], SCHEMAS) as session:
        composed, folder = session.run(task)
    assert re.fullmatch(r"\d{4}-\d\d-\d\d_\d\d-\d\d-\d\d-[0-9a-f]{4}", folder.name)
    assert folder.parent == project / "runs/digits"
    assert sorted(path.name for path in (folder / ".hydra").iterdir()) == [
        "config.yaml",
        "hydra.yaml",
        "overrides.yaml",
    ]
    assert yaml.safe_load((folder / ".hydra/config.yaml").read_text())["run"]["seed"] == 3
    assert composed.overrides == ("run.seed=3",)
    assert Path.cwd() == project
    assert not GlobalHydra.instance().is_initialized()


def test_the_run_folder_is_the_one_that_was_checked(project):
    with Session("digits", ["+vars.out=${hydra:runtime.output_dir}"], SCHEMAS) as session:
        checked = session.check().conf.vars["out"]
        assert session.run(lambda composed, folder: (str(folder), composed.conf.vars["out"])) == (checked, checked)


def test_folders_may_have_any_sign_in_their_names(project):
    for folder in ("a#b", "50% c", "d&e=f", "#"):
        shutil.copytree("configs", folder)
        write(f"{folder}/own.yaml", "defaults: [digits, extra: one]\nhydra: {searchpath: ['more#1']}\n")
        write(f"{folder}/more#1/extra/one.yaml", "# @package _global_\nrun: {seed: 7}\n")
        assert check(f"{folder}/own.yaml").conf.run.seed == 7
        write(f"{folder}/more#1/extra/one.yaml", "# @package _global_\nrun: {sed: 7}\n")
        with pytest.raises(ConfigError) as caught:
            check(f"{folder}/own.yaml")
        assert f"--> {folder}/more#1/extra/one.yaml:2:" in str(caught.value)


def test_the_root_logger_is_left_alone(project):
    before = list(logging.getLogger().handlers), logging.getLogger().level
    with Session("digits", [], SCHEMAS) as session:
        session.run(lambda composed, folder: session.show_info("all"))
    assert (list(logging.getLogger().handlers), logging.getLogger().level) == before


def test_an_exception_of_the_task_passes_unchanged_and_silently(project, capfd):
    boom = ValueError("In 'x': looks like Hydra")

    def task(composed, folder):
        raise boom

    for words, method in (([], Session.run), (["lr=0.1,0.2"], each_trial)):
        with (
            pytest.raises(ValueError, match="looks like Hydra") as caught,
            Session("digits", words, SCHEMAS) as session,
        ):
            method(session, task)
        assert caught.value is boom
    assert capfd.readouterr() == ("", "")


WITNESS = """
from hydra.experimental.callback import Callback

seen = []


class Witness(Callback):
    def on_run_start(self, config, **kwargs):
        seen.append("run_start")

    def on_job_end(self, config, job_return, **kwargs):
        seen.append(job_return.status)
"""


def test_hydras_callbacks_are_called(project):
    write("witness.py", WITNESS)
    words = ["+hydra.callbacks.w._target_=witness.Witness"]
    with Session("digits", words, SCHEMAS) as session:
        session.run(lambda composed, folder: None)
    with pytest.raises(RuntimeError), Session("digits", [*words, "lr=1,2"], SCHEMAS) as session:
        each_trial(session, lambda composed, folder: _fail())
    assert sys.modules["witness"].seen == ["run_start", JobStatus.COMPLETED, JobStatus.FAILED]


def _fail():
    raise RuntimeError("no")


# Sweeps


def test_a_sweep_runs_each_combination_in_its_own_folder(project):
    words = ["lr=0.1,0.2", "optimizer=sgd,adamw", "++num_workers=range(1,3)"]
    with Session("inline", words, SCHEMAS) as session:
        seen = each_trial(
            session, lambda one, folder: (one.conf.trainer.optimizer["lr"], one.conf.scaling.num_workers, folder)
        )
    assert [(lr, workers) for lr, workers, _ in seen] == [
        (lr, w) for lr in (0.1, 0.2) for _ in range(2) for w in (1, 2)
    ]
    folders = [folder for _, _, folder in seen]
    assert [folder.name.partition("-")[0] for folder in folders] == [f"{num:03d}" for num in range(8)]
    assert len({folder.name.partition("-")[2] for folder in folders}) == 8
    assert len({folder.parent for folder in folders}) == 1
    assert (folders[0].parent / "multirun.yaml").is_file()
    assert all((folder / ".hydra/config.yaml").is_file() for folder in folders)


def test_all_jobs_are_checked_before_the_first_starts(project):
    started = []
    with pytest.raises(ConfigError) as caught, Session("digits", ["epochs=1,0"], SCHEMAS) as session:
        each_trial(session, lambda composed, folder: started.append(folder))
    assert str(caught.value).startswith(
        "trainer.max_epochs: must be at least 1, not 0\n    rtrain fit digits --multirun epochs=1,0"
    )
    assert not started
    assert not Path("runs").exists()


def test_a_sweep_may_be_part_of_the_config(project):
    write(
        "configs/sweep.yaml",
        "defaults: [digits]\nhydra:\n  sweeper:\n    params: {lr: '0.1,0.2', optimizer: 'sgd,adamw'}\n",
    )
    with Session("sweep", [], SCHEMAS) as session:
        seen = each_trial(
            session, lambda one, folder: (one.conf.trainer.optimizer["_target_"], HydraConfig.get().job.num)
        )
    assert [name.rpartition(".")[2] for name, _ in seen] == ["SGD", "AdamW", "SGD", "AdamW"]
    assert [num for _, num in seen] == [0, 1, 2, 3]


def test_what_trials_share_is_composed_once_and_makes_no_difference(project):
    words = ["lr=0.1,0.2", "optimizer=sgd,adamw", "++num_workers=1,2", "+vars.a=${trainer.optimizer.lr}"]
    with Session("digits", words, SCHEMAS) as session:
        trials = session.trials()
        search = grid.Search(trials.conf, trials.axes, [])
        for number in range(search.num_trials):
            own = [*trials.space.fixed, *trials.words(search.propose(number))]
            fast = session.request.app.load_trial(trials._sweep, own)
            slow = session.request.app.load_job(trials._sweep, own)
            assert OmegaConf.to_container(fast) == OmegaConf.to_container(slow)


def test_a_sweep_over_targets(project):
    words = ["model={_target_: models.Net, width: 1},{_target_: models.Net, depth: 2}"]
    with Session("digits", words, SCHEMAS) as session:
        seen = each_trial(session, lambda one, folder: one.conf.trainer.model)
    assert seen == [{"_target_": "models.Net", "width": 1}, {"_target_": "models.Net", "depth": 2}]


# What Hydra shows


def test_cfg_has_the_shape_of_hydras_own(project):
    with Session("digits", ["seed=3"], SCHEMAS) as session:
        job = yaml.safe_load(session.show_cfg("job"))
        assert list(job) == [
            "trainer",
            "dataset",
            "datasets",
            "scaling",
            "run",
            "cluster",
            "allow",
            "vars",
            "sweep",
            "smoke",
        ]
        assert job["run"]["name"] == "${hydra:job.name}"
        assert list(yaml.safe_load(session.show_cfg("hydra"))) == ["hydra"]
        assert set(yaml.safe_load(session.show_cfg("all"))) == {*job, "hydra"}
        assert session.show_cfg("job", "trainer.optimizer").startswith("# @package trainer.optimizer\n_target_: torch")
        assert session.show_cfg("job", "run.seed") == "3\n"
        assert yaml.safe_load(session.show_cfg("job", None, True))["run"]["name"] == "digits"


def test_cfg_equals_what_hydra_prints(project, capsys):
    with Session("digits", ["seed=3"], SCHEMAS) as session:
        for what in ("job", "hydra", "all"):
            session.request.app._hydra.show_cfg("digits", session.request.texts, what, None)
            printed = re.sub(r"output_dir: \S+", "", capsys.readouterr().out)
            assert re.sub(r"output_dir: \S+", "", session.show_cfg(what)) == printed


@pytest.mark.parametrize(
    ("what", "expected"),
    [
        ("all", "Installed Hydra Plugins"),
        ("config", "Config search path"),
        ("defaults", "trainer/optimizer/sgd"),
        ("defaults-tree", "trainer/optimizer: sgd"),
        ("plugins", "RtrainSource"),
        ("searchpath", "rtrain://"),
    ],
)
def test_info(what, expected, project, capsys):
    with Session("digits", [], SCHEMAS) as session:
        assert expected in session.show_info(what)
    assert capsys.readouterr().out == ""


def test_another_sweeper_than_rtrains_own_is_refused(project):
    words = ["lr=0.1,0.2", "hydra.sweeper._target_=hydra_plugins.hydra_optuna_sweeper.OptunaSweeper"]
    with pytest.raises(ConfigError, match="sweep=optuna"), Session("digits", words, SCHEMAS) as session:
        each_trial(session, lambda composed, folder: None)


def hydras_keys(node, path="hydra"):
    yield path
    for name in node:
        child = node._get_node(name)
        if isinstance(child, DictConfig) and child._content is not None and not child._is_missing():
            yield from hydras_keys(child, f"{path}.{name}")
        else:
            yield f"{path}.{name}"


KEYS = list(hydras_keys(OmegaConf.structured(HydraConf)))


@pytest.mark.parametrize(
    "key", [*KEYS[::3], *(pytest.param(one, marks=pytest.mark.slow) for one in KEYS if one not in KEYS[::3])]
)
def test_no_setting_of_hydras_ends_in_a_traceback(key, project):
    for value in (None, "x", ["NOPE"]):
        node = value
        for part in reversed(key.split(".")):
            node = {part: node}
        write("configs/odd.yaml", yaml.safe_dump({"defaults": ["digits"], **node}))
        with Session("odd", [], SCHEMAS) as session, suppress(ConfigError):
            session.check()


def test_what_hydra_can_t_use_is_told(project):
    for words, said in (
        (["hydra.job.env_copy=[NOPE]"], "NOPE"),
        (["hydra.verbose=null"], "hydra.verbose"),
        (["hydra.verbose={a: 1}"], "hydra.verbose"),
    ):
        assert said in refused("digits", *words)
    write("configs/odd.yaml", "defaults: [digits]\nhydra: null\n")
    assert refused("odd").startswith("hydra: ")
    with Session("digits", ["hydra.verbose=[mine]"], SCHEMAS) as session:
        session.run(lambda *_: None)


@pytest.mark.parametrize("what", ["all", "hydra"])
def test_what_only_a_trial_has_is_shown_as_missing(what, project):
    with Session("digits", [], SCHEMAS) as session:
        shown = yaml.safe_load(session.show_cfg(what, None, True))["hydra"]
    assert shown["sweep"]["subdir"] == shown["job"]["num"] == "???"
    assert shown["run"]["dir"].startswith("runs/digits/")


def test_a_callback_of_hydras_that_can_t_work_is_refused(project):
    callback = "hydra.callbacks.x._target_=hydra.experimental.callbacks."
    assert "PickleJobInfoCallback" in refused("digits", f"+{callback}PickleJobInfoCallback")
    assert check("digits", f"+{callback}LogJobReturnCallback")
