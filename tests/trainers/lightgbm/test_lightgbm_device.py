"""Which device LightGBM computes on: what the config says, of the kinds of GPU that LightGBM knows."""

import os
from functools import partial

import lightgbm
import pytest
from boosting_runs import real_dataset

from rtrain.config.run_conf import RunConf
from rtrain.config.schema import RtrainConf, ScalingConf
from rtrain.errors import ConfigError
from rtrain.testing.workers import RecordingChannel, make_job, make_worker
from rtrain.trainers.lightgbm.params import all_params
from rtrain.trainers.registry import confs, load_trainer


@pytest.mark.parametrize(
    ("given", "device"), [({}, "gpu"), ({"device_type": "cuda"}, "cuda"), ({"device": "gpu"}, "gpu")]
)
def test_lightgbm_takes_the_gpu_in_the_way_that_the_config_says(given, device):
    info = real_dataset("diabetes").info
    params = partial(all_params, confs()["lightgbm"](params=given), info, seed=0, num_threads=1)
    assert params(use_gpu=True)["device_type"] == device
    assert params(use_gpu=False)["device_type"] == "cpu"


@pytest.mark.parametrize("given", ["cuda", "cpu", "gpu"])
def test_a_device_of_lightgbm_that_contradicts_the_scaling_is_refused(given):
    for use_gpu in (False, True) if given == "cpu" else (False,):
        conf = RtrainConf(
            trainer=confs()["lightgbm"](params={"device_type": given}),
            scaling=ScalingConf(num_workers=0, use_gpu=use_gpu),
            run=RunConf(name="test"),
        )
        with pytest.raises(ConfigError, match="use_gpu"):
            load_trainer("lightgbm").check(make_job(conf, real_dataset("diabetes"), "lightgbm"))


@pytest.mark.parametrize(("given", "instead"), [("cuda", "device_type=gpu"), (None, "use_gpu=false")])
def test_a_device_that_lightgbm_lacks_is_refused_quietly_and_another_one_is_tried(given, instead, monkeypatch, capfd):
    def lacks(params, info):
        os.write(2, b"it prints what it raises")
        if params["device_type"] != "cpu":
            raise lightgbm.basic.LightGBMError("Tree Learner was not enabled in this build")
        return ["l2"]

    monkeypatch.setattr("rtrain.trainers.lightgbm.params._reported_metrics", lacks)
    conf = RtrainConf(
        trainer=confs()["lightgbm"](params={} if given is None else {"device_type": given}),
        scaling=ScalingConf(num_workers=0, use_gpu=True),
        run=RunConf(name="test"),
    )
    with pytest.raises(ConfigError) as caught:
        load_trainer("lightgbm").check(make_job(conf, real_dataset("diabetes"), "lightgbm"))
    assert instead in caught.value.hint
    assert "prints" not in "".join(capfd.readouterr())


@pytest.mark.parametrize("device", ["gpu", "cuda"])
def test_lightgbm_trains_on_a_gpu(device, tmp_path):
    dataset = real_dataset("diabetes")
    try:
        columns = dataset.splits["train"].columns
        one = lightgbm.Dataset(columns["x"], columns["y"])
        lightgbm.train({"device_type": device, "verbosity": -1}, one, 1)
    except lightgbm.basic.LightGBMError as error:
        pytest.skip(f"LightGBM has no {device} here: {error}")
    conf = confs()["lightgbm"](params={"device_type": device}, num_boost_round=5)
    channel = RecordingChannel()
    worker = make_worker(tmp_path, conf, dataset, channel=channel)
    worker.use_gpu = True
    load_trainer("lightgbm").train_loop(conf)(worker)
    assert channel.worker_facts[0]["device"] == device
    assert channel.metrics["test/mse"] < dataset.splits["test"].columns["y"].var()
