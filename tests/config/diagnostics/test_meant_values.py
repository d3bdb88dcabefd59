"""Values that can't be lead to what was meant by them: through the checks of the real trainers and datasets."""

from __future__ import annotations

import os
import shlex
from dataclasses import fields
from types import SimpleNamespace

import pytest
import torch

from rtrain.config.diagnostics.meant.rewritten import shares_in
from rtrain.config.session import Session
from rtrain.config.targets.allow_list import is_allowed
from rtrain.config.targets.arguments import named_in_error
from rtrain.config.targets.builder import Builder
from rtrain.config.targets.silenced import silenced
from rtrain.errors import ConfigError, TargetError
from rtrain.schemas import schemas

TABLE = ("dataset=csv", "dataset.path=t.csv", "dataset.label=y")


def check(words: tuple[str, ...]) -> None:
    """Check a config, and what it has built as its trainer does."""
    with Session(words[0], words[1:], schemas()) as session:
        composed = session.check()
        for part, count in (("model", 0), ("optimizer", 1), ("loss", 0), ("scheduler", 1)):
            node = getattr(composed.conf.trainer, part, None)
            if node and "_target_" in node:
                composed.builder.check_node(node, f"trainer.{part}", provided=("params", "optimizer"), num_args=count)


def refused(*words: str) -> str:
    with pytest.raises(ConfigError) as caught:
        check(words)
    return str(caught.value)


@pytest.mark.parametrize(
    ("config", "word", "meant"),
    [
        ("mlp", "lr=10%", "lr=0.1"),
        ("mlp", "num_workers=2-4", "num_workers=[2,4]"),
        ("mlp", "optimizer.betas=0.8", "optimizer.betas=[0.8,0.999]"),
        ("mlp", "trainer.precision.type=bf16", "trainer.precision=bf16"),  # a key that has no others below it
        ("mlp", "lr=0.1,", "lr=0.1"),
        ("mlp", "lr=\u201c0.1\u201d", "lr=0.1"),
        ("mlp", "lr=0,01", "lr=0.01"),
        ("mlp", "batch_size=1,024", "batch_size=1024"),
        ("mlp", "batch_size=2**5", "batch_size=32"),
        ("mlp", "batch_size=4*16", "batch_size=64"),
        ("mlp", "dataset.limit=1000 rows", "dataset.limit=1000"),
        ("mlp", "epochs=10.5", "epochs=10"),
        ("mlp", "use_gpu=cuda:0", "use_gpu=true"),
        ("mlp", "model.hidden=[64 64]", "model.hidden=[64,64]"),
        ("mlp", "model={a=1}", "model={a: 1}"),
        ("mlp", "lr=1/10", "lr=0.1"),
        ("mlp", "lr='0.1'", "lr=0.1"),
        ("mlp", "lr=[0.1]", "lr=0.1"),
        ("mlp", "lr=10e\u22124", "lr=10e-4"),
        ("mlp", "epochs=\uff11\uff10", "epochs=10"),
        ("mlp", "epochs=[5]", "epochs=5"),
        ("mlp", "model.hidden=128", "model.hidden=[128]"),
        ("mlp", "model.hidden=64x64", "model.hidden=[64,64]"),
        ("mlp", "model.hidden=(64,64)", "model.hidden=[64,64]"),
        ("mlp", "model.hidden='[64,64]'", "model.hidden=[64,64]"),
        ("mlp", "trainer.compile=null", "trainer.compile=false"),
        ("mlp", "trainer.evaluate_split=null", "trainer.evaluate_split=none"),
        ("mlp", "trainer.max_seconds=forever", "trainer.max_seconds=null"),
        ("mlp", "trainer.num_threads=all", "trainer.num_threads=null"),
        ("mlp", "trainer.evaluate_split=off", "trainer.evaluate_split=none"),
        ("mlp", "loss=false", "loss=null"),
        ("mlp", "trainer.strategy=DDP", "trainer.strategy=ddp"),
        ("mlp", "run.stop.target.val/loss=0.9", "run.stop.target={val/loss: 0.9}"),
        ("mlp", "run.stop.target.val/loss=null", "run.stop.target={val/loss: null}"),
        ("mlp", "~run.stop.target.val/loss=0.5", "run.stop.target={val/loss: null}"),
        ("mlp", "~run.stop.target.val/loss", "run.stop.target={val/loss: null}"),
        ("mlp", "trainer.max_seconds=5M", "trainer.max_seconds=5m"),
        ("mlp", "+scaling.resources_per_worker.memory=4GB", "+scaling.resources_per_worker.memory=4000000000"),
        ("mlp", "trainer.early_stopping=off", "trainer.early_stopping=null"),
        ("mlp", "trainer.transform=null", "trainer.transform=[]"),
        ("mlp", "trainer.transform={_target_: torch.nn.Identity}", "trainer.transform=[{_target_: torch.nn.Identity}]"),
        ("mlp", "dataset.split=[0.8,0.2]", "dataset.split={test:0.2}"),
        ("mlp", "dataset.split=80/10/10", "dataset.split={val:0.1,test:0.1}"),
        ("keras", "model.channels=32", "model.channels=[32]"),
        ("jax", "optimizer.weight_decay=1%", "optimizer.weight_decay=0.01"),
        ("mlp", "run.name=50%", "run.name=50"),
        ("mlp", "run.name=3/4", "run.name=3-4"),
        ("mlp", "run.name='2 epochs'", "run.name=2-epochs"),
    ],
)
def test_a_value_leads_to_what_was_meant(config, word, meant):
    said = refused(config, word)
    assert f"    rtrain fit {config} {word}\n" in said
    assert said.splitlines()[-1] == f"  try: {shlex.join(['rtrain', 'fit', config, meant])}"


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (["epochs=3 lr=0.1"], ["epochs=3", "lr=0.1"]),
        (["epochs=3;lr=0.1"], ["epochs=3", "lr=0.1"]),
        (["trainer.max_seconds=2", "hours"], ["trainer.max_seconds=2h"]),
        (["trainer:max_epochs=3"], ["trainer.max_epochs=3"]),
        (["trainer[max_epochs]=3"], ["trainer.max_epochs=3"]),
        (["model.hidden=128,64"], ["model.hidden=[128,64]"]),
        (["batch_size=[32,64]"], ["batch_size=32,64", "--multirun"]),
        (["scheduler=CosineAnnealingLR"], ["scheduler=cosine"]),
    ],
)
def test_words_that_are_joined_or_apart_lead_to_words_of_a_command(words, meant):
    assert refused("mlp", *words).splitlines()[-1] == f"  try: {shlex.join(['rtrain', 'fit', 'mlp', *meant])}"


