"""Options of config groups of other trainers: refused when typed, with the form that the chosen trainer understands."""

from __future__ import annotations

import pytest

from rtrain.config.session import Session
from rtrain.errors import ConfigError
from rtrain.schemas import schemas


def refused(*words: str) -> str:
    with pytest.raises(ConfigError) as caught, Session(words[0], words[1:], schemas()) as session:
        session.check()
    return str(caught.value)


@pytest.mark.parametrize(
    ("config", "word", "form"),
    [
        ("keras", "optimizer=adam", "optimizer._target_=keras.optimizers.Adam"),
        ("keras", "optimizer=rmsprop", "optimizer._target_=keras.optimizers.RMSprop"),
        ("keras", "loss=mse", "'loss={_target_: keras.losses.MeanSquaredError}'"),
        ("jax", "optimizer=adamw", "optimizer._target_=optax.adamw"),
        ("jax", "optimizer=adagrad", "optimizer._target_=optax.adagrad"),
        ("jax", "loss=mse", "'loss={_target_: optax.squared_error}'"),
        ("transformers", "model=bert-base-cased", "model.pretrained=bert-base-cased"),
    ],
)
def test_an_option_of_other_trainers_is_told_as_this_one_understands_it(config, word, form):
    said = refused(config, word)
    assert said.endswith(f"  try: rtrain fit {config} {form}")
    assert f"rtrain fit {config} {word}\n" in said  # the typed word is what is blamed


def test_an_option_that_has_no_such_form_is_refused():
    said = refused("keras", "model=mlp")
    assert said.startswith("trainer=tensorflow can't use rtrain.models.torch.MLP")
    assert said.endswith("trainer.model: rtrain trainers tensorflow")


def test_the_form_passes_the_check(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for config, word in (
        ("keras", "loss={_target_: keras.losses.MeanSquaredError}"),
        ("jax", "optimizer._target_=optax.adamw"),
    ):
        with Session(config, [word], schemas()) as session:
            session.check()


def test_options_of_ones_own_are_taken_by_any_trainer(tmp_path):
    option = tmp_path / "configs" / "trainer" / "optimizer" / "mine.yaml"
    option.parent.mkdir(parents=True)
    option.write_text("_target_: keras.optimizers.Lion\nlearning_rate: 0.001\n")
    with Session("keras", ["optimizer=mine"], schemas(), str(tmp_path / "configs")) as session:
        assert session.check().conf.trainer.optimizer["_target_"] == "keras.optimizers.Lion"


def test_the_trainer_that_has_the_options_takes_them():
    with Session("mlp", ["optimizer=adam", "loss=mse", "model=gpt"], schemas()) as session:
        session.check()
