"""A run directory to copy, stores to copy it to, and a clock that runs faster."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from s3_faults import FaultyS3, faulty
from small_run import SmallRun

from rtrain.process import retrying
from rtrain.storage import access, mirror
from rtrain.storage.folders import Folder, open_folder
from rtrain.storage.mirror import Mirror, mirror_run


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mirror, "POLL_SECONDS", 0.01)
    monkeypatch.setattr(mirror, "INTERVAL_SECONDS", 0.1)
    monkeypatch.setattr(retrying, "BACKOFF_SECONDS", (0.05, 0.2))
    monkeypatch.setattr(access, "PAUSE_SECONDS", 0.05)
    monkeypatch.setattr(access, "PATIENCE_SECONDS", 2.0)


@pytest.fixture
def small_run(tmp_path: Path) -> Iterator[SmallRun]:
    run = SmallRun(tmp_path / "runs" / "small" / "one")
    yield run
    run.recorder.close()


@pytest.fixture
def broken(s3: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[FaultyS3]:
    """The S3 of the environment, by a way that breaks as told; its bucket ``box`` is empty."""
    s3.put("box", {})
    for name in s3.names("box"):
        s3.client.delete_object(Bucket="box", Key=name)
    with faulty(s3.url) as proxy:
        monkeypatch.setenv("AWS_ENDPOINT_URL", proxy.url)
        yield proxy


@pytest.fixture
def folder(broken: FaultyS3) -> Folder:
    return open_folder("s3://box/all", "small", "one")


@pytest.fixture
def seen(s3: Any, broken: FaultyS3) -> Folder:
    """The same folder, by a way that does not break."""
    return open_folder(f"s3://box/all?endpoint_override={s3.url}", "small", "one")


@pytest.fixture
def copying(small_run: SmallRun, broken: FaultyS3) -> Iterator[Callable[..., Mirror]]:
    """Start a mirror of the small run; what it tells goes into a list."""
    started = []

    def start(folder: Folder, told: list[str] | None = None) -> Mirror:
        notice = (told if told is not None else []).append
        started.append(mirror_run(small_run.path, folder, small_run.retention, notice))
        return started[-1]

    yield start
    for one in started:
        one.finish(0)
        one._thread.join(30)  # what it is sending must not reach the store of the next test
