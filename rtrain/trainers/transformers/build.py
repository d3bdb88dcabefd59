"""Build model, optimizer and schedule from a config."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
import transformers
from huggingface_hub.errors import StrictDataclassError
from torch import Tensor
from torch.optim.lr_scheduler import LRScheduler
from transformers import AutoConfig, Trainer, TrainingArguments, get_scheduler

from rtrain.config.diagnostics.meant.keys.words import hint_about
from rtrain.config.did_you_mean import closest, nearest_or_all, there_are, to_try
from rtrain.config.targets.arguments import named_in_error
from rtrain.datasets.base import DatasetInfo
from rtrain.errors import ConfigError, TargetError, first_line
from rtrain.trainers.transformers.checkpoint.base import Unchanged
from rtrain.trainers.transformers.config import Conf
from rtrain.trainers.transformers.hub import NOT_THERE, at_revision, is_reachable, local_only
from rtrain.trainers.transformers.tokens import SPECIAL

CLASSES = {
    "causal-lm": "AutoModelForCausalLM",
    "masked-lm": "AutoModelForMaskedLM",
    "sequence-classification": "AutoModelForSequenceClassification",
    "regression": "AutoModelForSequenceClassification",
    "token-classification": "AutoModelForTokenClassification",
    "image-classification": "AutoModelForImageClassification",
}
LORA_TASKS = {
    "causal-lm": "CAUSAL_LM",
    "sequence-classification": "SEQ_CLS",
    "regression": "SEQ_CLS",
    "token-classification": "TOKEN_CLS",
}

SAME_LAYERS = (
    *(("q_proj", "query", "q_lin", "q", "wq", "query_proj"), ("k_proj", "key", "k_lin", "k", "wk", "key_proj")),
    *(("v_proj", "value", "v_lin", "v", "wv", "value_proj"), ("o_proj", "out_proj", "out_lin", "o", "wo", "dense")),
    ("qkv", "qkv_proj", "query_key_value", "c_attn", "Wqkv", "in_proj"),
)
"""What different models call the same layer."""


def task_of(conf: Conf, info: DatasetInfo) -> str:
    """Return what the model learns."""
    if conf.task != "auto":
        return conf.task
    if info.task == "classification":
        return "image-classification" if len(info.input_shape) == 3 else "sequence-classification"
    return "causal-lm" if info.task == "language-modeling" else info.task


def auto_class(task: str) -> Any:
    """Return transformers' class that builds models of a task."""
    return getattr(transformers, CLASSES[task])


def model_config(conf: Conf, info: DatasetInfo, tokenizer: Any) -> Any:
    """Return the configuration of a model from scratch, with what dataset and tokenizer know.

    Raises:
        ConfigError: Names the key that this type of model doesn't have.
    """
    given = dict(conf.model.config or {})
    kind = given.pop("model_type")
    try:
        usual = AutoConfig.for_model(kind)
    except ValueError as error:
        hint = nearest_or_all(str(kind), transformers.CONFIG_MAPPING)
        raise ConfigError(f"trainer.model.config.model_type: transformers has no '{kind}'.", hint) from error
    known = [*usual.to_dict(), *type(usual).attribute_map, "num_labels"]
    for name in given:
        if name not in known:
            key = f"trainer.model.config.{name}"
            hint = hint_about(type(conf.model), key, given[name], sorted(known))
            raise ConfigError(f"{key}: a {kind} model has no '{name}'.", hint)
    filled = {name: value for name, value in _filled(conf, info, tokenizer).items() if name in known}
    try:
        return AutoConfig.for_model(kind, **{**filled, **given})
    except (TypeError, ValueError, StrictDataclassError) as error:
        named = named_in_error(str(error), given)
        key = "trainer.model.config" if named is None else f"trainer.model.config.{named}"
        raise ConfigError(f"{key}: {str(error).strip().splitlines()[-1].strip()}") from error


def _filled(conf: Conf, info: DatasetInfo, tokenizer: Any) -> dict[str, Any]:
    """Return what dataset and tokenizer know of a model's sizes."""
    filled = _heads(conf, info)
    if tokenizer is not None:
        filled["vocab_size"] = len(tokenizer)
        ids = {name: getattr(tokenizer, f"{name}_id") for name in SPECIAL if name not in ("unk_token", "mask_token")}
        filled |= {f"{name}_id": number for name, number in ids.items()}
        filled["bos_token_id"] = tokenizer.bos_token_id
        filled["max_position_embeddings"] = max(conf.max_length, 8)
        filled["n_positions"] = max(conf.max_length, 8)
    elif info.dtype == "int64":
        filled |= {"vocab_size": info.num_classes, "max_position_embeddings": info.input_shape[0]}
        filled |= {"pad_token_id": None, "bos_token_id": None, "eos_token_id": None}
    if len(info.input_shape) == 3:
        channels, height, width = info.input_shape
        filled |= {"num_channels": channels, "image_size": height if height == width else (height, width)}
    return filled


