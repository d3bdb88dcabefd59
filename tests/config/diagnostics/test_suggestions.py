"""What a wrong word of the command line, or a wrong line of a file, comes to."""

from __future__ import annotations

import ast
import random
import re
import shlex
from pathlib import Path

import pytest
from small_project import write

import rtrain
from rtrain.cli.app import run as command
from rtrain.config.diagnostics.meant.keys.suggest import Keys
from rtrain.config.session import Session
from rtrain.errors import ConfigError, IdleKeyError, TargetError
from rtrain.schemas import schemas


def refused(config: str, *words: str) -> str:
    """Return the text of the error."""
    with pytest.raises(ConfigError) as caught, Session(config, words, schemas()) as session:
        session.check()
    return str(caught.value)


@pytest.mark.parametrize(
    ("config", "word", "said"),
    [
        ("mlp", "hidden_size=64", "try: rtrain fit mlp 'model.hidden=[64]'"),
        ("mlp model=gpt", "hidden_size=64", "model.width=64"),
        ("mlp", "optimization.lr=[0.1]", "try: rtrain fit mlp trainer.optimizer.lr=0.1"),
        ("mlp", "momentum=0.9", "optimizer=sgd takes trainer.optimizer.momentum"),
        ("mlp optimizer=sgd", "trainer.dampening=0.1", "trainer.optimizer.dampening=0.1"),
        ("mlp", "eta_min=0.1", "scheduler=cosine takes +trainer.scheduler.eta_min"),
        ("mlp scheduler=cosine", "min_lr=0.1", "scheduler.eta_min=0.1"),
        ("mlp scheduler=step", "trainer.scheduler.decay=0.1", "trainer.scheduler.gamma=0.1"),
        ("mlp loss=huber", "trainer.loss.beta=0.1", "trainer.loss.delta=0.1"),
        ("mlp", "rho=0.9", "'rho' is an argument of torch.optim.Adadelta"),  # a class that isn't chosen
        ("mlp", "trainer.scheduler.factor=0.1", "torch.optim.lr_scheduler.ReduceLROnPlateau"),
        ("sklearn", "alphas=[1]", "is an argument of sklearn.linear_model."),
    ],
)
def test_what_is_built_has_words_of_its_own(config, word, said):
    assert said in refused(*config.split(" "), word)


