"""The model of a checkpoint, made of its files and of the pretrained model that it names."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from shlex import join
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load_model
from transformers import AutoConfig, logging

from rtrain.errors import CheckpointError, first_line
from rtrain.trainers.trained import TRUST, LoadedCheckpoint
from rtrain.trainers.transformers import untrusted
from rtrain.trainers.transformers.build import auto_class, load_pretrained, task_of
from rtrain.trainers.transformers.checkpoint.adapted import Adapted
from rtrain.trainers.transformers.checkpoint.base import ELSEWHERE, Base, read_base
from rtrain.trainers.transformers.config import Conf
from rtrain.trainers.transformers.hub import NOT_THERE, at_revision, local_only
from rtrain.trainers.transformers.learner import WEIGHTS


def load_stored(trained: LoadedCheckpoint) -> Any:
    """Return the model with its weights, and with its adapters around it.

    Raises:
        CheckpointError: Its base does not exist, or has changed; or its configuration asks for code.
        OSError, ValueError, RuntimeError: The weights are not there, or don't fit the model.
    """
    conf: Conf = trained.conf
    maker, config = auto_class(task_of(conf, trained.info)), _config(trained)
    if conf.lora is None:
        model = maker.from_config(config, trust_remote_code=False)
        load_model(model, str(trained.folder / WEIGHTS))
        return model
    from peft import LoraConfig, get_peft_model

    base = read_base(trained.folder)
    if base is None:
        model = maker.from_config(config, trust_remote_code=False)
    else:
        model = _load_base(trained, base, maker, config)
    read = LoraConfig.from_pretrained if trained.is_own else untrusted.lora_config
    lora = read(trained.folder / "adapter")
    lora.base_model_name_or_path = None  # peft warns of another name than the place of now
    model = get_peft_model(model, lora)
    Adapted(model).load(trained.folder)
    return model


def _config(trained: LoadedCheckpoint) -> Any:
    """Return the configuration of the model.

    Raises:
        CheckpointError: It asks for code.
    """
    folder, own = trained.folder, trained.is_own
    config = AutoConfig.from_pretrained(folder, trust_remote_code=False) if own else untrusted.load_config(folder)
    if "/" in str(config._attn_implementation):
        raise CheckpointError(f"{folder}/config.json requires code from the hub: {config._attn_implementation}.")
    return config


def _load_base(trained: LoadedCheckpoint, base: Base, maker: Any, config: Any) -> Any:
    """Return the pretrained model below the adapters of a checkpoint.

    Nothing is downloaded for a checkpoint of another account, and only safetensors are read.

    Raises:
        CheckpointError: It does not exist.
    """
    options = {"config": config, "trust_remote_code": False}
    try:
        place, revision = base.place(trained.conf.model.pretrained)
        with _quiet():
            if trained.is_own:
                return load_pretrained(maker, place, **options, **at_revision(revision), **local_only(place))[0]
            with untrusted.plain_weights(place, revision, config) as folder:
                return load_pretrained(maker, folder, **options, use_safetensors=True)[0]
    except (OSError, ValueError, SafetensorError) as error:
        raise _missing(trained, base, error) from error


@contextmanager
def _quiet() -> Iterator[None]:
    """Leave out the report of weights that a pretrained model lacks: the checkpoint has them."""
    before = logging.get_verbosity()
    logging.set_verbosity_error()
    try:
        yield
    finally:
        logging.set_verbosity(before)


def _missing(trained: LoadedCheckpoint, base: Base, error: Exception) -> CheckpointError:
    named = trained.conf.model.pretrained
    place = "" if named == base.pretrained else f" from {named}"
    problem = f"{trained.folder} holds adapters for the pretrained model {base}, which can't be loaded{place}:"
    if base.folder is not None or place:
        return CheckpointError(f"{problem} {first_line(error).rstrip('.')}.", f"Put it back, or {ELSEWHERE}.")
    if trained.is_own:
        why = NOT_THERE if local_only(base.pretrained) else first_line(error).rstrip(".")
        return CheckpointError(f"{problem} {why}.", f"Download it, or {ELSEWHERE}.")
    commit = [] if base.revision is None else ["--revision", base.revision]
    get = join(["hf", "download", base.pretrained, *commit])
    why = "it was not downloaded before, and another account wrote the checkpoint"
    return CheckpointError(f"{problem} {why}.", f"If you want it: {get}\n{TRUST}")
