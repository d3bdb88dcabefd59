"""``TrainingArguments`` that rtrain follows, and what it has in place of the others."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import fields
from functools import partial
from typing import Any

from transformers import Trainer, TrainingArguments

from rtrain.config.diagnostics.meant.keys.words import hint_about, translated
from rtrain.config.diagnostics.omegaconf_messages import as_written
from rtrain.config.did_you_mean import did_you_mean, nearest_or_all, to_try, use_instead
from rtrain.config.targets.arguments import named_in_error
from rtrain.errors import ConfigError, TargetError, first_line

FOLLOWED = (
    *("learning_rate", "weight_decay", "adam_beta1", "adam_beta2", "adam_epsilon", "optim", "optim_args"),
    *("lr_scheduler_type", "lr_scheduler_kwargs", "warmup_steps", "max_grad_norm", "bf16", "label_smoothing_factor"),
    *("gradient_checkpointing", "gradient_checkpointing_kwargs", "ddp_find_unused_parameters", "ddp_bucket_cap_mb"),
    # What newer versions of transformers call it; they keep both names alike.
    *("activation_checkpointing", "activation_checkpointing_kwargs"),
)
OURS = {
    "per_device_train_batch_size": "trainer.batch_size",
    "per_device_eval_batch_size": "trainer.eval_batch_size",
    "gradient_accumulation_steps": "trainer.accumulate_steps",
    "num_train_epochs": "trainer.max_epochs",
    "max_steps": "trainer.max_steps",
    "eval_strategy": "trainer.eval_every_epochs or trainer.eval_every_steps",
    "eval_steps": "trainer.eval_every_steps",
    "logging_steps": "run.log_every_steps",
    "output_dir": "run.root_dir",
    "save_strategy": "run.checkpoint",
    "save_steps": "run.checkpoint.every_steps",
    "save_total_limit": "run.checkpoint.keep",
    "load_best_model_at_end": "run.checkpoint: the best one is kept",
    "metric_for_best_model": "run.checkpoint.best.monitor",
    "seed": "run.seed",
    "data_seed": "run.seed",
    "use_cpu": "scaling.use_gpu",
    "report_to": "run.loggers",
    "resume_from_checkpoint": "rtrain's own resuming",
}


OF_OPTIMIZERS = ("adam_beta1", "adam_beta2", "adam_epsilon", "optim_args")
"""Those that some optimizers take and others don't."""


def check_arguments(given: Mapping[str, Any], conf: type) -> None:
    """Refuse arguments that are unknown, or that rtrain decides itself.

    Args:
        given: The arguments by name.
        conf: The dataclass of the trainer's keys, which knows what they are called elsewhere.

    Raises:
        ConfigError: Names the key, and what to use instead.
    """
    usual = {field.name: field.default for field in fields(TrainingArguments)}
    known = list(usual)
    for name, value in given.items():
        where = f"trainer.arguments.{name}"
        if name not in known:
            raise ConfigError(f"{where}: TrainingArguments has no '{name}'.", hint_about(conf, where, value, known))
        if name not in FOLLOWED:
            instead = OURS.get(name)
            raise ConfigError(
                f"{where} is not supported: rtrain has its own loop.",
                use_instead(instead) if instead else f"Supported: {', '.join(FOLLOWED)}.",
            )
        # TrainingArguments takes anything in place of a number, and the optimizer fails of it later.
        kinds = (bool,) if isinstance(usual[name], bool) else (int, float)
        if isinstance(usual[name], kinds) and not isinstance(value, kinds):
            wanted = "true or false" if bool in kinds else "a number"
            fits = partial(_is_one_of, kinds)
            raise TargetError(where, f"must be {wanted}, not {as_written(value)}", fits=fits)
    _check_used(given, conf)


def _check_used(given: Mapping[str, Any], conf: type) -> None:
    """Refuse arguments of the optimizer and the schedule that the ones that are chosen don't take.

    Raises:
        TargetError: Names the key.
    """
    made = make_arguments(given, conf)
    _check_installed(made)
    for name in OF_OPTIMIZERS:
        rest = {other: value for other, value in given.items() if other != name}
        default = getattr(TrainingArguments, name, None)
        if given.get(name) not in (None, default) and _options(make_arguments(rest, conf)) == _options(made):
            raise TargetError(f"trainer.arguments.{name}", f"has no effect: {made.optim.value} doesn't use it")
    for switch in ("gradient_checkpointing", "activation_checkpointing"):
        if given.get(f"{switch}_kwargs") and not getattr(made, switch, True):
            hint = to_try(f"trainer.arguments.{switch}=true")
            raise TargetError(f"trainer.arguments.{switch}_kwargs", f"has no effect: {switch} is false", hint)
    if given.get("warmup_steps") and made.lr_scheduler_type.value == "constant":
        hint = to_try("trainer.arguments.lr_scheduler_type=constant_with_warmup")
        raise TargetError("trainer.arguments.warmup_steps", "has no effect: lr_scheduler_type=constant has none", hint)


def _check_installed(arguments: TrainingArguments) -> None:
    """Refuse an optimizer whose package is missing.

    Raises:
        TargetError: It says which package that is.
    """
    try:
        Trainer.get_optimizer_cls_and_kwargs(arguments)
    except (ImportError, ValueError, TypeError) as error:
        if isinstance(error, ImportError) or "import" in str(error) or "install" in str(error):
            raise TargetError("trainer.arguments.optim", f"{arguments.optim.value}: {first_line(error)}") from error


def _options(arguments: TrainingArguments) -> Any:
    """Return the class of the optimizer and its arguments; what equals nothing where that takes a model."""
    try:
        return Trainer.get_optimizer_cls_and_kwargs(arguments)
    except (ImportError, ValueError, TypeError):
        return object()


def make_arguments(given: Mapping[str, Any], conf: type) -> TrainingArguments:
    """Return the arguments with transformers' own defaults.

    Args:
        given: The arguments by name.
        conf: The dataclass of the trainer's keys, which knows what values are called elsewhere.

    Raises:
        ConfigError: A value is refused.
    """
    try:
        return TrainingArguments(output_dir="unused", report_to=[], use_cpu=True, **given)
    except (TypeError, ValueError) as error:
        name = named_in_error(str(error), given)
        key = "trainer.arguments" if name is None else f"trainer.arguments.{name}"
        if choice := re.match(r"(.*) is not a valid \w+, please select one of \[(.*)\]", str(error)):
            names = [one.strip("' ") for one in choice[2].split(",")]
            meant = translated(key, choice[1], [("trainer", conf)])  # what is meant comes before nearness of letters
            hint = did_you_mean(meant) if meant in names else nearest_or_all(choice[1], names)
            raise ConfigError(f"{key}: there is no '{choice[1]}'.", hint) from error
        raise ConfigError(f"{key}: {first_line(error)}") from error


def _is_one_of(kinds: tuple[type, ...], value: Any) -> bool:
    return isinstance(value, kinds) and (bool in kinds or not isinstance(value, bool))
