"""Configs and runs of older versions hold names that rtrain's own classes no longer have."""

from importlib import import_module

import pytest

from rtrain.config.session import Session
from rtrain.config.targets.builder import Builder
from rtrain.config.targets.moved import MOVED, name_of_now, with_names_of_before, with_names_of_now
from rtrain.schemas import schemas

SHIPPED = {
    "rtrain.trainers.torch.models.ResNet": ("resnet", "trainer.model"),
    "rtrain.trainers.torch.models.MLP": ("mlp", "trainer.model"),
    "rtrain.trainers.torch.models.GPT": ("mlp", "trainer.model", "model=gpt"),
    "rtrain.trainers.jax.models.CNN": ("jax", "trainer.model"),
    "rtrain.trainers.tensorflow.models.cnn": ("keras", "trainer.model"),
    "rtrain.trainers.lightning.modules.Classifier": ("lightning", "trainer.module"),
}
"""Every name of a model that a shipped config ever had, with that config, the key, and what else has to be typed."""
SCHEDULE = "rtrain.trainers.torch.schedules.warmup_cosine"
"""The one other name of rtrain's own that shipped configs hold."""


@pytest.mark.parametrize("before", SHIPPED)
def test_a_config_with_a_name_of_before_is_the_config_of_now(before):
    config, key, *more = SHIPPED[before]
    composed = []
    for words in ([], [f"{key}._target_={before}"]):
        with Session(config, [*more, *words], schemas()) as session:
            composed.append(session.check())
    now, old = composed
    assert old.resolved == now.resolved
    assert old.yaml == now.yaml
    assert old.config_hash == now.config_hash
    assert before not in old.yaml
    assert name_of_now(before) in old.yaml


@pytest.mark.parametrize("path", [*map(name_of_now, SHIPPED), SCHEDULE])
def test_what_it_is_called_now_is_there(path):
    assert callable(Builder().locate(path, "trainer.model._target_"))


def test_the_module_may_be_told_from_the_name_by_a_colon():
    assert name_of_now("rtrain.trainers.torch.models:ResNet") == "rtrain.models.torch:ResNet"
    assert name_of_now("rtrain.trainers.torch.models_of_mine.ResNet") == "rtrain.trainers.torch.models_of_mine.ResNet"


def test_a_stranger_may_name_what_was_listed_before():
    for before in SHIPPED:
        node = with_names_of_now({"trainer": [{"model": {"_target_": before, "width": 3}}]})
        Builder(trusted=False).check_names(node, "trainer", [])


def test_a_text_gets_back_the_names_that_older_hashes_are_of():
    for before in SHIPPED:
        assert with_names_of_before(f'"{name_of_now(before)}"') == f'"{before}"'


@pytest.mark.parametrize(("before", "now"), MOVED.items())
def test_no_module_of_before_is_left(before, now):
    import_module(now)
    with pytest.raises(ModuleNotFoundError):
        import_module(before)