@pytest.mark.parametrize(
    ("config", "words", "said"),
    [
        ("mlp", ["ephocs=3"], "try: rtrain fit mlp epochs=3"),
        ("mlp", ["scheduler=asha"], "try: rtrain fit mlp sweep/scheduler=asha "),
        ("xgboost", ["scheduler=asha"], "try: rtrain fit xgboost sweep/scheduler=asha "),
        ("xgboost", ["dataset=csv", "dataset.label=p", "dataset.file=t.csv"], "dataset.path=t.csv"),
        ("mlp", ["hydra/sweeper=optuna"], "try: rtrain fit mlp sweep=optuna "),
        ("mlp", ["dataset=iris"], "try: rtrain fit mlp dataset=sklearn dataset.name=iris"),
        ("mlp", ["metrics=[accuracy]"], "loss and accuracy, or the errors of numbers, are reported anyway"),
        (
            "mlp",
            ["compute_metrics=f1"],
            "'metrics={f1: {_target_: torchmetrics.F1Score, task: multiclass",
        ),
        ("keras", ["metrics=[auc]"], "'trainer.metrics={auc: {_target_: keras.metrics.AUC}}'"),
        ("mlp", ["lr", "0.1"], "try: rtrain fit mlp lr=0.1 num_workers=0"),
        ("mlp", ["lr:", "0.1"], "try: rtrain fit mlp lr=0.1 num_workers=0"),
        ("mlp", ["lr", "=", "0.1"], "try: rtrain fit mlp lr=0.1 num_workers=0"),
        ("mlp", ["model=nets_of_mine.py"], "'model={_target_: nets_of_mine.Net}'"),
        ("mlp", ["use_deterministic_mode=true"], "try: rtrain fit mlp trainer.deterministic=true"),  # what says nothing
        ("mlp", ["exp_manager.create_wandb_logger=true"], "metrics are in events.jsonl"),  # a topic
        (
            "mlp",
            ["checkpoint.folder=x"],
            "run.checkpoint sets when checkpoints are written",
        ),  # what the section is about
        ("mlp", ["activation_checkpoint.mode=full"], "trainer.strategy_options.activation_checkpointing=true"),
        ("lightgbm", ["valid_sets=val"], "try: rtrain fit lightgbm 'trainer.eval_splits=[val]'"),  # null is its default
        ("mlp", ["class_weights=[1,2]"], "loss=cross_entropy +trainer.loss.weight=[1,2]"),
        ("mlp", ["lr=auto"], "trainer.optimizer.lr: must be a number, not 'auto'"),
        ("mlp", ["loss=cross_entropy", "+loss.weight=[1,2]"], "must have 10 weights, one for each class, not 2"),
        (
            "mlp",
            ["sweep.param_space.lr=[0.1,0.2]"],
            "'sweep.params.lr=[0.1,0.2]' num_workers=0 --multirun",
        ),
        (
            "mlp",
            ["sweep.scheduler=asha", "sweep.scheduler.grace_period=2", "lr=0.1,0.2", "--multirun"],
            "sweep.scheduler=asha sweep.scheduler.grace=2 lr=0.1,0.2",
        ),
        ("sklearn", ["model=svc"], "try: rtrain fit sklearn 'trainer.estimator={_target_: sklearn.svm.SVC}'"),
        ("sklearn", ["model=RandomForest"], "trainer.estimator._target_=sklearn.ensemble.RandomForestClassifier"),
        (
            "sklearn",
            ["trainer.cross_validation.scoring=[f1]"],
            "did you mean: trainer.cross_validation.scoring=[f1_m",
        ),
        ("lightning", ["+trainer.trainer_args.val_check_interval=1000"], "is more than the 20 batches of an epoch"),
        ("mlp", ["lr=0,1"], "try: rtrain fit mlp lr=0.1"),
        ("mlp", ["lr=true"], "trainer.optimizer.lr: must be a number, not true"),
        ("mlp", ["lr=null"], "trainer.optimizer.lr: must be a number, not null"),
        ("keras", ["+trainer.optimizer.learntng_rate=0.1"], "did you mean: learning_rate"),
        ("xgboost", ["trainer.params.eta=fast"], "xgboost trainer.params.eta=fast num_workers=0\n" + " " * 23 + "^"),
        (
            "mlp",
            ["sweep=random", "sweep.params={learning_rate: [0.1,0.2]}", "--multirun"],
            "'sweep.params={trainer.optimizer.lr: [0.1,0.2]}'",
        ),
        (
            "mlp",
            ["dataset=python", "dataset.function=rows_of_mine:rows", "+dataset.arguments.num_row=3"],
            "did you mean: num_rows",
        ),
        ("transformers", ["~trainer.model.config.model_type", "+trainer.model.config.modeltype=vit"], "'modeltype' is"),
    ],
)
def test_what_a_newcomer_typed_leads_to_what_works(config, words, said, tmp_path, monkeypatch, capsys):
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "rows_of_mine.py").write_text("def rows(num_rows=2):\n    return {}\n")
    (tmp_path / "nets_of_mine.py").write_text("class Net:\n    pass\n")
    monkeypatch.chdir(tmp_path)
    assert command(["fit", config, *words, "num_workers=0"]) == 2
    told = capsys.readouterr().err
    assert said in told
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize(
    ("config", "word", "said"),
    [
        ("mlp", "trainer.lora.rank=8", "trainer.lora is a key of trainer=transformers"),
        ("xgboost", "+lr=0.1", "xgboost +lr=0.1\n                       ^^^^^^^\n  boosted trees have no optimizer"),
        ("resnet", "trainer.params.max_depth=3", "trainer.params is a key of trainer=lightgbm, xgboost"),
        ("mlp", "use_lora=true", "trainer=transformers has it: trainer.lora={r: 8, target_modules: all-linear}"),
        ("mlp", "sep=x", "dataset=csv has it: dataset.delimiter"),
        ("mlp", "+run.sed=1", "try: rtrain fit mlp run.seed=1"),  # what came in with + is explained like the rest
        ("mlp", "trainer.early_stopping.metric=x", "try: rtrain fit mlp trainer.early_stopping.monitor=x"),
        ("mlp", "sweep.scheduler.grace_period=3", "mlp sweep/scheduler=asha sweep.scheduler.grace=3 --multirun"),
        ("mlp sweep/scheduler=asha", "sweep.scheduler.max_t=3", "each trial ends at trainer.max_epochs"),
        (
            "mlp sweep/scheduler=asha",
            "sweep.scheduler.grace_period=3",
            "asha seed=1,2 sweep.scheduler.grace=3 --multirun",
        ),
    ],
)
def test_a_key_of_another_plugin_or_of_an_open_section_is_named(config, word, said):
    assert said in refused(*config.split(" "), word)


