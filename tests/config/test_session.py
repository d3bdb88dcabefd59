"""What a session makes of a config: folders, schemas, choices and short names."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from small_project import BoostConf, TorchConf, check, refused, write

from rtrain.config.files.locations import find_primary, find_project_root
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


@pytest.mark.parametrize("config", ["mine/small net", "mine/small net/config.yaml"])
def test_a_folder_with_a_config_is_a_config_and_names_its_runs(project, config):
    write("mine/small net/config.yaml", "trainer: {type: torch, model: {_target_: models.Net}}\n")
    composed = check(config)
    assert composed.config_path == project / "mine/small net/config.yaml"
    assert composed.conf.run.name == "small-net"


def test_a_config_may_name_data_beside_it_and_in_a_package(project):
    write("mine/paths.yaml", "trainer: {type: xgboost}\nvars: {a: '${config_dir:}/x', b: '${package_dir:yaml}/y'}\n")
    import yaml

    expected = {"a": str(project / "mine/x"), "b": str(Path(yaml.__file__).parent / "y")}
    assert check("mine/paths.yaml").resolved["vars"] == expected
    write("mine/odd.yaml", "trainer: {type: xgboost}\nvars: {b: '${package_dir:no_such_thing}'}\n")
    assert "package 'no_such_thing' is not installed" in refused("mine/odd.yaml")


def test_the_smoke_block_is_no_part_of_what_a_run_records(project):
    write("plain.yaml", "trainer: {type: xgboost}\n")
    write("tried.yaml", "trainer: {type: xgboost}\nsmoke: {overrides: [seed=1], expect: {test/loss: {max: 1}}}\n")
    tried = check("tried.yaml", "name=plain")
    assert tried.conf.smoke.expect["test/loss"].max == 1
    assert (tried.resolved, tried.yaml) == (check("plain.yaml").resolved, check("plain.yaml").yaml)


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
    assert check("digits", "model={_target_: foreign.Net}").allow[:1] == ("foreign.*",)
    assert check("digits", "model={_target_: other.Net}", "allow=[other]").allow[:2] == ("other", "foreign.*")


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
    assert "patienc'" in refused("digits", word.replace("patience", "patienc"))
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


@pytest.mark.parametrize("word", ["trainer.stop.options.a=1", "trainer.stop.options={a: 1}"])
def test_mappings_take_any_key_without_a_plus(project, word):
    assert parts("digits", word).trainer.stop.options == {"a": 1}


def test_a_mapping_that_nobody_checks_wants_a_plus(project):
    assert "there is no key 'trainer.own.a'" in refused("digits", "trainer.own.a=1")
    assert parts("digits", "+trainer.own.a=1").trainer.own == {"a": 1}


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


@pytest.mark.parametrize("text", ["lr: 0.5\noptimizer: {momentum: 0.3}", "optimizer: {momentum: 0.3}\nlr: 0.5"])
def test_short_names_of_a_part_and_of_a_key_inside_of_it_are_one_part_in_any_order(project, text):
    write("configs/mixed.yaml", f"defaults: [digits, _self_]\n{text}\n")
    optimizer = parts("mixed").trainer.optimizer
    assert (optimizer["lr"], optimizer["momentum"]) == (0.5, 0.3)


def test_experiments(project):
    for word in ("experiment=long", "+experiment=long"):
        conf = parts("digits", word)
        assert (conf.trainer.max_epochs, conf.run.name, conf.trainer.optimizer["lr"]) == (50, "long", 0.001)


@pytest.mark.parametrize("word", ["num_workers=[1,8]", "num_workers={min: 1, max: 8}", "+scaling.num_workers=[1,8]"])
def test_a_range_of_workers_is_taken_from_the_command_line_and_from_yaml(project, word):
    scaling = parts("digits", word).scaling
    assert (scaling.num_workers, scaling.min_workers) == (8, 1)
    write("configs/scaling/range.yaml", "num_workers: {min: 2, max: 4}\n")
    scaling = parts("digits", "scaling=range").scaling
    assert (scaling.num_workers, scaling.min_workers) == (4, 2)
    assert parts("digits", "scaling=range", "num_workers=3").scaling.min_workers == 3
    with pytest.raises(ConfigError, match="has a min of 4 above its max of 2"):
        parts("digits", "num_workers=[4,2]")


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


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
@pytest.mark.parametrize(("mark_owner", "config_owner", "counts"), [(0, 0, True), (1234, 0, False), (1234, 1234, True)])
def test_what_another_account_put_into_a_shared_folder_makes_no_project_of_it(
    project, mark_owner, config_owner, counts
):
    config = Path(write("mine/experiment/bad.yaml", Path("configs/digits.yaml").read_text()))
    mark = Path(write("mine/pyproject.toml", ""))
    os.chown(mark, mark_owner, 0)
    os.chown(config, config_owner, 0)
    root = find_project_root(find_primary(str(config)))
    assert root == (project / "mine" if counts else project)


@pytest.mark.parametrize(
    "text", ["[tool]\nrtrain=3", "[tool.rtrain]\nallow='os'", "[tool.rtrain]\nallow=[1]", "a=" + "[" * 20_000]
)
def test_an_odd_pyproject_is_named(project, text):
    write("pyproject.toml", text)
    assert "pyproject.toml" in refused("digits")
