"""Whether a folder has a whole model, and how to get one where it has adapters alone."""

from __future__ import annotations

from pathlib import Path

from transformers.utils import SAFE_WEIGHTS_INDEX_NAME, SAFE_WEIGHTS_NAME, WEIGHTS_INDEX_NAME, WEIGHTS_NAME

from rtrain.errors import ConfigError
from rtrain.runs.checkpoints import RECORD_NAME, checkpoints_dir
from rtrain.runs.manifest import MANIFEST
from rtrain.trainers.base import BASE
from rtrain.trainers.transformers.checkpoint import adapted
from rtrain.trainers.transformers.checkpoint.base import read_base
from rtrain.trainers.transformers.config import Conf

ALL_WEIGHTS = (SAFE_WEIGHTS_NAME, SAFE_WEIGHTS_INDEX_NAME, WEIGHTS_NAME, WEIGHTS_INDEX_NAME)
"""Files of which each whole model has one."""
TOKENIZER = "tokenizer_config.json"
ADAPTER = "adapter_config.json"
"""Of adapters as peft keeps them."""
MERGED = "merged"
"""Folder of a checkpoint with the base and its adapters as one model, if ``merge_lora`` is set."""


def check_whole_model(folder: Path) -> None:
    """Refuse a folder without a whole model as the pretrained one.

    Args:
        folder: ``trainer.model.pretrained``, if it is a folder.

    Raises:
        ConfigError: It has adapters alone, or no weights at all.
    """
    if not folder.is_dir() or any((folder / name).exists() for name in ALL_WEIGHTS):
        return
    checkpoint = next((one for one in (folder, folder.parent) if (one / adapted.FILE_NAME).exists()), None)
    if checkpoint is not None:
        raise ConfigError(
            f"{BASE}: {folder} holds adapters{_of_which(checkpoint)}, not a whole model.", how_to_merge(checkpoint)
        )
    if (folder / ADAPTER).exists():
        raise ConfigError(
            f"{BASE}: {folder} holds adapters of peft, not a whole model.",
            "Merge them into their model (merge_and_unload of peft), and name the folder of that model.",
        )
    raise ConfigError(
        f"{BASE}: {folder} has no weights: it contains neither {SAFE_WEIGHTS_NAME} nor {WEIGHTS_NAME}.",
        "Name a folder of save_pretrained, or a checkpoint of a run without trainer.lora.",
    )


def _of_which(checkpoint: Path) -> str:
    base = read_base(checkpoint)
    return "" if base is None else f" for the pretrained model {base}"


def how_to_merge(checkpoint: Path) -> str:
    """Return the hint how to have the base and the adapters of a checkpoint as one model.

    Args:
        checkpoint: Of a run with adapters.
    """
    if (checkpoint / MERGED).is_dir():
        return f"Name the merged model that it holds, too: {BASE}={checkpoint / MERGED}"
    tokenizer = f" trainer.tokenizer.pretrained={checkpoint}" if (checkpoint / TOKENIZER).exists() else ""
    return (
        "Merge both in Python, and name the new folder:\n"
        f"  rtrain.load_checkpoint({str(checkpoint)!r}).model.merge_and_unload().save_pretrained('merged')\n"
        f"  {BASE}=merged{tokenizer}"
    )


def needed_checkpoint(conf: Conf) -> list[str]:
    """Return the notice that adapters need the checkpoint of a run, which that run may remove; nothing otherwise.

    Args:
        conf: Has passed the checks.
    """
    if conf.lora is None or conf.model.pretrained is None:
        return []
    folder = Path(conf.model.pretrained)
    if not _is_in_run(folder):
        return []
    merging = "" if conf.merge_lora else ", or write whole models with trainer.merge_lora=true"
    return [
        f"the adapters need {folder}, which its run may remove (run.checkpoint.keep, rtrain runs rm): copy the folder "
        f"and name the copy in {BASE}{merging}"
    ]


def _is_in_run(folder: Path) -> bool:
    """Return whether a folder is, or lies in, a checkpoint of a run directory, and not a copy of one elsewhere."""
    real = folder.resolve()
    runs = [one.parent.parent for one in (real, real.parent) if (one / RECORD_NAME).exists()]
    return any(real.is_relative_to(checkpoints_dir(run)) and (run / MANIFEST).exists() for run in runs)
