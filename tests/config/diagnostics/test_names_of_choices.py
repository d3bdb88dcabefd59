"""Names that a newcomer gives to what rtrain has under another one: configs, trainers, data, models, schedules."""

import shlex
from pathlib import Path

import pytest

import rtrain
from rtrain.config.files.locations import builtin_dir, config_names
from rtrain.config.files.no_config import CALLED
from rtrain.config.session import Session
from rtrain.errors import ConfigError
from rtrain.runs.observer import SilentObserver
from rtrain.schemas import schemas
from rtrain.training.fit import fit_session


@pytest.fixture(autouse=True)
def _project(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("pyproject.toml").write_text("")


def refused(config, *words):
    with pytest.raises(ConfigError) as caught, Session(config, ["num_workers=0", *words], schemas()) as session:
        fit_session(session, SilentObserver())
    return str(caught.value)


def test_a_config_by_another_name_is_one_that_there_is():
    recipes = {path.parent.name for path in builtin_dir("recipes").glob("*/config.yaml")}
    assert set(CALLED) <= {*config_names(), *recipes}
    called = [other for others in CALLED.values() for other in others]
    assert len(called) == len(set(called))


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("RandomForest", "try: rtrain fit sklearn num_workers=0"),
        ("scikit-learn", "try: rtrain fit sklearn num_workers=0"),
        ("tensorflow", "try: rtrain fit keras num_workers=0"),
        ("bert", "try: rtrain fit transformers num_workers=0"),
        ("gpt", "rtrain recipes cp char-gpt-fsdp"),
    ],
)
def test_a_config_by_another_name(typed, said):
    assert said in refused(typed)


@pytest.mark.parametrize(
    ("typed", "config"),
    [("keras", "keras"), ("hf", "transformers"), ("xgb", "xgboost"), ("flax", "jax"), ("pl", "lightning")],
)
def test_a_trainer_by_another_name_is_tried_with_the_config_that_is_written_for_it(typed, config):
    assert refused("mlp", f"trainer={typed}").endswith(f"try: rtrain fit {config} num_workers=0")


@pytest.mark.parametrize("trainer", ["tensorflow", "jax", "lightning", "sklearn", "xgboost", "lightgbm"])
def test_a_config_of_another_trainer_names_the_one_that_is_written_for_it(trainer):
    said = refused("mlp", f"trainer={trainer}")
    assert f"mlp is not written for trainer={trainer}: trainer.model is " in said
    assert said.endswith(f"try: rtrain fit {'keras' if trainer == 'tensorflow' else trainer} num_workers=0")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["trainer=xgboost", "seed=2"], "try: rtrain fit xgboost seed=2"),
        (["seed=2", "trainer=tensorflow"], "try: rtrain fit keras seed=2"),
        (["seed=2"], "try: rtrain fit resnet seed=2"),
        (["trainer=ridge", "seed=2"], "put 'trainer: {type: ridge}' into own.yaml\n  try: rtrain fit own.yaml seed=2"),
    ],
)
def test_without_a_config_the_one_of_the_trainer_is_tried(words, said):
    with pytest.raises(ConfigError) as caught, Session(words[0], words[1:], schemas()) as session:
        session.check()
    assert str(caught.value).endswith(said)


def test_the_data_of_a_config_of_ones_own_stays_in_the_command_that_is_proposed():
    text = "defaults: [{trainer: xgboost}, {dataset: csv}]\n"
    text += "dataset: {path: 'my rows.csv', label: y, ids: [id], split: {val: 0.2}, na_values: ['?', -1]}\n"
    Path("own.yaml").write_text(text + "trainer: {num_boost_round: 9}\n")
    said = refused("own.yaml", "trainer=sklearn")
    *words, last = shlex.split(said.rpartition("try: ")[2])
    assert words[:3] == ["rtrain", "fit", "sklearn"]
    with Session("sklearn", words[3:], schemas()) as session:
        dataset = session.check().resolved["dataset"]
    with Session("own.yaml", [], schemas()) as session:
        assert session.check().resolved["dataset"] == dataset
    assert last == "num_workers=0"


CHOICES = {
    "trainer=ddp": "trainer.strategy=ddp",
    "trainer=catboost": "trainers are the libraries that rtrain runs",
    "dataset=folder": "try: ... dataset=images",
    "dataset=tabular": "try: ... dataset=csv",
    "dataset=hf": "try: ... dataset=huggingface",
    "dataset=postgres": "try: ... dataset=sql",
    "dataset=excel": "dataset=python dataset.function=",
    "dataset=nothing_like": "parquet, python, sklearn, sql, synthetic, text, tfrecord, webdataset",
    "model=unet": "by its class",
    "model=resnext50": "by its class",
    "model=transformer": "model=gpt is a small transformer",
    "loss=bce": "loss=cross_entropy is for two classes as well",
    "loss=hinge": "try: ... 'loss={_target_: torch.nn.MultiMarginLoss}'",
    "loss=kl": "not distributions",
    "optimizer=adafactor": "try: ... 'optimizer={_target_: torch.optim.Adafactor}'",
    "optimizer=adamw8bit": "of another package",
    "scheduler=constant": "try: ... scheduler=null",
    "scheduler=polynomial": "PolynomialLR, total_iters: auto, power: 2.0}'",
    "scheduler=cosine_with_restarts": "CosineAnnealingWarmRestarts, T_0: 100}'",
    "scheduler=cyclic": "CyclicLR, base_lr: 0.001, max_lr: 0.01}'",
    "scaling=slurm": "cluster.address",
    "scaling=ddp": "trainer.strategy=ddp",
    "run=debug": "trainer.max_steps=10 trainer.max_epochs=null",
    "sweep=hyperband": "try: ... sweep/scheduler=hyperband --multirun",
    "trainer.mixed=true": "try: ... trainer.precision=fp16",
}


@pytest.mark.parametrize("word", list(CHOICES))
def test_a_choice_by_another_name(word):
    said = refused("mlp", word)
    assert CHOICES[word] in said.replace("rtrain fit mlp num_workers=0", "...")


@pytest.mark.parametrize(
    "word", [word for word, said in CHOICES.items() if "{" in said], ids=lambda word: word.partition("=")[2]
)
def test_the_class_of_a_choice_trains(word):
    attempt = refused("mlp", word).rpartition("try: rtrain fit mlp ")[2]
    run = rtrain.fit("mlp", [*shlex.split(attempt), "trainer.max_steps=2", "trainer.max_epochs=null"])
    assert run.status == "succeeded"
