"""The metrics that judge rounds of boosted trees, as far as they are known before the first one."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rtrain.datasets.base import DatasetInfo
from rtrain.trainers.base import Job
from rtrain.trainers.loops.auto import dataset_of
from rtrain.trainers.loops.boosting.conf import BoostingConf
from rtrain.trainers.loops.boosting.rounds import eval_splits, with_shared_names
from rtrain.trainers.loops.directions import monitored
from rtrain.trainers.loops.optimistic import notice


def chosen_on_test(job: Job) -> list[str]:
    """Return the notice that early stopping chooses the best round on the test split, if the config names no other."""
    conf: BoostingConf = job.conf.trainer
    chooses = conf.early_stopping is not None and conf.eval_splits is None
    named = monitored(job.conf.run.checkpoint.best, conf) is not None
    return [notice(job)] if chooses and not named and eval_splits(conf, dataset_of(job)) == ["test"] else []


def old_names(conf: BoostingConf) -> list[str]:
    """Return the note that the config has early stopping under its old name."""
    rounds, early = conf.early_stopping_rounds, conf.early_stopping
    if rounds is None or early is None:
        return []
    delta = f", min_delta: {early.min_delta:g}" if early.min_delta else ""
    now = f"trainer.early_stopping={{patience: {early.patience}{delta}}}"
    return [f"trainer.early_stopping_rounds={rounds} will be removed: say {now}"]


def reported_rounds(
    conf: BoostingConf, info: DatasetInfo, names: Sequence[str], deciding: Callable[[Sequence[str]], str]
) -> tuple[str, ...]:
    """Return the metrics that rounds report, the one that decides first.

    Args:
        conf: Which splits are evaluated.
        info: The dataset.
        names: What the library calls its metrics.
        deciding: As ``Rounds`` takes it.
    """
    found = {f"{split}/{name}": 1.0 for split in eval_splits(conf, info) for name in names}
    if not found:
        return ()
    first = deciding(list(found)[-len(names) :])
    return tuple(dict.fromkeys((first, *with_shared_names(found, info.task))))
