"""Trainings in this process that rows of the tables compare."""

from __future__ import annotations

import signal
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import chdir, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from acting_rows import STOPPED
from hydra.core.hydra_config import HydraConfig

import rtrain
from rtrain.errors import RtrainError
from rtrain.runs.run import Run
from rtrain.trainers.async_writer import AsyncWriter
from rtrain.trainers.loops.stopping import StopSignal


@dataclass(frozen=True)
class Watched(Run):
    """A run, and what only shows while it trains."""

    saved_beside: set[bool]
    """Whether checkpoints were written beside training."""


class Runs:
    """Trainings of one config in this process, each of them once."""

    def __init__(self, folder: Path, files: Mapping[str, str]) -> None:
        self.folder = folder
        for name, text in {"pyproject.toml": "", **files}.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text)
        (folder / "store").mkdir()
        self.trained: dict[frozenset[str], Watched] = {}

    def of(self, words: tuple[str, ...]) -> Watched:
        """Return the run with overrides; rows that share a run name the same ones, each of them in another order."""
        key = frozenset(words)
        if key not in self.trained:
            self.trained[key] = self.train(words)
        return self.trained[key]

    def train(self, words: tuple[str, ...]) -> Watched:
        """Train with overrides. ``BASE`` in a word is the run without any; a run that fails or stops is one too."""
        with self.watching(words) as (typed, beside):
            try:
                run = rtrain.fit("base.yaml", typed)
            except RtrainError as error:
                if error.run_dir is None:
                    raise
                run = Run.load(error.run_dir)
        return self.watched(run, beside)

    def sweep(self, words: tuple[str, ...]) -> list[Watched]:
        """Train the trials of a sweep, each of which may fail or stop, and return their runs in order."""
        with self.watching(words) as (typed, beside):
            folder = rtrain.sweep("base.yaml", typed)
            found = [Run.load(path.parent) for path in sorted(folder.glob("[0-9]*/manifest.json"))]
        return [self.watched(run, beside) for run in found]

    @contextmanager
    def watching(self, words: tuple[str, ...]) -> Iterator[tuple[list[str], dict[Path, set[bool]]]]:
        """Yield what is typed for words, and by run directory whether checkpoints were written beside training."""
        typed = [self.told(word) for word in words if word != STOPPED]
        beside: dict[Path, set[bool]] = defaultdict(set)
        with chdir(self.folder), pytest.MonkeyPatch.context() as patch:
            watch_saver(patch, beside)
            if STOPPED in words:
                stop_at_second_step(patch)
            yield typed, beside

    def watched(self, run: Run, beside: dict[Path, set[bool]]) -> Watched:
        """Return a run with what was seen of it."""
        path = self.folder / run.path
        return Watched(path, run.manifest, beside[path])

    def told(self, word: str) -> str:
        """Return a word with paths: of the folder for ``FOLDER``, of the run without any words for ``BASE``."""
        word = word.replace("FOLDER", str(self.folder))
        return word.replace("BASE", str(self.of(()).path)) if "BASE" in word else word

    def written(self) -> set[Path]:
        """Return all files and folders but what Python compiles."""
        return {path for path in self.folder.rglob("*") if "__pycache__" not in path.parts}

    def refusal(self, words: tuple[str, ...]) -> str:
        """Return why overrides are refused, with nothing written."""
        typed = [self.told(word) for word in words]
        before = self.written()
        with chdir(self.folder), pytest.raises(RtrainError) as raised:
            rtrain.fit("base.yaml", typed)
        assert sorted(map(str, self.written() - before)) == []
        return str(raised.value)


def watch_saver(patch: pytest.MonkeyPatch, found: dict[Path, set[bool]]) -> None:
    """Keep by run directory whether checkpoints are written beside training."""
    start = AsyncWriter.start

    def watched(saver: AsyncWriter, task: Callable[[], None], *, in_thread: bool) -> None:
        found[Path(HydraConfig.get().runtime.output_dir)].add(in_thread)
        start(saver, task, in_thread=in_thread)

    patch.setattr(AsyncWriter, "start", watched)


def stop_at_second_step(patch: pytest.MonkeyPatch) -> None:
    """Send this process the signal of a machine that is taken away, when a worker has taken its second step."""
    agreed, calls = StopSignal.agreed, iter(range(1, 1_000))

    def after_signal(stop: StopSignal, step: int) -> str:
        if next(calls) == 2:
            signal.raise_signal(signal.SIGTERM)
        return agreed(stop, step)

    patch.setattr(StopSignal, "agreed", after_signal)
