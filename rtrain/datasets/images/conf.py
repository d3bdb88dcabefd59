"""What a config may say of image files; each field's docstring is its documentation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from pydantic import Field

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


@dataclass(kw_only=True)
class ImagesConf(RowsConf, MemoryConf, PixelsConf):
    """A folder per class, or folders train, val and test that hold one per class. Files of other kinds are ignored."""

    needs: ClassVar[Rules] = (SHUFFLED.of("num_shuffle_rows"),)

    num_shuffle_rows: Annotated[int, Field(ge=1)] = 10_000
    """Has no effect on images: all of them are shuffled in each epoch, streamed ones too."""

    path: str
    """Folder of the class folders, or of train, val and test."""

    on_error: Annotated[str, *one_of("raise", "skip")] = "raise"
    """For a file that is corrupt or not an image: stop with its name, or skip it and count it in the manifest. To find
    such files, skip reads all images once more at the start."""
