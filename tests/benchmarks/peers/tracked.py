"""What a record costs the training thread at 1,000 records a second while a tracker takes them, as JSON.

That is: microseconds, and the number of a tracker's functions that are called there.
"""

import json
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

from rtrain.engine.in_process import DirectChannel
from rtrain.loggers import csv
from rtrain.runs.observer import SilentObserver
from rtrain.runs.recorder import Recorder
from rtrain.testing.workers import make_manifest, make_worker
from rtrain.tracking.delivery import Delivery
from rtrain.tracking.trackers import logged_run, outcome_of

RECORDS_PER_SECOND = 1000


def spent(seconds, folder):
    """Return what a report takes in this thread, and how often it calls a tracker's code: seconds of the processor."""
    manifest = make_manifest()
    recorder = Recorder(folder, manifest, SilentObserver())
    worker = make_worker(folder, None, None, channel=DirectChannel(recorder, SilentObserver()))
    delivery = Delivery("csv", partial(csv.Logger, csv.Conf()), logged_run(folder, manifest, None), print)
    total, began, count = 0.0, time.perf_counter(), seconds * RECORDS_PER_SECOND
    for step in range(1, count + 1):
        time.sleep(max(0.0, began + step / RECORDS_PER_SECOND - time.perf_counter()))
        before = time.thread_time()
        worker.report({"train/loss": 0.1, "train/lr": 0.1, "train/rows_per_second": 6400.0}, step=step, epoch=0)
        total += time.thread_time() - before
    calls = _calls(lambda: worker.report({"train/loss": 0.1}, step=count + 1, epoch=0))
    recorder.close()
    lacks = delivery.finish(outcome_of(folder, manifest), 60.0, lambda: False)
    rows = (folder / "metrics.csv").read_text().count("\n") - 1
    assert (lacks, rows) == (None, count + 1), f"the tracker lacks something: {lacks}, {rows} rows of {count + 1}"
    return total / count, calls


def _calls(report):
    """Return how many functions of trackers a report calls in this thread."""
    found = []

    def note(frame, event, _):
        if event == "call" and frame.f_globals.get("__name__", "").startswith(("rtrain.tracking", "rtrain.loggers")):
            found.append(frame.f_code.co_qualname)

    sys.setprofile(note)
    report()
    sys.setprofile(None)
    return len(found)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as place:
        each, num_calls = spent(int(sys.argv[1]), Path(place))
    print(json.dumps([each * 1e6, num_calls]))
