"""Which way metrics get better: known for certain, or said by the config, and never guessed."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from rtrain.config.did_you_mean import alike, closest, did_you_mean, to_try
from rtrain.config.run_conf import BestConf, RunConf
from rtrain.errors import ConfigError
from rtrain.trainers.loops.early_stopping import EarlyStoppingConf

SMALLER = frozenset(
    {
        *("loss", "error", "error_rate", "log_loss", "logloss", "cross_entropy", "nll", "perplexity", "deviance"),
        *("mse", "rmse", "msle", "rmsle", "mae", "mape", "smape", "mean_squared_error", "root_mean_squared_error"),
        *("mean_absolute_error", "mean_absolute_percentage_error", "mean_squared_log_error", "median_absolute_error"),
        *("max_error", "hinge", "hinge_loss", "huber_loss", "log_cosh", "logcosh", "pinball", "pinball_loss"),
        *("mlogloss", "multi_logloss", "binary_logloss", "merror", "multi_error", "binary_error"),
        *("kl_divergence", "kldiv", "crps", "brier", "brier_score", "ece", "wer", "cer", "bpc", "fid", "hamming_loss"),
    }
)
"""Names of metrics that are better the smaller they are, whoever reports them."""
LARGER = frozenset(
    {
        *("accuracy", "acc", "balanced_accuracy", "f1", "f1_score", "f1_macro", "f1_micro", "f1_weighted", "precision"),
        *("recall", "sensitivity", "specificity", "auc", "auroc", "roc_auc", "aucpr", "auprc", "average_precision"),
        *("r2", "r2_score", "explained_variance", "mcc", "matthews_corrcoef", "cohen_kappa", "iou", "miou", "jaccard"),
        *("dice", "ndcg", "mrr", "bleu", "psnr", "ssim", "reward"),
    }
)
"""Names of metrics that are better the larger they are."""
_PART = re.compile(r"(?:train|training|val|valid|validation|test|eval|epoch)_(?=.)")
"""Rows that such a name may be measured on, before it: ``val_loss``. Nothing else may: a mean error can be negative."""

VALUES = (".monitor", ".metric")
"""Endings of keys whose value is a metric; others have metrics as keys."""


def known_direction(name: str) -> str | None:
    """Return ``min`` or ``max`` for a metric whose last part is a name that rtrain knows; else None."""
    last = name.lower().rpartition("/")[2]
    plain = _PART.sub("", last, count=1) if _PART.match(last) else last
    for one in (last, plain, plain.partition("@")[0]):
        if one in SMALLER or one in LARGER:
            return "min" if one in SMALLER else "max"
    return None


def nearest_metric(name: str, reported: Sequence[str]) -> str | None:
    """Return the metric among those ``reported``, the likeliest first, that a name of none of them means."""
    part = _PART.match(name)
    split = {"training": "train", "valid": "val", "validation": "val"}.get(part[0][:-1], part[0][:-1]) if part else ""
    last = name.rpartition("/")[2]
    bare = _PART.sub("", last, count=1)
    ends: dict[str, str] = {}
    for one in reported:
        ends.setdefault(one.rpartition("/")[2], one)
    same = [f"{split}/{bare}"] if f"{split}/{bare}" in reported else [ends[one] for one in (last, bare) if one in ends]
    if same:
        return same[0]
    if "_" in bare and known_direction(bare) is not None:  # balanced_accuracy is another metric
        return None
    near = alike(bare, ends) or closest(bare, ends)
    return closest(name, reported) if near is None else ends[near]


def not_reported(
    key: str, name: str, reported: Sequence[str], trainer: Any, who: str = "this run reports"
) -> ConfigError:
    """Return the error for a key that names a metric which nothing reports, with the one that it means.

    Args:
        key: Of the config.
        name: What it names.
        reported: The metrics that there are, the likeliest first.
        trainer: The trainer's conf. Its callbacks may log any other metric.
        who: Reports them.
    """
    if getattr(trainer, "callbacks", None):
        who = f"apart from what trainer.callbacks log, which is recorded and decides nothing, {who}"
    near = nearest_metric(name, reported)
    hint = None if near is None else to_try(f"{key}={near}") if key.endswith(VALUES) else did_you_mean(near)
    if hint is None and reported:
        hint = "Use one of these, or let the trainer measure it."
    there = f"only {', '.join(sorted(set(reported)))}" if reported else "nor any other: nothing is evaluated"
    return ConfigError(f"{key}: {who} no {name}, {there}.", hint)


@dataclass(frozen=True)
class Directions:
    """Which way the metrics of a run get better."""

    own: Mapping[str, str | None] = field(default_factory=dict)
    """``min`` or ``max`` by the trainer's own names, without the split; None: it isn't known, whatever the name."""
    said: Mapping[str, str] = field(default_factory=dict)
    """What the config says, by whole names."""
    comes_later: bool = False
    """The trainer itself reports the direction of metrics that are not listed here."""

    def of(self, name: str | None) -> str | None:
        """Return ``min`` or ``max``, or None if it isn't known."""
        if name is None:
            return None
        last = name.rpartition("/")[2]
        for where, key in ((self.said, name), (self.own, name), (self.own, last), (self.own, last.partition("@")[0])):
            if key in where:
                return where[key]
        return known_direction(name)

    def needed(self, name: str, key: str) -> str:
        """Return the direction of a metric that the config names.

        Args:
            name: The metric.
            key: Of the config, that can say the direction.

        Raises:
            ConfigError: It isn't known.
        """
        found = self.of(name)
        if found is not None:
            return found
        start, _, last = name.rpartition("/")
        near = closest(last, sorted({*self.own, *SMALLER, *LARGER}))
        hint = f"Set it: {key}=min or {key}=max"
        if near:
            hint += "\n" + did_you_mean(f"{start}/{near}" if start else near)
        raise ConfigError(f"{key}: auto can't determine whether a smaller or a larger {name} is better.", hint)

    def reported(self, modes: Mapping[str, str]) -> Directions:
        """Return these directions and those that the trainer reports."""
        return replace(self, own={**self.own, **modes}, comes_later=False)

    def configured(self, best: BestConf, trainer: Any) -> Directions:
        """Return these directions and those that the config says.

        Args:
            best: ``run.checkpoint.best``.
            trainer: The trainer's conf, which may stop early.
        """
        early: EarlyStoppingConf | None = getattr(trainer, "early_stopping", None)
        named = monitored(best, trainer)
        said = dict(self.said)
        if named is not None and best.mode != "auto":
            said[named] = best.mode
        if early is not None and early.mode != "auto":
            said.setdefault(early.monitor or named or "", early.mode)
        return replace(self, said=said)


