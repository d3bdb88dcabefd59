"""Print the seconds of a pass over JPEG files, cropped at random: by rtrain and by a tuned DataLoader, as JSON."""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import torch
from crops import random_crop
from PIL import Image
from sklearn.datasets import load_sample_images
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from rtrain.config.targets.builder import Builder
from rtrain.datasets.base import EpochPlan
from rtrain.datasets.conf import SplitConf
from rtrain.datasets.images import jpeg
from rtrain.datasets.images.conf import ImagesConf
from rtrain.datasets.registry import load_source
from rtrain.trainers.torch.config import Conf, LoaderConf
from rtrain.trainers.torch.inputs.transforms import open_loader
from rtrain.trainers.torch.ranks import TorchRanks

BATCH_SIZE = 64
PREFETCH = 4


def write_images(folder: Path, count: int) -> None:
    """Write parts of two photographs, 256 pixels high, into two class folders."""
    draw, photos = np.random.default_rng(0), load_sample_images().images
    for row in range(count):
        y, x = draw.integers(0, (150, 200))
        part = Image.fromarray(photos[row % 2]).crop((x, y, x + 360, y + 270)).resize((341, 256))
        file = folder / f"class-{row % 2}" / f"{row:05}.jpg"
        file.parent.mkdir(exist_ok=True)
        part.save(file, quality=90)


def pillow(file: str) -> np.ndarray:
    """Return (height, width, 3) uint8."""
    return np.array(Image.open(file).convert("RGB"))


def simplejpeg(file: str) -> np.ndarray:
    """Return the same."""
    from simplejpeg import decode_jpeg

    found: np.ndarray = decode_jpeg(Path(file).read_bytes(), "RGB")
    return found


class Files(Dataset[tuple[Tensor, int]]):
    """Image files as a DataLoader takes them."""

    def __init__(self, files: list[tuple[int, str]], decode: Callable[[str], np.ndarray]) -> None:
        self._files, self._decode = files, decode

    def __len__(self) -> int:
        """Return the number of files."""
        return len(self._files)

    def __getitem__(self, row: int) -> tuple[Tensor, int]:
        """Return an image and its class."""
        label, file = self._files[row]
        pixels = torch.from_numpy(self._decode(file)).permute(2, 0, 1).float() / 255
        return random_crop(pixels), label


def ours(folder: Path, num_workers: int) -> Iterator[Callable[[], int]]:
    """Yield what makes a pass by rtrain and returns the number of rows."""
    source = ImagesConf(path=str(folder), image_size="original", split=SplitConf(test=0), normalize=False)
    dataset = load_source("images").load(source)
    node = {"_target_": "crops.random_crop"}
    conf = Conf(
        model={"_target_": "torch.nn.Identity"},
        optimizer={"_target_": "torch.optim.SGD", "lr": 0.1},
        max_epochs=1,
        transform=[node],
        loader=LoaderConf(num_workers=num_workers, prefetch=PREFETCH),
    )
    ranks = TorchRanks(rank=0, size=1, device=torch.device("cpu"))
    loader = open_loader(dataset.splits["train"], dataset.info, ranks, conf, Builder(("crops.*",)), training=True)
    for epoch in range(sys.maxsize):
        plan = EpochPlan(rank=0, world_size=1, global_batch_size=BATCH_SIZE, seed=0, epoch=epoch)
        yield lambda plan=plan: sum(len(step.y) for step in loader.steps(plan))  # type: ignore[misc]


def peer(folder: Path, num_workers: int, decode: Callable[[str], np.ndarray]) -> Callable[[], int]:
    """Return what makes a pass by a DataLoader and returns the number of rows."""
    files = sorted((int(file.parent.name[-1]), str(file)) for file in folder.rglob("*.jpg"))
    several = {"persistent_workers": True, "prefetch_factor": PREFETCH} if num_workers else {}
    loader = DataLoader(Files(files, decode), BATCH_SIZE, shuffle=True, num_workers=num_workers, **several)  # type: ignore[arg-type]
    return lambda: sum(len(y) for _, y in loader)


def seconds(make_pass: Callable[[], int], count: int) -> float:
    """Return how long a pass takes."""
    began = time.perf_counter()
    if make_pass() != count:
        sys.exit("a pass has lost rows")
    return time.perf_counter() - began


def main(times: int, count: int) -> None:
    """Measure each number of processes, with each decoder on both sides."""
    found, find = {}, jpeg.find_simplejpeg
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_images(folder, count)
        for decode in (pillow, simplejpeg):
            jpeg.find_simplejpeg = find if decode is simplejpeg else lambda: None  # type: ignore[assignment]
            for num_workers in (0, 1, 2):
                mine, other = ours(folder, num_workers), peer(folder, num_workers, decode)
                next(mine)(), other()  # start the processes, and read the files into the page cache
                pairs = [(seconds(next(mine), count), seconds(other, count)) for _ in range(times)]
                found[f"{decode.__name__}, {num_workers} loader processes"] = [*zip(*pairs, strict=True)]
    print(json.dumps(found))


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
