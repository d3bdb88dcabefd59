"""Images that keep their sizes until a transform: read, trained on and predicted, by this process and by others."""

import re
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
import torch
from image_files import write_images
from test_torch_plugin import check
from torch_runs import EXACT, make_conf

import rtrain
from rtrain.config.targets.builder import Builder
from rtrain.datasets.base import EpochPlan, objects
from rtrain.datasets.conf import SplitConf, TableSplitConf
from rtrain.datasets.images.conf import ImagesConf
from rtrain.datasets.registry import load_source
from rtrain.datasets.sources.huggingface import HuggingfaceConf
from rtrain.errors import ConfigError, PredictionError
from rtrain.trainers.torch.config import LoaderConf
from rtrain.trainers.torch.inputs.transforms import num_processes, open_loader
from rtrain.trainers.torch.ranks import TorchRanks

POOL = {"_target_": "torch.nn.AdaptiveAvgPool2d", "output_size": 6}
DROP = {"_target_": "torch.nn.Dropout", "p": 0.3}
FLIP = {"_target_": "torch.flip", "dims": [2]}
BOTH = {"transform": [POOL, DROP], "eval_transform": [POOL]}


def load(folder, **keys):
    return load_source("images").load(ImagesConf(path=str(folder), **keys))


@pytest.fixture(params=["images", "huggingface"])
def images(tmp_path, request):
    """The dataset of such images."""
    write_as[request.param](tmp_path / "images")
    if request.param == "images":
        return load(tmp_path / "images", image_size="original", split=SplitConf(val=0.2))
    conf = HuggingfaceConf(path=str(tmp_path / "images"), image_size="original", split=TableSplitConf(val=0.2))
    return load_source("huggingface").load(conf)


def save_images(folder, num_rows=90, seed=0):
    """Write them as a data set of Hugging Face; return their pixels in their order."""
    datasets = pytest.importorskip("datasets")
    with TemporaryDirectory() as place:
        pixels = write_images(Path(place), num_rows, seed)
        rows = [{"bytes": Path(file).read_bytes(), "path": None} for file in sorted(pixels)]
        labels = [Path(file).parent.name for file in sorted(pixels)]
    kinds = datasets.Features(image=datasets.Image(), label=datasets.Value("string"))
    datasets.Dataset.from_dict({"image": rows, "label": labels}, features=kinds).save_to_disk(str(folder))
    return pixels


write_as = {"images": write_images, "huggingface": save_images}


def steps_of(dataset, num_workers, split="train", world_size=1, rank=0, **keys):
    """Return the steps of one pass of a rank, prepared by so many processes."""
    conf = make_conf(**{**BOTH, **keys}, loader=LoaderConf(num_workers=num_workers))
    ranks = TorchRanks(rank=rank, size=world_size, device=torch.device("cpu"))
    loader = open_loader(dataset.splits[split], dataset.info, ranks, conf, Builder(), training=split == "train")
    plan = EpochPlan(rank=rank, world_size=world_size, global_batch_size=10, seed=5, epoch=2, skip_rows=10)
    return list(loader.steps(plan))


@pytest.mark.parametrize("num_workers", [1, 2, "auto"])
@pytest.mark.parametrize("split", ["train", "val"])
def test_other_processes_prepare_the_same_rows(images, split, num_workers):
    expected, found = (steps_of(images, count, split) for count in (0, num_workers))
    assert len(expected) == len(found) > 0
    for one, other in zip(expected, found, strict=True):
        torch.testing.assert_close(other.x, one.x, **EXACT)
        torch.testing.assert_close(other.y, one.y, **EXACT)
        assert one.x.shape[1:] == (3, 6, 6)


@pytest.mark.parametrize(
    ("num_workers", "device", "cores", "size", "expected"),
    [
        ("auto", "cpu", 16, 1, 0),
        ("auto", "cuda", 16, 1, 8),
        ("auto", "cuda", 16, 4, 3),
        ("auto", "cuda", 2, 4, 1),
        (0, "cuda", 16, 1, 0),
        (5, "cpu", 2, 1, 5),
    ],
)
def test_gpus_get_processes_by_the_cores_of_the_machine(monkeypatch, num_workers, device, cores, size, expected):
    monkeypatch.setattr("rtrain.trainers.torch.inputs.transforms.num_cores", lambda: cores)
    ranks = TorchRanks(rank=0, size=size, device=torch.device(device))
    assert num_processes(LoaderConf(num_workers=num_workers), ranks) == expected


