"""The copy of a run in a store: one pass brings it as far as the run directory is, the newest checkpoint first."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from rtrain.errors import StrangeFileError
from rtrain.runs.checkpoints import RECORD_NAME, Retention, best_record, record_of
from rtrain.runs.events import events_file
from rtrain.runs.filesystem.files import to_json
from rtrain.runs.filesystem.plain_files import bounded, open_inside, read_json
from rtrain.runs.manifest import MANIFEST, check_places, utc_now
from rtrain.runs.status import Status
from rtrain.storage.events_copy import EventsCopy
from rtrain.storage.folders import Folder, chunks_of, read
from rtrain.storage.folders import read_json as read_stored
from rtrain.storage.small_files import SmallFiles

NUM_THREADS = 4
"""Number of files of a checkpoint that are sent in parallel."""
SMALL_FILES = ("config.yaml", "code*.diff", "packages*.txt", "labels.json", ".hydra/*")
LOGS = ("logs/*",)
DAMAGED = (ValueError, KeyError, TypeError, AttributeError, OverflowError)
"""What the record of a checkpoint raises that makes no sense."""

logger = logging.getLogger(__name__)


class RunCopy:
    """What a store holds of one run. A checkpoint is there once its ``checkpoint.json`` is, which comes last."""

    def __init__(self, run_dir: Path, folder: Folder, retention: Retention) -> None:
        """Ask nothing of the store yet.

        Args:
            run_dir: The run directory, which is only read.
            folder: Where the copy is.
            retention: What holds for the copy, too.
        """
        self.folder = folder
        self._run_dir, self._retention = run_dir, retention
        self._events = EventsCopy(folder, events_file(run_dir))
        self._stored: dict[str, dict[str, Any]] | None = None
        """The records of the checkpoints in the store, by name; None before the store was queried."""
        self._leftovers: set[str] = set()
        """Names of checkpoints of which there may be parts."""
        self._sending: dict[str, Any] = {}
        """The record of the checkpoint that is on its way."""
        self._done: set[str] = set()
        """Its files in the store: after a failure, they are not sent again."""
        self.lost: dict[str, str] = {}
        """Checkpoints of this machine that can't be sent, and why."""
        self._small, self._logs = (SmallFiles(run_dir, folder, patterns) for patterns in (SMALL_FILES, LOGS))
        self._seen = 0
        """What changes with the manifest, when it was looked at last."""

    def update(self, *, last: bool = False) -> None:
        """Send what is new, and delete what was dropped.

        Args:
            last: The run is over: send its logs too, and note in the manifest that the copy is complete.

        Raises:
            Exception: The store's error. Files sent so far stay, and another call continues from there.
        """
        self._seen = self._version()
        if self._stored is None:
            self._look()
            # A run whose first checkpoint comes in an hour can be found, too.
            self._send_manifest()
        self._small.update()
        self._events.update()
        while (record := self._next()) is not None:
            if self._send_checkpoint(record):
                self._send_manifest()
        self._prune()
        if last:
            self._logs.update()
            self._events.join()
        self._send_manifest(last=last)

    def missing(self) -> list[str]:
        """Return the names of the checkpoints of this machine that are not in the store."""
        return [record["name"] for record in self._waiting()]

    def has_news(self) -> bool:
        """Tell whether there is a checkpoint to send since it was asked last."""
        before, self._seen = self._seen, self._version()
        return self._seen != before and self._next() is not None

    def _version(self) -> int:
        """Return what changes with the manifest, which is written again for every checkpoint and at intervals."""
        manifest = self._run_dir / MANIFEST
        return manifest.stat().st_mtime_ns if manifest.exists() else 0

    def _look(self) -> None:
        """List the content of the store: a resumed run, or one whose driver was killed, has left files there."""
        sizes = self.folder.sizes("checkpoints")
        found: dict[str, dict[str, Any]] = {}
        names = {name.split("/")[1] for name in sizes if name.count("/") > 1}
        for name in names:
            if f"checkpoints/{name}/{RECORD_NAME}" in sizes:
                try:
                    record = record_of(read_stored(self.folder, f"checkpoints/{name}/{RECORD_NAME}"), name)
                except DAMAGED:  # it counts as a leftover
                    continue
                if _has_sizes(sizes, record):
                    found[name] = record
        self._leftovers = names - found.keys()
        self._events.join()
        self._stored = found

    def _local(self) -> list[dict[str, Any]]:
        """Return the records of the checkpoints in the run directory, as its manifest lists them."""
        found: list[dict[str, Any]] = self._local_manifest()["checkpoints"]
        return found

    def _local_manifest(self) -> dict[str, Any]:
        found: dict[str, Any] = read_json(self._run_dir, MANIFEST)
        check_places(found)
        return found

    def _next(self) -> dict[str, Any] | None:
        """Return the record of the newest checkpoint that is not in the store."""
        waiting = (record for record in self._waiting() if record["name"] not in self.lost)
        return max(waiting, key=lambda record: int(record["step"]), default=None)

    def _waiting(self) -> list[dict[str, Any]]:
        """Return the records of the checkpoints that are not in the store, without those that would not stay there."""
        stored = dict(self._stored or {})
        local = {record["name"]: record for record in self._local()}
        stay = self._retention.kept({**stored, **local}.values())
        names = [record["name"] for record in stay if record["name"] in local]
        return [local[name] for name in names if not _same(local[name], stored.get(name))]

    def _send_checkpoint(self, record: dict[str, Any]) -> bool:
        """Send one checkpoint; tell whether it is there now. One that was dropped meanwhile is sent to its end."""
        name, place = record["name"], f"checkpoints/{record['name']}"
        with ExitStack() as stack:
            try:
                # Open files can be read to their end, whoever deletes them.
                files = {file: stack.enter_context(self._opened(f"{place}/{file}")) for file in record["files"]}
                final = bounded(stack.enter_context(self._opened(f"{place}/{RECORD_NAME}")))
            except StrangeFileError as error:
                self._lose(name, error.message)
                return False
            except FileNotFoundError:
                if name in [one["name"] for one in self._local()]:
                    self._lose(name, "its files no longer exist")
                return False
            self._begin(record)
            if not self._send_files(record, files):
                return False
        # A machine that resumes from it has the events up to it, because those were sent first.
        self._events.update()
        self.folder.put(f"{place}/{RECORD_NAME}", [final])
        if read(self.folder, f"{place}/{RECORD_NAME}") != final:
            raise OSError(f"{place}/{RECORD_NAME} has changed")
        self._leftovers.discard(name)
        self._stored_records[name] = record
        return True

    def _opened(self, name: str) -> Any:
        return open_inside(self._run_dir, name)

    def _begin(self, record: dict[str, Any]) -> None:
        """Make room for a checkpoint, unless it is the one that failed on its way."""
        if not _same(record, self._sending):
            self._remove(record["name"])
            self._sending, self._done = record, set()
            self._leftovers.add(record["name"])

    def _send_files(self, record: Mapping[str, Any], files: Mapping[str, Any]) -> bool:
        """Send the files of a checkpoint and ask for their sizes; False: they are not what the record says.

        Each is hashed before a byte of it is sent.
        """
        name = record["name"]

        def send(file: str) -> bool:
            if file not in self._done:
                stream = files[file]
                if hashlib.file_digest(stream, "sha256").hexdigest() != record["files"][file]["sha256"]:
                    return False
                stream.seek(0)
                self.folder.put(f"checkpoints/{name}/{file}", chunks_of(stream))
                self._done.add(file)
            return True

        threads = ThreadPoolExecutor(NUM_THREADS, thread_name_prefix="rtrain-storage")
        try:
            whole = all(threads.map(send, files))
        finally:
            threads.shutdown(cancel_futures=True)
        if not whole:
            self._lose(name, "its files on this machine are damaged")
        elif not _has_sizes(self.folder.sizes(f"checkpoints/{name}"), record):
            self._sending = {}
            raise OSError(f"checkpoints/{name} differs in size from what was sent")
        return whole

    def _lose(self, name: str, reason: str) -> None:
        logger.warning("checkpoint %s is not copied to %s: %s", name, self.folder.url, reason)
        self.lost[name] = reason

    @property
    def _stored_records(self) -> dict[str, dict[str, Any]]:
        assert self._stored is not None
        return self._stored

    def _prune(self) -> None:
        """Drop what the retention drops. It goes by what is in the store, which a slow store may have later."""
        records = self._stored_records.values()
        stay = {record["name"] for record in self._retention.kept(records)}
        for name in [*(name for name in self._stored_records if name not in stay), *self._leftovers]:
            self._remove(name)
        self._sending = {}

    def _remove(self, name: str) -> None:
        """Delete a checkpoint, first from the manifest, then its record: no reader takes a part of it for one."""
        if self._stored_records.pop(name, None) is not None:
            self._send_manifest()
            self._leftovers.add(name)
        if name in self._leftovers:
            self.folder.delete(f"checkpoints/{name}/{RECORD_NAME}")
            self.folder.delete(f"checkpoints/{name}")
            self._leftovers.discard(name)

    def _send_manifest(self, *, last: bool = False) -> None:
        """Send the manifest; it lists what is in the store, and when it was known to.

        Until all files of an ended run are in the store, the manifest there says that the run is in progress.
        """
        manifest = self._local_manifest()
        if not last:
            manifest |= {"status": Status.RUNNING, "exit_reason": None, "error": None, "ended_at": None}
        records = sorted(self._stored_records.values(), key=lambda record: (int(record["step"]), record["name"]))
        best = best_record(records)
        manifest["checkpoints"] = records
        manifest["best_checkpoint"] = None if best is None else f"checkpoints/{best['name']}"
        manifest["storage"] = {"url": self.folder.url, "complete": last and not self.missing(), "copied_at": utc_now()}
        self.folder.put(MANIFEST, [(to_json(manifest, indent=2) + "\n").encode()])


def _same(record: Mapping[str, Any], stored: Mapping[str, Any] | None) -> bool:
    return stored is not None and all(stored.get(key) == record[key] for key in ("name", "files"))


def _has_sizes(sizes: Mapping[str, int], record: Mapping[str, Any]) -> bool:
    place = f"checkpoints/{record['name']}"
    return all(sizes.get(f"{place}/{name}") == file["size_bytes"] for name, file in record["files"].items())
