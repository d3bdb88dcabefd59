"""Names, values and files in the form of another tool, or of no tool at all: what they come to."""

from pathlib import Path

import pytest

import rtrain
from rtrain.config.diagnostics.meant.keys.words import hint_about
from rtrain.config.files.locations import builtin_dir
from rtrain.config.session import Session
from rtrain.errors import ConfigError
from rtrain.runs.observer import SilentObserver
from rtrain.schemas import schemas
from rtrain.training.fit import fit_session


@pytest.fixture(autouse=True)
def _project(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("pyproject.toml").write_text("")
    Path("own_nets.py").write_text("class OwnNet:\n    pass\n")
    Path("own_broken.py").write_text("def train(config:\n    pass\n")


def refused(config, *words):
    with pytest.raises(ConfigError) as caught, Session(config, ["num_workers=0", *words], schemas()) as session:
        fit_session(session, SilentObserver())
    assert not Path("runs").exists()
    return str(caught.value)


WORDS = {
    "dataset.in_memory=false": "have it: dataset.memory=stream",
    "wandb=true": "'run.loggers=[wandb]'",
    "run.loggers=[tb]": "'run.loggers=[tensorboard]'",
    "run.loggers=weights_and_biases": "run.loggers=wandb",
    "run.loggers=none": "'run.loggers=[]'",
    "seed=none": "each run has a seed",
    "lr=auto": "in a sweep",
    "trainer.precision=bf16-true": "weights stay in float32",
    "run.failure.max_failures=-1": "for no limit, a large number",
    "dataset.split=0.8": "try: rtrain fit mlp num_workers=0 dataset.split.test=0.2",
    "trainer.callbacks=[EarlyStopping]": "Use a class: trainer.callbacks=[{_target_: my_module.MyCallback}]",
    "logger=tensorboard": "'run.loggers=[tensorboard]'",
    "model.hidden=-5": "for example: model.hidden=[128,128]",
    "trainer.data_seed=7": "run.seed sets the order of the rows",
    "run.checkpoint.best.monitor=balanced_accuracy": "Use one of these",
    "run.checkpoint.best.monitor=acc": "run.checkpoint.best.monitor=val/accuracy",
    "trainer.tf32=true": "trainer.float32_matmul_precision=high",
    "backoffLimit=3": "run.failure.max_failures",
    "smoke.max_seconds=3": "smoke.overrides=[trainer.max_steps=2]",
    "dataset.shuffle_seed=3": "run.seed=3",
    "num_workers=[4,2]": "'num_workers=[2,4]'",
    "trainer.ema_decay=2": "for example: trainer.ema_decay=0.1",
    "trainer.ema_decay=99": "try: rtrain fit mlp num_workers=0 trainer.ema_decay=0.99",
    "run.storage_options.x=1": "AWS_ENDPOINT_URL",
    "dataset.classes=[a,b]": "the values of the label",
    "steps_per_epoch=10": "an epoch is all rows once",
    "hydra.sweeper.params.lr=0.1,0.01": "num_workers=0 lr=0.1,0.01 --multirun",
    "epochs=inf": "trainer.max_epochs=null with trainer.max_steps",
    "trainer.max_epochs=-1": "trainer.max_epochs=null with trainer.max_steps",
    "run.checkpoint.best.monitor=val/f1": "let the trainer measure it",
    "run.resume=yes": "auto, must or never",
    "trainer.model._target_=OwnNet": "own_nets.OwnNet",
    "model=resnet34": "model=resnet18 'model.layers=[3,4,6,3]'",
    "scheduler=exponential": "{_target_: torch.optim.lr_scheduler.ExponentialLR, gamma: 0.95}",
    "optimizer=rmsporp": "{_target_: torch.optim.RMSprop}",
    "metrics=[specifcity]": "specificity: {_target_: torchmetrics.Specificity, task: multiclass, num_classes: auto}",
    "run.loggers={tensorboard}": "'run.loggers=[tensorboard]'",
    "run.tags={a,b}": "'run.tags=[a,b]'",
    "trainer.clip_norm=0": "trainer.clip_norm=null",
    "trainer.max_seconds=0": "trainer.max_seconds=null",
    "run.checkpoint.best.mode=maximum": "run.checkpoint.best.mode=max",
    "trainer.early_stopping.patience=0": "for example: trainer.early_stopping.patience=10",
    "batch_size=-1": "for example: batch_size=64",
    "epochs=0": "rtrain evaluate for a trained model",
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
    "trainer:\n  optimizer:\n    betas: 0.9, 0.999": "put a list in brackets: [0.9, 0.999]",
    "trainer: {model: {_target_: own_nets.py:OwnNet}}": "did you mean: own_nets.OwnNet",
    "trainer: {model: {hidden: ${vars.width}}}": 'quote a reference inside of braces or brackets: "${vars.name}"',
    "resources: {num_gpus: 2}": "scaling.use_gpu",
    "trainer: {metrics: [f1]}": "in a file: metrics: {f1: {_target_: torchmetrics.F1Score, task: multiclass, ",
    "trainer: {optimizer: sgd}": "the defaults list chooses it: - optimizer: sgd",
    "trainer: {scheduler: CosineAnnealingLR}": "the defaults list chooses it: - scheduler: cosine",
    "trainer: {scheduler: CyclicLR}": "CyclicLR, base_lr: 0.001, max_lr: 0.01}",
    "dataset: {split: {val: 10%}}": "in a file: val: 0.1",
    "trainer: {batch_size: 1k}": "in a file: batch_size: 1000",
    "trainer: {max_epochs: 10.0}": "in a file: max_epochs: 10",
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
    ("xgboost", "trainer.params.objective=multi:softmx"): "multi:softmax returns no probabilities\n  try: ",
    ("xgboost", "trainer.params.booster=gbtre"): "trainer.params.booster=gbtree",
    ("xgboost", "trainer.params.booster=forest"): "available: gbtree, dart, gblinear",
    ("xgboost", "trainer.params.subsample=80%"): "trainer.params.subsample=0.8",
    ("lightgbm", "trainer.params.metric=[multi_error,multi_loglos]"): "metric=[multi_error,multi_logloss]'",
    ("lightgbm", "trainer.params.objective=multi_class"): "trainer.params.objective=multiclass",
    ("lightgbm", "trainer.params.bagging_fraction=80%"): "trainer.params.bagging_fraction=0.8",
    ("lightgbm", "trainer.params.objective=foo"): "available: multiclass, multiclassova, ",
    ("xgboost", "trainer.params.objective=abcdefg"): "available: ",
    ("transformers", "trainer.arguments.lr_scheduler_type=cosin"): "did you mean: cosine",
    ("transformers", "trainer.arguments.optim=adam"): "did you mean: adamw_torch",
    ("keras", "+trainer.loss._target_=keras.losses.CrossEntropy"): "keras.losses.SparseCategoricalCrossentropy",
    ("jax", "optimizer.weight_decay_mask=x"): "did you mean: optimizer.mask",
    ("sklearn", "trainer.estimator._target_=sklearn.ensemble.RandomForest"): "RandomForestClassifier or sklearn",
    ("sklearn", "trainer.estimator._target_=sklearn.ensemble.RandomForestRegressor"): "RandomForestClassifier",
    ("transformers", "trainer.ddp_find_unused_parameters=false"): "it is for several workers",
}


@pytest.mark.parametrize("words", list(OTHERS))
def test_a_word_of_another_trainer(words):
    assert OTHERS[words] in refused(*words)


RECIPE = str(builtin_dir("recipes") / "char-gpt-fsdp")
PLACES = {
    ("mlp", "trainer.early_stopping.n_epochs=3"): "try: ... trainer.early_stopping.patience=3",
    ("mlp", "scheduler.max_epochs=10"): "did you mean: trainer.max_epochs",
    ("mlp", "checkpoint.patience=10"): "did you mean: trainer.early_stopping.patience",
    ("mlp", "sweep.patience=10"): "did you mean: trainer.early_stopping.patience",
    ("mlp", "scheduler.patience=10"): "scheduler=plateau",
    ("mlp", "model.learning_rate=0.1"): "try: ... trainer.optimizer.lr=0.1",
    ("mlp", "data.batch_size=16"): "try: ... trainer.batch_size=16",
    ("mlp", "EarlyStopping.patience=3"): "try: ... trainer.early_stopping.patience=3",
    ("mlp", "run.continue=true"): "available: callbacks",
    ("mlp", "dataset.format=csv"): "try: ... dataset=csv",
    (RECIPE, "trainer.sharding_strategy=FULL_SHARD"): "the config already sets this: trainer.strategy=fsdp",
    ("lightning", "scheduler.step_size=5"): "configure_optimizers decides",
    ("lightning", "trainer.val_every=2"): "name the unit",
    ("keras", "ReduceLROnPlateau.patience=3"): "keras.callbacks.ReduceLROnPlateau",
}


@pytest.mark.parametrize(("config", "word"), list(PLACES))
def test_what_is_tried_is_in_the_part_that_the_name_is_about(config, word):
    said, found = PLACES[config, word], refused(config, word).replace(f"rtrain fit {config} num_workers=0", "...")
    assert said in found
    assert ("try: " in said) == ("try: " in found)


ARGUMENTS = [
    ("transformers", "trainer.arguments", "lr", 0.1, "trainer.arguments.learning_rate"),
    ("transformers", "trainer.arguments", "mixed_precision", "bf16", "trainer.arguments.bf16=true"),
    ("transformers", "trainer.arguments", "weight_dekay", 0.1, "weight_decay"),
    ("lightning", "trainer.trainer_args", "amp", True, "trainer.trainer_args.precision=16-mixed"),
    ("lightning", "trainer.trainer_args", "learning_rate", 0.1, "trainer.module"),
]


@pytest.mark.parametrize(("trainer", "section", "name", "value", "meant"), ARGUMENTS)
def test_arguments_of_a_library_have_the_words_of_other_tools(trainer, section, name, value, meant):
    known = ["learning_rate", "bf16", "weight_decay", "precision"]
    assert meant in hint_about(schemas().trainer[trainer], f"{section}.{name}", value, known)


def test_a_loop_gets_what_is_meant_for_it():
    Path("own_loop.py").write_text("def train(config): pass\n")
    Path("own.yaml").write_text("trainer: {type: torch, train_loop: own_loop:train, train_loop_config: {lr: 1}}")
    for word in ("lr=0.1", "optimizer.lr=0.1", "trainer.optimizer.lr=0.1"):
        assert "try: rtrain fit own.yaml num_workers=0 trainer.train_loop_config.lr=0.1" in refused("own.yaml", word)
    Path("own.yaml").write_text("trainer: {type: torch, train_loop: own_loop:train}")
    assert "try: rtrain fit own.yaml num_workers=0 +trainer.train_loop_config.lr=0.1" in refused("own.yaml", "lr=0.1")


IDLE = {
    ("keras", "+optimizer.ema_momentum=0.9"): "+trainer.optimizer.use_ema=true",
    ("transformers", "trainer.arguments.activation_checkpointing_kwargs={use_reentrant:false}"): "ing is false",
    ("transformers", "trainer.arguments.lr_scheduler_kwargs={num_cycles:2}"): "the schedule linear doesn't take them",
    ("xgboost", "+trainer.params.eval_metric=[mlogloss]", "trainer.eval_splits=[]"): "eval_splits=[] evaluates nothing",
    ("lightgbm", "+trainer.params.metric=multi_error", "trainer.eval_splits=[]"): "eval_splits=[] evaluates nothing",
}


@pytest.mark.parametrize("words", list(IDLE))
def test_what_another_key_leaves_without_an_effect(words):
    assert IDLE[words] in refused(*words)


@pytest.mark.parametrize("key", ["train_loop_config", "train_function_config"])
def test_a_mapping_of_the_users_own_keys_is_added_whole(key):
    Path("own_loop.py").write_text("def train(config): pass\n")
    Path("own.yaml").write_text(f"trainer: {{type: jax, {key.removesuffix('_config')}: 'own_loop:train'}}")
    said = refused("own.yaml", f"trainer.{key}={{lr:1,rows:2}}")
    assert f"try: rtrain fit own.yaml num_workers=0 '+trainer.{key}={{lr:1,rows:2}}'" in said


def test_keys_of_columns_that_no_row_needs_are_refused():
    Path("rows.csv").write_text("x,c,y\n1,2,a\n2,3,b\n3,1,a\n4,1,b\n5,2,a\n6,2,b\n")
    table = ("dataset=csv", "dataset.path=rows.csv", "dataset.label=y")
    assert "no feature is categorical" in refused("xgboost", *table, "dataset.max_unseen=0.5")
    named = (*table, "dataset.features=[x]")
    assert "dataset.features already names the columns" in refused("xgboost", *named, "dataset.drop=[c]")


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


TAKEN_OUT = [
    *("~trainer.max_epochs", "~epochs", "~batch_size", "~trainer.batch_size=64", "~trainer.precision", "~run.seed"),
    *("~seed", "~run.keep", "~scaling.num_workers", "~num_workers", "~cluster.address"),
]


@pytest.mark.parametrize("word", TAKEN_OUT)
def test_a_key_that_every_config_has_is_not_taken_out(word):
    said = refused("mlp", word)
    assert "DictConfig" not in said
    assert word in said
    assert "^^" in said.splitlines()[2]
    assert "can't remove it" in said or "to remove" in said


def test_the_word_that_takes_out_is_marked_and_not_one_that_sets_the_key():
    command, marks = refused("xgboost", "trainer.params.eta=null", "~trainer.params.eta").splitlines()[1:3]
    assert command[marks.index("^") : marks.rindex("^") + 1] == "~trainer.params.eta"


SMOKE = ["smoke.max_epoch=3", "smoke.epochs=1", "smoke.max_second=9", "smoke.learning_rate=1", "smoke.overides=[x]"]


@pytest.mark.parametrize("word", SMOKE)
def test_a_wrong_key_of_the_smoke_block_is_no_key_of_the_run(word):
    tried = [line for line in refused("mlp", word).splitlines() if line.strip().startswith("try:")]
    assert all("smoke." in line for line in tried)


UNREAD = {
    ("+vars.eta=0.1",): True,
    ("+vars.eta=0.1", "+vars.other=${vars.eta}"): True,
    ("+vars.eta=0.1", "optimizer.lr=${vars.eta}"): False,
    ("+vars.eta={lr: 0.1}", "optimizer.lr=${vars.eta.lr}"): False,
    ("+vars.eta=0.1", "optimizer.lr=${oc.select:vars.eta}"): False,
}


@pytest.mark.parametrize("words", UNREAD, ids=str)
def test_a_value_that_nothing_refers_to_is_told(words):
    with Session("mlp", ["num_workers=0", *words], schemas()) as session:
        assert any("has no effect: nothing refers to it" in one for one in session.check().notices) == UNREAD[words]
