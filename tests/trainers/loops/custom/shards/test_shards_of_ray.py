"""Shards without a cluster give what Ray's give: compared with those of one cluster, which takes seconds to start."""

import io
import logging

import numpy as np
import pyarrow as pa
import pytest
import torch
from PIL import Image
from ray.data.collate_fn import ArrowBatchCollateFn, PandasBatchCollateFn
from ray.train.v2._internal.execution.train_fn_utils import LocalTrainFnUtils, set_train_fn_utils

from rtrain.datasets.arrays.memmap import MappedArrays
from rtrain.datasets.base import ResidentSplit, concatenated
from rtrain.datasets.hub.files import arrow_column
from rtrain.datasets.hub.images import HubImages, MappedImages
from rtrain.datasets.images.decoded import ImageReader
from rtrain.datasets.on_disk.arrow_column import ArrowColumn
from rtrain.datasets.texts.mapped import MappedTexts
from rtrain.datasets.whole.splits import HeldTable
from rtrain.testing.small_data import small_dataset
from rtrain.trainers.loops.custom.shards.local import LocalShard
from rtrain.trainers.loops.custom.shards.quiet import quiet_ray_data
from rtrain.trainers.sanity_check import is_at_hand


@pytest.fixture(scope="module", autouse=True)
def cluster():
    """A small cluster, as Ray starts one by itself."""
    import ray

    ray.init("local", num_cpus=1, include_dashboard=False, log_to_driver=False)
    yield
    ray.shutdown()


@pytest.fixture(scope="module")
def dataset():
    return small_dataset(num_rows=(50, 37))


@pytest.fixture
def train_utils():
    set_train_fn_utils(LocalTrainFnUtils("test"))
    yield
    set_train_fn_utils(None)


CALLS = {
    "pandas": lambda shard: [batch["y"].tolist() for batch in shard.iter_batches(batch_size=7, batch_format="pandas")],
    "shuffled": lambda shard: [
        batch["y"].tolist()
        for batch in shard.iter_batches(batch_size=7, local_shuffle_buffer_size=20, local_shuffle_seed=1)
    ],
    "shuffled tensors": lambda shard: [
        batch["y"].tolist()
        for batch in shard.iter_torch_batches(local_shuffle_buffer_size=20, local_shuffle_seed=1, dtypes=torch.float32)
    ],
    "plain": lambda shard: [batch["y"].tolist() for batch in shard.iter_batches(batch_size=7)],
    "rows": lambda shard: [row["y"] for row in shard.iter_rows()],
    "materialize": lambda shard: shard.materialize().to_pandas()["y"].tolist(),
    "schema": lambda shard: shard.schema().names,
    "count": lambda shard: shard.materialize().count(),
    "to_tf": lambda shard: [y.numpy().tolist() for _, y in shard.to_tf("x", "y", batch_size=7)],
    "iter_tf_batches": lambda shard: [batch["y"].numpy().tolist() for batch in shard.iter_tf_batches(batch_size=7)],
    "stats": lambda shard: isinstance(shard.stats(), str),
}


@pytest.mark.parametrize("names", [("pandas", "schema"), pytest.param(tuple(CALLS), marks=pytest.mark.slow)], ids=len)
def test_what_it_gives_is_what_ray_gives(dataset, names):
    from rtrain.datasets.ray_data import dataset_of

    split = dataset.splits["train"]
    for name in names:
        assert CALLS[name](LocalShard(split)) == CALLS[name](dataset_of(split).iterator()), name


def mapped_texts(folder):
    with pa.ipc.new_stream(str(folder / "x.arrow"), pa.schema({"text": pa.string()})) as writer:
        for number in range(5):
            writer.write_table(pa.table({"text": [f"text {number}.{row}" for row in range(10)]}))
    return MappedTexts(
        ArrowColumn((str(folder / "x.arrow"),), "text"), np.arange(49, 0, -2), np.arange(25) % 3, "those"
    )


def mapped_arrays(folder):
    np.save(folder / "x.npy", np.arange(100, dtype=np.float32).reshape(50, 2))
    return MappedArrays(str(folder / "x.npy"), np.arange(49, 0, -2), np.arange(25) % 3)


