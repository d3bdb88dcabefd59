"""A process between another one and where its output goes: copies bytes, with a mask in place of each secret.

It is started as a script, without rtrain: ``output_filter.py CONTROL IN:OUT [IN:OUT]``, all of them file descriptors.
The first line on CONTROL says what to mask. It outlives the process that writes, so that what that said last, of a
crash say, is not lost.
"""

from __future__ import annotations

import json
import os
import re
import select
import sys

PAUSE_SECONDS = 0.1
"""Longest wait for the rest of what begins like a secret: a prompt may end like that."""
CHUNK_BYTES = 65536


class Masking:
    """One stream: takes bytes as they come, and gives them back masked.

    Args:
        secrets: What is masked.
        token: What its writer ends a text with to learn when that is through; it is left out.
        mask: What stands in place of a secret.
    """

    def __init__(self, secrets: list[bytes], token: bytes, mask: bytes) -> None:
        longest = sorted(secrets, key=len, reverse=True)
        self._pattern = re.compile(b"|".join(map(re.escape, longest)))
        self._forms, self._token, self._mask = [*longest, token], token, mask
        self._held = b""

    @property
    def holds(self) -> bool:
        """Whether bytes wait for those that follow."""
        return bool(self._held)

    def feed(self, data: bytes) -> tuple[bytes, int]:
        """Return what can be written now, and how many tokens came."""
        *over, rest = (self._held + data).split(self._token)
        done = b"".join(self._pattern.sub(self._mask, part) for part in over)
        cut = len(rest) - self._begun(rest)
        for found in self._pattern.finditer(rest):
            if found.start() < cut < found.end():
                cut = found.end()
        self._held = rest[cut:]
        return done + self._pattern.sub(self._mask, rest[:cut]), len(over)

    def rest(self) -> bytes:
        """Return what was held back."""
        held, self._held = self._held, b""
        return self._pattern.sub(self._mask, held)

    def _begun(self, data: bytes) -> int:
        """Return how many of the last bytes may be the beginning of a secret."""
        longest = min(len(data), max(map(len, self._forms)) - 1)
        for size in range(longest, 0, -1):
            end = data[-size:]
            if any(len(form) > size and form.startswith(end) for form in self._forms):
                return size
        return 0


def copy(control: int, pairs: dict[int, int]) -> None:
    """Copy until the last writer is gone."""
    with os.fdopen(os.dup(control), "rb") as lines:
        told = json.loads(lines.readline())
    secrets, token = [one.encode() for one in told["secrets"]], told["token"].encode()
    streams = {source: Masking(secrets, token, told["mask"].encode()) for source in pairs}
    poll = select.poll()
    for source in pairs:
        poll.register(source, select.POLLIN)
    while streams:
        waits = any(one.holds for one in streams.values())
        ready = poll.poll(PAUSE_SECONDS * 1000 if waits else None)
        for source, _ in ready:
            data, number = _read(source), 0
            if data:
                data, number = streams[source].feed(data)
            else:
                poll.unregister(source)
                data = streams.pop(source).rest()
            _write(pairs[source], data)
            _write(control, b"." * number)
        for source in () if ready else streams:
            _write(pairs[source], streams[source].rest())


def _read(source: int) -> bytes:
    try:
        return os.read(source, CHUNK_BYTES)
    except OSError:  # a pseudo-terminal that its last writer has closed
        return b""


def _write(target: int, data: bytes) -> None:
    """Write all of it; where its reader is gone, it is dropped, so that the writer isn't held up."""
    try:
        while data:
            data = data[os.write(target, data) :]
    except OSError:
        return


if __name__ == "__main__":
    copy(int(sys.argv[1]), {int(source): int(to) for source, _, to in (pair.partition(":") for pair in sys.argv[2:])})
