"""What trackers hold of a run, read as their own tools read it: metric by name, value by step."""

import csv
import json
import math
import struct
import sys
import time
from contextlib import suppress
from pathlib import Path
from types import ModuleType

BLOCK = 32768


def of_events(run):
    """What ``Run.events()`` holds: what each step reports of a metric first."""
    found = {}
    for event in run.events():
        for name, value in event.metrics.items():
            found.setdefault(name, {}).setdefault(event.step, math.nan if value is None else value)
    return found


def of_tensorboard(folder, *, system=False):
    """Read by TensorBoard's own reader; fails where a step comes twice. ``system``: with figures of the machine."""
    # As if TensorFlow were not installed: TensorBoard would import it, which takes seconds.
    sys.modules.setdefault("tensorboard.compat.notf", ModuleType("notf"))
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(folder), size_guidance={"scalars": 0})
    events.Reload()
    found = {}
    for tag in events.Tags()["scalars"]:
        points = events.Scalars(tag)
        if not tag.startswith("system/"):
            assert len({point.step for point in points}) == len(points), tag
        if system or not tag.startswith("system/"):
            found[tag] = {point.step: point.value for point in points}
    return found


def of_mlflow(uri, run_id):
    """Read by MLflow's client; fails where a step comes twice."""
    from mlflow import MlflowClient

    client = MlflowClient(uri)
    found = {}
    for name in (one for one in client.get_run(run_id).data.metrics if not one.startswith("system/")):
        history = client.get_metric_history(run_id, name)
        found[name] = {one.step: one.value for one in history}
        assert len(found[name]) == len(history), name
    return found


def of_wandb(folder):
    """Read the union of the offline folders of one run, as ``wandb sync`` sends it."""
    found, records = {}, _records_of_wandb(Path(folder))
    for record in (one for one in records if one.WhichOneof("record_type") == "history"):
        row = {item.key or ".".join(item.nested_key): json.loads(item.value_json) for item in record.history.item}
        for name, value in row.items():
            if not name.startswith("_") and name != "epoch" and isinstance(value, int | float):
                found.setdefault(name, {})[row["_step"]] = value
    ids = {one.run.run_id for one in records if one.WhichOneof("record_type") == "run"}
    assert len(ids) == 1, ids
    return found


def _records_of_wandb(folder):
    """Return all records of a run; W&B's own process may write a file, or the end of one, after it said so."""
    end = time.monotonic() + 20
    while True:
        *before, last = [_records_in(one) for one in sorted(folder.glob("offline-run-*"))]
        if time.monotonic() > end or (all(is_over for _, is_over in before) and _has_ended(last[0])):
            return [record for records, _ in (*before, last) for record in records]
        time.sleep(0.1)


def _records_in(folder):
    """Return the records of a folder so far, and whether there will be no more: its process ended, or was killed."""
    from google.protobuf.message import DecodeError
    from wandb.proto.wandb_internal_pb2 import Record

    records = []
    for path in folder.glob("*.wandb"):
        with suppress(DecodeError):  # the last one is torn
            records += [Record.FromString(data) for data in _records(path.read_bytes())]
    return records, _has_ended(records) or time.time() - folder.stat().st_mtime > 5


def _has_ended(records):
    return bool(records) and records[-1].WhichOneof("record_type") in ("exit", "footer")


def of_csv(path):
    """Read a table of metrics; fails where a step comes twice."""
    found = {}
    with Path(path).open(newline="") as file:
        for row in csv.DictReader(file):
            for name in row.keys() - {"step", "epoch", "time"}:
                with suppress(ValueError):  # an empty cell, or a text
                    number = float(row[name])
                    found.setdefault(name, {})[int(row["step"])] = number
    return found


def _records(data):
    """Yield the records of a W&B file: blocks as LevelDB's log has them, behind a header of seven bytes."""
    at, whole = 7, b""
    while at + 7 <= len(data):
        left = BLOCK - at % BLOCK
        if left < 7:
            at += left
            continue
        length, kind = struct.unpack("<xxxxHB", data[at : at + 7])
        if kind == 0:
            return
        whole += data[at + 7 : at + 7 + length]
        at += 7 + length
        if kind in (1, 4):  # whole, or the last part
            yield whole
            whole = b""