def mapped_images(folder):
    datasets = pytest.importorskip("datasets")
    images = [Image.new("RGB", (4, 3), (row, 0, 0)) for row in range(50)]
    part = datasets.Dataset.from_dict({"image": images})
    part.save_to_disk(str(folder / "x"))
    column = arrow_column(datasets.load_from_disk(str(folder / "x")), "image")
    return MappedImages(
        HubImages(column, datasets.Image(), "x"), ImageReader(3, 4, 3), np.arange(49, 0, -2), np.arange(25) % 3
    )


@pytest.mark.parametrize("make", [mapped_texts, mapped_arrays, mapped_images])
def test_rows_that_stay_on_disk_are_those_of_a_split_in_memory(tmp_path, make):
    from rtrain.datasets.ray_data import dataset_of

    split = make(tmp_path)
    held = ResidentSplit(concatenated(list(split.own_rows(0, 1))))
    for name in ("pandas", "plain", "rows"):
        assert (
            CALLS[name](LocalShard(split)) == CALLS[name](LocalShard(held)) == CALLS[name](dataset_of(split).iterator())
        )
    rows = dataset_of(split).to_pandas()
    assert [np.asarray(x).tolist() for x in rows["x"]] == [np.asarray(x).tolist() for x in held.columns["x"]]
    assert is_at_hand(split), "a sanity check takes its rows, not zeros"


@pytest.mark.parametrize("is_driver", [True, False])
def test_news_of_ray_data_stay_out_of_the_terminal_while_a_loop_reads(dataset, is_driver):
    logger, terminal = logging.getLogger("ray.data"), io.StringIO()
    console = logging.StreamHandler(terminal)
    console.setFormatter(logging.Formatter("%(levelname)s %(message)s"))
    logger.addHandler(console)
    try:
        with quiet_ray_data(is_driver=is_driver):
            LocalShard(dataset.splits["train"]).materialize()
            assert "INFO" not in terminal.getvalue()  # on a busy machine, Ray Data may warn that it gets no processor
            logger.warning("the disk is full")
            assert terminal.getvalue().endswith("WARNING the disk is full\n")
        LocalShard(dataset.splits["train"]).materialize()
        assert "INFO" in terminal.getvalue()
    finally:
        logger.removeHandler(console)


LISTS = {
    "fixed": pa.array([[1.0, 2.0]] * 5, pa.list_(pa.float32(), 2)),
    "list": [[1, 2], [3, 4], [5, 6], [7, 8], [9, 10]],
}
COLUMNS = LISTS | {
    "number": pa.array([0, 1, None, 3, 4], pa.int64()),
    "flag": [True, False, True, None, True],
    "text": ["a", "b", "c", "d", "e"],
    "ragged": [[1], [2, 3], [4], [5], [6]],
    "objects": [[{"k": 1}]] * 5,
    "nothing": pa.nulls(5),
    "day": pa.array([1, 2, 3, 4, 5], pa.int32()).cast(pa.date32()),
}


class OfArrow(ArrowBatchCollateFn):
    """As in Ray's documentation."""

    def __call__(self, batch):
        return torch.as_tensor(batch["fixed"].combine_chunks().flatten().to_numpy().copy())


class OfPandas(PandasBatchCollateFn):
    """As in Ray's documentation."""

    def __call__(self, batch):
        return torch.as_tensor([len(one) for one in batch["list"]])


def what_they_are(batches):
    return [{name: (one.dtype, one.shape, str(one.tolist())) for name, one in batch.items()} for batch in batches]


OF_TABLES = {
    "arrays": (COLUMNS, lambda shard: what_they_are(shard.iter_batches(batch_size=2))),
    "lists as tensors": (LISTS, lambda shard: what_they_are(shard.iter_torch_batches(batch_size=2))),
    "of Arrow": (LISTS, lambda shard: [one.tolist() for one in shard.iter_torch_batches(collate_fn=OfArrow())]),
    "of pandas": (LISTS, lambda shard: [one.tolist() for one in shard.iter_torch_batches(collate_fn=OfPandas())]),
}


@pytest.mark.usefixtures("train_utils")
def test_columns_of_tables_are_what_ray_gives():
    from rtrain.datasets.ray_data import dataset_of

    for name, (columns, call) in OF_TABLES.items():
        split = HeldTable(pa.table(columns))
        assert call(LocalShard(split)) == call(dataset_of(split).iterator()), name
