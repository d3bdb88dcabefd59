"""Streamed splits on a real cluster: each row reaches one of two workers, once per epoch."""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from PIL import Image
from pyarrow import parquet

NUM_EPOCHS = 3


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Start a small cluster with two CPUs beyond those of the workers, for reading."""
    settings = {
        "PYTHONBREAKPOINT": "0",  # Ray sets it and leaves it behind
        "RAY_AUTH_MODE": "disabled",
        "RAY_DATA_DISABLE_PROGRESS_BARS": "1",
        "RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0",
        "RAY_TRAIN_ENABLE_PREEMPTION_WATCHER": "0",
        "RAY_TRAIN_HEALTH_CHECK_INTERVAL_S": "0.2",
        "RAY_TRAIN_METRICS_ENABLED": "0",
        "RAY_USAGE_STATS_ENABLED": "0",
    }
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    import ray
    from ray import cloudpickle

    ray.init(num_cpus=4, include_dashboard=False, object_store_memory=100_000_000, log_to_driver=False)
    cloudpickle.register_pickle_by_value(sys.modules[__name__])  # workers can't import this file
    on_interrupt = signal.getsignal(signal.SIGINT)
    yield
    signal.signal(signal.SIGINT, on_interrupt)  # Ray's trainer puts its own there, and leaves it
    cloudpickle.unregister_pickle_by_value(sys.modules[__name__])
    ray.shutdown()


def note_rows(config: dict[str, Any]) -> None:
    """Write down which rows this worker sees in each epoch: the train loop of these tests."""
    import ray.train

    from rtrain.datasets.base import Pass
    from rtrain.datasets.ray_shards import with_shards

    rank = ray.train.get_context().get_world_rank()
    seen = []
    for name, dataset in config["datasets"].items():
        shards = with_shards(dataset, lambda split, name=name: ray.train.get_dataset_shard(f"{name}/{split}"))
        for epoch in range(NUM_EPOCHS):
            for split, rows in shards.splits.items():
                one = Pass(rank=rank, world_size=2, global_batch_size=64, seed=1, epoch=epoch, shuffle=split == "train")
                batches = list(rows.batches(one))
                assert all(batch.num_global == -1 and len(batch.y) <= 32 for batch in batches)
                keys = [int(key) for batch in batches for key in batch.x.reshape(len(batch.x), -1)[:, 0]]
                labels = [int(label) for batch in batches for label in batch.y]
                seen.append([name, split, epoch, keys, labels])
    Path(config["folder"], f"seen-{rank}.json").write_text(json.dumps(seen))


def datasets(load, tmp_path):
    """Return a table in five row groups, one of them tiny, and 200 images."""
    numbers = np.arange(1003)
    table = pa.table({"row": numbers.astype(np.float32), "more": numbers * 0.5, "y": numbers % 3})
    parquet.write_table(table, tmp_path / "rows.parquet", row_group_size=250)
    for row in range(200):
        path = tmp_path / "images" / f"class-{row % 2}" / f"{row}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(np.full((8, 8), row, np.uint8)).save(path)
    keys = {"memory": "stream", "normalize": False}
    return {
        "table": load("parquet", path=str(tmp_path / "rows.parquet"), label="y", **keys),
        "images": load("images", path=str(tmp_path / "images"), channels=1, **keys),
    }


@pytest.mark.timeout(180)
def test_two_workers_see_each_row_exactly_once_per_epoch(cluster, load, tmp_path):
    from ray.train import RunConfig, ScalingConfig
    from ray.train.torch import TorchTrainer

    from rtrain.datasets.ray_shards import StreamDataConfig, ray_datasets

    found = datasets(load, tmp_path)
    streams = {
        f"{name}/{split}": rows
        for name, dataset in found.items()
        for split, rows in ray_datasets(dataset, seed=5).items()
    }
    TorchTrainer(
        note_rows,
        train_loop_config={"datasets": found, "folder": str(tmp_path)},
        scaling_config=ScalingConfig(num_workers=2),
        run_config=RunConfig(storage_path=str(tmp_path), name="run"),
        datasets=streams,
        dataset_config=StreamDataConfig(),
    ).fit()

    workers = [json.loads((tmp_path / f"seen-{rank}.json").read_text()) for rank in (0, 1)]
    orders = {}
    for (name, split, epoch, keys, labels), (*_, others, other_labels) in zip(*workers, strict=True):
        rows, classes = keys + others, labels + other_labels
        assert len(rows) == len(set(rows)) == found[name].info.num_rows[split], (name, split, epoch)
        assert [row % (3 if name == "table" else 2) for row in rows] == classes
        assert min(len(keys), len(others)) > 0.25 * len(rows), "one worker gets nearly everything"
        orders[name, split, epoch] = keys
    for name, dataset in found.items():
        assert orders[name, "train", 0] != orders[name, "train", 1]
        assert set(dataset.splits) == {"train", "test"}
        everything = [
            key for rank in (0, 1) for seen in workers[rank] if seen[0] == name and seen[2] == 0 for key in seen[3]
        ]
        assert sorted(everything) == list(range(sum(dataset.info.num_rows.values())))
