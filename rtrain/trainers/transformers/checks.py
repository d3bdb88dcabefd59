"""What can be wrong with a transformers config and be found before anything starts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from rtrain.config.diagnostics.meant.keys.words import hint_about
from rtrain.config.did_you_mean import to_try
from rtrain.config.targets.importing import raised_at
from rtrain.datasets.base import DatasetInfo
from rtrain.errors import ConfigError, first_line
from rtrain.trainers.base import Job
from rtrain.trainers.loops.auto import check_float32, check_monitors, check_roles, dataset_of
from rtrain.trainers.loops.number_ranges import check_numbers
from rtrain.trainers.torch.process_settings import check_gpu
from rtrain.trainers.transformers.arguments import check_arguments
from rtrain.trainers.transformers.build import build_model, task_of
from rtrain.trainers.transformers.callbacks import check_own
from rtrain.trainers.transformers.checkpoint.whole_model import check_whole_model
from rtrain.trainers.transformers.config import Conf
from rtrain.trainers.transformers.tokens import open_tokenizer

NEEDS = {
    "causal-lm": "language-modeling",
    "masked-lm": "language-modeling",
    "sequence-classification": "classification",
    "token-classification": "token-classification",
    "image-classification": "classification",
    "regression": "regression",
}


def check_conf(job: Job) -> None:
    """Check task, arguments, adapters, tokenizer and model.

    Raises:
        ConfigError: Something can't work; names the key.
    """
    conf: Conf = job.conf.trainer
    info = dataset_of(job, such_as="text")
    _check_task(conf, info)
    check_roles("transformers", info, ("weight",))
    check_float32("transformers", info)
    check_monitors(conf, info, job, ("perplexity",) if info.task == "language-modeling" else ())
    check_arguments(conf.arguments, Conf)
    check_numbers(conf.arguments, "trainer.arguments")
    if conf.lora is not None:
        _check_lora(conf.lora)
    check_gpu(job.conf.scaling)
    check_own(conf.callbacks, job.builder)
    empty_model(conf, info)


def _check_task(conf: Conf, info: DatasetInfo) -> None:
    task = task_of(conf, info)
    if task not in NEEDS or NEEDS[task] != info.task:
        of_images = len(info.input_shape) == 3
        fitting = [name for name, needed in NEEDS.items() if needed == info.task]
        fitting.sort(key=lambda name: name.startswith("image") != of_images)
        raise ConfigError(
            f"trainer.task: {task} can't be learned from {info.name}, which is for {info.task}.",
            to_try(f"trainer.task={fitting[0]}") if fitting else "For a ranking:\n" + to_try("trainer=xgboost"),
        )
    images, texts = len(info.input_shape) == 3, info.dtype == "object"
    tokens = info.dtype == "int64" and task == "causal-lm"
    if not (tokens or (images if task == "image-classification" else texts)):
        needed = "images" if task == "image-classification" else "texts"
        raise ConfigError(
            f"trainer.task: {task} needs {needed}; {info.name} has {info.dtype} rows of shape {info.input_shape}.",
            "Choose another dataset, e.g. dataset=text.",
        )


def _check_lora(lora: dict[str, Any]) -> None:
    from dataclasses import fields

    from peft import LoraConfig

    known = [field.name for field in fields(LoraConfig)]
    for name in lora:
        if name == "task_type":
            raise ConfigError("trainer.lora.task_type: is set by trainer.task.")
        if name not in known:
            key = f"trainer.lora.{name}"
            raise ConfigError(f"{key}: LoraConfig has no '{name}'.", hint_about(Conf, key, lora[name], known))


def empty_model(conf: Conf, info: DatasetInfo) -> Any:
    """Return the model without numbers; a tokenizer that is made of the rows comes later.

    Raises:
        ConfigError: It can't be built; names the key.
    """
    if conf.model.pretrained is not None:
        check_whole_model(Path(conf.model.pretrained))
    tokenizer = open_tokenizer(conf) if info.dtype == "object" else None
    if conf.task == "masked-lm" and tokenizer is not None and tokenizer.mask_token_id is None:
        raise ConfigError("trainer.tokenizer has no token to mask with.", to_try("trainer.task=causal-lm"))
    try:
        with torch.device("meta"):
            return build_model(conf, info, tokenizer, empty=True)[0]
    except (RuntimeError, ValueError, TypeError, ZeroDivisionError) as error:  # as its layers refuse their sizes
        message = f"trainer.model.config: the model can't be built: {type(error).__name__}: {first_line(error)}"
        raise ConfigError(message, raised_at(error)) from error
