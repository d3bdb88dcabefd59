"""What a config may say of image files; each field's docstring is its documentation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from pydantic import AfterValidator, Field, WithJsonSchema

from rtrain.config.needs import Need, Rules
from rtrain.config.value_types.texts import one_of
from rtrain.datasets.conf import MemoryConf, PixelsConf, RowsConf

PIECE_ROWS = 64
"""Number of images per read while streaming."""
STATISTICS_ROWS = 2_000
"""Images of a streamed train split that ``normalize: true`` looks at."""

SHUFFLED = Need(
    met=lambda way: False,
    otherwise="all images of an epoch are shuffled, streamed ones too",
    instead="Leave it out",
    keys=("dataset.type",),
)

ORIGINAL = "original"
"""The ``image_size`` of images that stay as large as they are."""
_SIDE = {"type": "integer", "minimum": 1}
_SIZE = {"type": "array", "items": _SIDE, "minItems": 2, "maxItems": 2}
_SIZE_SCHEMA = {"anyOf": [_SIZE, {"type": "string", "enum": [ORIGINAL]}, {"type": "null"}]}


def _check_size(value: Any) -> Any:
    is_size = isinstance(value, list | tuple) and len(value) == 2
    if value in (None, ORIGINAL) or (is_size and all(type(one) is int and one > 0 for one in value)):
        return value
    raise ValueError(f"must be [height, width] or {ORIGINAL}")


@dataclass(kw_only=True)
class OriginalPixelsConf(PixelsConf):
    """What encoded images become, which may keep their sizes where they are decoded in each pass."""

    memory: str

    image_size: Annotated[Any, AfterValidator(_check_size), WithJsonSchema(_SIZE_SCHEMA)] = None
    """[height, width] that all images are resized to; null: the size of the first one; ``original``: each keeps its
    own, for ``trainer.transform`` and ``trainer.eval_transform`` to bring them to one size."""

    def __post_init__(self) -> None:
        """Refuse to hold images of different sizes in memory."""
        if self.image_size == ORIGINAL and self.memory == "resident":
            raise ValueError(
                f"memory: resident does not work with image_size: {ORIGINAL}, which reads image files in each epoch"
            )


@dataclass(kw_only=True)
class ImagesConf(RowsConf, MemoryConf, OriginalPixelsConf):
    """A folder per class, or folders train, val and test that hold one per class. Files of other kinds are ignored."""

    needs: ClassVar[Rules] = (SHUFFLED.of("num_shuffle_rows"),)

    num_shuffle_rows: Annotated[int, Field(ge=1)] = 10_000
    """Has no effect on images: all of them are shuffled in each epoch, streamed ones too."""

    path: str
    """Folder of the class folders, or of train, val and test."""

    on_error: Annotated[str, *one_of("raise", "skip")] = "raise"
    """For a file that is corrupt or not an image: stop with its name, or skip it and count it in the manifest. To find
    such files, skip reads all images once more at the start."""
