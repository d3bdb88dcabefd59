"""What a checkpoint that another account wrote may not do, unless the user trusts it.

Its targets are checked when they are built: see ``rtrain.config.targets.builder``.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

from rtrain.config.files.home import expanded
from rtrain.config.targets.allow_list import is_allowed, targets_in
from rtrain.config.targets.servers import is_well_known
from rtrain.datasets.registry import load_source
from rtrain.errors import CheckpointError
from rtrain.storage.stores import is_url, shown_url
from rtrain.trainers.trained import TRUST

ENDPOINT = re.compile(r"^dataset\.(.*\.)?(storage_options\.|endpoint|proxy)", re.IGNORECASE)
"""Keys that say which server is asked, or how."""


def check_untrusted(folder: Path, sections: Mapping[str, Any], replaced: Collection[str]) -> None:
    """Refuse settings of an untrusted checkpoint that would run code or read the environment.

    Args:
        folder: The checkpoint.
        sections: Its sections for trainer and dataset.
        replaced: Keys that the user overrides.

    Raises:
        CheckpointError: It names a module outside the frameworks, a function or query to read rows with, a variable
            of the environment, or a server or a hub that credentials of the user would go to.
    """
    for key, value in (*targets_in(sections["trainer"], "trainer"), *targets_in(sections["dataset"], "dataset")):
        if not isinstance(value, str) or not is_allowed(value.replace(":", "."), (), ()):
            raise _refused(folder, f"{key} is {value}, which is code of another project")
    # A source that the user has chosen has a default where the checkpoint's own has its words.
    if "type" in (sections["dataset"] or {}) and "defaults" not in sections:
        _check_source(folder, sections["dataset"], replaced)
    for key, text in _texts(sections, ""):
        if any(key == one or key.startswith(f"{one}.") for one in replaced):
            continue
        if "${" in text:
            raise _refused(folder, f"{key} is {text}, and a checkpoint of another account can't read your values")
        if ENDPOINT.search(key):
            raise _refused(folder, f"{key} decides how a store is accessed, with your credentials")
        if key.startswith("dataset.") and text.lower().startswith(("http://", "https://")):
            raise _refused(folder, f"{key} is {shown_url(text)}, and the size of what a server sends is unknown")
        if is_url(text) and not is_well_known(text):
            raise _refused(folder, f"{key} is {shown_url(text)} with another server or options")


def _check_source(folder: Path, dataset: Mapping[str, Any], replaced: Collection[str]) -> None:
    name, place = str(dataset["type"]), str(dataset.get("path"))
    source = load_source(name)
    if source.runs_code:
        raise _refused(folder, f"it reads its rows with dataset.type={name}, which runs code named by the checkpoint")
    # The hub learns who asks, and what it sends has no end that is known.
    if source.has_hub and "dataset.path" not in replaced and not is_url(place) and not expanded(place).is_dir():
        raise _refused(folder, f"dataset.path is {place}, not a local folder, and would be downloaded from a hub")


def _refused(folder: Path, why: str) -> CheckpointError:
    return CheckpointError(f"{folder} was written by another account: {why}.", TRUST)


def _texts(node: Any, where: str) -> Iterator[tuple[str, str]]:
    """Yield (key, text) of each text at or below ``node``, keys included."""
    if isinstance(node, Mapping):
        for name, value in node.items():
            inner = f"{where}.{name}" if where else str(name)
            yield inner, str(name)
            yield from _texts(value, inner)
    elif isinstance(node, list | tuple):
        for index, value in enumerate(node):
            yield from _texts(value, f"{where}.{index}")
    elif isinstance(node, str):
        yield where, node
