"""Mistakes in a transformers config are found before anything starts, with the key and the way out."""

import pytest
from transformers_runs import STILL, dataset, make_conf

from rtrain.config.schema import RtrainConf
from rtrain.errors import ConfigError
from rtrain.testing.workers import make_job
from rtrain.trainers.transformers.config import Conf
from rtrain.trainers.transformers.plugin import Plugin


def check(conf, data):
    Plugin().check(make_job(RtrainConf(trainer=conf), data, "transformers"))


@pytest.mark.parametrize(
    ("keys", "problem"),
    [
        ({"arguments": {"learnin_rate": 1}}, r"trainer\.arguments\.learnin_rate: .*\n?.*learning_rate"),
        ({"arguments": {"output_dir": "x"}}, r"trainer\.arguments\.output_dir is not supported[\s\S]*run\.root_dir"),
        ({"arguments": {"report_to": "wandb"}}, r"report_to is not supported"),
        ({"arguments": {"lr_scheduler_type": "no"}}, r"trainer\.arguments"),
        ({"arguments": {"learning_rate": "fast"}}, r"trainer\.arguments\.learning_rate: must be a number, not 'fast'"),
        ({"arguments": {"bf16": "yes"}}, r"trainer\.arguments\.bf16: must be true or false"),
        ({"arguments": {"optim": "adafactor", "adam_beta1": 0.5}}, r"adam_beta1: has no effect: adafactor"),
        ({"arguments": {"lr_scheduler_type": "constant", "warmup_steps": 3}}, r"warmup_steps: has no effect"),
        ({"model": {**STILL, "hidden_size": "big"}}, r"trainer\.model\.config\.hidden_size: .*'hidden_size'.*got str"),
        ({"lora": {"rr": 8}}, r"trainer\.lora\.rr[\s\S]*did you mean: r"),
        ({"model": {**STILL, "hiden_size": 8}}, r"trainer\.model\.config\.hiden_size[\s\S]*hidden_size"),
        ({"model": {"model_type": "berrt"}}, r"model_type: transformers has no 'berrt'[\s\S]*bert"),
        ({"task": "regression"}, r"regression can't be learned from small"),
    ],
    ids=str,
)
def test_a_mistake_is_named_with_the_way_out(keys, problem):
    keys = {"model": STILL, **keys}
    with pytest.raises(ConfigError) as raised:
        check(make_conf(**keys), dataset())
    import re

    assert re.search(problem, f"{raised.value}\n{getattr(raised.value, 'hint', '')}")


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"adam_beta1": 0.5, "adam_epsilon": 1e-4},
        {"optim": "adafactor", "adam_beta1": 0.9},
        {"lr_scheduler_type": "constant_with_warmup", "warmup_steps": 3},
    ],
)
def test_a_good_config_passes(arguments):
    check(make_conf(arguments=arguments), dataset())


def test_a_model_is_from_scratch_or_pretrained():
    with pytest.raises(ValueError, match=r"set either model\.config .* or model\.pretrained"):
        Conf(max_epochs=1)
