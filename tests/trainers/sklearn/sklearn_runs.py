"""Small datasets and runs for the tests of the sklearn trainer."""

import numpy as np

from rtrain.testing.small_data import in_memory
from rtrain.testing.workers import RecordingChannel, make_worker
from rtrain.trainers.sklearn.config import Conf
from rtrain.trainers.sklearn.loop import train


def small_dataset(task="classification", num_rows=(120, 40), more=None, **info):
    """Three classes, or a linear function, of four features."""
    rng = np.random.default_rng(0)
    centers, line = rng.normal(size=(3, 4)) * 2, rng.normal(size=4)
    columns = {}
    for name, count in zip(("train", "test"), num_rows, strict=True):
        y = rng.integers(0, 3, count)
        x = (centers[y] + rng.normal(size=(count, 4))).astype("float32")
        target = y if task == "classification" else (x @ line).astype("float32")
        columns[name] = {"x": x, "y": target, **(more(count) if more else {})}
    facts = {"num_classes": 3 if task == "classification" else None, "feature_names": ("a", "b", "c", "d")}
    return in_memory(columns, task, **{**facts, **info})


def fit(folder, conf, dataset=None, *, channel=None, **run):
    """Train and return what was sent."""
    channel = RecordingChannel() if channel is None else channel
    train(make_worker(folder, conf, dataset or small_dataset(), channel=channel, **run))
    return channel


def make_conf(name, **keys):
    """Return the conf of an estimator by its path below ``sklearn``; ``keys`` that Conf has are its own."""
    own = {key: keys.pop(key) for key in list(keys) if key in Conf.__dataclass_fields__ and key != "estimator"}
    return Conf(estimator={"_target_": f"sklearn.{name}", **keys}, **own)
