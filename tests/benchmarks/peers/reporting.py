"""What reports cost, in this process: seconds to record them, peak memory meanwhile, seconds to read them, as JSON.

Usage: reporting.py EVENTS METRICS.
"""

import json
import resource
import sys
import tempfile
import time
from pathlib import Path

from rtrain.engine.in_process import DirectChannel
from rtrain.runs.events import events_file, read_events
from rtrain.runs.observer import SilentObserver
from rtrain.runs.recorder import Recorder
from rtrain.testing.workers import make_manifest, make_worker


def record(folder, num_events, num_metrics):
    """Return the seconds that the reports take."""
    recorder = Recorder(folder, make_manifest(), SilentObserver())
    worker = make_worker(folder, None, None, channel=DirectChannel(recorder, SilentObserver()))
    metrics = {f"train/metric_{index}": 0.1 * index for index in range(num_metrics)}
    began = time.perf_counter()
    for step in range(1, num_events + 1):
        worker.report(metrics, step=step, epoch=0)
    recorder.close()
    return time.perf_counter() - began


if __name__ == "__main__":
    num_events, num_metrics = map(int, sys.argv[1:])
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as place:
        recorded = record(Path(place), num_events, num_metrics)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000
        began = time.perf_counter()
        assert sum(1 for _ in read_events(events_file(Path(place)))) == num_events
        print(json.dumps([recorded, peak, time.perf_counter() - began]))