def monitored(best: BestConf, trainer: Any) -> str | None:
    """Return the metric that the config names for the best checkpoint, or else for early stopping."""
    early = getattr(trainer, "early_stopping", None)
    return best.monitor or (None if early is None else early.monitor)


def check_modes(best: BestConf, trainer: Any, directions: Directions, default: str | None = None) -> None:
    """Refuse modes that contradict each other, or what is known of a metric that isn't named next to the mode.

    Args:
        best: ``run.checkpoint.best``.
        trainer: The trainer's conf, which may stop early.
        directions: Of the run.
        default: The trainer's own choice of a metric, if it is known.

    Raises:
        ConfigError: Names the key and the metric.
    """
    early: EarlyStoppingConf | None = getattr(trainer, "early_stopping", None)
    metric, given = monitored(best, trainer) or default, dict[str, str]()
    for section, conf in (("run.checkpoint.best", best), ("trainer.early_stopping", early)):
        if conf is None or conf.mode == "auto":
            continue
        name = conf.monitor or metric or ""
        known = given.get(name) or (directions.of(name) if conf.monitor is None else None)
        if known not in (None, conf.mode):
            raise ConfigError(
                f"{section}.mode={conf.mode}: a {'smaller' if known == 'min' else 'larger'} {name} is better.",
                f"Remove the mode, or set the metric it is for: {section}.monitor=...",
            )
        given[name] = conf.mode


def check_directions(run: RunConf, trainer: Any, directions: Directions) -> None:
    """Refuse to judge by a metric whose direction isn't known, or is another one than a mode says.

    Args:
        run: Names metrics.
        trainer: The trainer's conf, which may name one.
        directions: What the trainer knows.

    Raises:
        ConfigError: Names the key that has to say it.
    """
    check_modes(run.checkpoint.best, trainer, directions)
    if directions.comes_later:
        return
    known, early = directions.configured(run.checkpoint.best, trainer), getattr(trainer, "early_stopping", None)
    if early is not None and early.monitor is not None:
        known.needed(early.monitor, "trainer.early_stopping.mode")
    if run.checkpoint.best.monitor is not None:
        known.needed(run.checkpoint.best.monitor, "run.checkpoint.best.mode")
    check_targets(run.stop.targets, known)


def check_targets(target: Mapping[str, float], directions: Directions) -> None:
    """Refuse a ``run.stop.target`` whose metric may be better in either direction.

    Raises:
        ConfigError: Names the key that says it.
    """
    for name, value in target.items():
        if directions.of(name) is None:
            raise ConfigError(
                f"run.stop.target: it is unknown whether a smaller or a larger {name} is better.",
                f"Use run.stop.bounds instead: 'run.stop.bounds={{{name}: {{min: {value:g}}}}}' ends the run "
                "below that value, max above it.",
            )