@pytest.mark.parametrize(
    ("config", "word", "said"),
    [
        ("mlp", "optimizer=RMSprop", "try: rtrain fit mlp 'optimizer={_target_: torch.optim.RMSprop}'"),
        ("mlp", "optimizer=lion", "by its class: optimizer={_target_: package.Class"),
        ("mlp", "sweep=bayes", "try: rtrain fit mlp sweep=optuna --multirun"),
        ("mlp", "sweep/scheduler=HyperbandPruner", "try: rtrain fit mlp sweep/scheduler=hyperband --multirun"),
        ("mlp", "optimizer=foo", "or a class: optimizer={_target_: package.Class}"),
        ("mlp", "model=bert", "rtrain fit transformers trainer.model.pretrained=NAME"),
        ("keras", "loss=ce", "trainer.loss=null uses cross entropy"),
        ("mlp", "val_dataset=x", "dataset.split.val=0.1 holds out a share"),
        ("mlp", "val_dataset=val", "trainer.evaluate_split=val"),
        ("mlp", "memory=4GB", "scaling.resources_per_worker={memory: 4e9}"),
        ("mlp", "jit_compile=true", "trainer.compile=true"),
    ],
)
def test_what_other_tools_choose_by_a_name_is_told_how_to_choose(config, word, said):
    assert said in refused(config, word)


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("hydra.verbos=true", "try: rtrain fit mlp hydra.verbose=true"),
        ("hydra.output_subdirr=x", "try: rtrain fit mlp hydra.output_subdir=x"),
        ("hydra.runn.dir=x", "try: rtrain fit mlp hydra.run.dir=x"),
        ("hydra.foo=1", "available: callbacks, "),
        ("hydra.verbose.x=1", "available: callbacks, "),
        ("hydra.job.env_set.OMP_NUM_THREADS=1", "try: rtrain fit mlp +hydra.job.env_set.OMP_NUM_THREADS=1"),
        ("hydra/job_loggin=none", "try: rtrain fit mlp hydra/job_logging=none"),
        ("hydra/foo=x", "available: hydra/env, hydra/help"),
    ],
)
def test_a_misspelt_setting_of_hydras_is_compared_with_hydras(word, said):
    assert said in refused("mlp", word)


@pytest.mark.parametrize("word", ["optimizer.mometum=0.9", "optimizer.name=sgd", "model.depth=3"])
def test_what_the_signature_lacks_is_not_to_be_added(word):
    assert "+" not in refused("mlp", word)


def test_the_values_of_a_sweep_stay_several(capsys):
    assert command(["fit", "mlp", "--multirun", "model.hiden=32,64"]) == 2
    assert "try: rtrain fit mlp --multirun 'model.hidden=[32],[64]'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("config", "word", "meant"),
    [
        (
            "mlp",
            "hydra.launcher.n_jobs=4",
            "seed=1,2 sweep.max_concurrent=4 --multirun",
        ),  # all of a dotted name before its last part
        ("mlp", "tune_config.mode=min", "seed=1,2 sweep.mode=min --multirun"),
        ("mlp", "data.seed=3", "dataset.seed=3"),  # a section written in full
        ("xgboost", "params.max_depth=3", "trainer.params.max_depth=3"),
        ("lightgbm", "params.num_leaves=3", "trainer.params.num_leaves=3"),
        ("mlp", "init_from=resume", "run.resume=auto"),  # a name that means something of its own for this value
        ("resnet", "MODEL.WEIGHTS=runs/first", "run.init_from=runs/first"),  # a file, and no class to build
    ],
)
def test_all_of_a_name_counts_before_a_part_of_it(config, word, meant):
    assert f"try: rtrain fit {config} {meant}" in refused(config, word)