def test_a_text_in_place_of_a_number_of_an_argument_is_no_list():
    assert "[fast]" not in refused("keras", "trainer.optimizer.learning_rate=fast")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("mlp", "run.stop.target=0.99"), "names and values: run.stop.target={NAME: 0.99}"),
        (("mlp", "run.checkpoint.keep=all"), "run.checkpoint.keep=1000000 keeps all of them"),
        (("mlp", "keep=all"), "run.checkpoint.keep=1000000 keeps all of them"),
        (("mlp", "run.checkpoint=false"), "can't be switched off"),
        (("mlp", "checkpoint=false"), "can't be switched off"),
        (("mlp", "dataset.split=null"), "its keys: val, test"),
        (("mlp", "dataset.split=[a,b]"), "must be a mapping, not a list"),
        (("mlp", "trainer.transform=[a]"), "a list is [{_target_: package.Class}]"),
        (("mlp", "scheduler=true"), "'trainer/scheduler' must be set to the name of an option"),
        (("mlp", "dataset=true"), "'dataset' must be set to the name of an option"),
        (("jax", "model.channels=[16,big]"), "trainer.model.channels.1: must be a whole number, not 'big'"),
        (("jax", "optimizer.learning_rate=null"), "must be a number, not null"),
        (("xgboost", *TABLE, "dataset.features=[a,null]"), "dataset.features: can't hold null"),
        (("mlp", "vars=5"), "vars: must be a mapping, not 5"),
        (("mlp", "run.stop.target=0.9"), "run.stop.target: must be a mapping, not 0.9"),
        (("mlp", "run.stop.target={val/loss: low}"), "run.stop.target.val/loss: must be a number, not 'low'"),
        (("mlp", "run.stop={target: {val/loss: low}}"), "run.stop.target.val/loss: must be a number, not 'low'"),
        (("mlp", "run={stop: {target: {val/loss: low}}}"), "run.stop.target.val/loss: must be a number, not 'low'"),
        (("mlp", "scaling.resources_per_worker={a: null}"), "scaling.resources_per_worker.a: can't be null"),
        (("mlp", "scaling={resources_per_worker: {a: b}}"), "scaling.resources_per_worker.a: must be a number"),
        (("mlp", "run={stop: {target: {val/loss: 1}}, nme: x}"), "run.nme: there is no key 'nme' here"),
        (("mlp", "trainer.transform=[a]"), "trainer.transform: must be a list of mappings"),
        (("mlp", "lr={a:1}"), "must be a number, not {'a': 1}"),
        (("mlp", "lr=null"), "for example: lr=0.001"),
        (("mlp", "lr="), "for example: lr=0.001"),
        (("mlp", "lr=fast"), "for example: lr=0.001"),  # a value that the user did not want is no command to try
        (("resnet", "lr=fast"), "for example: lr=0.2"),
        (("mlp", "seed=random"), "each run has a seed"),
        (("mlp", "seed=-1"), "must be at least 0, not -1"),
        (("mlp", "run.checkpoint.every_steps=every"), "for example: run.checkpoint.every_steps=10"),
        (("mlp", "precision=mixed"), "trainer.precision: must be one of: fp32, bf16, fp16, not 'mixed'"),
        (("mlp", "trainer.strategy.type=fsdp"), "train on several: num_workers=2"),
        (("mlp", "nproc_per_node=4", "num_workers=0"), "num_workers=0 sets it too"),
        (("xgboost", *TABLE, "dataset.preprocessors=Scaler"), "a list is [{type: NAME}]"),
    ],
)
def test_a_value_that_nothing_like_it_can_be_leads_to_a_sentence(words, said):
    assert said in refused(*words)


