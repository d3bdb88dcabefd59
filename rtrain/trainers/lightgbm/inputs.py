"""Rows of a dataset as LightGBM's datasets, without a copy of them as a data frame."""

from __future__ import annotations

from typing import Any

import lightgbm
import numpy as np

from rtrain.datasets.base import Columns, DatasetInfo, ResidentSplit, Split, concatenated
from rtrain.trainers.loops.boosting.rounds import flat, group_sizes, usable_names

SAMPLE_ROWS = 200_000
"""LightGBM's default of ``bin_construct_sample_cnt``."""


class ResumableDataset(lightgbm.Dataset):
    """Rows of a training that resumes from a checkpoint as if it had not been interrupted, to the last bit."""

    def _set_init_score_by_predictor(self, predictor: Any, data: Any, used_indices: Any) -> ResumableDataset:
        """Set the scores that the checkpoint's trees give, added up in the order in which they were grown.

        LightGBM's own forgets the scores that rows bring, and takes rows in one piece only.
        """
        if predictor is None:
            return self
        parts = [part for part in (data if isinstance(data, list) else [data]) if len(part)]
        margin: Any = self.init_score

        def scores(**which: int) -> np.ndarray:
            return np.concatenate([predictor.predict(part, raw_score=True, **which) for part in parts])

        if margin is None:
            self.set_init_score(scores())
            return self
        total = np.array(margin, np.float64)
        for number in range(predictor.current_iteration()):
            total += scores(start_iteration=number, num_iteration=1).reshape(total.shape)
        self.set_init_score(total)
        return self


def make_dataset(
    split: Split, info: DatasetInfo, place: tuple[int, int], params: dict[str, Any], ref: lightgbm.Dataset | None = None
) -> lightgbm.Dataset:
    """Return rows of a split, to be binned when LightGBM has joined the workers.

    Args:
        split: Rows in memory are read where they are; streamed ones chunk by chunk.
        info: The dataset.
        place: Rank, and the number of workers that share the rows.
        params: LightGBM's parameters.
        ref: What has the bins already: ``shared_bins``, or the train split.
    """
    chunks = list(split.own_rows(*place))
    data: Any = [flat(chunk["x"]) for chunk in chunks]
    names: Any = usable_names(info) or "auto"
    return ResumableDataset(
        data[0] if len(data) == 1 else data,
        label=_column(chunks, "y"),
        weight=_column(chunks, "weight"),
        group=None if "group" not in chunks[0] else group_sizes(_column(chunks, "group")),
        init_score=_column(chunks, "base_margin"),
        feature_name=names,
        categorical_feature=[info.feature_names.index(name) for name in info.categories],
        reference=ref,
        params=params,
        free_raw_data=True,
    )


def shared_bins(split: Split, info: DatasetInfo, params: dict[str, Any]) -> lightgbm.Dataset:
    """Return the bins of the features from rows of all workers, the same on each of them.

    Left alone, LightGBM takes the bins of a feature from the rows of one worker. Where rows are sorted by a feature,
    what the other workers hold then falls into the outermost bin, and no tree can tell it apart.

    Args:
        split: The train split. As many rows as LightGBM would look at with one worker are drawn from all of it.
        info: The dataset.
        params: LightGBM's parameters.
    """
    rows = _sampled(split, int(params.get("bin_construct_sample_cnt", SAMPLE_ROWS)), int(params["seed"]))
    return make_dataset(ResidentSplit(rows), info, (0, 1), params).construct()


def _sampled(split: Split, num_rows: int, seed: int) -> Columns:
    """Return ``x`` and ``y`` of some rows of a split, in its order; all, without a copy, if there are no more."""
    if split.num_rows <= num_rows:
        every = concatenated(list(split.own_rows(0, 1)))
        return {name: every[name] for name in ("x", "y")}
    chosen = np.zeros(split.num_rows, bool)
    chosen[np.random.default_rng(seed).choice(split.num_rows, num_rows, replace=False)] = True
    parts: list[Columns] = []
    row = 0
    for chunk in split.own_rows(0, 1):
        own = chosen[row : row + len(chunk["y"])]
        parts.append({name: chunk[name][own] for name in ("x", "y")})
        row += len(own)
    return {name: np.concatenate([part[name] for part in parts]) for name in ("x", "y")}


def _column(chunks: list[Columns], name: str) -> Any:
    parts = [chunk[name] for chunk in chunks if name in chunk]
    if not parts:
        return None
    whole = parts[0] if len(parts) == 1 else np.concatenate(parts)
    return whole.reshape(len(whole), -1, order="A") if whole.ndim > 1 else whole
