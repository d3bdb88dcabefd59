"""What the torch plugin finds wrong before anything starts."""

import subprocess
import sys
from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch
from pydantic import TypeAdapter, ValidationError
from torch_runs import GPT, MLP, MODELS, SGD, make_conf, small_dataset, token_dataset

from rtrain.config.run_conf import BestConf, CheckpointConf, RunConf
from rtrain.config.schema import RtrainConf, ScalingConf
from rtrain.config.value_types.num_workers import Elastic
from rtrain.errors import ConfigError, NotInstalledError
from rtrain.testing.workers import make_job
from rtrain.trainers.loops.early_stopping import EarlyStoppingConf
from rtrain.trainers.torch.config import Conf, StrategyConf
from rtrain.trainers.torch.plugin import Plugin
from rtrain.trainers.torch.strategies import ddp

NOT_FOR_TORCH = [("dtype", "object", "are text"), ("task", "ranking", "for ranking")]
COSINE = {"_target_": "torch.optim.lr_scheduler.CosineAnnealingLR", "T_max": "auto"}
PLATEAU = {"_target_": "torch.optim.lr_scheduler.ReduceLROnPlateau"}

F1 = {"_target_": "torchmetrics.F1Score", "task": "multiclass", "num_classes": "auto"}


def job_of(conf, *, dataset=None, num_workers=1, monitor=None, use_gpu=False):
    root = RtrainConf(
        trainer=conf,
        scaling=ScalingConf(num_workers=num_workers, use_gpu=use_gpu),
        run=RunConf(name="test", checkpoint=CheckpointConf(best=BestConf(monitor=monitor))),
    )
    return make_job(root, dataset or small_dataset())


def check(conf, **keys):
    Plugin().check(job_of(conf, **keys))


@pytest.mark.parametrize("most_bytes", [0, 2**30], ids=["outline", "built"])
def test_the_memory_format_of_images_needs_convolutions(monkeypatch, most_bytes):
    monkeypatch.setattr("rtrain.trainers.torch.memory_limit.MOST_BYTES", most_bytes)
    with pytest.raises(ConfigError, match=r"trainer\.channels_last: has no effect: \S+MLP has no convolutions"):
        Plugin().try_out(job_of(make_conf(channels_last=True)))


def test_a_good_conf_passes():
    check(make_conf(scheduler=COSINE, metrics={"f1": {"_target_": "torchmetrics.F1Score", "task": "multiclass"}}))
    check(make_conf(early_stopping=EarlyStoppingConf(monitor="test/loss")), monitor="train/epoch_loss")


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"model": {**MLP, "hiden": [3]}}, "hiden"),
        ({"model": {"_target_": f"{MODELS}.MPL"}}, "MLP"),
        ({"optimizer": {"_target_": "torch.optim.SGD", "learning_rate": 1}}, "learning_rate"),
        ({"optimizer": {"_target_": "torch.optim.SGD", "lr": "fast"}}, "trainer.optimizer.lr: must be a number"),
        (
            {"optimizer": {"_target_": "torch.optim.AdamW", "betas": [0.9]}},
            "trainer.optimizer.betas: must be a list of 2",
        ),
        (
            {"optimizer": {"_target_": "torch.optim.AdamW", "lr": -1}},
            "trainer.optimizer.lr: must be at least 0, not -1",
        ),
        ({"optimizer": {"_target_": "torch.optim.LBFGS"}}, "LBFGS needs a closure"),
        ({"scheduler": {"_target_": "torch.optim.lr_scheduler.StepLR"}}, "step_size"),
        ({"model": {"_target_": "subprocess.Popen", "args": "ls"}}, "allow"),
        ({"loss": {"_target_": "torch.nn.CrossEntropyLos"}}, "CrossEntropyLoss"),
        ({"metrics": {"f1": {"_target_": "torchmetrics.F1Scor"}}}, "F1Score"),
        ({"scheduler": COSINE, "max_seconds": 3.0}, "max_epochs or trainer.max_steps"),
        ({"evaluate_split": "val"}, "no split val"),
        ({"early_stopping": EarlyStoppingConf(monitor="val/acc")}, "test/accuracy"),
        ({"early_stopping": EarlyStoppingConf(), "evaluate_split": "none"}, "early_stopping"),
        ({"sync_batchnorm": True}, "only on GPUs"),
    ],
)
def test_a_mistake_is_named(keys, message):
    with pytest.raises(ConfigError) as raised:
        check(make_conf(**keys))
    assert message in str(raised.value)


