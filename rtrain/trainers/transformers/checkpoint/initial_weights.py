"""Whether the weights of another run (``run.init_from``) fit the model and the adapters of this one."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from safetensors import safe_open

from rtrain.config.compose.search_space import as_text
from rtrain.config.did_you_mean import to_try
from rtrain.errors import ConfigError
from rtrain.trainers.base import BASE, Job
from rtrain.trainers.loops.auto import dataset_of
from rtrain.trainers.trained import CheckpointMetadata
from rtrain.trainers.transformers.checkpoint import adapted
from rtrain.trainers.transformers.checkpoint.whole_model import how_to_merge
from rtrain.trainers.transformers.checks import empty_model
from rtrain.trainers.transformers.config import Conf
from rtrain.trainers.transformers.learner import WEIGHTS

Shapes = Mapping[str, tuple[int, ...]]
OF_ADAPTERS = ("lora_", ".modules_to_save.", ".trainable_tokens_")
"""Parts of the names of weights that adapters add to a model."""
SHAPELESS = ("lora_alpha", "lora_dropout", "use_rslora", "init_lora_weights")
"""Arguments of adapters whose weights fit, whatever their values."""


def check_weights(job: Job, wrote: CheckpointMetadata) -> None:
    """Refuse the weights of a checkpoint that don't fit; reads their names and shapes alone.

    Args:
        job: ``run.init_from`` is the folder of the checkpoint.
        wrote: Its metadata.

    Raises:
        ConfigError: One has adapters and the other has none, they are others, or the model is another one.
    """
    conf: Conf = job.conf.trainer
    folder, before = Path(str(job.conf.run.init_from)), wrote.trainer.get("lora")
    has_adapters = (folder / adapted.FILE_NAME).exists()
    file = folder / (adapted.FILE_NAME if has_adapters else WEIGHTS)
    if not file.exists():
        raise ConfigError(f"run.init_from: {folder} has no {WEIGHTS}.", "Use another checkpoint.")
    if has_adapters and conf.lora is None:
        raise _only_adapters(folder, before)
    if conf.lora is not None and not has_adapters:
        raise ConfigError(
            f"run.init_from: {folder} holds a whole model, and this run trains adapters (trainer.lora).",
            f"To train adapters around it, leave run.init_from out and set {BASE}={folder}\n"
            "To train all of its weights: trainer.lora=null",
        )
    model = empty_model(conf, dataset_of(job))
    stored = _shapes_in(file)
    name = _misfit(model, stored, has_adapters=has_adapters, free=_free_sizes(conf, model))
    if name is not None:
        other = _other_adapters(before or {}, conf.lora) if conf.lora is not None else None
        raise other or _other_model(name, stored, _shapes_of(model))


def _only_adapters(folder: Path, lora: Any) -> ConfigError:
    return ConfigError(
        f"run.init_from: {folder} holds adapters (trainer.lora), and this run trains a whole model.",
        to_try(
            f"trainer.lora={as_text(lora or {})}",
            f"To train a whole model that begins with both, leave run.init_from out. {how_to_merge(folder)}",
        ),
    )


def _shapes_in(file: Path) -> Shapes:
    """Return the shapes of the weights in a file, by name, without reading them."""
    with safe_open(file, framework="pt") as opened:
        return {name: tuple(opened.get_slice(name).get_shape()) for name in opened.keys()}  # noqa: SIM118


def _shapes_of(model: Any) -> Shapes:
    return {name: tuple(one.shape) for name, one in model.state_dict().items()}


def _free_sizes(conf: Conf, model: Any) -> frozenset[int]:
    """Return the sizes that are not known before a tokenizer is made of the rows."""
    if conf.tokenizer.train is None:
        return frozenset()
    names = ("vocab_size", "max_position_embeddings", "n_positions")
    return frozenset(getattr(model.config, name, None) or 0 for name in names)


def _misfit(model: Any, stored: Shapes, *, has_adapters: bool, free: frozenset[int]) -> str | None:
    """Return the first weight that the model has with another shape, or that only one of both has; None: all fit.

    What a checkpoint of adapters lacks beyond these is its base's.
    """
    now, tied = _shapes_of(model), {} if has_adapters else model.all_tied_weights_keys
    for name, shape in stored.items():
        if name not in now or not _is_same(shape, now[name], free):
            return name
    needed = (name for name in now if any(part in name for part in OF_ADAPTERS) or not has_adapters)
    there = {*stored, *tied, *(tied[name] for name in stored if name in tied)}  # older ones have the other of two names
    return next((name for name in needed if name not in there), None)


def _is_same(before: tuple[int, ...], now: tuple[int, ...], free: frozenset[int]) -> bool:
    return len(before) == len(now) and all(
        one == other or other in free for one, other in zip(before, now, strict=True)
    )


def _other_adapters(before: Mapping[str, Any], now: Mapping[str, Any]) -> ConfigError | None:
    """Return the error that names what of the adapters is another value; None: nothing that shapes their weights."""
    from peft import LoraConfig

    usual = {name: value for name, value in LoraConfig().to_dict().items() if name not in SHAPELESS}
    others = [name for name in usual if _given(name, before, usual) != _given(name, now, usual)]
    if not others:
        return None
    was = {name: as_text(_given(name, before, usual)) for name in others}
    values = [f"trainer.lora.{name} is {as_text(_given(name, now, usual))}, and was {was[name]}" for name in others]
    return ConfigError(
        f"run.init_from: its adapters don't fit: {'; '.join(values)} in its run.",
        to_try(
            " ".join(f"trainer.lora.{name}={value}" for name, value in was.items()),
            "To train new adapters, leave run.init_from out.",
        ),
    )


def _given(name: str, lora: Mapping[str, Any], usual: Mapping[str, Any]) -> Any:
    value = lora.get(name, usual[name])
    return list(value) if isinstance(value, tuple | set) else value


def _other_model(name: str, stored: Shapes, now: Shapes) -> ConfigError:
    before, here = (f"has the shape {some[name]}" if name in some else "is absent" for some in (stored, now))
    return ConfigError(
        f"run.init_from: its weights are those of another model: {name} {before} there and {here} in trainer.model.",
        "Set trainer.model (and trainer.lora) as in its run, or leave run.init_from out.",
    )
