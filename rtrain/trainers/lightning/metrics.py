"""What a LightningModule logs, under the names of rtrain."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

_NAME = re.compile(r"(train|training|val|valid|validation|test)[_/.](.+)")


def metric_name(name: str, split: str | None) -> str:
    """Return a metric of the module's ``self.log`` as ``<split>/<name>``.

    Args:
        name: As the module logged it: ``val_loss``, ``train/acc_epoch`` or ``loss``.
        split: What ``validation_step`` is called on.
    """
    found = _NAME.fullmatch(name)
    if found is None:
        return name if "/" in name else f"train/{name}"
    of, rest = found.groups()
    rest = f"epoch_{rest.removesuffix('_epoch')}" if of.startswith("train") and rest.endswith("_epoch") else rest
    rest = rest.removesuffix("_step").removesuffix("_epoch")
    return f"train/{rest}" if of.startswith("train") else f"{split if of.startswith('val') else of}/{rest}"


def epoch_metrics(logged: Mapping[str, Any], split: str | None) -> dict[str, float]:
    """Return what a module logged of a whole epoch of training, under names that no single step has.

    Args:
        logged: Under Lightning's names: one that is logged for steps and epochs is there twice.
        split: What ``validation_step`` is called on.
    """
    once = {name: float(value) for name, value in logged.items() if f"{name}_epoch" not in logged}
    found = {metric_name(name, split): value for name, value in once.items()}
    return {"train/epoch_loss" if name == "train/loss" else name: value for name, value in found.items()}
