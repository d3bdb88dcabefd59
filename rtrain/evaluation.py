"""Evaluate a checkpoint: the same metrics for every trainer, by scikit-learn; rankings as their run measured them."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeGuard

import numpy as np

from rtrain.datasets.base import DatasetInfo, RawChunk
from rtrain.errors import ConfigError, PredictionError
from rtrain.prediction import Opened, PredictionTask, open_checkpoint, predictions, scores_of
from rtrain.prediction.columns import columns_of
from rtrain.prediction.own_rows import measured
from rtrain.prediction.raw_labels import Labelled, coded
from rtrain.prediction.seen import num_trained_on, tell_of_trained_on
from rtrain.trainers.loops.loss_kinds import is_cross_entropy
from rtrain.trainers.loops.ranking_metrics import Ranking
from rtrain.trainers.trained import BoundsLosses, ColumnsPredictor, Predictor, QuantileModel, RankingModel, TextModel

log = logging.getLogger(__name__)

NO_QUERIES = "Name their column: dataset.group=COLUMN. Of libsvm: a file FILE.query, or qid: in each line."
LEAST_PROBABILITY = 1e-16
"""What smaller probabilities count as in a loss, unless the predictor says it; as in XGBoost."""


@dataclass(frozen=True, kw_only=True)
class Evaluation:
    """What was measured, of what and on what."""

    checkpoint: str
    """Its folder."""
    dataset: Mapping[str, Any]
    """What was read, secrets masked."""
    split: str | None
    """The split that was measured; None: all rows that ``dataset`` names."""
    num_rows: int
    num_trained_on: int | None
    """How many of them the model was trained on; None: unknown."""
    metrics: Mapping[str, float]


def measure(
    place: str | Path,
    overrides: Sequence[str] = (),
    *,
    checkpoint: str = "best",
    split: str | None = None,
    trust: bool = False,
) -> Evaluation:
    """Evaluate as ``evaluate`` does, and return also what was measured."""
    opened = open_checkpoint(place, overrides, checkpoint, verb="evaluate", trust=trust)
    if opened.brings_rows:
        return _of_own_rows(opened, split)
    chosen = split or (None if opened.other_data else _unseen(opened.info))
    with closing(predictions(opened, PredictionTask(opened.model, compared, with_labels=True), chosen)) as parts:
        found = list(parts)
    if not found:
        raise opened.no_rows()
    num_rows, trained_on = sum(count for count, _ in found), num_trained_on(opened, chosen)
    tell_of_trained_on(trained_on, num_rows)
    metrics = metrics_of(opened.info, [part for _, part in found])
    if "loss" in metrics and not is_cross_entropy(getattr(opened.model.trained.conf, "loss", None)):
        log.warning(
            "loss is the cross entropy of the predictions, and not the loss that the run reported: trainer.loss"
        )
    return Evaluation(
        checkpoint=str(opened.model.trained.folder),
        dataset=opened.dataset,
        split=chosen,
        num_rows=num_rows,
        num_trained_on=trained_on,
        metrics=metrics,
    )


def _of_own_rows(opened: Opened, split: str | None) -> Evaluation:
    """Evaluate on rows that the config of the model brings; the metrics are its own."""
    chosen, num_rows, metrics = measured(opened, split)
    checkpoint = str(opened.model.trained.folder)
    return Evaluation(
        checkpoint=checkpoint,
        dataset=opened.dataset,
        split=chosen,
        num_rows=num_rows,
        num_trained_on=None,
        metrics=metrics,
    )


@dataclass(frozen=True)
class ScoredRows:
    """Predictions of some rows, with their targets."""

    scores: np.ndarray
    """(rows, classes), (rows, quantiles) or (rows,), as predictors give them."""
    y: np.ndarray
    """Targets as the dataset codes them."""
    group: np.ndarray
    """(rows,) numbers of the queries of a ranking."""
    weight: np.ndarray
    """(rows,) how much each row counts."""
    quantiles: tuple[float, ...] = ()
    """Of a model that predicts quantiles."""
    least_probability: float = LEAST_PROBABILITY
    ranking: Ranking = field(default_factory=Ranking)
    own: Mapping[str, float] = field(default_factory=dict)
    """Metrics that the predictor measures itself, means over these rows."""


@dataclass(frozen=True)
class Places:
    """Sums over the places of some rows, by their weights: their probabilities would fill the memory."""

    count: float
    loss: float
    right: float


@dataclass(frozen=True)
class Own:
    """Metrics that a predictor measures itself, where nothing else can be measured: means over some rows."""

    count: int
    own: Mapping[str, float]


Measured = ScoredRows | Places | Labelled | Own
"""What is kept of some rows."""


def compared(predictor: Predictor, info: DatasetInfo, chunk: RawChunk) -> Measured:
    """Return what the metrics need to know of some rows.

    Raises:
        ConfigError: They have no labels.
    """
    if chunk.raw is not None and isinstance(predictor, ColumnsPredictor):
        return _measured_itself(predictor, info, chunk) if chunk.y is None else _labelled(predictor, info, chunk)
    if isinstance(predictor, TextModel):
        return Places(*predictor.measure(chunk.x))
    if chunk.y is None:
        raise ConfigError("the data has no labels in some rows: there is nothing to compare predictions with.")
    if info.task == "ranking" and chunk.group is None:
        raise ConfigError("the data does not say which rows are of one query.", NO_QUERIES)
    own: Mapping[str, float] = {}
    if isinstance(predictor, ColumnsPredictor):
        found = predictor.predict_columns(columns_of(info, chunk)).scores
        if found is None:
            return _measured_itself(predictor, info, chunk)
        scores, own = found, predictor.measure_columns(columns_of(info, chunk, with_labels=True))
    else:
        scores = scores_of(predictor, info, chunk)
    weight = np.ones(len(scores)) if chunk.weight is None else chunk.weight.astype(np.float64)
    if scores.ndim == 3:
        return _places(scores, chunk.y, weight)
    group = np.zeros(len(scores), int) if chunk.group is None else chunk.group
    quantiles = predictor.quantiles if isinstance(predictor, QuantileModel) else ()
    least = predictor.least_probability if isinstance(predictor, BoundsLosses) else LEAST_PROBABILITY
    ranking = predictor.ranking if isinstance(predictor, RankingModel) else Ranking()
    return ScoredRows(scores, chunk.y, group, weight, quantiles, least, ranking, own)


def _labelled(predictor: ColumnsPredictor, info: DatasetInfo, chunk: RawChunk) -> Labelled | Own:
    assert chunk.y is not None
    found = predictor.predict_columns(columns_of(info, chunk))
    predicted = found.others.get("prediction") if found.scores is None else found.scores
    if predicted is None:
        return _measured_itself(predictor, info, chunk)
    return Labelled(predicted, chunk.y, predictor.measure_columns(columns_of(info, chunk, with_labels=True)))


def _measured_itself(predictor: ColumnsPredictor, info: DatasetInfo, chunk: RawChunk) -> Own:
    found = predictor.measure_columns(columns_of(info, chunk, with_labels=True))
    if not found:
        unlabelled = chunk.raw is not None and chunk.y is None
        why = "its rows have no known labels" if unlabelled else "it returns no column 'prediction'"
        name_it = "Set their column: dataset.label=COLUMN. Or give" if unlabelled else "Give"
        raise PredictionError(
            f"there is nothing to compare what the predictor returns with: {why}.",
            f"{name_it} the object that trainer.predictor returns a method metrics(batch), which returns numbers by "
            "name.",
        )
    return Own(len(chunk.x), found)


def _places(scores: np.ndarray, y: np.ndarray, weight: np.ndarray) -> Places:
    """Count over all places that have a target and a prediction.

    Args:
        scores: (rows, length, classes); NaN at places that a row lacks, or that were cut off, if rows differ in length.
        y: (rows, length) or (rows,) arrays of different lengths.
        weight: (rows,).
    """
    there = np.ones(scores.shape[:2], bool)
    wanted = y.ravel()
    if y.dtype == object:
        there = ~np.isnan(scores[..., 0]) & (np.arange(scores.shape[1]) < np.array([len(row) for row in y])[:, None])
        wanted = np.concatenate([row[: scores.shape[1]][mask[: len(row)]] for row, mask in zip(y, there, strict=True)])
    found = scores[there]
    counts = np.broadcast_to(weight[:, None], there.shape)[there]
    right = float(counts[found.argmax(axis=-1) == wanted].sum())
    return Places(float(counts.sum()), float(_log_losses(found, wanted) @ counts), right)


def metrics_of(info: DatasetInfo, parts: Sequence[Measured]) -> dict[str, float]:
    """Return the metrics of the dataset's task over all rows, and those that the predictor measures itself."""
    found: dict[str, Any]
    if isinstance(parts[0], Labelled):
        found = _of_labelled([part for part in parts if isinstance(part, Labelled)])
    elif isinstance(parts[0], Own):
        found = {}
    elif isinstance(parts[0], Places):
        found = _over_places(info.task, [part for part in parts if isinstance(part, Places)])
    else:
        rows = [part for part in parts if isinstance(part, ScoredRows)]
        names = ("scores", "y", "group", "weight")
        joined: dict[str, Any] = {name: np.concatenate([getattr(part, name) for part in rows]) for name in names}
        whole = replace(rows[0], **joined)
        if not whole.weight.any():
            raise ConfigError("all rows to evaluate have weight 0.", "Weight them equally: dataset.weight=null")
        if whole.quantiles:
            found = _quantiles(whole)
        else:
            found = {"ranking": _ranking, "regression": _regression}.get(info.task, _classification)(whole)
    return {name: float(value) for name, value in {**found, **_own_means(parts)}.items()}


