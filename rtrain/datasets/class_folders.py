"""Folders that say the class of the files in them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from rtrain.datasets.conf import SplitConf
from rtrain.datasets.files import SPLIT_NAMES, check_link
from rtrain.datasets.splitting.left_out import read_for, to_read
from rtrain.errors import DatasetError


def class_folders(folder: Path, conf: SplitConf) -> dict[str, dict[str, Path]]:
    """Return the class folders by split and class; of the splits that ``conf`` does not leave out.

    Raises:
        DatasetError: There is none, or a split has a class that ``train`` has not.
    """
    children = _folders(folder)
    splits = {SPLIT_NAMES[name]: _folders(path) for name, path in children.items() if name in SPLIT_NAMES}
    if not (splits.get("train") and set(children) <= set(SPLIT_NAMES)):
        splits = {"train": children}
    if len(splits["train"]) < 2:
        found = ", ".join(splits["train"]) or "none"
        message = f"dataset.path: {folder} needs a folder for each of two or more classes; found: {found}."
        raise DatasetError(message, "Arrange the files as <path>/<class>/<file> or <path>/train/<class>/<file>.")
    splits = to_read(splits, conf)
    for split, classes in splits.items():
        with read_for(split):
            _check_classes(split, classes, splits["train"], folder)
    return splits


def _folders(folder: Path) -> dict[str, Path]:
    found = [path for path in sorted(folder.iterdir()) if not path.name.startswith(".")]
    for path in found:
        if not path.suffix:
            check_link(path)
    return {path.name: path for path in found if path.is_dir()}


def _check_classes(split: str, classes: Mapping[str, Path], train: Mapping[str, Path], folder: Path) -> None:
    unknown = sorted(set(classes) - set(train))
    if unknown:
        raise DatasetError(
            f"{folder}: split '{split}' has a class folder '{unknown[0]}' that train lacks.",
            f"The classes of train are: {', '.join(list(train)[:12])}{', ...' if len(train) > 12 else ''}",
        )
