"""Mistakes in a lightning config are found before anything starts, with the key and the way out."""

import re
from dataclasses import replace

import pytest
from lightning_runs import MODULE, dataset, make_conf

from rtrain.config.schema import RtrainConf
from rtrain.errors import ConfigError
from rtrain.testing.workers import make_job
from rtrain.trainers.lightning.plugin import Plugin

CALLBACKS = "lightning.pytorch.callbacks"


def check(conf, data):
    Plugin().check(make_job(RtrainConf(trainer=conf), data, "lightning"))


@pytest.mark.parametrize(
    ("keys", "problem"),
    [
        ({"trainer_args": {"gradient_clip_vl": 1}}, r"no 'gradient_clip_vl'[\s\S]*gradient_clip_val"),
        ({"trainer_args": {"devices": 2}}, r"trainer\.trainer_args\.devices is set by rtrain[\s\S]*num_workers"),
        (
            {"trainer_args": {"callbacks": [{"_target_": "lightning.pytorch.callbacks.ModelCheckpoint"}]}},
            r"rtrain writes the checkpoints[\s\S]*run\.checkpoint",
        ),
        (
            {"trainer_args": {"callbacks": [{"_target_": f"{CALLBACKS}.StochasticWeightAveraging", "swa_lrs": 0.1}]}},
            r"only when training has ended[\s\S]*EMAWeightAveraging",
        ),
        ({"module": {**MODULE, "hiden": [3]}}, r"trainer\.module\.hiden[\s\S]*hidden"),
        ({"module": {"_target_": "torch.nn.Identity"}}, r"torch\.nn\.Identity is not a LightningModule"),
        (
            {"datamodule": {"_target_": "lightning.pytorch.LightningDataModule"}},
            r"a dataset or trainer\.datamodule, not both",
        ),
        (
            {"trainer_args": {"precision": "bf17"}},
            r"trainer_args\.precision: Lightning rejects 'bf17': Precision 'bf17' is invalid",
        ),
        (
            {"trainer_args": {"gradient_clip_val": "lots"}},
            r"trainer_args\.gradient_clip_val: Lightning rejects 'lots': .*gradient_clip_val",
        ),
        ({"trainer_args": {"logger": "csv"}}, r"trainer_args\.logger: must be a mapping with a _target_, not 'csv'"),
        ({"trainer_args": {"callbacks": ["Timer"]}}, r"trainer_args\.callbacks\.0: must be a mapping with a _target_"),
        ({"trainer_args": {"val_check_interval": 1000}}, r"val_check_interval=1000 is more than the \d+ batches"),
        ({"evaluate_split": "test"}, r"small has no split test"),
    ],
    ids=str,
)
def test_a_mistake_is_named_with_the_way_out(keys, problem):
    with pytest.raises(ConfigError) as raised:
        check(make_conf(**keys), dataset())
    assert re.search(problem, f"{raised.value}\n{getattr(raised.value, 'hint', '')}")


def test_rows_that_bring_scores_to_start_from_are_refused():
    data = dataset()
    scored = replace(data, info=replace(data.info, columns=("base_margin",)))
    with pytest.raises(ConfigError, match="lightning trainer can't start from scores"):
        check(make_conf(), scored)


def test_categories_are_no_quantities():
    data = dataset()
    coded = replace(data, info=replace(data.info, categories={"color": ("red", "blue")}))
    with pytest.raises(ConfigError, match="lightning trainer needs numbers, but color of small are categories"):
        check(make_conf(), coded)


def test_a_good_config_with_callbacks_and_loggers_passes():
    callback = {"_target_": "lightning.pytorch.callbacks.LearningRateMonitor"}
    logger = {"_target_": "lightning.pytorch.loggers.CSVLogger", "save_dir": "logs"}
    check(make_conf(trainer_args={"callbacks": [callback], "logger": logger}), dataset())


def test_batches_of_a_datamodule_are_its_own():
    conf = make_conf(datamodule={"_target_": "lightning.pytorch.LightningDataModule"})
    with pytest.raises(ConfigError, match=r"trainer\.global_batch_size needs a dataset"):
        check(conf, None)


def test_a_gpu_that_the_check_does_not_use_is_not_warned_of(monkeypatch, recwarn):
    monkeypatch.setattr("lightning.pytorch.trainer.setup.CUDAAccelerator.is_available", lambda: True)
    check(make_conf(), dataset())
    assert "GPU available" not in "".join(str(one.message) for one in recwarn)
