"""The file of boosted trees: another account's is looked at before LightGBM reads it."""

from __future__ import annotations

import re
from pathlib import Path

import lightgbm

from rtrain.errors import CheckpointError
from rtrain.trainers.lightgbm.trees import checked
from rtrain.trainers.trained import BROKEN, TRUST

MODEL = "model.txt"
CONTROL = re.compile(rb"[\0-\x08\x0b-\x1f\x7f]|\xc2[\x80-\x9f]")
"""Characters, in UTF-8, that a terminal obeys."""


def read_trees(folder: Path, *, trusted: bool) -> lightgbm.Booster:
    """Return the trees of a checkpoint.

    Args:
        folder: The checkpoint.
        trusted: Whether this account wrote it, or the user trusts who did.

    Raises:
        CheckpointError: Another account's file holds control characters, which LightGBM's messages would show, or is
            none that LightGBM would write: over such ones it may end the process.
    """
    if trusted:
        return lightgbm.Booster(model_file=folder / MODEL)
    content = (folder / MODEL).read_bytes()
    if CONTROL.search(content):
        raise CheckpointError(
            f"{folder / MODEL} was written by another account and contains control characters.", TRUST
        )
    try:
        text = checked(content).decode()
    except ValueError as error:
        raise CheckpointError(
            f"{folder / MODEL} was written by another account and is not passed to LightGBM: {error}.", BROKEN
        ) from error
    return lightgbm.Booster(model_str=text)
