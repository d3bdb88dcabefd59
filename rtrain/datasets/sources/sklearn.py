"""The data sets that scikit-learn carries or makes up."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from rtrain.config.did_you_mean import closest, did_you_mean, there_are
from rtrain.datasets.base import Dataset, Source
from rtrain.datasets.conf import ArraysConf
from rtrain.datasets.without_effect import refuse_idle
from rtrain.errors import DatasetError

OF_FILES = ("files", "sample_image", "sample_images", "svmlight_file", "svmlight_files")
"""Functions load_* of scikit-learn that read files of the user's."""


@dataclass(kw_only=True)
class SklearnConf(ArraysConf):
    """A data set by the name of its function in ``sklearn.datasets``; nothing is downloaded."""

    name: str = "iris"
    """iris, wine, breast_cancer, digits, diabetes, linnerud; or make_classification, make_moons, ..."""

    arguments: dict[str, Any] = field(default_factory=dict)
    """Arguments of a function make_*, e.g. ``{n_samples: 1000}``; its random_state is ``seed`` unless given."""

    target: str | None = None
    """Column to predict of a data set with several targets, such as linnerud."""

    @property
    def draws_rows(self) -> bool:
        """Whether ``seed`` decides which rows there are, as it does where they are made up."""
        return self.name.startswith("make_") or super().draws_rows


class Sklearn(Source):
    """scikit-learn's small data sets and its generators, by name; nothing to download."""

    Conf = SklearnConf
    requires = ("sklearn",)

    def load(self, conf: SklearnConf) -> Dataset:
        """Load or make the rows."""
        function = _function(conf.name)
        if conf.name.startswith("make_"):
            return _made(function, conf)
        if conf.arguments:
            raise DatasetError(f"dataset.arguments: {conf.name} takes none.", "Only make_* functions take arguments.")
        return _loaded(function(), conf)


def _function(name: str) -> Callable[..., Any]:
    """Return the function of ``sklearn.datasets`` behind a name."""
    from sklearn import datasets

    loaders = {one.removeprefix("load_"): one for one in dir(datasets) if one.startswith("load_")}
    known = {one: full for one, full in loaders.items() if one not in OF_FILES}
    known |= {one: one for one in dir(datasets) if one.startswith("make_")}
    short = name.removeprefix("load_")
    if short in known:
        return getattr(datasets, known[short])  # type: ignore[no-any-return]
    if hasattr(datasets, f"fetch_{name.removeprefix('fetch_')}"):
        message = (
            f"dataset.name: scikit-learn downloads '{name}' from the internet, which this source does not support."
        )
        raise DatasetError(message, "Save it as CSV or Parquet and use dataset=csv or dataset=parquet.")
    near = closest(name, known)
    hint = did_you_mean(f"dataset.name={near}") if near else there_are(known)
    raise DatasetError(f"dataset.name: scikit-learn has no data set '{name}'.", hint)


def _made(function: Callable[..., Any], conf: SklearnConf) -> Dataset:
    from rtrain.datasets.arrays.load import Arrays, Names, feature_names, load_arrays

    refuse_idle(conf, ("target",), f"{conf.name} returns a single one")
    arguments: Mapping[str, Any] = conf.arguments
    parameters = inspect.signature(function).parameters
    if "random_state" in parameters and "random_state" not in arguments:
        arguments = {**arguments, "random_state": conf.seed}
    try:
        x, y = function(**arguments)
    except (TypeError, ValueError) as error:
        raise DatasetError(f"dataset.arguments: {conf.name}: {error}", f"It takes: {', '.join(parameters)}") from error
    part = Arrays(where=conf.name, x=x, y=y)
    return load_arrays({"train": part}, Names(source="sklearn", features=feature_names(x.shape[1])), conf, conf.task)


def _loaded(bunch: Any, conf: SklearnConf) -> Dataset:
    from rtrain.datasets.arrays.load import Arrays, Names, load_arrays

    y = bunch.target
    names = [str(one) for one in bunch.get("target_names", ())]
    if y.ndim == 2:
        if conf.target not in names:
            hint = f"Choose one: dataset.target={names[0]}"
            raise DatasetError(f"dataset.target: '{conf.name}' has several targets: {', '.join(names)}.", hint)
        y, names = y[:, names.index(conf.target)], []
    elif conf.target is not None:
        raise DatasetError(f"dataset.target: '{conf.name}' has a single target.", "Leave dataset.target out.")
    part = Arrays(where=conf.name, x=bunch.data, y=y)
    features = tuple(str(one) for one in bunch.feature_names)
    classes = tuple(names) if y.dtype.kind in "iu" else ()
    return load_arrays({"train": part}, Names(source="sklearn", features=features, classes=classes), conf, conf.task)
