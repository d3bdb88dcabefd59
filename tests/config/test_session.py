"""What a session makes of a config: folders, groups, short names, and Hydra's own life cycle."""

from __future__ import annotations

import logging
import re
from pathlib import Path

import pytest
import yaml
from hydra.core.global_hydra import GlobalHydra
from hydra.core.hydra_config import HydraConfig
from hydra.core.utils import JobStatus
from hydra.experimental.callback import Callback
from tests_config import SCHEMAS, BoostConf, TorchConf, check, refused, write

from rtrain.config.session import Session
from rtrain.errors import ConfigError


def parts(config, *words):
    return check(config, *words).conf


# Which file


def test_a_path_a_name_and_a_builtin_name_find_their_config(project):
    assert check("configs/digits.yaml").config_path == project / "configs/digits.yaml"
    assert check("digits").config_path == project / "configs/digits.yaml"
    builtin = check("ready")
    assert (builtin.config_path, builtin.project_root) == (None, project)
    assert isinstance(builtin.conf.trainer, BoostConf)


def test_a_config_below_the_config_folder_finds_the_groups(project):
    write("configs/deep/er/mine.yaml", "defaults: [trainer: mine]\n")
    composed = check("configs/deep/er/mine.yaml")
    assert (composed.conf.trainer.max_epochs, composed.config_name, composed.conf.run.name) == (9, "mine", "mine")


def test_the_config_folder_option_adds_groups(project, tmp_path):
    write(str(tmp_path / "more/dataset/half.yaml"), "type: digits\nsplit: 0.5\n")
    assert check("digits", "dataset=half", config_dir=str(tmp_path / "more")).conf.dataset.split == 0.5
    with pytest.raises(ConfigError, match="there is no such folder"):
        check("digits", config_dir="nothing")


def test_the_users_group_shadows_and_extends_the_builtin_one(project):
    assert parts("digits").dataset.split == 0.25
    assert parts("digits", "scaling=local").scaling.num_workers == 1
    Path("configs/dataset/digits.yaml").unlink()
    assert parts("digits").dataset.split == 0.5


@pytest.mark.parametrize("path", ["{}", "file://{}", "'{}'"])
def test_the_searchpath_of_the_command_gets_schemas_too(project, tmp_path, path):
    write(str(tmp_path / "more/trainer/far.yaml"), "type: torch\nmodel: {_target_: models.Net}\n")
    found = parts(
        "inline", f"hydra.searchpath=[{path.format(tmp_path / 'more')}]", "trainer=far", "trainer.max_epochs=5"
    )
    assert found.trainer.max_epochs == 5


def test_the_searchpath_of_the_config_may_be_relative_to_it(project):
    write("configs/more/trainer/far.yaml", "type: torch\nmodel: {_target_: models.Net}\n")
    write("configs/wide.yaml", "defaults: [trainer: far]\nhydra:\n  searchpath: [more, pkg://hydra.conf]\n")
    assert parts("wide", "trainer.max_epochs=5").trainer.max_epochs == 5
    assert "wide" in refused("wide", "trainer.max_epoch=5")


def test_the_project_root_is_where_the_project_is(project):
    assert check("digits").project_root == project
    Path("pyproject.toml").unlink()
    assert check("digits").project_root == project
    write("alone/one.yaml", "trainer: {type: xgboost}\n")
    assert check("alone/one.yaml").project_root == project / "alone"


def test_the_project_may_allow_modules(project):
    assert "is not allowed" in refused("digits", "model={_target_: foreign.Net}")
    write("pyproject.toml", "[tool.rtrain]\nallow = ['foreign.*']\n")
    assert check("digits", "model={_target_: foreign.Net}").allow == ("foreign.*",)
    assert check("digits", "model={_target_: other.Net}", "allow=[other]").allow == ("other", "foreign.*")


# Schemas


@pytest.mark.parametrize("config", ["digits", "inline"])
def test_keys_that_no_file_spells_can_be_set_without_plus(config, project):
    conf = parts(config, "trainer.max_epochs=5", "trainer.stop.patience=9")
    assert isinstance(conf.trainer, TorchConf)
    assert (conf.trainer.max_epochs, conf.trainer.stop.patience) == (5, 9)


def test_an_option_may_have_another_name_than_its_plugin(project):
    assert parts("inline", "trainer=mine").trainer.max_epochs == 9
    conf = parts("digits", "trainer=bigger")
    assert (type(conf.trainer), conf.trainer.batch_size) == (TorchConf, 256)


def test_a_config_may_inherit_from_another(project):
    write("configs/child.yaml", "defaults: [inline]\nepochs: 4\n")
    conf = parts("child")
    assert (conf.trainer.max_epochs, conf.trainer.optimizer["lr"], conf.run.name) == (4, 0.5, "child")


def test_the_written_config_composes_to_the_same(project):
    for words in (["digits"], ["inline", "optimizer=adamw", "scheduler=cosine"], ["inline", "trainer=xgboost"]):
        first = check(*words)
        again = check(write("runs/x/config.yaml", first.yaml))
        assert (again.conf, again.yaml, again.resolved) == (first.conf, first.yaml, first.resolved)


