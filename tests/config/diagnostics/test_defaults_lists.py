"""Options of the user's own groups, as experiments: none is ignored, and each error names the line of its file."""

from __future__ import annotations

import pytest
from small_project import check, refused, write

LAYERED = "defaults: [digits, {override trainer/optimizer: sgd}, {dataset: digits}, _self_]\n"
"""Chooses a group that a file below it also chooses."""


@pytest.fixture(params=["digits", "layered"])
def config(request, project):
    """A config that chooses all groups itself, or some of them again."""
    write("configs/layered.yaml", LAYERED)
    return request.param


@pytest.mark.parametrize("entry", ["/trainer: mine", "/dataset: csv", "/trainer/optimizer: adamw", "/optimizer: adamw"])
@pytest.mark.parametrize("word", ["experiment={}", "+experiment={}", "experiment=[long,{}]", "study/of/mine={}"])
def test_an_option_that_chooses_a_group_again_must_say_that_it_overrides(config, entry, word):
    folder = "study/of/mine" if word.startswith("study") else "experiment"
    write(f"configs/{folder}/again.yaml", f"# @package _global_\ndefaults:\n  - {entry}\nseed: 1\n")
    said = refused(config, word.format("again"))
    group = entry[1:].partition(":")[0].replace("optimizer", "trainer/optimizer").replace("trainer/trainer", "trainer")
    assert "two defaults lists choose different options" in said
    assert f"--> configs/{folder}/again.yaml:3:5\n" in said
    assert f">    3 |   - {entry}" in said
    assert said.endswith(f"write: - override /{group}: ...")


@pytest.mark.parametrize("entry", ["/dataset: csv", "/trainer/optimizer: adamw", "/optimizer: adamw"])
def test_an_option_that_the_config_lists_itself_must_say_so_too(project, entry):
    write("configs/experiment/again.yaml", f"# @package _global_\ndefaults:\n  - {entry}\n")
    chosen = "{trainer: torch}, {optimizer: sgd}, {dataset: digits}"
    write("configs/listed.yaml", f"defaults: [{chosen}, _self_, {{experiment: again}}]\n")
    said = refused("listed")
    assert "two defaults lists choose different options" in said
    assert "--> configs/experiment/again.yaml:3:5\n" in said


def test_a_config_overrides_the_options_that_it_lists_before_its_own(project):
    write("configs/base/common.yaml", "# @package _global_\ndefaults: [{/trainer: torch}, {/dataset: csv}]\n")
    write("configs/layered.yaml", "defaults: [{base: common}, {dataset: digits}]\nmodel: {_target_: models.Net}\n")
    assert check("layered").conf.dataset.split == 0.25


def test_an_option_that_adds_or_overrides_a_group_is_not_refused(config):
    write(
        "configs/experiment/more.yaml", "# @package _global_\ndefaults: [override /dataset: csv, /scheduler: cosine]\n"
    )
    composed = check(config, "experiment=more", "dataset.path=x.csv").conf
    assert composed.trainer.scheduler["T_max"] == 10
    assert composed.dataset.path == "x.csv"


def test_an_option_that_lists_the_config_itself_is_told_so(project):
    write("configs/experiment/whole.yaml", "# @package _global_\ndefaults:\n  - /digits\n")
    said = refused("digits", "experiment=whole")
    assert "'experiment/whole' lists 'digits', which is composed already" in said
    assert "--> configs/experiment/whole.yaml:3:5\n" in said


@pytest.mark.parametrize("folder", ["experiment", "study/of/mine"])
def test_an_option_without_a_header_is_told_the_line_that_it_lacks(config, folder):
    write(f"configs/{folder}/bare.yaml", "trainer: {max_epochs: 3}\n")
    said = refused(config, f"{folder}=bare")
    assert f"--> configs/{folder}/bare.yaml:1:1\n" in said
    assert said.endswith("put this line at the top of the file: # @package _global_")


def test_short_names_mean_in_an_experiment_what_they_mean_in_a_config(config):
    write("configs/experiment/short.yaml", "# @package _global_\nlr: 0.5\nepochs: 4\nnum_workers: 2\nname: tried\n")
    composed = check(config, "experiment=short").conf
    assert (composed.trainer.optimizer["lr"], composed.trainer.max_epochs) == (0.5, 4)
    assert (composed.scaling.num_workers, composed.run.name) == (2, "tried")
    assert check(config, "experiment=short", "lr=0.25").conf.trainer.optimizer["lr"] == 0.25


@pytest.mark.parametrize("own", ["trainer: {optimizer: {lr: 0.2}}", "optimizer: {lr: 0.2}"])
def test_a_short_name_and_its_long_one_in_one_experiment_are_refused(project, own):
    write("configs/experiment/twice.yaml", f"# @package _global_\nlr: 0.1\n{own}\n")
    assert "'lr' means trainer.optimizer.lr, which this file also sets" in refused("digits", "experiment=twice")


@pytest.mark.parametrize(("key", "option"), [("trainer", "mine"), ("dataset", "csv"), ("optimizer", "adamw")])
def test_an_option_chosen_by_a_key_of_an_experiment_is_led_to_its_defaults_list(project, key, option):
    write("configs/experiment/text.yaml", f"# @package _global_\n{key}: {option}\n")
    assert refused("digits", "experiment=text").endswith(f"try: defaults: [override /{key}: {option}]")


def test_a_config_with_that_header_chooses_options_in_a_list_of_its_own(project):
    write("configs/headed.yaml", "# @package _global_\ntrainer: xgboost\n")
    assert refused("headed").endswith("try: defaults: [trainer: xgboost, _self_]")


@pytest.mark.parametrize("word", ["~experiment", "~experiment=long", "~study"])
def test_a_choice_that_nothing_made_can_not_be_taken_back(config, word):
    write("configs/study/one.yaml", "# @package _global_\nseed: 1\n")
    assert f"there is no '{word[1:].partition('=')[0]}' to remove" in refused(config, word)
