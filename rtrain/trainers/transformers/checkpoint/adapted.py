"""``adapted.safetensors``: the weights of a model with adapters, without those that its base has."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, load_model
from torch import Tensor

from rtrain.errors import CheckpointError
from rtrain.trainers.transformers.checkpoint.base import ELSEWHERE, Base, Unchanged, digest, read_base

FILE_NAME = "adapted.safetensors"


class Adapted:
    """The weights of a model with adapters, as its checkpoints hold them.

    A checkpoint has what the base lacks: what was trained, layers that are new, and all buffers.

    Args:
        model: With adapters, on its device.
        base: The pretrained model below; None if there is none.
        lent: Its weights in the model; none for a model that only loads.
    """

    def __init__(self, model: Any, base: Base | None = None, lent: Iterable[Tensor] = ()) -> None:
        self._model, self._base = model, base
        self._lent = Unchanged(lent)
        self._digests: dict[frozenset[str], str] = {}

    def kept(self) -> tuple[dict[str, Tensor], Base | None]:
        """Return what a checkpoint holds now, and the base that has the rest; None if there is no rest."""
        state = self._model.state_dict(keep_vars=True)
        rest = {name: one for name, one in self._lent.among(state).items() if not one.requires_grad}
        kept = {name: one.detach() for name, one in state.items() if name not in rest}
        if not rest or self._base is None:
            return kept, None
        return kept, replace(self._base, sha256=self._digest(rest))

    def _digest(self, rest: Mapping[str, Tensor]) -> str:
        """Return the digest of frozen weights, which is computed once for as long as they are the same ones."""
        names = frozenset(rest)
        if names not in self._digests:
            self._digests = {names: digest(rest)}
        return self._digests[names]

    def load(self, checkpoint: Path) -> None:
        """Take the weights of a checkpoint.

        Raises:
            CheckpointError: Its base is another one than that of the model.
        """
        wanted = read_base(checkpoint)
        if wanted is None:
            self._load_all(checkpoint / FILE_NAME)
            return
        stored = load_file(checkpoint / FILE_NAME)
        state = self._model.state_dict(keep_vars=True)
        held = {id(one) for name, one in state.items() if name in stored}
        rest = {name: one for name, one in state.items() if id(one) not in held}
        if self._digest(rest) != wanted.sha256:
            raise _another_base(checkpoint, wanted)
        unexpected = self._model.load_state_dict(stored, strict=False).unexpected_keys
        if unexpected:
            raise CheckpointError(f"{checkpoint / FILE_NAME} does not fit the model: it has no {unexpected[0]}.")

    def _load_all(self, file: Path) -> None:
        """Take all weights of a file. Those that are not what the base has are not the base's from then on."""
        lent = self._lent.among(self._model.state_dict(keep_vars=True))
        stored = load_file(file) if lent else {}
        same = [one for name, one in lent.items() if name in stored and torch.equal(one.detach().cpu(), stored[name])]
        load_model(self._model, str(file))
        self._lent = Unchanged(same)


def _another_base(checkpoint: Path, wanted: Base) -> CheckpointError:
    return CheckpointError(
        f"{checkpoint} holds adapters for the pretrained model {wanted} as it was in training: the weights that were "
        f"found are others (the sha256 was {wanted.sha256}).",
        f"Restore it, or {ELSEWHERE}.",
    )
