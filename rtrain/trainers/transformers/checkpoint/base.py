"""The pretrained model below adapters, which a checkpoint names and does not hold."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path

import torch
from pydantic import TypeAdapter, ValidationError
from torch import Tensor

from rtrain.errors import CheckpointError
from rtrain.runs.checkpoints import BASE_NAME, read_state
from rtrain.runs.filesystem.files import to_json, write_atomic
from rtrain.trainers.base import BASE
from rtrain.trainers.transformers.hub import commit_of

ELSEWHERE = f"set {BASE}=FOLDER to a folder that has it"
"""What to do about a base that is not where it was."""


@dataclass(frozen=True, kw_only=True)
class Base:
    """The pretrained model that a checkpoint builds on."""

    pretrained: str
    """Folder, or name on the hub, as the config has it."""
    folder: str | None = None
    """Absolute path, if it was a folder."""
    revision: str | None = None
    """Commit of what was downloaded from the hub, if its cache knows it."""
    sha256: str = ""
    """``digest`` of the weights that the checkpoint leaves out."""

    @classmethod
    def of(cls, pretrained: str, revision: str | None = None) -> Base:
        """Return what names a pretrained model, without the digest.

        Args:
            pretrained: Folder, or name on the hub.
            revision: The commit, if it is known already.
        """
        if Path(pretrained).is_dir():
            return cls(pretrained=pretrained, folder=str(Path(pretrained).absolute()))
        return cls(pretrained=pretrained, revision=revision or commit_of(pretrained))

    def __str__(self) -> str:
        name = self.folder or self.pretrained
        return name if self.revision is None else f"{name} (revision {self.revision})"

    def write(self, checkpoint: Path) -> None:
        """Write ``base.json``."""
        write_atomic(checkpoint / BASE_NAME, to_json(asdict(self), indent=2))

    def place(self, pretrained: str | None) -> tuple[str, str | None]:
        """Return the folder or the name to load it from, and the revision.

        Args:
            pretrained: ``trainer.model.pretrained`` of now, which may name another place.

        Raises:
            FileNotFoundError: It was a folder, which is gone. A model of that name on the hub may be another one.
        """
        if pretrained is not None and pretrained != self.pretrained:
            return pretrained, None
        if self.folder is None:
            return self.pretrained, self.revision
        found = next((one for one in (self.folder, self.pretrained) if Path(one).is_dir()), None)
        if found is None:
            raise FileNotFoundError(f"{self.folder} does not exist")
        return found, None


def read_base(checkpoint: Path) -> Base | None:
    """Return the base of a checkpoint; None if it holds all weights itself.

    Raises:
        CheckpointError: The file can't be read.
    """
    if not (checkpoint / BASE_NAME).exists():
        return None
    try:
        return TypeAdapter(Base).validate_python(read_state(checkpoint, BASE_NAME))
    except ValidationError as error:
        raise CheckpointError(f"{checkpoint / BASE_NAME} does not name a pretrained model: {error}") from error


class Unchanged:
    """Weights that are known by their place in memory, until something replaces or changes them."""

    def __init__(self, weights: Iterable[Tensor]) -> None:
        self._weights = list(weights)  # which keeps any other tensor from getting the id of one that is gone
        self._before = {id(one): _state(one) for one in self._weights}

    def among(self, named: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Return those of ``named`` that are still as they were."""
        return {name: one for name, one in named.items() if self._before.get(id(one)) == _state(one)}


def _state(one: Tensor) -> tuple[int, int]:
    """Return what differs after a tensor got other content: its memory, or the number of changes in place."""
    return one.data_ptr(), one._version


def digest(weights: Mapping[str, Tensor]) -> str:
    """Return a sha256 of the names, types, shapes and contents of weights."""
    with ThreadPoolExecutor(torch.get_num_threads()) as pool:  # hashing releases the interpreter
        lines = list(pool.map(_line, sorted(weights.items())))
    return sha256("\n".join(lines).encode()).hexdigest()


def _line(named: tuple[str, Tensor]) -> str:
    name, one = named
    content = one.detach().cpu().contiguous().flatten().view(torch.uint8).numpy()
    return f"{name} {one.dtype} {tuple(one.shape)} {sha256(content.data).hexdigest()}"
