"""pyarrow's file systems with fsspec's methods, listed by as few requests as they need."""

from __future__ import annotations

from typing import Any

from fsspec.implementations.arrow import ArrowFSWrapper
from pyarrow.fs import FileSelector


class PyarrowStore(ArrowFSWrapper):
    """An object store: one request lists a thousand names, and what can't be listed is an error.

    fsspec itself asks once for each folder, and leaves out those that are refused.
    """

    def find(self, path: str, maxdepth: int | None = None, withdirs: bool = False, **_: Any) -> dict[str, Any]:
        """Return what is known of each file below a folder, by its path; of folders too if ``withdirs``."""
        selector = FileSelector(path.rstrip("/"), recursive=maxdepth != 1)
        found = {info.path: self._make_entry(info) for info in self.fs.get_file_info(selector)}
        return {name: info for name, info in found.items() if withdirs or info["type"] == "file"}
