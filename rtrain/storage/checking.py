"""Whether the files of a run in a store are what was written."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path

from rtrain.runs.checkpoints import RECORD_NAME, record_of
from rtrain.runs.verify import Finding
from rtrain.storage.access import patiently
from rtrain.storage.fetching import StoredRun
from rtrain.storage.folders import Folder, chunks_of, read_json
from rtrain.storage.run_copy import DAMAGED
from rtrain.storage.stores import errors_named


def verify_stored(run: StoredRun) -> list[Finding]:
    """Read every file of every checkpoint of a stored run, and compare it with its record.

    Raises:
        ConfigError: The store refuses or does not answer.
    """
    with errors_named(run.folder.url, "RUN"):
        sizes = patiently(run.folder.sizes)
        listed = {record["name"] for record in run.manifest["checkpoints"]}
        parts = [name.split("/") for name in sizes if name.startswith("checkpoints/")]
        there = sorted({part[1] for part in parts if len(part) > 2})
        found = [finding for name in there for finding in _wrong_checkpoint(run.folder, name, sizes, listed)]
    return found + [_finding(name, "", "missing") for name in sorted(listed - set(there))]


def _wrong_checkpoint(folder: Folder, name: str, sizes: Mapping[str, int], listed: set[str]) -> Iterator[Finding]:
    place = f"checkpoints/{name}"
    if f"{place}/{RECORD_NAME}" not in sizes:
        yield _finding(name, "", "unfinished")
        return
    if name not in listed:
        yield _finding(name, "", "extra", "complete, but not in the manifest")
    try:
        record = record_of(patiently(partial(read_json, folder, f"{place}/{RECORD_NAME}")), name)
    except DAMAGED as error:
        yield _finding(name, RECORD_NAME, "unreadable", repr(error))
        return
    for file, facts in record["files"].items():
        size = sizes.get(f"{place}/{file}")
        if size is None:
            yield _finding(name, file, "missing")
        elif size != facts["size_bytes"]:
            yield _finding(name, file, "damaged", f"{size:,} bytes instead of {facts['size_bytes']:,}")
        elif patiently(partial(_sha256_of, folder, f"{place}/{file}")) != facts["sha256"]:
            yield _finding(name, file, "damaged", "its content has changed")


def _sha256_of(folder: Folder, name: str) -> str:
    digest = hashlib.sha256()
    with folder.open(name) as stream:
        for chunk in chunks_of(stream):
            digest.update(chunk)
    return digest.hexdigest()


def _finding(name: str, file: str, problem: str, detail: str = "") -> Finding:
    checkpoint = Path("checkpoints") / name
    return Finding(checkpoint, checkpoint / file, problem, detail)