@pytest.mark.parametrize(
    ("config", "word", "said", "unsaid"),
    [
        ("mlp", "target=price", "dataset.label=COLUMN", "run.stop.target"),
        ("mlp", "rounds=3", "did you mean: epochs", "bounds"),
        (
            "mlp",
            "trainer.model.name=bert",
            "models of Hugging Face are for trainer=transformers",
            "run.name",
        ),  # a name of what is built there
        ("xgboost", "lr=0.1", "did you mean: trainer.params.learning_rate", "+lr"),  # the checks refuse it
        ("mlp", "fp16_full_evl=true", "trainer.precision=fp16", "bf16"),  # other digits are another name
        ("mlp", "input_features=[a]", "dataset.label=COLUMN", "in_features"),
        ("mlp", "trainer.method=sigmoid", "rtrain trainers torch", "sweep"),  # of a search, and no trainer's
        ("mlp", "dataset.weights=w", "dataset.weight", "init_from"),
        ("mlp", "optimizer.lrr=0.1", "optimizer.lr=0.1", "or add it"),
        ("xgboost", "num_class=3", "is set from the data", "try:"),
        ("mlp", "type=xgboost", "did you mean: trainer", "trainer.type"),
        ("mlp", "trainer.type=xgboost", "trainer=xgboost works in", "keys are wrong"),
        ("mlp", "dataset.type=mnist", "try: rtrain fit mlp dataset=mnist", "dtype"),
    ],
)
def test_a_word_of_another_thing_is_not_proposed(config, word, said, unsaid):
    message = refused(config, word)
    assert said in message
    assert unsaid not in message


@pytest.mark.parametrize(
    ("word", "wrong", "right"),
    [
        ("trainer={max_epoch: 3}", "trainer.max_epoch", "trainer={max_epochs: 3}"),
        ("optimizer={lrr: 3}", "trainer.optimizer.lrr", "optimizer={lr: 3}"),
        ("run={checkpoint: {kep: 3}}", "run.checkpoint.kep", "run={checkpoint: {keep: 3}}"),
        ("run.checkpoint.best={metric: a}", "run.checkpoint.best.metric", "run.checkpoint.best={monitor: a}"),
        ("trainer.early_stopping={mod: min}", "trainer.early_stopping.mod", "trainer.early_stopping={mode: min}"),
        ("scaling={use_gpu: no, num_wokers: 0}", "scaling.num_wokers", "scaling={use_gpu: no, num_workers: 0}"),
        ("dataset={split: {tset: 0.1}}", "dataset.split.tset", "dataset={split: {test: 0.1}}"),
    ],
)
def test_inside_a_mapping_the_wrong_key_is_named(word, wrong, right):
    message = refused("mlp", word)
    assert message.startswith(f"{wrong}: there is no key")
    assert message.endswith(f"try: rtrain fit mlp '{right}'")


@pytest.mark.parametrize("word", ["use_ema=true", "ema_momentum=0.99", "ema_overwrite_frequency=10"])
def test_a_key_that_needs_another_one_is_told_with_it(word):
    said = refused("keras", word)
    assert "+trainer.optimizer.use_ema=true and +trainer.optimizer.ema_overwrite_frequency" in said
    assert "try:" not in said


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("precision: bf16-mixed", "did you mean: trainer.precision: bf16"),
        ("device: cuda", "did you mean: scaling.use_gpu: true"),
        ("ckpt_path: last", "did you mean: run.resume: auto"),
        ("init_from: [1, 2]", "did you mean: run.init_from"),
        ("learning_rate: 0.1", "did you mean: trainer.optimizer.lr"),
    ],
)
def test_values_in_files_are_translated(line, said, tmp_path):
    own = tmp_path / "own.yaml"
    own.write_text(f"defaults: [trainer: torch, dataset: digits, optimizer: sgd, model: mlp, _self_]\n{line}\n")
    assert said in refused(str(own)).split("\n")[-1]


@pytest.mark.parametrize("word", ["max_faileds=1", "tyep=grid", "nam=x", "esed=1"])
def test_below_sweep_the_typed_word_is_blamed(word, tmp_path):
    own = tmp_path / "own.yaml"
    own.write_text("defaults: [mlp, sweep: random, _self_]\nsweep: {num_trials: 3}\n")
    said = refused(str(own), f"sweep.{word}")
    assert said.startswith(f"there is no key 'sweep.{word.partition('=')[0]}'")
    assert "did you mean: sweep." in said


@pytest.mark.parametrize(
    "entry", ["modle: mlp", "models: gpt", "moddel: resnet", "MODEL: mlp", "los: mse", "Loss: mse"]
)
def test_in_defaults_lists_short_names_are_meant(entry, tmp_path):
    own = tmp_path / "own.yaml"
    own.write_text(f"defaults: [trainer: torch, {entry}, dataset: digits]\n")
    meant = "loss" if entry[0] in "lL" else "model"
    assert refused(str(own)).split("\n")[-1] == f"  did you mean: {meant}"