def test_the_record_has_the_types(project):
    resolved = check("digits").resolved
    assert (resolved["trainer"]["type"], resolved["dataset"]["type"]) == ("torch", "digits")
    assert next(iter(resolved["trainer"])) == "type"


@pytest.mark.parametrize(
    "word", ["trainer.stop_early={patience: 7}", "trainer.stop_early.patience=7", "+trainer.stop_early.patience=7"]
)
def test_a_section_that_is_null_can_be_filled(word, project):
    assert parts("digits", word).trainer.stop_early.patience == 7
    assert "there is no key 'patienc' here" in refused("digits", word.replace("patience", "patienc"))
    write("configs/stop.yaml", "defaults: [digits]\ntrainer: {stop_early: {patience: 8}}\n")
    assert parts("stop").trainer.stop_early.patience == 8
    assert parts("stop", word).trainer.stop_early.patience == 7
    assert parts("stop", "trainer.stop_early=null").trainer.stop_early is None


# Choices


def test_a_choice_works_whether_or_not_a_defaults_list_has_it(project):
    for config in ("digits", "inline"):
        for sign in ("", "+", "++"):
            conf = parts(config, f"{sign}optimizer=adamw", f"{sign}dataset=digits", "scaling=two")
            assert conf.trainer.optimizer == {"_target_": "torch.optim.AdamW", "lr": 0.001}
            assert conf.scaling.num_workers == 2


def test_the_order_of_choices_doesnt_matter(project):
    for words in (["optimizer=adamw", "trainer=bigger"], ["trainer=bigger", "optimizer=adamw"]):
        conf = parts("inline", *words, "model={_target_: models.Net}")
        assert (conf.trainer.batch_size, conf.trainer.optimizer["lr"]) == (256, 0.001)


def test_another_trainer_replaces_the_inline_one(project):
    conf = parts("inline", "trainer=xgboost")
    assert (type(conf.trainer), conf.trainer.num_rounds) == (BoostConf, 20)


def test_null_takes_a_choice_back(project):
    assert parts("digits", "dataset=null").dataset is None
    assert parts("inline", "dataset=null").dataset is None
    assert parts("digits", "+scheduler=cosine").trainer.scheduler["T_max"] == 10
    assert parts("digits", "scheduler=cosine", "scheduler=null").trainer.scheduler is None
    assert parts("digits", "~scheduler").trainer.scheduler is None


def test_a_target_replaces_what_was_there(project):
    for word in (
        "optimizer={_target_: torch.optim.Adam, lr: 3}",
        "trainer.optimizer={_target_: torch.optim.Adam, lr: 3}",
    ):
        assert parts("digits", word).trainer.optimizer == {"_target_": "torch.optim.Adam", "lr": 3}
    assert parts("digits", "optimizer={lr: 3}").trainer.optimizer["momentum"] == 0.9


def test_groups_of_the_trainer_in_a_defaults_list(project):
    write(
        "configs/a.yaml",
        "defaults: [trainer: torch, optimizer: adamw, scheduler: cosine]\nmodel: {_target_: models.Net}\n",
    )
    write("configs/b.yaml", "defaults: [digits, _self_, override optimizer: adamw]\n")
    assert parts("a").trainer.optimizer["lr"] == 0.001
    assert parts("a", "optimizer=sgd").trainer.optimizer["lr"] == 0.1
    assert parts("b").trainer.optimizer["lr"] == 0.001


def test_experiments(project):
    for word in ("experiment=long", "+experiment=long"):
        conf = parts("digits", word)
        assert (conf.trainer.max_epochs, conf.run.name, conf.trainer.optimizer["lr"]) == (50, "long", 0.001)


# Short names


@pytest.mark.parametrize(
    ("word", "key", "value"),
    [
        ("num_workers=8", "scaling.num_workers", 8),
        ("++num_workers=8", "scaling.num_workers", 8),
        ("use_gpu=true", "scaling.use_gpu", True),
        ("seed=3", "run.seed", 3),
        ("name=x", "run.name", "x"),
        ("batch_size=3", "trainer.batch_size", 3),
        ("epochs=3", "trainer.max_epochs", 3),
        ("max_epochs=3", "trainer.max_epochs", 3),
        ("lr=0.3", "trainer.optimizer.lr", 0.3),
        ("optimizer.lr=0.3", "trainer.optimizer.lr", 0.3),
        ("+optimizer.nesterov=true", "trainer.optimizer.nesterov", True),
        ("model.width=3", "trainer.model.width", 3),
    ],
)
def test_short_names(word, key, value, project):
    node = check("digits", word).resolved
    for part in key.split("."):
        node = node[part]
    assert node == value


def test_short_names_in_a_config(project):
    write(
        "configs/short.yaml",
        "defaults: [trainer: torch]\nnum_workers: 3\nepochs: 4\nlr: 0.7\nmodel: {_target_: models.Net}\n",
    )
    conf = parts("short")
    assert (conf.scaling.num_workers, conf.trainer.max_epochs, conf.trainer.optimizer["lr"]) == (3, 4, 0.7)


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