DDP_KEYS = "accelerate.DistributedDataParallelKwargs"


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"strategy": "fsdp", "ema_decay": 0.9}, "trainer.ema_decay=null\nor trainer.strategy=ddp"),
        ({"strategy": "tp", "compile": True}, "trainer.compile does not work with trainer.strategy=tp"),
        ({"strategy": "fsdp_tp", "channels_last": True}, "trainer.channels_last"),
        ({"strategy": "fsdp", "precision": "fp16"}, "trainer.precision=bf16"),
        ({"strategy": "fsdp", "precision": "bf16", "options": {"param_dtype": "bf16"}}, "both set"),
        ({"strategy": "fsdp", "options": {"blocks": ["layer.*"]}}, "no module is named layer.*"),
        ({"options": {"activation_checkpointing": 1}, "model": MLP}, "MLP has no ModuleList"),
        ({"strategy": "tp", "model": MLP}, "MLP has no method tensor_parallel_plan"),
        ({"strategy": "tp", "options": {"tp_plan": {"heads": "colwise"}}}, "no module is named heads"),
        ({"strategy": "tp", "options": {"tp_plan": {"head": "columns"}}}, "colwise, rowwise, colwise_gather"),
        ({"strategy": "tp", "options": {"tp_plan": {"norm": "colwise"}}}, "norm is a LayerNorm"),
        ({"strategy": "tp", "options": {"tp_plan": {"head": "colwise"}}}, "7 outputs, which 4 workers"),
        ({"strategy": "tp"}, "2 heads can't be shared by 4 workers"),
        ({"strategy": "accelerate", "options": {"accelerate": {"dynamo_backendd": 1}}}, "mean: dynamo_backend"),
        ({"strategy": "accelerate", "options": {"accelerate": {"cpu": True}}}, "rtrain sets it"),
        *(
            ({"strategy": "accelerate", "options": {"accelerate": {name: value}}}, message)
            for name, value, message in (
                ("kwargs_handlers", [{"_target_": DDP_KEYS}], "Use trainer.find_unused_parameters instead"),
                ("kwargs_handlers", [{"find_unused_parameters": True}], "Use trainer.find_unused_parameters instead"),
                ("dynamo_plugin", {"_target_": "accelerate.utils.TorchDynamoPlugin"}, "builds no objects"),
                ("project_config", "a", "builds no objects"),
                ("dynamo_backend", {"_target_": "accelerate.utils.DynamoBackend"}, "builds no objects"),
                ("log_with", [{"_target_": "accelerate.tracking.WandBTracker"}], "builds no objects"),
            )
        ),
        ({"strategy": "accelerate", "precision": "fp16"}, "trainer.precision=bf16"),
        ({"strategy": "fsdp_tp", "options": {"tp_size": 3}}, "tp_size=3 does not divide num_workers=4"),
    ],
)
def test_what_a_strategy_can_not_do_is_refused(keys, message):
    given = {"model": GPT, **keys}
    options = StrategyConf(**given.pop("options", {}))
    dataset = small_dataset() if given["model"] is MLP else token_dataset()
    with pytest.raises(ConfigError) as raised:
        check(make_conf(strategy_options=options, **given), dataset=dataset, num_workers=4)
    assert message in str(raised.value)


@pytest.mark.parametrize("strategy", ["fsdp", "tp", "fsdp_tp"])
def test_one_worker_and_none_may_use_every_strategy(strategy):
    for num_workers in (0, 1, 2):
        check(make_conf(model=GPT, strategy=strategy), dataset=token_dataset(), num_workers=num_workers)


@pytest.mark.parametrize("strategy", ["tp", "fsdp_tp"])
def test_layers_are_not_split_over_a_range_of_workers(strategy):
    with pytest.raises(ConfigError, match="resumes only with the same number of workers"):
        check(make_conf(model=GPT, strategy=strategy), dataset=token_dataset(), num_workers=Elastic(1, 2))
    check(make_conf(model=GPT, strategy="fsdp"), dataset=token_dataset(), num_workers=Elastic(1, 2))


def test_workers_that_split_layers_need_the_same_rows():
    dataset = token_dataset()
    streamed = replace(dataset, info=replace(dataset.info, memory="stream"))
    with pytest.raises(ConfigError, match=r"dataset\.memory=resident"):
        check(make_conf(model=GPT, strategy="tp"), dataset=streamed, num_workers=2)
    check(make_conf(model=GPT, strategy="fsdp"), dataset=streamed, num_workers=2)


def test_more_workers_than_rows_of_a_batch_are_refused():
    with pytest.raises(ConfigError, match="global_batch_size"):
        check(make_conf(global_batch_size=3), num_workers=4)


def test_a_monitor_that_is_never_reported_is_refused():
    with pytest.raises(ConfigError, match="val/accuracy"):
        check(make_conf(), monitor="val/accuracy")


