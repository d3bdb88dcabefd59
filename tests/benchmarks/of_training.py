"""The training itself: epochs of a network in memory, and what checkpoints and records cost while it goes on."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

import numpy as np
from measured import PEERS, RTRAIN, Row, once, output_of
from of_processes import write_rows

STREAMED = {"rtrain": None, "iter_torch_batches": 0.67, "DataLoader": 1.0}
"""Who reads a table from its file, and the goals for the peers' ratios."""
TEXTS = [RTRAIN, "fit", str(PEERS / "texts.yaml"), "num_workers=0"]


def epochs(times: int, num_epochs: int = 20) -> Iterator[Row]:
    """An epoch on digits in memory and its evaluation; the peer is a plain PyTorch loop. One thread each."""
    for model in ("mlp", "resnet"):
        yield Row(
            f"{model} epoch / plain PyTorch",
            "ms",
            goal=1.1,
            **json.loads(output_of("epoch.py", model, times, num_epochs)),
        )


def characters(times: int, num_steps: int = 200) -> Iterator[Row]:
    """Steps of a character GPT and an evaluation; the peer is a plain PyTorch loop. One thread each."""
    found = json.loads(output_of("characters.py", times, num_steps))
    yield Row(f"character GPT, {num_steps} steps / plain PyTorch", "s", goal=1.0, **found)


def streamed(times: int, num_rows: int = 4_000_000) -> Iterator[Row]:
    """A pass over a table of Parquet that is read from its file, in random order, and memory by the number of rows.

    The peers are Ray Data's `iter_torch_batches` as documented, with a shuffle buffer, and a DataLoader of PyTorch
    whose process reads row groups by pyarrow.
    """
    with TemporaryDirectory() as folder:
        large, small = (Path(folder) / name for name in ("large.parquet", "small.parquet"))
        for file, count in ((large, num_rows), (small, num_rows // 4)):
            write_rows(file, count, num_features=28, row_group_size=100_000)
        of_small = [_pass("rtrain", small)[1] for _ in range(times)]
        columns = zip(*([_pass(side, large) for side in STREAMED] for _ in range(times)), strict=True)
        ours, *peers = ([*zip(*column, strict=True)] for column in columns)
    name = f"{num_rows / 1e6:g}M x 28"
    for (side, goal), peer in zip([*STREAMED.items()][1:], peers, strict=True):
        yield Row(f"{name} / {side}", "s", ours[0], peer[0], goal)
    yield Row(f"{name} / a quarter of the rows, peak memory", "MB", ours[1], of_small, 1.1)


def _pass(side: str, file: Path) -> tuple[float, float]:
    """Return the seconds of a pass and the megabytes that its process took."""
    seconds, megabytes = json.loads(output_of("streamed.py", side, file))
    return seconds, megabytes


def images(times: int, num_images: int = 5000) -> Iterator[Row]:
    """A pass over JPEG files of 341 x 256 pixels, each cropped at random to 224 x 224; the peer is a DataLoader of
    PyTorch with as many persistent workers. Both sides decode by the same library."""
    for name, (ours, peer) in json.loads(output_of("images.py", times, num_images)).items():
        yield Row(f"{num_images:,} images, {name} / DataLoader", "s", ours, peer, 1.0)


def texts(times: int, num_megabytes: int = 20) -> Iterator[Row]:
    """What a text adds to the first steps of a small language model, whose tokens are in the cache or, the peer, not.

    That is the time of the whole command, without that of the same one on a few lines.
    """
    ours, peer = [], []
    for number in range(times):
        with TemporaryDirectory() as folder, patch.dict(os.environ, {"XDG_CACHE_HOME": folder}):
            few, text = Path(folder) / "few.txt", Path(folder) / "text.txt"
            _write_text(text, num_megabytes, number)
            few.write_text("".join(text.open().readlines()[:1000]))
            least, first, second = (once([*TEXTS, f"dataset.path={file}"]).seconds for file in (few, text, text))
            peer.append(first - least)
            ours.append(second - least)
    yield Row(f"language model on {num_megabytes} MB of text, second start / first", "s", ours, peer, 0.1)


def _write_text(file: Path, num_megabytes: int, seed: int) -> None:
    """Write lines of words that occur as often as those of a language do."""
    draw = np.random.default_rng(seed)
    words = np.array(["".join(draw.choice(list("etaoinshrdlu"), draw.integers(2, 9))) for _ in range(20_000)])
    with file.open("w") as text:
        for _ in range(num_megabytes):
            chosen = words[np.minimum(draw.zipf(1.3, 160_000), len(words)) - 1]
            text.writelines(f"{' '.join(line)}\n" for line in chosen.reshape(-1, 16))


def records(times: int, num_megabytes: int = 500, seconds: int = 10) -> Iterator[Row]:
    """What a training pays for its checkpoints, manifest, events and trackers while it runs."""
    for name, (background, waiting) in json.loads(output_of("blocked.py", times, num_megabytes)).items():
        title = f"checkpoint of {num_megabytes} MB, {name}: training waits, async / sync"
        yield Row(title, "s", background, waiting, 0.1)
    yield Row(
        "manifest and events at 100 steps a second",
        "% of the time",
        [100 * float(output_of("overhead.py", seconds))],
        goal=1,
    )
    microseconds, calls = json.loads(output_of("tracked.py", seconds))
    yield Row("a record at 1,000 a second with a tracker, in the training thread", "us", [microseconds])
    yield Row("a tracker's functions that are called there", "calls", [calls], goal=0)