def _of_labelled(parts: Sequence[Labelled]) -> dict[str, float]:
    info, scores, y = coded(parts)
    rows = ScoredRows(scores, y, np.zeros(len(y), int), np.ones(len(y)))
    return _regression(rows) if info.task == "regression" else _classification(rows)


def _own_means(parts: Sequence[Measured]) -> dict[str, float]:
    weighed = [
        (len(part.y) if isinstance(part, ScoredRows) else part.count, part.own) for part in parts if _has_own(part)
    ]
    total = sum(count for count, _ in weighed)
    return {
        name: sum(count * own[name] for count, own in weighed) / total for name in (weighed[0][1] if weighed else ())
    }


def _has_own(part: Measured) -> TypeGuard[ScoredRows | Labelled | Own]:
    return not isinstance(part, Places)


def _classification(rows: ScoredRows) -> dict[str, float]:
    from sklearn.metrics import f1_score, roc_auc_score

    scores, y, weight = rows.scores, rows.y, rows.weight
    has_probabilities = scores.ndim == 2
    best = scores.argmax(axis=1) if has_probabilities else scores
    found = {
        "accuracy": np.average(best == y, weights=weight),
        "f1_macro": f1_score(y, best, average="macro", zero_division=0, sample_weight=weight),
    }
    if not has_probabilities:
        return found
    found = {"loss": np.average(_log_losses(scores, y, rows.least_probability), weights=weight), **found}
    if scores.shape[1] == 2 and len(np.unique(y[weight > 0])) == 2:
        found["auc"] = roc_auc_score(y, scores[:, 1], sample_weight=weight)
    return found