@pytest.mark.parametrize(
    ("mode", "monitor", "watched"),
    [
        ("min", None, "test/accuracy, for which a larger"),
        ("max", "test/loss", "test/loss, for which a smaller"),
        ("min", "test/own", "test/own, for which a larger"),  # what torchmetrics says of it
    ],
)
def test_a_schedule_that_watches_a_metric_in_the_wrong_direction_is_refused(mode, monitor, watched):
    with pytest.raises(ConfigError, match=f"scheduler.mode={mode}: the schedule watches {watched}"):
        check(make_conf(scheduler={**PLATEAU, "mode": mode}, metrics={"own": F1}), monitor=monitor)


def test_a_schedule_watches_in_the_direction_that_is_known_or_said():
    check(make_conf(scheduler=PLATEAU))
    check(make_conf(scheduler={**PLATEAU, "mode": "min"}), monitor="test/loss")
    own = make_conf(
        scheduler={**PLATEAU, "mode": "max"}, early_stopping=EarlyStoppingConf(monitor="test/loss", mode="max")
    )
    check(own)


def test_images_are_needed_where_channels_are():
    resnet = {"_target_": f"{MODELS}.ResNet", "in_channels": "auto", "num_classes": "auto"}
    with pytest.raises(ConfigError, match="in_channels"):
        check(make_conf(model=resnet), dataset=small_dataset(shape=(5,)))


@pytest.mark.parametrize(("key", "value", "message"), NOT_FOR_TORCH)
def test_data_that_torch_can_not_learn_from_is_refused(key, value, message):
    dataset = small_dataset()
    with pytest.raises(ConfigError, match=message):
        check(make_conf(), dataset=replace(dataset, info=replace(dataset.info, **{key: value})))


def test_a_dataset_is_needed():
    root = RtrainConf(trainer=make_conf())
    with pytest.raises(ConfigError, match="needs a dataset"):
        Plugin().check(make_job(root, None))


def test_autos_are_filled_at_any_depth():
    from rtrain.trainers.torch.build import fill_from_dataset

    node = {
        "head": {"num_classes": "auto", "padding": "auto"},
        "parts": [{"in_features": "auto"}],
        "in_channels": "auto",
    }
    filled = fill_from_dataset(node, small_dataset().info)
    expected = {"head": {"num_classes": 3, "padding": "auto"}, "parts": [{"in_features": 64}], "in_channels": 1}
    assert filled == expected
    regression = replace(small_dataset().info, task="regression", num_classes=None)
    assert fill_from_dataset({"out_features": "auto"}, regression) == {"out_features": 1}


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"batch_size": 3, "global_batch_size": 6}, "null"),
        ({"max_epochs": None}, "never end"),
        ({"clip_norm": 1.0, "clip_value": 1.0}, "clip_norm"),
        ({"model": {}}, "model is not chosen"),
        ({"precision": "fp8"}, "fp32, bf16, fp16"),
        ({"ema_decay": 1.5}, "less than 1"),
        ({"early_stopping": {"patience": 0}}, "patience"),
    ],
)
def test_the_schema_refuses(keys, message):
    plain = {"model": MLP, "optimizer": SGD, "max_epochs": 1, **keys}
    with pytest.raises(ValidationError) as raised:
        TypeAdapter(Conf).validate_python(plain)
    assert message in str(raised.value)


def test_plugin_and_conf_import_no_framework():
    code = "import sys, rtrain.trainers.torch.plugin; print({'torch', 'ray'} & set(sys.modules))"
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "set()"


def test_what_only_few_configs_use_is_not_imported_for_all():
    code = "import sys, rtrain.trainers.torch.checks; print({'torchmetrics', 'scipy'} & set(sys.modules))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout == "set()\n"


def test_a_strategy_that_is_not_installed_is_named_with_the_way_to_install_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "deepspeed", None)
    with pytest.raises(
        NotInstalledError, match=r"needs deepspeed.\ntry: pip .*--no-build-isolation 'rtrain\[deepspeed"
    ):
        check(make_conf(model=GPT, strategy="deepspeed"), dataset=token_dataset(), num_workers=2)


@pytest.mark.parametrize("value", [True, False])
def test_torch_is_told_that_weights_may_stay_unused(monkeypatch, value):
    told = {}
    monkeypatch.setattr(ddp, "DistributedDataParallel", lambda model, **given: told.update(given))
    monkeypatch.setattr(ddp.inspect, "signature", lambda _: SimpleNamespace(parameters=()))
    ranks = SimpleNamespace(device=torch.device("cpu"))
    here = SimpleNamespace(conf=make_conf(find_unused_parameters=value), ranks=ranks)
    ddp.DDP._distribute(here, torch.nn.Linear(1, 1))
    assert told["find_unused_parameters"] is value