@pytest.mark.parametrize(
    ("word", "meant"),
    [("trainer.precision=16-mixed", "fp16"), ("trainer.strategy=DDP", "ddp"), ("trainer.evaluate_split=dev", "val")],
)
def test_what_other_tools_call_a_value_is_translated(word, meant):
    assert f"did you mean: {meant}\n  try: rtrain fit mlp {word.partition('=')[0]}={meant}" in refused("mlp", word)


def test_a_suggestion_is_checked_as_what_the_session_is_for(tmp_path):
    own = tmp_path / "own.yaml"
    own.write_text("defaults: [mlp, _self_]\ncluster: {runtime_env: {env_vars: {TOKEN: '***'}}}\n")
    with Session(str(own), [], schemas()) as session:
        assert "secrets are not recorded" in str(session._what_is_wrong_with([]))
    with Session(str(own), [], schemas()) as session:
        session.needs_secrets = False  # as predictions and evaluations need none
        session.trust = True
        assert session._what_is_wrong_with([]) is None


def test_what_was_meant_is_said_in_one_place():
    saying = [
        path.name for path in Path(rtrain.__file__).parent.rglob("*.py") if "did you mean" in path.read_text().lower()
    ]
    assert set(saying) <= {"did_you_mean.py", "hydra_errors.py"}  # the last one reads what Hydra says


FORMS = re.compile(r"did you mean|\btry: |\bUse in its place|\bUse .*instead\.|^ instead\.$", re.IGNORECASE)
"""What names the word that was meant, a command that would do, or what to use instead."""
HOMES = {"did_you_mean.py", "hydra_errors.py"}
"""Of the functions that say it, and of the patterns that find it in what Hydra says."""
PATHS = [path for path in Path(rtrain.__file__).parent.rglob("*.py") if path.name not in HOMES]


def test_what_was_meant_and_what_would_do_are_said_by_one_function_each():
    written = []
    for path in PATHS:
        tree = ast.parse(path.read_text())
        docs = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        texts = [one for one in ast.walk(tree) if isinstance(one, ast.Constant) and isinstance(one.value, str)]
        found = [one for one in texts if FORMS.search(one.value) and id(one) not in docs]
        written += [f"{path.name}:{one.lineno} {one.value}" for one in found]
    assert written == []


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("trainer: {num_workers: 2}", "there is no key 'num_workers' here|did you mean: scaling.num_workers"),
        ("dataset: {batch_size: 8}", "there is no key 'batch_size' here|did you mean: trainer.batch_size"),
        ("dataset: {name: mnist}", "there is no key 'name' here|did you mean: type"),
        ("trainr: {max_epochs: 3}", "there is no key 'trainr' here|did you mean: trainer"),
        ("run: {chekpoint: {keep: 3}}", "there is no key 'chekpoint' here|did you mean: checkpoint"),
    ],
)
def test_a_key_in_the_wrong_section_of_a_file_is_blamed_and_not_its_section(text, said, tmp_path):
    (tmp_path / "own.yaml").write_text(f"defaults: [mlp, _self_]\n{text}\n")
    shown = refused(str(tmp_path / "own.yaml"))
    assert all(part in shown for part in said.split("|"))


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        ("learing_rate=0.1", "lr=0.1"),
        ("gradient_acumulation_steps=2", "trainer.accumulate_steps=2"),
        ("ouput_dir=out", "run.root_dir=out"),
        ("checkpoint.monitor=val/loss", "run.checkpoint.best.monitor=val/loss"),
        ("experiment.name=x", "run.name=x"),
        ("dataset.limit=5%", "dataset.sample=0.05"),
        ("dataset.name=mnist", "dataset=mnist"),
        ("early_stopping=patience:3", "'trainer.early_stopping={patience: 3}'"),
        ("nonlinnearity=tanh", "model.activation=tanh"),  # of what is built, too
        ("bf16.eanbled=true", "trainer.precision=bf16"),
    ],
)
def test_a_misspelt_word_of_another_tool_leads_to_what_it_means(word, meant):
    assert refused("mlp", word).endswith(f"try: rtrain fit mlp {meant}")


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("wandb_anything=x", "events.jsonl"),  # a family of names
        ("train_dataset.path=a.csv", "dataset=csv dataset.path=FILE"),  # below a name that is known
        ("Group=g", "dataset.group is a key of dataset=csv"),
        ("sampleWeight=w", "dataset.weight"),
    ],
)
def test_a_name_is_told_by_what_it_begins_with_or_who_has_it(word, said):
    assert said in refused("mlp", word)


