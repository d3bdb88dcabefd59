"""Write a first config to a new file."""

from __future__ import annotations

from pathlib import Path, PurePath

from rtrain.errors import ConfigError
from rtrain.first_config.look import look_at
from rtrain.first_config.text import first_config


def write_first_config(dataset: str, label: str | None, output: Path | None = None) -> Path:
    """Look at a table, write a config that trains on it, and return where it is.

    Args:
        dataset: A CSV, Parquet or JSON file.
        label: The column to predict.
        output: The file to write; None: the name of the table, in the current folder.

    Raises:
        ConfigError: The file exists, or can't be written; or the dataset is not a table.
        DatasetError: The table can't be read, or the label not learned.
    """
    path = output or Path(f"{PurePath(dataset).name.partition('.')[0] or 'config'}.yaml")
    if path.suffix != ".yaml":
        raise ConfigError(f"--output: a config must end in .yaml, not {path.suffix or path.name}.")
    if path.exists():
        raise ConfigError(f"{path} exists already.", f"Use another file name: --output my-{path.name}")
    text = first_config(look_at(dataset, label))
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise ConfigError(f"{path} can't be written: {error.strerror}.") from error
    return path
