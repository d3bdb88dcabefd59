"""The metrics that judge rounds of boosted trees, as far as they are known before the first one."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rtrain.datasets.base import DatasetInfo
from rtrain.trainers.base import Job, TrainerPlugin
from rtrain.trainers.loops.auto import dataset_of
from rtrain.trainers.loops.boosting.conf import BoostingConf
from rtrain.trainers.loops.boosting.rounds import eval_splits, with_shared_names
from rtrain.trainers.loops.directions import check_modes, monitored, not_reported
from rtrain.trainers.loops.monitor import metrics_named
from rtrain.trainers.loops.optimistic import notice


def chosen_on_test(job: Job) -> list[str]:
    """Return the notice that early stopping chooses the best round on the test split, if the config names no other."""
    conf: BoostingConf = job.conf.trainer
    chooses = conf.early_stopping is not None and conf.eval_splits is None
    named = monitored(job.conf.run.checkpoint.best, conf) is not None
    return [notice(job)] if chooses and not named and eval_splits(conf, dataset_of(job)) == ["test"] else []


def check_named(job: Job, plugin: TrainerPlugin) -> None:
    """Refuse to judge rounds by a metric that none reports, or in the direction in which it gets worse.

    Args:
        job: Its config may name metrics and directions.
        plugin: Knows what rounds report, unless functions of the user's do.

    Raises:
        ConfigError: Names the key.
    """
    conf, best = job.conf.trainer, job.conf.run.checkpoint.best
    named, early = metrics_named(job.conf.run, conf), conf.early_stopping
    says_mode = best.mode != "auto" or (early is not None and early.mode != "auto")
    reported = plugin.reports(job) if named or says_mode else None
    if reported is None:
        return
    for key, name in named:
        if name not in reported:
            raise not_reported(key, name, reported, conf)
    check_modes(best, conf, plugin.directions(conf, job.builder), next(iter(reported), None))


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