def test_a_text_with_a_colon_stays_a_text():
    said = refused("xgboost", "objective=reg:squarederror")
    assert said.endswith("try: rtrain fit xgboost trainer.params.objective=reg:squarederror")


def test_an_argument_of_what_is_built_is_no_misspelling_of_another():
    assert "try: rtrain fit keras +trainer.optimizer.beta_1=0.8" in refused("keras", "trainer.optimizer.beta_1=0.8")


def test_a_key_of_a_sweep_comes_with_what_is_varied(capsys):
    assert command(["fit", "mlp", "--multirun", "sweep.timeout=60"]) == 2
    assert "try: rtrain fit mlp --multirun seed=1,2 sweep.max_seconds=60" in capsys.readouterr().err
    assert command(["fit", "mlp", "--multirun", "lr=0.1,0.01", "sweep.timeout=60"]) == 2
    assert "try: rtrain fit mlp --multirun lr=0.1,0.01 sweep.max_seconds=60" in capsys.readouterr().err


@pytest.mark.parametrize("config", ["jax", "keras"])
def test_a_number_does_not_replace_the_schedule_that_is_there(config, tmp_path):
    if config == "keras":
        text = (
            "defaults: [keras]\ntrainer: {optimizer: {learning_rate: {_target_: keras.optimizers.schedules.CosineDecay,"
        )
        write(tmp_path / "own.yaml", f"{text} initial_learning_rate: 0.1, decay_steps: 9}}}}}}\n")
    said = refused("jax" if config == "jax" else str(tmp_path / "own.yaml"), "lr=0.01")
    first = "init_value" if config == "jax" else "initial_learning_rate"
    assert f"optimizer.learning_rate.{first}=0.01" in said


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["xgboost", "trainer.params.eval_metric=binary_logloss"], "trainer.params.eval_metric=logloss"),
        (["xgboost", "trainer.params.eval_metric=accuracy"], "trainer.params.eval_metric=merror"),
        (["lightgbm", "trainer.params.boosting=gbtree"], "trainer.params.boosting=gbdt"),
    ],
)
def test_a_value_that_the_library_refuses_is_read_as_other_tools_mean_it(words, said, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert command(["fit", *words, "num_workers=0"]) == 2
    assert said in capsys.readouterr().err.splitlines()[-1]


def test_keys_of_a_sweep_may_be_typed_with_their_dots():
    typed = ("rtrain", "fit", "mlp", "--multirun")
    with Session("mlp", ["sweep.params.optimizer.lr=[0.1,0.01]"], schemas(), typed=typed) as session:
        trials = session.trials(None)
    assert [(axis.name, axis.values) for axis in trials.axes] == [("trainer.optimizer.lr", ("0.1", "0.01"))]


def test_what_is_chosen_by_a_name_does_not_name_the_run():
    assert "\n  trainer=NAME chooses a trainer" in refused("mlp", "trainer.name=x")
    assert "run.name=" not in refused("mlp", "dataset.name=x")


def test_a_slip_is_corrected_before_a_framework_is_asked_for_its_names():
    def ask():
        pytest.fail("a framework is imported")

    keys = Keys(["trainer.max_epochs", "trainer.batch_size"], (), library=ask, arguments=ask)
    assert next(keys.meanings("trainer.batch_sizee")).key == "trainer.batch_size"


def test_a_word_whose_key_has_no_effect_here_leads_to_no_other_key():
    """Another tool's word for a key that is idle would else become the next likely key, which is another wish."""
    said = refused("mlp", "failure_config.max_failures=3", "num_workers=0")
    assert "run.failure.max_failures has no effect: num_workers=0" in said
    assert "try:" not in said


@pytest.mark.parametrize(
    ("word", "attempt"),
    [
        ("learning_rate=0,01", "lr=0.01"),
        ("learning_rate=0.1,0.2", "lr=0.1,0.2 --multirun"),
        ("n_epochs=1,2", "epochs=1,2 --multirun"),
        ("limit=1k", "dataset.limit=1000"),
        ("batchsize=2**5", "batch_size=32"),
    ],
)
def test_a_wrong_key_with_a_value_that_can_not_be_as_it_is_leads_to_both_that_are_right(word, attempt):
    assert refused("mlp", word).splitlines()[-1] == f"  try: rtrain fit mlp {attempt}"


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("run.stop.targets.score=3", "try: rtrain fit mlp run.stop.target.score=3"),
        ("run.stop.bound.score={min: 3}", "try: rtrain fit mlp 'run.stop.bounds.score={min: 3}'"),
        ("trainer.models.hiden=[3]", "try: rtrain fit mlp 'trainer.model.hidden=[3]'"),
    ],
)
def test_a_section_with_one_wrong_letter_beats_what_others_call_the_name_in_it(word, said):
    assert said in refused("mlp", word)


