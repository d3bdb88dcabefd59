"""What a library raises over the files of a checkpoint, told as an error of the checkpoint."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from pickle import UnpicklingError

from rtrain.errors import CheckpointError, RtrainError, first_line


@contextmanager
def reading(checkpoint: Path) -> Iterator[None]:
    """Add the checkpoint's name and a hint to whatever the block raises.

    Files that changed after they were written are found earlier, by their sha256. Here the files are those of another
    model or version, or forged ones. Libraries raise all kinds of exceptions for them.
    """
    try:
        yield
    except RtrainError:
        raise
    except FileNotFoundError as error:
        if error.filename is None or checkpoint not in Path(error.filename).parents:
            raise
        raise CheckpointError(f"{checkpoint} lacks {Path(error.filename).name}: {error.strerror}.") from error
    except UnpicklingError as error:
        raise CheckpointError(
            f"{checkpoint} is not loaded: its pickle is damaged, or contains more than tensors and plain data.",
            "Use another checkpoint.",
        ) from error
    except Exception as error:
        raise CheckpointError(
            f"{checkpoint} can't be read: {type(error).__name__}: {first_line(error)}",
            "Use another checkpoint, or the model and versions it was written with, listed in its run's manifest.json.",
        ) from error
