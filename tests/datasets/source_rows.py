"""Rows of the table of what each key of a dataset source changes, and what of a dataset is looked at for it."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from pydantic import TypeAdapter

from rtrain.config.needs import Way
from rtrain.config.targets.builder import Builder
from rtrain.datasets.base import Dataset, EpochPlan, concatenated
from rtrain.datasets.registry import confs, load_source

ALLOWED = ("source_functions",)


@dataclass(frozen=True)
class Loaded:
    """A dataset, and how it was asked for."""

    source: str
    conf: Any
    dataset: Dataset

    @property
    def info(self) -> Any:
        """What is known of it."""
        return self.dataset.info


Look = Callable[[Loaded], Any]


@dataclass(frozen=True, kw_only=True)
class Row:
    """What happens to a dataset when a key is set; one of ``look``, ``because`` and ``test`` says it."""

    key: str
    value: Any = None
    given: Mapping[str, Any] = field(default_factory=dict)
    """Other keys that both datasets have: what the key needs."""
    look: Look | None = None
    """What differs then; None: see ``because``."""
    because: str | None = None
    """What the message says, a pattern: of the refusal; with ``look``, of the one that is gone then."""
    test: str | None = None
    """The test that shows it."""


def acts(key: str, value: Any, on: Look, **given: Any) -> Row:
    """Return the row of a key that changes what ``on`` sees."""
    return Row(key=key, value=value, look=on, given=given)


def refused(key: str, value: Any, because: str, **given: Any) -> Row:
    """Return the row of a key that this kind of data can't follow, or whose value is looked at and found wrong."""
    return Row(key=key, value=value, because=because, given=given)


def rescues(key: str, value: Any, because: str, **given: Any) -> Row:
    """Return the row of a key that lets data be loaded which is refused without."""
    return Row(key=key, value=value, look=num_rows, because=because, given=given)


def shown(test: str, *keys: str) -> tuple[Row, ...]:
    """Return the rows of keys that another test shows to act."""
    return tuple(Row(key=key, test=test) for key in keys)


def without(rows: tuple[Row, ...], *keys: str) -> tuple[Row, ...]:
    """Return the rows but for those of some keys."""
    return tuple(row for row in rows if row.key not in keys)


def conf_of(source: str, keys: Mapping[str, Any]) -> Any:
    """Return the conf that keys such as ``split.val`` make, checked as that of a config is."""
    nested: dict[str, Any] = {}
    for key, value in keys.items():
        section, _, name = key.rpartition(".")
        (nested.setdefault(section, {}) if section else nested)[name] = value
    return TypeAdapter(confs()[source]).validate_python(nested)


def load(source: str, keys: Mapping[str, Any]) -> Loaded:
    """Load a dataset."""
    conf = conf_of(source, keys)
    return Loaded(source, conf, load_source(source, Builder(ALLOWED)).load(conf))


def idle(conf: Any) -> Iterator[str]:
    """Yield the keys that the conf's class declares to have no effect in it."""
    way = Way(SimpleNamespace(dataset=conf))
    for rule in getattr(type(conf), "needs", ()):
        if not rule.need.met(way):
            yield from rule.keys(type(conf), "")


# What is looked at


def num_rows(one: Loaded) -> Any:
    """The number of rows of each split."""
    return one.info.num_rows


def train(one: Loaded) -> Any:
    """What the train split holds, in the order of the data."""
    columns = concatenated(list(one.dataset.splits["train"].own_rows(0, 1)))
    return {name: (str(values.dtype), plain(values)) for name, values in columns.items()}


def plain(values: Any) -> Any:
    """Return values that can be compared, missing ones too."""
    if values.dtype != object:
        return values.tobytes()
    return [row if isinstance(row, str) else list(row) for row in values]


def order(one: Loaded) -> Any:
    """The order in which an epoch takes the train rows."""
    whole = EpochPlan(rank=0, world_size=1, global_batch_size=4, seed=0)
    return [plain(batch.x) for batch in one.dataset.splits["train"].batches(whole)]


def kept(one: Loaded) -> Any:
    """The columns that stay beside a prediction."""
    reader = load_source(one.source, Builder(ALLOWED)).open_rows(one.conf, json.loads(json.dumps(one.dataset.encoding)))
    reader = pickle.loads(pickle.dumps(reader))
    return {name for piece in reader.pieces for chunk in reader.read(piece) for name in chunk.kept}


def features(one: Loaded) -> Any:
    """What is predicted from."""
    return one.info.feature_names


def categories(one: Loaded) -> Any:
    """Which features are categories, of which values."""
    return one.info.categories


def task(one: Loaded) -> Any:
    """What is learned."""
    return one.info.task


def dtype(one: Loaded) -> Any:
    """The type of the inputs."""
    return one.info.dtype


def shape(one: Loaded) -> Any:
    """The shape of an input."""
    return one.info.input_shape


def roles(one: Loaded) -> Any:
    """The columns that the train rows have besides."""
    return one.info.columns


def scale(one: Loaded) -> Any:
    """How inputs are normalized."""
    return one.info.mean, one.info.std


def memory(one: Loaded) -> Any:
    """Where the rows are."""
    return one.info.memory


def num_classes(one: Loaded) -> Any:
    """The number of classes."""
    return one.info.num_classes