@pytest.mark.parametrize("value", ["null", "off"])
def test_null_for_a_mapping_takes_back_each_name_that_the_config_has(value, tmp_path):
    path = tmp_path / "goals.yaml"
    path.write_text("defaults: [mlp]\nrun: {stop: {target: {val/accuracy: 0.9, val/loss: 0.1}}}\n")
    taken_back = shlex.quote("run.stop.target={val/accuracy: null, val/loss: null}")
    assert refused(str(path), f"run.stop.target={value}").endswith(taken_back)
    for other in ("run.stop.bounds", "scaling.resources_per_worker"):  # null takes none of their names back
        assert "null}" not in refused(str(path), f"{other}={value}")
    assert "null}" not in refused("mlp", f"run.stop.target={value}")


@pytest.mark.parametrize(
    ("value", "shares"),
    [
        ("[0.8,0.2]", ["0.8", "0.2"]),
        ("80/20", ["0.8", "0.2"]),
        ("8:1:1", ["0.8", "0.1", "0.1"]),
        ("0.7, 0.3", ["0.7", "0.3"]),
        ("[0.8,0.3]", []),
        ("[a,b]", []),
        ("0.2", []),
        ("-10/110", []),
    ],
)
def test_shares_that_are_written_together(value, shares):
    assert shares_in(value) == shares


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (("xgboost", *TABLE, "dataset.delimiter=,"), "dataset.delimiter=','"),
        (("xgboost", *TABLE, "dataset.task=classify"), "dataset.task=classification"),
        (("xgboost", *TABLE, "dataset.sample=50%"), "dataset.sample=0.5"),
        (("xgboost", *TABLE, "dataset.drop=city"), "dataset.drop=[city]"),
        (("xgboost", *TABLE, "dataset.features=all"), "dataset.features=null"),
        (("xgboost", *TABLE, "dataset.normalize=none"), "dataset.normalize=false"),
        (("resnet", "dataset=images", "dataset.path=i", "dataset.image_size=8"), "dataset.image_size=[8,8]"),
        (("resnet", "dataset=images", "dataset.path=i", "dataset.image_size=(8,8)"), "dataset.image_size=[8,8]"),
    ],
)
def test_tables_lead_to_what_is_meant(words, meant):
    assert refused(*words).splitlines()[-1] == f"  try: {shlex.join(['rtrain', 'fit', *words[:-1], meant])}"


@pytest.mark.parametrize("word", ["dataset.label=null", "dataset.path=null", "dataset.delimiter=null"])
def test_null_is_no_text(word):
    said = refused("xgboost", *(one for one in TABLE if one.partition("=")[0] != word.partition("=")[0]), word)
    assert word in said
    assert "try:" not in said


def test_a_key_that_a_message_names_later_is_shown_too():
    with pytest.raises(ConfigError) as caught, Session("mlp", ["dataset.split.test=0.5"], schemas()):
        raise ConfigError("t.csv: dataset.split leaves nothing.", "Less.")
    assert str(caught.value).splitlines()[1:3] == ["    rtrain fit mlp dataset.split.test=0.5", f"{'^':>20}{'^' * 21}"]


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("`clip` should be a number. Got big.", "clip"),
        ("big is no choice", "clip"),
        ("Got rate = -1", "rate"),
        ("something is wrong", None),
        ("clip and rate contradict each other", None),
        ("clipped at 1", None),
    ],
)
def test_the_argument_that_an_error_names(text, named):
    assert named_in_error(text, {"clip": "big", "rate": -1}) == named


