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
        ("jax", "optimizer._target_=torch.optim.Lion", "optimizer._target_=optax.lion"),
        ("keras", "optimizer._target_=torch.optim.Adam", "optimizer._target_=keras.optimizers.Adam"),
        ("keras", "optimizer={_target_: torch.optim.SGD, lr: 0.1}", "optimizer._target_=keras.optimizers.SGD"),
        ("transformers", "model=bert-base-cased", "model.pretrained=bert-base-cased"),
    ],
)
def test_an_option_of_other_trainers_is_told_as_this_one_understands_it(config, word, form):
    said = refused(config, word)
    assert f"  try: rtrain fit {config} {form}" in said.splitlines()[-1]
    assert f"{word.split('=')[0]}=" in said.splitlines()[1]  # the typed word is what is blamed


def test_a_class_of_another_framework_in_a_file_is_told_as_this_one_understands_it(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own.yaml").write_text(
        "defaults: [jax]\ntrainer:\n  optimizer: {_target_: torch.optim.Adam, learning_rate: 0.1}\n"
    )
    said = refused("own.yaml")
    assert said.startswith("trainer=jax can't use torch.optim.Adam")
    assert "own.yaml:3" in said
    assert said.endswith("did you mean: optax.adam")


def test_an_option_that_has_no_such_form_is_refused():
    said = refused("keras", "model=gpt")
    assert said.startswith("trainer=tensorflow can't use rtrain.models.torch.GPT")
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