def _log_losses(scores: np.ndarray, y: np.ndarray, least: float = LEAST_PROBABILITY) -> np.ndarray:
    chosen = np.take_along_axis(scores.astype(np.float64), y[..., None], axis=-1)[..., 0]
    losses: np.ndarray = -np.log(np.clip(chosen, least, 1))
    return losses


def _regression(rows: ScoredRows) -> dict[str, float]:
    from sklearn.metrics import mean_absolute_error, mean_squared_error, r2_score

    y, scores, weight = rows.y, rows.scores, rows.weight
    mse = mean_squared_error(y, scores, sample_weight=weight)
    mae, r2 = (one(y, scores, sample_weight=weight) for one in (mean_absolute_error, r2_score))
    return {"mse": mse, "rmse": np.sqrt(mse), "mae": mae, "r2": r2}


def _quantiles(rows: ScoredRows) -> dict[str, float]:
    """Return the mean pinball loss as boosting libraries have it, and the share of labels up to each quantile."""
    at = np.asarray(rows.quantiles)
    above = rows.y[:, None].astype(np.float64) - rows.scores.reshape(len(rows.y), -1)
    losses = np.average(np.maximum(above * at, above * (at - 1)), axis=0, weights=rows.weight)
    covered = np.average(above <= 0, axis=0, weights=rows.weight)
    found = {"quantile": float(losses.mean())}
    if len(at) == 1:
        found |= _regression(rows)
    else:
        found |= {f"quantile_q{one:g}": loss for one, loss in zip(at, losses, strict=True)}
    return found | {f"coverage_q{one:g}": share for one, share in zip(at, covered, strict=True)}


def _ranking(rows: ScoredRows) -> dict[str, float]:
    return rows.ranking.measure(rows.scores, rows.y, rows.group, rows.weight)


def _over_places(task: str, parts: Sequence[Places]) -> dict[str, float]:
    count = sum(part.count for part in parts)
    if not count:
        raise ConfigError("no position of the rows to evaluate has both a target and a numeric prediction.")
    loss = sum(part.loss for part in parts) / count
    found = {"loss": loss, "accuracy": sum(part.right for part in parts) / count}
    return found | {"perplexity": float(np.exp(loss))} if task == "language-modeling" else found


def _unseen(info: DatasetInfo) -> str:
    return next(name for name in ("test", "val", "train") if info.num_rows.get(name))