@pytest.mark.parametrize(
    ("config", "words", "said"),
    [
        ("mlp", ["trainer=xgboost", "trainer=lightgbm"], "trainer=xgboost and trainer=lightgbm"),
        ("xgboost", ["dataset=csv", "dataset=digits"], "dataset=csv and dataset=digits"),
        ("mlp", ["optimizer=sgd", "optimizer=adamw"], "optimizer=sgd and optimizer=adamw"),
        ("mlp", ["sweep=random", "sweep/scheduler=asha", "sweep/scheduler=median"], "sweep/scheduler=median"),
    ],
)
def test_a_group_that_is_typed_twice_is_named_with_both_words(config, words, said):
    text = refused(config, *words)
    assert "is chosen twice" in text
    assert said in text


def test_the_same_choice_twice_is_one_choice():
    with Session("mlp", ["optimizer=sgd", "lr=0.1", "optimizer=sgd"], schemas()) as session:
        assert session.check().conf.trainer.optimizer["lr"] == 0.1


@pytest.mark.parametrize(
    "word",
    [
        "hydra.job.chdir=true",
        "hydra.mode=MULTIRUN",
        "hydra.sweep.dir=x",
        "hydra/launcher=basic",
        "hydra.runtime.cwd=/x",
        "hydra.job.num=3",
        "hydra.help.header=x",
    ],
)
def test_settings_of_hydras_without_an_effect_are_refused(word):
    with pytest.raises(IdleKeyError, match="has no effect") as caught, Session("mlp", [word], schemas()) as session:
        session.check()
    assert word.partition("=")[0].replace("/", ".") in caught.value.message