def test_the_root_logger_is_left_alone(project):
    before = list(logging.getLogger().handlers), logging.getLogger().level
    with Session("digits", [], SCHEMAS) as session:
        session.run(lambda composed, folder: session.show_info("all"))
    assert (list(logging.getLogger().handlers), logging.getLogger().level) == before


def test_an_exception_of_the_task_passes_unchanged_and_silently(project, capfd):
    boom = ValueError("In 'x': looks like Hydra")

    def task(composed, folder):
        raise boom

    for words, method in (([], "run"), (["lr=0.1,0.2"], "multirun")):
        with (
            pytest.raises(ValueError, match="looks like Hydra") as caught,
            Session("digits", words, SCHEMAS) as session,
        ):
            getattr(session, method)(task)
        assert caught.value is boom
    assert capfd.readouterr() == ("", "")


class Witness(Callback):
    """A user's Hydra callback."""

    seen: list = []  # noqa: RUF012

    def on_run_start(self, config, **kwargs):
        self.seen.append("run_start")

    def on_job_end(self, config, job_return, **kwargs):
        self.seen.append(job_return.status)


def test_hydras_callbacks_are_called(project, monkeypatch):
    monkeypatch.setattr(Witness, "seen", [])
    monkeypatch.setitem(__import__("sys").modules, "witness", __import__("sys").modules[__name__])
    write("witness.py", "")
    words = ["+hydra.callbacks.w._target_=witness.Witness"]
    with Session("digits", words, SCHEMAS) as session:
        session.run(lambda composed, folder: None)
    with pytest.raises(RuntimeError), Session("digits", [*words, "lr=1,2"], SCHEMAS) as session:
        session.multirun(lambda composed, folder: 1 / 0 if composed.conf.run.seed == 99 else _fail())
    assert Witness.seen == ["run_start", JobStatus.COMPLETED, JobStatus.FAILED, JobStatus.FAILED]


def _fail():
    raise RuntimeError("no")


# Sweeps


def test_a_sweep_runs_each_combination_in_its_own_folder(project):
    words = ["lr=0.1,0.2", "optimizer=sgd,adamw", "++num_workers=range(1,3)"]
    with Session("inline", words, SCHEMAS) as session:
        seen = session.multirun(
            lambda one, folder: (one.conf.trainer.optimizer["lr"], one.conf.scaling.num_workers, folder)
        )
    assert [(lr, workers) for lr, workers, _ in seen] == [
        (lr, w) for lr in (0.1, 0.2) for _ in range(2) for w in (1, 2)
    ]
    folders = [folder for _, _, folder in seen]
    assert [folder.name for folder in folders] == [str(num) for num in range(8)]
    assert len({folder.parent for folder in folders}) == 1
    assert (folders[0].parent / "multirun.yaml").is_file()
    assert all((folder / ".hydra/config.yaml").is_file() for folder in folders)


def test_all_jobs_are_checked_before_the_first_starts(project):
    started = []
    with pytest.raises(ConfigError) as caught, Session("digits", ["epochs=1,0"], SCHEMAS) as session:
        session.multirun(lambda composed, folder: started.append(folder))
    assert str(caught.value).startswith(
        "trainer.max_epochs: must be at least 1, not 0\n    rtrain fit digits epochs=1,0"
    )
    assert not started
    assert not Path("runs").exists()


def test_a_sweep_may_be_part_of_the_config(project):
    write(
        "configs/sweep.yaml",
        "defaults: [digits]\nhydra:\n  sweeper:\n    params: {lr: '0.1,0.2', optimizer: 'sgd,adamw'}\n",
    )
    with Session("sweep", [], SCHEMAS) as session:
        seen = session.multirun(lambda one, folder: (one.conf.trainer.optimizer["_target_"], HydraConfig.get().job.num))
    assert [name.rpartition(".")[2] for name, _ in seen] == ["SGD", "AdamW", "SGD", "AdamW"]
    assert [num for _, num in seen] == [0, 1, 2, 3]


def test_a_sweep_over_targets(project):
    words = ["model={_target_: models.Net, width: 1},{_target_: models.Net, depth: 2}"]
    with Session("digits", words, SCHEMAS) as session:
        seen = session.multirun(lambda one, folder: one.conf.trainer.model)
    assert seen == [{"_target_": "models.Net", "width": 1}, {"_target_": "models.Net", "depth": 2}]


# What Hydra shows


def test_cfg_has_the_shape_of_hydras_own(project):
    with Session("digits", ["seed=3"], SCHEMAS) as session:
        job = yaml.safe_load(session.show_cfg("job"))
        assert list(job) == ["trainer", "dataset", "scaling", "run", "cluster", "allow", "vars"]
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


def test_info_knows_its_parts(project):
    with pytest.raises(ConfigError, match="there is no such part"), Session("digits", [], SCHEMAS) as session:
        session.show_info("nothing")
