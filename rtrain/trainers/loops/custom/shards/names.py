"""The names of dataset shards: what a train loop, or ``trainer.datasets_to_split``, means by one."""

from __future__ import annotations

from collections.abc import Sequence

from rtrain.config.did_you_mean import nearest_or_all
from rtrain.datasets.base import Dataset, Split
from rtrain.errors import ConfigError, TrainingError

OF_VAL = ("validation", "valid", "eval")
"""What Ray's examples call the split ``val``."""


def find_split(dataset: Dataset | None, name: str | None) -> tuple[str, Split]:
    """Return the split, or the data set of several, that a loop asks for, and its own name.

    Raises:
        TrainingError: There is none; names those that exist.
    """
    if dataset is None:
        raise TrainingError(
            f"trainer.train_loop requests the dataset shard '{name or 'train'}', but the config has no dataset.",
            "Choose one (dataset=csv), or several by their names (datasets), or read the data in the loop.",
        )
    if name is None:
        raise TrainingError(
            "ray.train.get_dataset_shard() needs the name of a split or data set.",
            f"The run has {', '.join(dataset.splits)}: ray.train.get_dataset_shard('{next(iter(dataset.splits))}').",
        )
    meant = _meant(dataset, name)
    if meant not in dataset.splits:
        if dataset.info.parts:
            raise TrainingError(
                f"trainer.train_loop requests the dataset shard '{name}', which is not in datasets.",
                nearest_or_all(name, dataset.splits),
            )
        raise TrainingError(
            f"trainer.train_loop requests the dataset shard '{name}'; the dataset has {', '.join(dataset.splits)}.",
            "Use the name of a split: ray.train.get_dataset_shard('train'). The splits are set by dataset.split",
        )
    return meant, dataset.splits[meant]


def check_split_name(dataset: Dataset, name: str) -> None:
    """Refuse a name in ``trainer.datasets_to_split`` that no loop could ask for.

    Raises:
        ConfigError: Names those that there are.
    """
    if _meant(dataset, name) not in dataset.splits:
        raise ConfigError(
            f"trainer.datasets_to_split: there is no data set '{name}'.", nearest_or_all(name, dataset.splits)
        )


def shared_splits(dataset: Dataset, wanted: Sequence[str] | str) -> list[str]:
    """Return the splits whose rows workers share, as ``trainer.datasets_to_split`` names them."""
    return list(dataset.splits) if wanted == "all" else [_meant(dataset, name) for name in wanted]


def _meant(dataset: Dataset, name: str) -> str:
    """Return the name of the split that is meant: Ray's examples have others for ``val``."""
    return "val" if name in OF_VAL and name not in dataset.splits else name