def _heads(conf: Conf, info: DatasetInfo) -> dict[str, Any]:
    """Return the outputs of a model that predicts classes or a number."""
    task = task_of(conf, info)
    if task.endswith("-lm"):
        return {}
    names = info.class_names or tuple(str(number) for number in range(info.num_classes or 1))
    if task == "regression":
        names = ("value",)
    by_number = dict(enumerate(names))
    return {
        "num_labels": len(names),
        "id2label": by_number,
        "label2id": {name: number for number, name in by_number.items()},
        "problem_type": "regression" if task == "regression" else "single_label_classification",
    }


def build_model(
    conf: Conf, info: DatasetInfo, tokenizer: Any, *, empty: bool = False, revision: str | None = None
) -> tuple[Any, list[Tensor]]:
    """Return the model, with adapters around it if the config wants some, and its weights that are a pretrained one's.

    Args:
        conf: Names it.
        info: The dataset.
        tokenizer: Made before, or None.
        empty: Leave out the trained weights.
        revision: Commit of the pretrained model on the hub; None: the newest.

    Raises:
        ConfigError: There is no such model, or it has nothing that adapters can be put around.
    """
    try:
        model, brought = _without_adapters(conf, info, tokenizer, empty=empty, revision=revision)
    except (OSError, ValueError) as error:
        raise ConfigError(f"trainer.model: {_plain(error, conf)}") from error
    if model.config.is_encoder_decoder:
        raise ConfigError(
            f"trainer.model: {model.config.model_type} is an encoder-decoder model, which is not supported; choose "
            "another."
        )
    if tokenizer is not None and len(tokenizer) > model.get_input_embeddings().num_embeddings:
        model.resize_token_embeddings(len(tokenizer))
    if tokenizer is not None:
        # Heads of decoders predict at the last token that is not this one; most decoders come without any.
        model.config.get_text_config().pad_token_id = tokenizer.pad_token_id
    if conf.lora is not None:
        model = _with_adapters(model, conf.lora, task_of(conf, info))
    return model, list(brought.among(model.state_dict(keep_vars=True)).values())


def _without_adapters(
    conf: Conf, info: DatasetInfo, tokenizer: Any, *, empty: bool, revision: str | None
) -> tuple[Any, Unchanged]:
    """Return the model, and those of its weights that a pretrained one brought."""
    maker, name = auto_class(task_of(conf, info)), conf.model.pretrained
    if name is None:
        return maker.from_config(model_config(conf, info, tokenizer)), Unchanged(())
    options = {"trust_remote_code": False, **_heads(conf, info), **local_only(name)}
    if empty:
        return maker.from_config(AutoConfig.from_pretrained(name, **options)), Unchanged(())
    return load_pretrained(maker, name, **options, **at_revision(revision))


def load_pretrained(maker: Any, place: str | Path, **options: Any) -> tuple[Any, Unchanged]:
    """Return a pretrained model, and those of its weights that it brought; the others are new, and random.

    Args:
        maker: Class that builds it.
        place: Folder, or name on the hub.
        options: Of ``from_pretrained``.
    """
    model, told = maker.from_pretrained(
        place,
        ignore_mismatched_sizes=True,
        dtype=torch.float32,
        output_loading_info=True,
        **options,
    )
    new = {*told["missing_keys"], *(name for name, *_ in told["mismatched_keys"])}
    untold = [*(model._keys_to_ignore_on_load_missing or ())]  # patterns; whether these were there is not told
    named = dict(model.named_parameters(remove_duplicate=False))
    new |= {name for name in named if any(re.search(pattern, name) for pattern in untold)}
    random = {id(named[name]) for name in new & named.keys()}
    return model, Unchanged(one for one in named.values() if id(one) not in random)


