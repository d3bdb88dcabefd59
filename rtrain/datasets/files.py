"""The files that a dataset path names."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

from rtrain.config.did_you_mean import to_try
from rtrain.config.files.data_files import COMPRESSED, NOT_UNPACKED, TABLES, kind_of
from rtrain.config.files.home import expanded
from rtrain.datasets.conf import SplitConf
from rtrain.datasets.missing.near_files import hint_for
from rtrain.datasets.remote import fetch, is_glob, num_fixed, pattern_in
from rtrain.datasets.splitting.left_out import to_read
from rtrain.errors import DatasetError, MissingDataError
from rtrain.storage.stores import is_url

SPLIT_NAMES = {"train": "train", "val": "val", "valid": "val", "validation": "val", "test": "test"}
"""Names of files and folders that make a split."""


def existing_path(text: str, key: str = "dataset.path") -> Path:
    """Return the file or folder that ``text`` names, a copy of it if it is a URL; ``~`` is the home folder.

    Raises:
        DatasetError: It does not exist, or can't be copied.
    """
    path = fetch(text, key) if is_url(text) else expanded(text)
    if path.is_file() or path.is_dir():
        return path
    if path.exists():
        raise DatasetError(f"{key}: {text} is a device or a pipe, not a file or folder.", "Name a file.")
    parent = path.parent
    while not parent.exists():
        path, parent = parent, parent.parent
    check_link(path)
    message = f"{key}: {text} does not exist (there is no '{path.name}' in {parent.resolve()})."
    raise MissingDataError(message, _near_names(path.name, parent), text)


def _near_names(name: str, folder: Path) -> str:
    there = (child.name for child in folder.iterdir()) if folder.is_dir() else ()
    return hint_for(name, there, "" if folder == Path() else str(folder))


def files_by_split(
    path: Any, endings: Sequence[str], conf: SplitConf | None = None, companions: Sequence[str] = ()
) -> dict[str, list[Path]]:
    """Return the files of each split that ``path`` names: a file, folder or glob, or a mapping from split to one.

    Args:
        path: The path in the config.
        endings: Endings of files in folders.
        conf: Says which splits are left out: what ``path`` names for them is not looked for; None: no split is.
        companions: Endings that, appended to a file's name, give the names of the files read with it.

    Raises:
        DatasetError: Something named does not exist, or holds no file with one of ``endings``.
    """
    path = local(path, endings, conf, companions)
    if isinstance(path, Mapping):
        return {split: files_at(one, endings, f"dataset.path.{split}") for split, one in path.items()}
    files = files_at(path, endings)
    folder = expanded(path)
    named: dict[str, list[Path]] = {}
    if folder.is_dir():
        for file in files:
            top = file.relative_to(folder).parts[0].partition(".")[0]
            named.setdefault(SPLIT_NAMES.get(top, ""), []).append(file)
    return to_read(named, conf) if "train" in named and "" not in named else {"train": files}


def shards_by_split(path: Any, endings: Sequence[str], conf: SplitConf | None = None) -> dict[str, list[Path]]:
    """Return ``files_by_split``, by the first word of names where all begin like ``train-00000-of-00002``.

    Raises:
        DatasetError: Something named does not exist, or holds no file with one of ``endings``.
    """
    files = files_by_split(path, endings, conf)
    if set(files) != {"train"} or isinstance(path, Mapping):
        return files
    named: dict[str, list[Path]] = {}
    for file in files["train"]:
        named.setdefault(SPLIT_NAMES.get(re.split(r"[-_.]", file.name)[0], ""), []).append(file)
    return to_read(named, conf) if "train" in named and "" not in named else files


def local(path: Any, endings: Sequence[str], conf: SplitConf | None = None, companions: Sequence[str] = ()) -> Any:
    """Return ``path``, or the mapping from split to path, with the local copies in place of URLs.

    See ``files_by_split``.
    """
    if isinstance(path, Mapping):
        wanted = to_read(path, conf)
        return {split: _copied(one, f"dataset.path.{split}", endings, companions) for split, one in wanted.items()}
    return _copied(path, "dataset.path", endings, companions)


def _copied(path: str, key: str, endings: Sequence[str], companions: Sequence[str]) -> str:
    return str(fetch(path, key, endings, companions) / pattern_in(path)) if is_url(path) else path


def files_at(text: str, endings: Sequence[str], key: str = "dataset.path") -> list[Path]:
    """Return the files that a file, folder or glob names, in the order of their names."""
    if is_glob(text) and not expanded(text).exists():
        found = _globbed(text, key)
        for file in sorted({tuple(file.suffixes): file for file in reversed(found)}.values()):
            _check_ending(file, endings, key, text)
        return found
    path = existing_path(text, key)
    if path.is_file():
        _check_ending(path, endings, key, text)
        return [path]
    files = sorted(file for file in files_below(path) if file.name.lower().endswith(tuple(endings)))
    files = [file for file in files if not _hidden(file.relative_to(path)) and is_data_file(file)]
    if not files:
        what = f"{key}: folder {text} contains no {' or '.join(endings[:2])} file."
        raise DatasetError(what, _otherwise(f"{key}={text}", path, endings))
    return files


def files_below(folder: Path) -> list[Path]:
    """Return all that is below a folder, but for folders; those that links lead to are entered unless they were before.

    Raises:
        DatasetError: A folder may not be read, or a link whose name has no ending, as folders have none, leads nowhere.
    """
    found, waiting, seen = list[Path](), [folder], set[str]()
    while waiting:
        linked: list[Path] = []
        while waiting:
            place = waiting.pop()
            if (real := os.path.realpath(place)) in seen:
                continue
            seen.add(real)
            for path, kind in _entries(place):
                if kind == "file":
                    if not path.suffix and not _hidden(path.relative_to(folder)):
                        check_link(path)
                    found.append(path)
                else:
                    (linked if kind == "link" else waiting).append(path)
        waiting = sorted(linked, reverse=True)
    return found


def _entries(folder: Path) -> Iterator[tuple[Path, str]]:
    """Yield what is in a folder, each as a ``file``, a ``folder`` or a ``link`` to a folder."""
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                try:
                    is_folder = entry.is_dir()
                except OSError:  # a link to itself
                    is_folder = False
                kind = "file" if not is_folder else "link" if entry.is_symlink() else "folder"
                yield folder / entry.name, kind
    except PermissionError as error:
        if not _hidden(Path(folder.name)) and folder.name != "lost+found":
            raise DatasetError(f"{folder} may not be read by this account.", "Allow it: chmod u+rx") from error


def is_data_file(file: Path) -> bool:
    """Return whether a path in a folder of data is a file.

    Raises:
        DatasetError: It is a link to what does not exist; hidden ones, such as locks of editors, count for nothing.
    """
    if file.is_file():
        return True
    if not file.name.startswith("."):
        check_link(file)
    return False


def check_link(path: Path) -> None:
    """Raise a DatasetError if a path is a link that leads nowhere: what git-annex has not fetched can't be left out."""
    if path.is_symlink() and not path.exists():
        raise DatasetError(
            f"{path} is a link to {path.readlink()}, which does not exist.",
            "Fetch what it stands for (`git annex get`, `dvc pull`), or remove the link.",
        )


