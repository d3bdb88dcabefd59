"""Runs that are hurt on purpose, in processes of their own, and what has to be true of them afterwards.

A server process imports everything once and forks a child for each run, so that a fault costs the time of its training
alone. A seed decides where each fault strikes: a test's name and its seed tell all that is needed to repeat it.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import random
import signal
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np

NUM_EPOCHS, STEPS_PER_EPOCH, CHECKPOINT_STEPS = 3, 20, 4
WORDS = (
    *("num_workers=0", "trainer.num_threads=1", f"trainer.max_epochs={NUM_EPOCHS}", "run.log_every_steps=1"),
    *(f"run.checkpoint.every_steps={CHECKPOINT_STEPS}", "run.checkpoint.keep=2"),
)
MLP = ("mlp", *WORDS)
CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload(
    [
        *("rtrain.training.fit", "rtrain.trainers.torch.loop", "rtrain.engine.in_process", "sklearn"),
        *("rtrain.trainers.loops.custom.loop", "ray.train.torch"),
        *("torch._dynamo", "hydra._internal.hydra", "rtrain.cli.fit"),  # the first optimizer imports Dynamo for seconds
    ]
)
WRITES = ("open", "os.rename", "os.mkdir", "os.remove", "os.rmdir", "os.truncate", "shutil.rmtree", "os.link")
"""What Python tells its audit hooks of changes to a file system."""
Fault = Callable[[], None]


class Watch(Protocol):
    """What happens to a process."""

    def watch(self, folder: str) -> None:
        """Called in the process, with the folder that it writes, before it begins."""


@dataclass(frozen=True)
class AtChange:
    """Strikes at the n-th change that the process makes to files below a folder.

    Args:
        number: 1 for the first one; 0 for never.
        fault: What happens then.
        lasting: It strikes at each later change too.
        counted: Gets the number of changes at the end, if it is a path.
    """

    number: int
    fault: Fault | None = None
    lasting: bool = False
    counted: str | None = None

    def watch(self, folder: str) -> None:
        """Begin to count."""
        done = [0]

        def hook(event: str, arguments: tuple[Any, ...]) -> None:
            if event not in WRITES or not str(arguments[0]).startswith(folder):
                return
            if event == "open" and not _writes(arguments):
                return
            done[0] += 1
            if self.counted is not None:
                os.write(self._file, b".")
            strikes = done[0] == self.number or (self.lasting and done[0] > self.number > 0)
            if strikes and self.fault is not None:
                self.fault()

        if self.counted is not None:
            object.__setattr__(self, "_file", os.open(self.counted, os.O_WRONLY | os.O_CREAT | os.O_APPEND))
        sys.addaudithook(hook)


def _writes(arguments: tuple[Any, ...]) -> bool:
    mode, flags = arguments[1], arguments[2]
    return bool(flags & (os.O_WRONLY | os.O_RDWR)) if mode is None else any(sign in mode for sign in "wax+")


def killed() -> None:
    """End this process as the kernel's memory killer does, or a machine that loses power."""
    os.kill(os.getpid(), signal.SIGKILL)


def full() -> None:
    """Have no space left."""
    raise OSError(28, "No space left on device")


def read_only() -> None:
    """Be on a file system that has become read-only."""
    raise OSError(30, "Read-only file system")


@dataclass(frozen=True)
class JumpingClock:
    """A clock of the wall that jumps by up to a year, forward or back, whenever somebody looks.

    Args:
        seed: Decides the jumps.
    """

    seed: int

    def watch(self, folder: str) -> None:
        """Begin to jump."""
        rng, true_time = random.Random(self.seed), time.time
        time.time = lambda: true_time() + rng.uniform(-3e7, 3e7)


@dataclass(frozen=True)
class LostTerminal:
    """A terminal, a pipe or a file that the run is shown on, and that goes away at its n-th line.

    Args:
        kind: ``pipe``, ``full`` (a disk), ``pty``, or ``closed``: from the beginning, all three streams.
        lines: How many lines there were before.
    """

    kind: str
    lines: int = 0

    def watch(self, folder: str) -> None:
        """Put it in place of stdout, as the command finds its streams."""
        from rtrain.process.terminal import open_streams

        if self.kind == "closed":
            for stream in (0, 1, 2):
                os.close(stream)
            sys.stdin = sys.stdout = sys.stderr = None
        elif self.kind == "full":
            os.dup2(os.open("/dev/full", os.O_WRONLY), 1)
        else:
            reader, writer = os.pipe() if self.kind == "pipe" else os.openpty()
            os.dup2(writer, 1)
            os.close(writer)
            threading.Thread(target=_read_lines, args=(reader, self.lines), daemon=True).start()
        if self.kind != "closed":
            sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115
        open_streams()