@pytest.mark.parametrize("num_workers", [0, 2])
def test_ranks_share_the_rows_of_each_step(images, num_workers):
    alone = steps_of(images, 0)
    shared = [steps_of(images, num_workers, world_size=3, rank=rank) for rank in range(3)]
    for step, parts in zip(alone, zip(*shared, strict=True), strict=True):
        torch.testing.assert_close(torch.cat([part.x for part in parts]), step.x, **EXACT)
        torch.testing.assert_close(torch.cat([part.y for part in parts]), step.y, **EXACT)


def test_streamed_images_of_one_size_are_read_by_other_processes_as_well(tmp_path):
    write_images(tmp_path)
    dataset = load(tmp_path, image_size=[9, 8], memory="stream")
    expected, found = (steps_of(dataset, count, transform=[], eval_transform=[]) for count in (0, 2))
    for one, other in zip(expected, found, strict=True):
        torch.testing.assert_close(other.x, one.x, **EXACT)
        torch.testing.assert_close(other.y, one.y, **EXACT)


@pytest.mark.parametrize("num_workers", [0, 2])
def test_a_broken_image_is_named_by_whatever_process_reads_it(tmp_path, num_workers):
    write_images(tmp_path)
    dataset = load(tmp_path, image_size="original", split=SplitConf(test=0))
    file = sorted((tmp_path / "light").iterdir())[3]
    file.write_bytes(b"no image")
    with pytest.raises(Exception, match=re.escape(f"{file}: can't be read as an image")):
        steps_of(dataset, num_workers)


@pytest.fixture(params=["images", "huggingface"])
def source(request):
    """Where images come from."""
    return request.param


@pytest.fixture
def train(tmp_path, monkeypatch, source):
    """Return a function that trains on such images below the current folder and returns the run."""
    monkeypatch.chdir(tmp_path)
    write_as[source](tmp_path / "images")
    pool = "[{_target_: torch.nn.AdaptiveAvgPool2d, output_size: 4}]"

    def train(num_workers):
        of_images = [f"dataset={source}", "dataset.path=images", "dataset.image_size=original", "num_workers=0"]
        transforms = [f"trainer.transform={pool}", f"trainer.eval_transform={pool}"]
        return rtrain.fit("mlp", [*of_images, *transforms, f"trainer.loader.num_workers={num_workers}", "epochs=2"])

    return train


def test_a_model_learns_the_same_whoever_prepares_the_rows(train):
    first, second = (train(num_workers) for num_workers in (0, 2))
    assert first.metrics["test/accuracy"] > 0.9
    for name in ("test/loss", "train/epoch_loss"):
        assert first.metrics[name] == second.metrics[name]


def test_new_images_are_predicted_at_their_own_size(train, tmp_path, source):
    run = train(0)
    pixels = write_as[source](tmp_path / "new", 20, seed=1)
    table = rtrain.predict(run, overrides={"dataset.path": "new"})
    assert table["prediction"].to_pylist() == ["dark"] * 10 + ["light"] * 10
    found = rtrain.load_checkpoint(run).predict(objects([pixels[file] for file in sorted(pixels)]))
    np.testing.assert_allclose(table["probability_light"].to_numpy(), found[:, 1], rtol=1e-5)


def test_rows_of_another_kind_are_refused_by_the_model(train):
    checkpoint = rtrain.load_checkpoint(train(0))
    for rows in (np.zeros((2, 3, 8, 8), np.uint8), objects([np.zeros((1, 8, 8), np.uint8)])):
        with pytest.raises(PredictionError, match=r"rows must be of dtype object: a \(3, height, width\) array"):
            checkpoint.predict(rows)


@pytest.mark.parametrize("config", ["jax", "keras", "sklearn", "xgboost", "lightgbm"])
def test_trainers_without_transforms_refuse_them(tmp_path, config):
    write_images(tmp_path)
    keys = ["dataset=images", f"dataset.path={tmp_path}", "dataset.image_size=original", "num_workers=0"]
    with pytest.raises(ConfigError, match=r"dataset\.image_size: the \w+ trainer needs images of one size"):
        rtrain.fit(config, keys)


@pytest.mark.parametrize("given", ["transform", "eval_transform", None])
def test_a_missing_transform_is_named(images, tmp_path, given):
    missing = {"transform": "eval_transform"}.get(given, "transform")
    with pytest.raises(ConfigError, match=rf"image_size=original needs trainer\.{missing}: images of different sizes"):
        check(make_conf(**({given: [POOL]} if given else {})), dataset=images)


def test_a_transform_that_leaves_sizes_different_is_told_by_two_examples(images):
    with pytest.raises(ConfigError, match=r"trainer\.transform makes \d+ x \d+ of an image of \d+ x \d+, but \d+ x"):
        check(make_conf(transform=[FLIP], eval_transform=[POOL]), dataset=images)