def _otherwise(word: str, folder: Path, endings: Sequence[str]) -> str:
    """Return how to name files of the same format that end otherwise, or what else a folder has."""
    kinds = _kinds_of(endings)
    suffixes = sorted({file.suffix for file in folder.iterdir() if kind_of(file.name.lower()) in kinds})
    return to_try(f"'{word}/*{suffixes[0]}'") if suffixes else _near_names("", folder)


def _check_ending(file: Path, endings: Sequence[str], key: str, text: str) -> None:
    """Refuse a table of another format: its own source has other keys, and other words for what is wrong.

    Args:
        file: The file.
        endings: Those of the format.
        key: What names it, as ``text``.
        text: A file, or a glob.
    """
    source, wanted = kind_of(file.name.lower()), _kinds_of(endings)
    if source in wanted and file.suffix.lower() in NOT_UNPACKED:
        what = f"{key}: {file} is compressed in a way that can't be read ({file.suffix})."
        raise DatasetError(what, f"Unpack it, or compress it as {', '.join(COMPRESSED[:-1])} or {COMPRESSED[-1]}.")
    if source in TABLES and wanted and source not in wanted:
        ending = file.suffix if kind_of(f"rows{file.suffix.lower()}") else "".join(file.suffixes[-2:])
        message = f"{key}: {file} is a {ending} file, and dataset={' or '.join(sorted(wanted))} can't read it."
        raise DatasetError(message, to_try(shlex.join([f"dataset={source}", f"{key}={text}"])))


def _kinds_of(endings: Sequence[str]) -> set[str]:
    """Return the datasets that read files which end so."""
    return {kind for ending in endings if (kind := kind_of(f"rows{ending}"))}


def _hidden(path: Path) -> bool:
    return any(part.startswith((".", "_")) for part in path.parts)


def _globbed(text: str, key: str) -> list[Path]:
    pattern = expanded(text)
    fixed = Path(*pattern.parts[: num_fixed(pattern.parts)])
    root = existing_path(str(fixed), key)
    files = sorted(file for file in root.glob(str(pattern.relative_to(fixed))) if is_data_file(file))
    if not files:
        raise MissingDataError(f"{key}: no file matches {text}.", _near_names("", root), text)
    return files


def files_fingerprint(files: Iterable[Path]) -> str:
    """Return the sha256 over name, size and time of change of each file; contents are not read."""
    digest = sha256()
    for file in files:
        stat = file.stat()
        digest.update(f"{file.parent.name}/{file.name}\0{stat.st_size}\0{stat.st_mtime_ns // 1_000_000}\n".encode())
    return digest.hexdigest()