def _read_lines(reader: int, lines: int) -> None:
    read = 0
    while read < lines:
        read += os.read(reader, 1000).count(b"\n")
    os.close(reader)


class Child:
    """A process that trains.

    Args:
        folder: Where the run directories go.
        words: Overrides.
        at: When something goes wrong in it.
        what: The config and its overrides.
    """

    def __init__(
        self,
        folder: Path,
        words: Sequence[str] = (),
        at: Watch | None = None,
        what: Sequence[str] = MLP,
    ) -> None:
        self._process = CONTEXT.Process(target=_train, args=(str(folder), (*what, *words), at), daemon=True)
        self._process.start()

    def send(self, number: int) -> None:
        """Send a signal."""
        assert self._process.pid is not None
        os.kill(self._process.pid, number)

    def alive(self) -> bool:
        """Tell whether it goes on."""
        return self._process.is_alive()

    def wait(self) -> int:
        """Return the exit code, once it has ended: -9 of one that was killed."""
        self._process.join(120)
        if self._process.is_alive():
            self._process.kill()
            raise AssertionError("the run hangs")
        assert self._process.exitcode is not None
        return self._process.exitcode


def _train(folder: str, words: tuple[str, ...], at: Watch | None) -> None:
    from rtrain.cli.app import run

    for stream in (1, 2):
        os.dup2(os.open(f"{folder}.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND), stream)
    if at is not None:
        at.watch(folder)
    sys.exit(run(["fit", *words[:1], f"run.root_dir={folder}", *words[1:]]))


def run_dirs(folder: Path) -> list[Path]:
    """Return the run directories that have a manifest, oldest first."""
    return sorted(path.parent for path in folder.glob("*/*/manifest.json"))


def until_trained(folder: Path, steps: int) -> None:
    """Wait until the newest run has reported a number of steps."""
    deadline = time.monotonic() + 180  # on a busy machine a cluster takes a minute to start
    while time.monotonic() < deadline:
        files = sorted(folder.glob("*/*/events.jsonl"))
        if files and files[-1].read_text().count("\n") >= steps:
            return
        time.sleep(0.005)
    raise AssertionError("the run does not get on")


def recovered(folder: Path, words: Sequence[str] = (), what: Sequence[str] = MLP) -> Path:
    """Go on with what was hurt, as a user would by the same command; return the run directory that ended well."""
    code = Child(folder, ["run.resume=auto", *words], what=what).wait()
    assert code == 0, Path(f"{folder}.log").read_text()[-3000:]
    return run_dirs(folder)[-1]


def status_of(run_dir: Path) -> str:
    """Return the status in a manifest, which has to be whole whatever happened."""
    manifest = json.loads((run_dir / "manifest.json").read_text())
    return str(manifest["status"])


def weights_of(run_dir: Path) -> dict[str, np.ndarray]:
    """Return the weights of the newest checkpoint."""
    from safetensors.numpy import load_file

    from rtrain.runs.checkpoints import latest_checkpoint

    newest = latest_checkpoint(run_dir)
    assert newest is not None
    return dict(load_file(newest / "model.safetensors"))


def assert_like(run_dir: Path, reference: Path) -> None:
    """Check that a run that was hurt ended as one that was not: to the bit, in its weights and in what it tells."""
    from rtrain.runs.run import Run
    from rtrain.runs.verify import verify_run

    run, whole = Run.load(run_dir), Run.load(reference)
    assert run.status == "succeeded"
    lost = [finding for finding in verify_run(run_dir) if finding.problem in ("missing", "damaged", "unreadable")]
    assert lost == []
    mine, theirs = weights_of(run_dir), weights_of(reference)
    assert mine.keys() == theirs.keys()
    for name, values in mine.items():
        np.testing.assert_array_equal(values, theirs[name], err_msg=name)
    assert [event.step for event in run.events()] == [event.step for event in whole.events()]
    for name in ("val/loss", "val/accuracy", "train/epoch_loss"):
        assert run.metrics[name] == whole.metrics[name], name
