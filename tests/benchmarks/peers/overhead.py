"""What the record of a run costs a training in this process at 100 steps a second: its share of the time."""

import sys
import tempfile
import time
from pathlib import Path

from rtrain.engine.in_process import DirectChannel
from rtrain.runs.observer import SilentObserver
from rtrain.runs.recorder import Recorder
from rtrain.testing.workers import make_manifest, make_worker

STEPS_PER_SECOND, LOG_EVERY = 100, 10


def blocked(seconds, folder):
    """Return the share of the time that reports take, at a pace of 100 steps a second."""
    recorder = Recorder(folder, make_manifest(), SilentObserver())
    worker = make_worker(folder, None, None, channel=DirectChannel(recorder, SilentObserver()))
    spent, began = 0.0, time.perf_counter()
    for step in range(1, seconds * STEPS_PER_SECOND + 1):
        time.sleep(max(0.0, began + step / STEPS_PER_SECOND - time.perf_counter()))
        before = time.perf_counter()
        if step % LOG_EVERY == 0:  # ten times a second, as loops do
            worker.progress(step=step, epoch=0, steps_per_epoch=None, rows=640)
            worker.report({"train/loss": 0.1, "train/lr": 0.1, "train/rows_per_second": 6400.0}, step=step, epoch=0)
        spent += time.perf_counter() - before
    recorder.close()
    return spent / seconds


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as folder:
        print(blocked(int(sys.argv[1]), Path(folder)))
