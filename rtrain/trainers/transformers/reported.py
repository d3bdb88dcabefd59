"""Models that ``ray.train.huggingface.transformers.RayTrainReportCallback`` reports from a train loop."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers

from rtrain.errors import PredictionError
from rtrain.trainers.loops.custom.predictors.reported import NAME_IT, Columns, ReportedModel

BATCH_ROWS = 64
TOKENIZERS = ("tokenizer.json", "tokenizer_config.json", "vocab.txt", "spiece.model")
"""Files of which one is there where a tokenizer was saved with the model."""


def load_model(model: ReportedModel) -> Callable[[Columns], np.ndarray]:
    """Return what predicts with a model, and its tokenizer if that was saved too: probabilities of classes."""
    folder = model.file.parent
    config = transformers.AutoConfig.from_pretrained(folder, trust_remote_code=False)
    kind = getattr(transformers, (config.architectures or ["AutoModel"])[0])
    network = kind.from_pretrained(folder).to(model.device).eval()
    tokenizer = _tokenizer_in(folder)
    accepted = set(inspect.signature(network.forward).parameters)
    wants_values = model.info.task == "regression" or config.problem_type == "regression"

    def ready(values: torch.Tensor) -> torch.Tensor:
        return values.to(model.device, network.dtype if values.is_floating_point() else None)

    @torch.no_grad()
    def predict(columns: Columns) -> np.ndarray:
        inputs = _inputs(columns, accepted, tokenizer)
        parts = [
            network(**{name: ready(values[at : at + BATCH_ROWS]) for name, values in inputs.items()}).logits
            for at in range(0, max(1, len(next(iter(inputs.values())))), BATCH_ROWS)
        ]
        logits = torch.cat(parts).float().cpu()
        if wants_values:
            return np.asarray(logits)
        return np.asarray(logits.sigmoid() if logits.shape[-1] == 1 else logits.softmax(-1))

    return predict


def _tokenizer_in(folder: Path) -> Any:
    if not any((folder / name).exists() for name in TOKENIZERS):
        return None
    return transformers.AutoTokenizer.from_pretrained(folder, trust_remote_code=False)


def _inputs(columns: Columns, accepted: set[str], tokenizer: Any) -> dict[str, torch.Tensor]:
    """Return what the model takes: columns by its own names, else ``x``, which are texts, tokens or images.

    Raises:
        PredictionError: There is nothing of the kind.
    """
    by_name = {name: torch.as_tensor(values) for name, values in columns.items() if name in accepted}
    if by_name:
        return by_name
    x = columns.get("x", columns.get("text"))
    if x is not None and x.dtype.kind in "OU" and tokenizer is not None:
        rows = tokenizer([str(text) for text in x], padding=True, truncation=True, return_tensors="pt")
        return {name: values for name, values in rows.items() if name in accepted}
    for name, kinds in (("input_ids", "iu"), ("pixel_values", "f"), ("inputs_embeds", "f")):
        if x is not None and name in accepted and x.dtype.kind in kinds:
            return {name: torch.as_tensor(x)}
    raise PredictionError(
        f"the model takes {', '.join(sorted(accepted))}; the rows have {', '.join(columns)}.", NAME_IT
    )