def _plain(error: Exception, conf: Conf) -> str:
    """Return transformers' message without its lists of all models."""
    name = conf.model.pretrained
    if name is not None and isinstance(error, OSError) and not Path(name).is_dir():
        text = f"there is no model at {name}"
        if name.startswith(("/", ".", "~")):
            return text
        if not is_reachable():
            return f"{text}: {NOT_THERE}"
        return f"{text}, neither as a folder nor on the hub: {error}"
    return str(error).partition("\nModel type should be one of")[0]


def _with_adapters(model: Any, lora: Mapping[str, Any], task: str) -> Any:
    from peft import LoraConfig, get_peft_model
    from peft.utils import TRANSFORMERS_MODELS_TO_LORA_TARGET_MODULES_MAPPING
    from peft.utils.constants import SEQ_CLS_HEAD_NAMES

    if model.config.model_type not in TRANSFORMERS_MODELS_TO_LORA_TARGET_MODULES_MAPPING:
        # peft has no usual ones for it; the layers it trains whole, by how their names end, take no adapter as well
        heads = rf".*({'|'.join(SEQ_CLS_HEAD_NAMES)})"
        lora = {"target_modules": "all-linear", "exclude_modules": heads, **lora}
    _check_layers(model, lora.get("target_modules"))
    try:
        return get_peft_model(model, LoraConfig(task_type=LORA_TASKS.get(task), **lora))
    except (TypeError, ValueError) as error:
        raise ConfigError(f"trainer.lora: {error}") from error


def _check_layers(model: Any, targets: Any) -> None:
    """Refuse names of layers that the model doesn't have; peft takes them in silence where it finds another one.

    Raises:
        ConfigError: Names the layers that adapters can be put around, the nearest first.
    """
    modules = dict(model.named_modules())
    weights = {name: getattr(one, "weight", None) for name, one in modules.items()}
    ends = [name.rpartition(".")[2] for name, one in weights.items() if one is not None and one.ndim > 1]
    ends = list(dict.fromkeys(ends))
    given = list(map(str, targets)) if isinstance(targets, list | tuple) else []
    wrong = [one for one in given if not any(f".{name}".endswith(f".{one}") for name in modules)]
    if not wrong:
        return
    meant = [_same_layer(one, ends) if one in wrong else one for one in given]
    found = ",".join(dict.fromkeys(one for one in meant if one is not None))
    there = there_are(ends)
    raise ConfigError(
        f"trainer.lora.target_modules: the model has no layer '{wrong[0]}'.",
        to_try(f"trainer.lora.target_modules=[{found}]", there) if None not in meant else there,
    )


def _same_layer(wrong: str, ends: Sequence[str]) -> str | None:
    """Return the layer that other models call ``wrong``, else the one with the nearest name; None if none is near."""
    alike = next((names for names in SAME_LAYERS if wrong in names), ())
    return next((one for one in ends if one in alike), None) or closest(wrong, ends)


def build_optimizer(model: Any, args: TrainingArguments) -> torch.optim.Optimizer:
    """Return the optimizer that transformers' own Trainer would use; norms and biases don't decay."""
    decaying = set(Trainer.get_decay_parameter_names(None, model))
    trained = [(name, one) for name, one in model.named_parameters() if one.requires_grad]
    groups = [
        {"params": [one for name, one in trained if name in decaying], "weight_decay": args.weight_decay},
        {"params": [one for name, one in trained if name not in decaying], "weight_decay": 0.0},
    ]
    maker, options = Trainer.get_optimizer_cls_and_kwargs(args, model)
    optimizer: torch.optim.Optimizer = maker(groups, **options)
    return optimizer


def build_schedule(optimizer: torch.optim.Optimizer, args: TrainingArguments, num_steps: int | None) -> LRScheduler:
    """Return the schedule of the learning rate.

    Args:
        optimizer: What it moves.
        args: Its type and warm-up.
        num_steps: Steps of the whole run; None if only a time limit ends it.

    Raises:
        TargetError: The schedule doesn't take ``lr_scheduler_kwargs``.
    """
    name = args.lr_scheduler_type if num_steps is not None else "constant"
    warmup, given = args.get_warmup_steps(num_steps or 0), args.lr_scheduler_kwargs
    try:
        schedule: LRScheduler = get_scheduler(name, optimizer, warmup, num_steps, scheduler_specific_kwargs=given)
    except TypeError as error:
        if not given:
            raise
        problem = f"the schedule {getattr(name, 'value', name)} doesn't take them: {first_line(error)}"
        raise TargetError("trainer.arguments.lr_scheduler_kwargs", problem) from error
    return schedule
