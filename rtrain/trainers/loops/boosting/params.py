"""What both libraries of boosted trees want of ``trainer.params``: known names, once, and constraints that fit."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

from rtrain.config.diagnostics.meant.keys.words import Meaning, meaning_in, translated
from rtrain.config.diagnostics.meant.rewritten import number_in, rewritten
from rtrain.config.diagnostics.omegaconf_messages import as_written
from rtrain.config.did_you_mean import closest, did_you_mean, there_are, to_try, use_instead
from rtrain.datasets.base import Dataset, DatasetInfo
from rtrain.errors import ConfigError
from rtrain.trainers.loops.boosting.conf import BoostingConf

MOST_VALUES = 30
"""Most values of a parameter that a hint lists."""
ELSEWHERE = {
    **dict.fromkeys(("sample_weight", "weights", "instance_weight", "weight_column"), "dataset.weight"),
    **dict.fromkeys(("qid", "group_id", "query_id", "group_column"), "dataset.group"),
    **dict.fromkeys(("init_score", "base_margin"), "dataset.base_margin"),
    **dict.fromkeys(("cat_features", "categorical_features", "categorical_feature"), "dataset.categorical"),
    **dict.fromkeys(("cat_cols", "categorical_columns", "categorical_cols"), "dataset.categorical"),
    **dict.fromkeys(("num_actors", "n_actors"), "scaling.num_workers"),
    "cpus_per_actor": "scaling.cpus_per_worker",
    "max_actor_restarts": "run.failure.max_failures",
    "init_model": "run.init_from",
}
"""Arguments of the libraries' functions, and of those that run them on Ray, other than parameters; each with the key to
use instead."""


def check_names(params: Mapping[str, Any], known: Collection[str], ours: Mapping[str, str], conf: type) -> None:
    """Refuse parameters that the library doesn't know, and those that rtrain sets itself.

    Args:
        params: ``trainer.params``.
        known: All names that the library takes.
        ours: Names that rtrain sets, with the key to use instead; empty for what has no effect in training.
        conf: The trainer's dataclass of keys, whose words say what other names mean.

    Raises:
        ConfigError: Names the key, and what to use instead.
    """
    for name, value in params.items():
        if name in ours:
            reason = " is set by rtrain." if ours[name] else " has no effect in training."
            raise ConfigError(f"trainer.params.{name}{reason}", _way_out(name, value, known, ours, conf))
        if name not in known:
            hint = _way_out(name, value, known, ours, conf)
            raise ConfigError(f"trainer.params.{name}: there is no such parameter.", hint)


def _way_out(name: str, value: Any, known: Collection[str], ours: Mapping[str, str], conf: type) -> str:
    meaning = meaning_in(conf, name, value, "trainer") or Meaning()
    if meaning.sentence is not None:
        return meaning.sentence
    if ours.get(name):
        return use_instead(ours[name])
    if meaning.key:
        return did_you_mean(meaning.key if meaning.value is None else f"{meaning.key}={meaning.value}")
    near = closest(name, sorted(known))
    return did_you_mean(f"trainer.params.{near}") if near else "The library's documentation lists all of them."


def check_early_stopping(conf: BoostingConf, param: str, kind: Any, uncut: Mapping[str, str], usual: str) -> None:
    """Refuse early stopping where the trees of the best round are not those that a longer model begins with.

    Args:
        conf: The trainer's.
        param: The parameter that chooses the kind of model.
        kind: Its value.
        uncut: Kinds that can't be cut off at a round, and why.
        usual: The kind that can.

    Raises:
        ConfigError: Names both keys.
    """
    if conf.early_stopping is not None and kind in uncut:
        raise ConfigError(
            f"trainer.early_stopping: with {param}={kind} {uncut[kind]}, so the best round can't be kept.",
            f"Leave it out, or use trainer.params.{param}={usual}. run.checkpoint.every_steps with "
            "run.checkpoint.best.monitor keeps the best of the saved rounds.",
        )


def refused(
    library: str, text: str, given: Mapping[str, Any], takes: Callable[[Mapping[str, Any]], bool]
) -> tuple[str, str | None]:
    """Return the message about parameters that the library refuses, and what it takes; the wrong one is named.

    Args:
        library: Its name.
        text: What it says.
        given: ``trainer.params``.
        takes: Tells whether it takes some of them.
    """
    for name, value in given.items():
        if takes({other: given[other] for other in given if other != name}):
            if isinstance(value, str) and any(takes({**given, name: number}) for number in (1, 0.5)):
                numbers = [one for one in rewritten(value) if number_in(one) is not None]
                meant = next((one for one in numbers if takes({**given, name: float(one)})), None)
                hint = to_try(f"trainer.params.{name}={meant}") if meant is not None else None
                return f"trainer.params.{name}: must be a number, not {as_written(value)}", hint
            return f"trainer.params.{name}: {library} rejects {as_written(value)}: {text}", None
    return f"trainer.params: {library} rejects them: {text}", None


def hint_about_value(conf: type, name: str, value: Any, wrong: str, known: Iterable[str]) -> str:
    """Return the hint about one unknown word of a parameter: what is meant by it, else the nearest, else the list.

    Args:
        conf: The trainer's dataclass of keys.
        name: The parameter.
        value: Of the parameter; of a list the other items stay.
        wrong: The word.
        known: The words that there are.
    """
    key = f"trainer.params.{name}"
    meant = translated(key, wrong, [("trainer", conf)])
    said = meaning_in(conf, name, wrong, "trainer") if meant is None else None
    if said is not None and said.sentence is not None:
        return said.sentence
    meant = meant or closest(wrong, known)
    if meant is None:
        return there_are(known, most=MOST_VALUES)
    items = [meant if one == wrong else str(one) for one in value] if isinstance(value, list | tuple) else None
    return to_try(f"{key}={meant}" if items is None else f"{key}=[{','.join(dict.fromkeys(items))}]")


def check_once(params: Mapping[str, Any], main_name: Callable[[str], str]) -> None:
    """Refuse two names of one parameter.

    Raises:
        ConfigError: Names both.
    """
    seen: dict[str, str] = {}
    for name in params:
        main = main_name(name)
        if main in seen:
            raise ConfigError(
                f"trainer.params: {seen[main]} and {name} are the same parameter.", f"Keep one: trainer.params.{main}"
            )
        seen[main] = name


def check_num_class(given: Any, info: DatasetInfo, allowed: Collection[int | None], objective: str) -> None:
    """Refuse a number of classes that is not the data's.

    Args:
        given: ``num_class`` of the config, or None.
        info: The dataset.
        allowed: Numbers that fit.
        objective: Its name.

    Raises:
        ConfigError: Names the numbers.
    """
    if given is None or str(given) in map(str, allowed):
        return
    if str(given) == str(info.num_classes):
        reason = f"{objective} separates two classes with one sum of trees, num_class=1."
    else:
        reason = f"{info.name} has {info.num_classes or 'no'} classes."
    raise ConfigError(f"trainer.params.num_class={given}: {reason}", "Leave it out: it is set from the data.")


def check_start(dataset: Dataset, num_class: Any) -> None:
    """Refuse scores to start from that are not one for each sum of trees.

    Args:
        dataset: The rows.
        num_class: Of the library's parameters: sums of trees of a row; None or 0 for one.

    Raises:
        ConfigError: Names both numbers.
    """
    if "base_margin" not in dataset.info.columns:
        return
    margin = next(dataset.splits["train"].own_rows(0, 1))["base_margin"]
    given, sums = 1 if margin.ndim == 1 else margin.shape[1], max(1, int(num_class or 1))
    if given != sums:
        raise ConfigError(
            f"dataset.base_margin: rows have {given} scores to start from, but the model has {sums} sums of trees.",
            "Use one score per class." if sums > 1 else "Use one score per row.",
        )


def check_measures(names: Iterable[str], of_probabilities: Sequence[str], key: str) -> None:
    """Refuse metrics of probabilities for trees that return sums, which the library would treat as probabilities.

    Args:
        names: Metrics that the config asks for.
        of_probabilities: The library's metrics of probabilities.
        key: Where the config asks for them.

    Raises:
        ConfigError: Names the metric.
    """
    for name in names:
        if name in of_probabilities:
            raise ConfigError(
                f"{key}: {name} would treat the sums of trees from this objective as probabilities.",
                "Leave it out: the loss and the errors of the probabilities are then used. Or use auc.",
            )


def numbered_constraints(params: Mapping[str, Any], info: DatasetInfo) -> dict[str, Any]:
    """Return ``params`` with constraints as lists of features' numbers, whether they say numbers or names.

    Raises:
        ConfigError: They don't fit the features; names the key.
    """
    found = dict(params)
    signs, groups = params.get("monotone_constraints"), params.get("interaction_constraints")
    if isinstance(signs, Mapping):
        by_number = {_number(name, info, "monotone_constraints"): sign for name, sign in signs.items()}
        signs = [by_number.get(index, 0) for index in range(len(info.feature_names))]
    if isinstance(signs, (list, tuple)):
        _check_monotone(signs, info)
        found["monotone_constraints"] = list(signs)
    if isinstance(groups, (list, tuple)):
        if not all(isinstance(group, (list, tuple)) for group in groups):
            raise ConfigError("trainer.params.interaction_constraints must be a list of lists of features.")
        numbers = [[_number(one, info, "interaction_constraints") for one in group] for group in groups]
        found["interaction_constraints"] = numbers
    return found


def _number(feature: Any, info: DatasetInfo, key: str) -> int:
    """Return the number of a feature, which is given by its number or its name."""
    names, count = list(info.feature_names), math.prod(info.input_shape)
    if isinstance(feature, int) and 0 <= feature < count:
        return feature
    if feature in names:
        return names.index(feature)
    near = closest(str(feature), names)
    hint = did_you_mean(near) if near else f"It has {count}: {', '.join(names[:12]) or 'say their numbers'}"
    raise ConfigError(f"trainer.params.{key}: {info.name} has no feature {feature!r}.", hint)


def _check_monotone(signs: Sequence[Any], info: DatasetInfo) -> None:
    """Refuse what LightGBM ends the whole process for."""
    count = math.prod(info.input_shape)
    if len(signs) != count:
        raise ConfigError(
            f"trainer.params.monotone_constraints has {len(signs)} numbers, but {info.name} has {count} features.",
            "Use a mapping of those that matter: {name: 1, other: -1}",
        )
    wrong = [name for name, sign in zip(info.feature_names, signs, strict=False) if sign and name in info.categories]
    if wrong:
        raise ConfigError(f"trainer.params.monotone_constraints: {wrong[0]!r} is categorical and has no order.")