def test_settings_of_hydras_in_a_file_are_refused_if_no_way_of_running_follows_them(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write("moving.yaml", "defaults: [mlp]\nhydra: {job: {chdir: true}}\n")
    write("sweeping.yaml", "defaults: [mlp]\nhydra: {job: {chdir: false}, sweep: {dir: runs/all}}\n")
    assert "--> moving.yaml:2:" in refused("moving.yaml")
    with Session("sweeping.yaml", [], schemas()) as session:
        session.check()


def test_another_optimizer_drops_what_the_files_give_to_theirs():
    attempt = "try: rtrain fit jax optimizer._target_=optax.sgd '~trainer.optimizer.weight_decay'"
    assert attempt in refused("jax", "optimizer=sgd")
    error = TargetError("trainer.optimizer.weight_decay", "optax.sgd has no argument 'weight_decay'")
    with pytest.raises(ConfigError) as caught, Session("jax", ["optimizer._target_=optax.sgd"], schemas()):
        raise error
    assert attempt in str(caught.value)


LENGTHS = ("epochs", "num_epochs", "steps", "max_iter", "iterations", "max_seconds", "rounds", "num_boost_round")
"""What tools call the length of a run."""
ABOUT_OTHERS = (
    *("validation", "val_loop", "evaluation", "eval_config", "min_validation_period", "checkpointing", "ckpt"),
    *("saver", "logging", "log_config", "warmup", "lr_decay", "lr_schedule", "save_interval", "earlystop", "freeze"),
)
"""Sections in which it is the length of something else."""


@pytest.mark.parametrize("config", ["mlp", "xgboost"])
@pytest.mark.parametrize("section", ABOUT_OTHERS)
def test_the_length_of_something_else_is_not_that_of_the_run(section, config):
    first = ABOUT_OTHERS.index(section) + len(config)
    for name in (LENGTHS * 4)[first : first + 2]:  # each name in several sections
        said = refused(config, f"{section}.{name}=3")
        assert not re.search(r"try: .*trainer\.(max_\w+|num_boost_round)=3", said), said


@pytest.mark.parametrize("trainer", sorted(set(schemas().trainer) - {"torch"}))
@pytest.mark.parametrize("part", ["optimizer=Adam", "loss=MSELoss", "scheduler=foo", "metrics=f2"])
def test_a_part_that_a_trainer_lacks_is_told_at_once(part, trainer):
    config = {"tensorflow": "keras", "transformers": "transformers"}.get(trainer, trainer)
    said = refused(config, part)
    tried = re.search(r"try: rtrain fit (.*)", said)
    if tried is None:
        return
    again = None
    try:
        again = refused(*shlex.split(tried[1]))
    except pytest.fail.Exception:
        return  # it is accepted
    assert "there is no key" not in again, again


@pytest.mark.parametrize(
    ("word", "tried"),
    [
        ("lr=tune.choice([0.1, 0.01])", "lr=0.1,0.01"),
        ("lr=tune.grid_search([0.1,0.01])", "lr=0.1,0.01"),
        ("lr=uniform(0.1, 0.2)", "'lr=interval(0.1,0.2)'"),
        ("lr=tune.loguniform(1e-4, 1e-1)", "'lr=tag(log,interval(1e-4,1e-1))'"),
        ("trainer.max_steps=choice(5, null)", "trainer.max_steps=5,null"),
        ("trainer.max_steps=choice(null)", "trainer.max_steps=null"),
    ],
)
def test_what_another_tool_draws_is_what_a_sweep_tries(word, tried):
    assert f"try: rtrain fit mlp {tried}" in refused("mlp", word)


@pytest.mark.parametrize("interval", ["interval(16,64)", "tag(log,interval(16,64))"])
def test_an_interval_of_a_whole_number_is_told_how_to_be_one(capsys, interval):
    words = ["sweep=random", "num_workers=0"]
    assert command(["fit", "mlp", "--multirun", *words, f"batch_size={interval}"]) == 2
    assert f"'batch_size=int({interval})'" in capsys.readouterr().err
    with Session("mlp", [*words, f"batch_size=int({interval})"], schemas()) as session:
        trials = session.trials()
        values = [trials.axes[0].draw(random.Random(seed)) for seed in range(9)]
    assert all(16 <= int(value) <= 64 for value in values)
    assert len(set(values)) > 3


@pytest.mark.parametrize("option", ["asha", "hyperband", "median", "none"])
def test_the_scheduler_of_a_sweep_is_chosen_with_dots_too(option):
    composed = []
    for word in (f"sweep.scheduler={option}", f"sweep/scheduler={option}"):
        with Session("mlp", [word], schemas()) as session:
            composed.append(session.request.compose().sweep)
    assert composed[0] == composed[1]


@pytest.mark.parametrize(
    ("config", "word", "said"),
    [
        ("mlp", "checkpoint_config={num_to_keep: 3}", "try: rtrain fit mlp run.checkpoint.keep=3"),
        ("mlp", "solver={base_lr: 0.01}", "try: rtrain fit mlp trainer.optimizer.lr=0.01"),
        ("mlp", "training={epochs: 3, batch_size: 32}", "mlp trainer.max_epochs=3 trainer.batch_size=32"),
        ("xgboost", "backend={type: ray}", "scaling.num_workers"),
        ("mlp", "run_config={storage_path: runs2, name: x}", "storage_path is run.storage, name is run.name"),
        ("resnet", "names={0: cat, 1: dog}", "dataset.label"),
    ],
)
def test_the_keys_of_a_mapping_are_told_as_they_would_be_by_themselves(config, word, said):
    assert said in refused(config, word)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["trainer=xgboost", "num_workers=0"], "try: rtrain fit xgboost num_workers=0"),
        (["trainer=xgboost", "epochs=3", "seed=2"], "try: rtrain fit xgboost seed=2"),
        (["trainer=jax", "num_workers=0"], "try: rtrain fit jax num_workers=0"),
    ],
)
def test_a_config_of_another_trainer_is_named_with_what_else_was_typed(words, said):
    assert said in refused("mlp", *words)


@pytest.mark.parametrize("value", ["[1]", "[{a: 1}]", "[[a]]", "[null]"])
def test_a_group_that_is_given_a_list_of_anything_wants_names(value):
    assert "'run' must be set to the name of an option" in refused("mlp", f"run={value}")