@pytest.mark.parametrize(
    ("config", "word", "meant"),
    [
        ("sklearn", "trainer.estimator=RandomForestClassifier", "trainer.estimator={_target_: sklearn.ensemble.%s}"),
        ("sklearn", "trainer.estimator._target_=Ridge", "trainer.estimator._target_=sklearn.linear_model.%s"),
        ("sklearn", "estimator=RandomForestClassifier", "trainer.estimator._target_=sklearn.ensemble.%s"),
        ("mlp", "optimizer=RMSprop", "optimizer={_target_: torch.optim.%s}"),
        ("mlp", "optimizer=Adam", "optimizer=adam"),
        ("mlp", "optimizer._target_=RMSprop", "optimizer._target_=torch.optim.%s"),
        ("mlp", "optimizer._target_=Adam", "optimizer=adam"),
        ("mlp", "loss=none", "loss=null"),
        ("mlp", "scheduler=ExponentialLR", "scheduler={_target_: torch.optim.lr_scheduler.%s, gamma: 0.95}"),
        ("jax", "optimizer._target_=lion", "optimizer._target_=optax.%s"),
    ],
)
def test_a_bare_name_leads_to_the_class(config, word, meant):
    word_meant = meant.replace("%s", word.rpartition("=")[2])
    assert refused(config, word).splitlines()[-1] == f"  try: {shlex.join(['rtrain', 'fit', config, word_meant])}"


@pytest.mark.parametrize("trainer", [name for name, conf in schemas().trainer.items() if hasattr(conf, "homes")])
def test_a_part_that_is_built_says_so_where_it_is_null(trainer):
    config = {"torch": "mlp", "tensorflow": "keras"}.get(trainer, trainer)
    required = [one for one in fields(schemas().trainer[trainer]) if one.name in ("model", "optimizer", "estimator")]
    for one in required or [SimpleNamespace(name="module")]:
        said = refused(config, f"trainer.{one.name}=null")
        assert "give its class: " in said
        assert "try:" not in said


def test_the_modules_that_have_classes_are_frameworks():
    for name, conf in schemas().trainer.items():
        for part, modules in getattr(conf, "homes", {}).items():
            assert part in {one.name for one in fields(conf)}, name
            assert all(is_allowed(f"{module}.X", ()) for module in modules)


def test_the_argument_that_a_class_refuses_is_named():
    node = {"_target_": "torch.optim.AdamW", "lr": -1, "eps": 1e-8}
    with pytest.raises(TargetError, match="AdamW rejects -1: Invalid learning rate") as caught:
        Builder().build(node, "trainer.optimizer", [torch.zeros(1)])
    assert caught.value.key == "trainer.optimizer.lr"
    with pytest.raises(ConfigError, match="failed: ValueError") as both:  # none is the only one
        Builder().build({**node, "eps": -1}, "trainer.optimizer", [torch.zeros(1)])
    assert not isinstance(both.value, TargetError)


def test_a_function_that_fails_is_called_once(monkeypatch):
    calls = []

    def load(name="", revision=""):
        calls.append(name)
        raise ValueError("there is no such file")

    load.__module__ = "torch.hub"
    monkeypatch.setattr(torch.hub, "load", load)
    with pytest.raises(ConfigError, match="there is no such file"):
        Builder().build({"_target_": "torch.hub.load", "name": "a", "revision": "b"}, "trainer.model")
    assert calls == ["a"]


@pytest.mark.parametrize("path", ["rtrain.models.torch.MLP", "rtrain.models.lightning.Classifier"])
def test_a_layer_has_a_width(path):
    node = {"_target_": path, "in_features": 3, "num_classes": 2, "hidden": [64, 0]}
    with pytest.raises(TargetError, match=r"trainer\.x\.hidden: .* 1 or more, not \[64, 0\]"):
        Builder().build(node, "trainer.x")


def test_nothing_is_printed_by_what_is_asked(capfd):
    with silenced():
        os.write(1, b"past Python's stream")
        os.write(2, b"and there")
    os.write(1, b"after")
    assert capfd.readouterr() == ("after", "")


@pytest.mark.parametrize("value", ["$SIZE", "${SIZE}", "${env:SIZE}"])
@pytest.mark.parametrize("key", ["optimizer.lr", "batch_size"])
def test_a_variable_of_the_environment_is_led_to_how_a_config_names_it(key, value):
    name = "NAME" if "env:" in value else "SIZE"
    assert refused("mlp", f"{key}={value}").endswith(
        f"\n  an environment variable is ${{oc.decode:${{oc.env:{name}}}}}"
    )


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ("trainer:\n  model:\n    hidden: {a: 64}\n", 4, "trainer.model.hidden: must be a list, not a mapping"),
        ("trainer:\n  metrics: [accuracy]\n", 3, "trainer.metrics: must be a mapping, not a list"),
        ("run:\n  checkpoint:\n    best: [val/loss]\n", 4, "run.checkpoint.best: must be a mapping, not ['val/loss']"),
    ],
)
def test_a_list_where_a_mapping_is_needed_is_named_with_its_line(text, line, said, tmp_path):
    (tmp_path / "own.yaml").write_text(f"defaults: [trainer: torch, model: mlp, dataset: digits, _self_]\n{text}")
    message = refused(str(tmp_path / "own.yaml"))
    assert said in message
    assert f"own.yaml:{line}:" in message
