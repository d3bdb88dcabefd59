"""Names, values and files in the form of another tool, or of no tool at all: what they come to."""

from pathlib import Path

import pytest

import rtrain
from rtrain.errors import ConfigError


@pytest.fixture(autouse=True)
def _project(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("pyproject.toml").write_text("")
    Path("own_nets.py").write_text("class OwnNet:\n    pass\n")
    Path("own_broken.py").write_text("def train(config:\n    pass\n")


def refused(config, *words):
    with pytest.raises(ConfigError) as caught:
        rtrain.fit(config, ["num_workers=0", *words])
    assert not Path("runs").exists()
    return str(caught.value)


WORDS = {
    "hydra.sweeper.params.lr=0.1,0.01": "num_workers=0 lr=0.1,0.01 --multirun",
    "epochs=inf": "trainer.max_epochs=null with trainer.max_steps",
    "trainer.max_epochs=-1": "trainer.max_epochs=null with trainer.max_steps",
    "run.checkpoint.best.monitor=val/f1": "have the trainer measure it too",
    "run.resume=yes": "auto, must and never",
    "trainer.model._target_=OwnNet": "own_nets.OwnNet",
    "model=resnet34": "model=resnet18 'model.layers=[3,4,6,3]'",
    "scheduler=exponential": "{_target_: torch.optim.lr_scheduler.ExponentialLR, gamma: 0.95}",
    "optimizer=rmsporp": "{_target_: torch.optim.RMSprop}",
    "metrics=[specifcity]": "specificity: {_target_: torchmetrics.Specificity, task: multiclass, num_classes: auto}",
    "run.loggers={tensorboard}": "'run.loggers=[tensorboard]'",
    "run.tags={a,b}": "'run.tags=[a,b]'",
    "trainer.clip_norm=0": "trainer.clip_norm=null",
    "trainer.max_seconds=0": "trainer.max_seconds=null",
    "epochs=0": "rtrain evaluate measures a trained model",
    "optimizer.betas=[0.9,1.5]": "^^^\n  for example: optimizer.betas=[0.9,0.999]",
    "model.hidden=[64,wide]": "^^^\n  for example: model.hidden=[128,128]",
    "dataset.normalize=standard": "dataset.normalize=true",
    "optimizer._target_=torch.optim.adamw": "torch.optim.adamw is a module",
    "trainer.train_loop=own_broken:train": "own_broken.py:1:10\n  >    1 | def train(config:",
}


@pytest.mark.parametrize("word", list(WORDS))
def test_a_word(word):
    assert WORDS[word] in refused("mlp", word)


FILES = {
    "trainer:\n  optimizer: {betas: [0.9, 1.5]}": "own.yaml:3",
    "trainer: {optimizer: {_target_: torch.optim.adamw, lr: 0.1}}": "did you mean: torch.optim.AdamW",
    "trainer:\n  optimizer:\n    betas: 0.9, 0.999": "a list has brackets: [0.9, 0.999]",
    "trainer: {model: {_target_: own_nets.py:OwnNet}}": "did you mean: own_nets.OwnNet",
    "trainer: {model: {hidden: ${vars.width}}}": 'quote a reference inside of braces or brackets: "${vars.name}"',
    "resources: {num_gpus: 2}": "scaling.use_gpu",
    "trainer: {metrics: [f1]}": "in a file: metrics: {f1: {_target_: torchmetrics.F1Score, task: multiclass, ",
    "trainer: {optimizer: sgd}": "the defaults list chooses it: - optimizer: sgd",
    "trainer: {scheduler: CosineAnnealingLR}": "the defaults list chooses it: - scheduler: cosine",
    "trainer: {scheduler: CyclicLR}": "scheduler: {_target_: torch.optim.lr_scheduler.CyclicLR}",
    "scaling: 2 workers": "try: scaling: {num_workers: 2}",
    "trainer: {eval_every_epochs: '${epochs}'}": "did you mean: ${trainer.max_epochs}",
    "trainer: {eval_every_epochs: '${width}'}": "vars: {width: 64}, ${vars.width}",
    "trainer: {lr: 0.1}": "did you mean: trainer.optimizer.lr",
}


@pytest.mark.parametrize("text", list(FILES))
def test_a_file(text):
    Path("own.yaml").write_text(f"defaults: [mlp]\n{text}\n")
    assert FILES[text] in refused("own.yaml")


OTHERS = {
    ("xgboost", "trainer.early_stopping.patience=5", "trainer.eval_splits=[]"): "'trainer.eval_splits=[val]'",
    ("xgboost", "scoring=f1"): "trainer.metric_functions",
    ("xgboost", "trainer.params.eval_metric=mlogloss1"): "trainer.params.eval_metric=mlogloss",
    ("xgboost", "trainer.params.eval_metric=[mlogloss,meror]"): "'trainer.params.eval_metric=[mlogloss,merror]'",
    ("xgboost", "trainer.params.eval_metric=acc"): "trainer.params.eval_metric=merror, with two classes error",
    ("xgboost", "trainer.params.objective=multi:softmx"): "multi:softmax gives no probabilities\n  try: ",
    ("xgboost", "trainer.params.booster=gbtre"): "trainer.params.booster=gbtree",
    ("xgboost", "trainer.params.booster=forest"): "there are: gbtree, dart, gblinear",
    ("xgboost", "trainer.params.subsample=80%"): "trainer.params.subsample=0.8",
    ("lightgbm", "trainer.params.metric=[multi_error,multi_loglos]"): "metric=[multi_error,multi_logloss]'",
    ("lightgbm", "trainer.params.objective=multi_class"): "trainer.params.objective=multiclass",
    ("lightgbm", "trainer.params.bagging_fraction=80%"): "trainer.params.bagging_fraction=0.8",
    ("lightgbm", "trainer.params.objective=foo"): "there are: multiclass, multiclassova, ",
    ("xgboost", "trainer.params.objective=abcdefg"): "there are: ",
    ("transformers", "trainer.arguments.lr_scheduler_type=cosin"): "did you mean: cosine",
    ("transformers", "trainer.arguments.optim=adam"): "did you mean: adamw_torch",
    ("keras", "+trainer.loss._target_=keras.losses.CrossEntropy"): "keras.losses.SparseCategoricalCrossentropy",
    ("jax", "optimizer.weight_decay_mask=x"): "did you mean: optimizer.mask",
    ("sklearn", "trainer.estimator._target_=sklearn.ensemble.RandomForest"): "RandomForestClassifier or sklearn",
    ("transformers", "trainer.ddp_find_unused_parameters=false"): "it is for several workers",
}


@pytest.mark.parametrize("words", list(OTHERS))
def test_a_word_of_another_trainer(words):
    assert OTHERS[words] in refused(*words)


def test_lines_of_a_library_are_not_shown_as_those_of_the_user():
    said = refused("keras", "model.dropout=2")
    assert "Received: rate=2" in said
    assert "-->" not in said


@pytest.mark.parametrize("value", ["0.1..0.01", "0.01-0.1", "[0.01:0.1]"])
def test_a_range_in_another_form_is_what_a_sweep_names(value):
    with pytest.raises(ConfigError) as caught:
        rtrain.sweep("mlp", ["num_workers=0", f"lr={value}"])
    assert "^^^" in str(caught.value)
    assert "interval(0.01,0.1)" in str(caught.value)
