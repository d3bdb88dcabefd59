"""The training itself: epochs of a network in memory, and what checkpoints and records cost while it goes on."""

from __future__ import annotations

import json
from collections.abc import Iterator

from measured import Row, output_of


def epochs(times: int, num_epochs: int = 20) -> Iterator[Row]:
    """An epoch on digits in memory and its evaluation; the peer is a plain PyTorch loop. One thread each."""
    for model in ("mlp", "resnet"):
        yield Row(
            f"{model} epoch / plain PyTorch",
            "ms",
            goal=1.1,
            **json.loads(output_of("epoch.py", model, times, num_epochs)),
        )


def images(times: int, num_images: int = 5000) -> Iterator[Row]:
    """A pass over JPEG files of 341 x 256 pixels, each cropped at random to 224 x 224; the peer is a DataLoader of
    PyTorch with as many persistent workers. Both sides decode by the same library."""
    for name, (ours, peer) in json.loads(output_of("images.py", times, num_images)).items():
        yield Row(f"{num_images:,} images, {name} / DataLoader", "s", ours, peer, 1.0)


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
