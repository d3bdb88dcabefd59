"""Datasets and workers for the tests of boosted trees."""

import numpy as np
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris

from rtrain.config.targets.builder import Builder
from rtrain.datasets.base import take
from rtrain.testing.small_data import in_memory
from rtrain.testing.workers import RecordingChannel, make_worker, newest
from rtrain.trainers.registry import confs, load_trainer

LOADERS = {"breast_cancer": load_breast_cancer, "diabetes": load_diabetes, "iris": load_iris}


def real_dataset(name, **columns):
    """One of scikit-learn's, a fifth of its rows for the test split."""
    data = LOADERS[name]()
    order = np.random.default_rng(0).permutation(len(data.target))
    classes = name != "diabetes"
    whole = {"x": data.data.astype("float32"), "y": data.target.astype("int64" if classes else "float32"), **columns}
    return make_dataset(whole, order, classes=tuple(map(str, data.target_names)) if classes else ())


def make_dataset(whole, order, *, classes=(), task=None, **facts):
    cut = len(order) * 4 // 5
    rows = {"train": order[:cut], "test": order[cut:]}
    columns = {name: take(whole, own) for name, own in rows.items()}
    task = task or ("classification" if classes else "regression")
    facts |= {"name": "real", "num_classes": len(classes) or None, "class_names": classes}
    return in_memory(columns, task, **facts)


def ranking_dataset(num_queries=60, rows_per_query=10):
    """Queries whose grades follow from two of five features."""
    rng = np.random.default_rng(0)
    num_rows = num_queries * rows_per_query
    x = rng.normal(size=(num_rows, 5)).astype("float32")
    grades = np.clip(np.round(1.5 + x[:, 0] + 0.5 * x[:, 1]), 0, 4).astype("float32")
    group = np.repeat(np.arange(num_queries), rows_per_query)
    return make_dataset({"x": x, "y": grades, "group": group}, np.arange(num_rows), task="ranking")


def fit(trainer, folder, dataset, *, channel=None, checkpoint=None, allow=(), init_from=None, **keys):
    """Train in this process and return what was sent; ``keys`` are the trainer's own."""
    conf, channel = confs()[trainer](**keys), channel or RecordingChannel()
    worker = make_worker(folder, conf, dataset, channel=channel, checkpoint=checkpoint or {}, init_from=init_from)
    worker.builder = Builder(allow)
    load_trainer(trainer).train_loop(conf)(worker)
    return channel


def load(trainer, folder, dataset, **keys):
    """Return the predictor of the newest checkpoint of a training with ``keys``."""
    return load_trainer(trainer).load_predictor(newest(folder, confs()[trainer](**keys), dataset), "cpu")
