"""A word that names no config: the command that was probably meant."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

from rtrain.config.did_you_mean import closest, did_you_mean, plain, there_are, to_try

EXAMPLE = "resnet"
"""The built-in config that a command names which lacks one."""
CALLED = {
    "mlp": ("torch", "pytorch", "dnn", "nn", "digits"),
    "resnet": ("cnn", "resnet18", "resnet34", "resnet50", "convnet", "cifar", "cifar10", "vision"),
    "keras": ("tensorflow", "tf", "keras3"),
    "jax": ("flax", "optax"),
    "xgboost": ("xgb", "gbdt", "gradientboosting", "boosting", "catboost"),
    "lightgbm": ("lgbm", "lgb", "gbm"),
    "lightning": ("pl", "pytorchlightning", "ptl"),
    "sklearn": ("scikitlearn", "scikit", "randomforest", "forest", "rf", "logisticregression", "svm"),
    "transformers": ("hf", "huggingface", "bert", "vit", "distilbert"),
    "char-gpt-fsdp": ("gpt", "gpt2", "nanogpt", "llm", "chargpt"),
    "text-lora": ("lora", "peft", "finetune", "llama"),
    "lightning-module": ("lightningmodule",),
    "image-folder": ("imagefolder", "images"),
}
"""What a newcomer may call configs and recipes, without case and signs."""
TRAINER = "trainer="
NAMES = ("config", "config_name", "config_path", "config_file", "yaml", "file")
"""Keys under which other tools take the name of a config."""


def hint_for(config: str, overrides: Sequence[str], configs: Sequence[str], recipes: Sequence[str]) -> str:
    """Return the hint for ``config``, which is the name of no config.

    Args:
        config: What was typed in its place.
        overrides: What was typed after it.
        configs: The names that there are.
        recipes: Those of recipes.
    """
    if (reordered := _reordered(config, overrides, configs)) is not None:
        return reordered
    beside = Path(f"{config}.yaml")
    if beside.is_file():
        return "  " + _command(str(beside), *overrides)
    last = config.rpartition("/")[2].removesuffix(".yaml")
    near = last if last in configs else _called(last) or closest(config, [*configs, *recipes])
    recipe = config.rpartition("/")[2] if config.rpartition("/")[2] in recipes else near
    if recipe in recipes:
        copied = f"rtrain recipes cp {recipe} {recipe} && {shlex.join(['rtrain', 'fit', str(recipe), *overrides])}"
        return f"  '{recipe}' is a recipe: copy it before training\n  {to_try(copied)}"
    if near is None:
        return f"  {there_are(configs)}"
    return f"  {did_you_mean(near)}\n  {_command(near, *overrides)}"


def _reordered(config: str, overrides: Sequence[str], configs: Sequence[str]) -> str | None:
    """Return the hint with the config first where an override stands there, or ``config=NAME``; None for others."""
    key, is_set, value = config.partition("=")
    if not is_set:
        return None
    if plain(key) in map(plain, NAMES):
        return f"  {_command(value, *overrides)}"
    names = [one for one in overrides if "=" not in one and (one in configs or Path(one).suffix == ".yaml")]
    if names:
        return f"  {_command(names[0], config, *(one for one in overrides if one != names[0]))}"
    return _without_config([config, *overrides])


def _without_config(words: Sequence[str]) -> str:
    """Return the hint with the config that is built in for the trainer that is typed, or how to write one."""
    trainer = next((one for one in words if one.startswith(TRAINER)), None)
    if trainer is None:
        return f"  {_command(EXAMPLE, *words)}"
    name, rest = trainer.removeprefix(TRAINER), [one for one in words if one != trainer]
    config = name if name in CALLED else _called(name)
    if config is not None:
        return f"  {_command(config, *rest)}"
    return f"  put 'trainer: {{type: {name}}}' into own.yaml\n  {_command('own.yaml', *rest)}"


def _called(name: str) -> str | None:
    """Return the config or recipe that a newcomer may call so; None if there is none."""
    return next((one for one, others in CALLED.items() if plain(name) in others), None)


def _command(*words: str) -> str:
    return to_try(shlex.join(["rtrain", "fit", *words]))
