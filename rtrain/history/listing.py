"""Which runs a command is about: those of some folders that fulfil an expression."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rtrain.history.index import list_rows
from rtrain.history.query.where import matching
from rtrain.history.rows import Row
from rtrain.storage.stores import is_url, shown_url


def chosen_rows(folders: Sequence[str | Path] = (), where: str | None = None, *, trials: bool = False) -> list[Row]:
    """Return the runs and sweeps of ``listed_rows`` that fulfil ``where``, the newest first.

    Raises:
        ConfigError: A folder does not exist, or the expression is wrong.
    """
    return matching(listed_rows(folders, where, trials=trials), where)


def listed_rows(folders: Sequence[str | Path] = (), where: str | None = None, *, trials: bool = False) -> list[Row]:
    """Return the runs and sweeps that ``where`` is asked of, the newest first; they know all names of fields.

    Args:
        folders: Where to look; none: where the project has its runs.
        where: What they have to fulfil.
        trials: List each trial. They are listed anyway if ``where`` is given, which looks at each of them, or if the
            folder is that of a sweep; else their sweep stands for them.

    Raises:
        ConfigError: A folder does not exist.
    """
    rows = list_rows(folders)
    named = {shown_url(str(one)).rstrip("/") if is_url(str(one)) else str(Path(one).absolute()) for one in folders}
    is_one_sweep = any(row.kind == "sweep" and row.place in named for row in rows)
    are_trials_shown = trials or bool(where) or is_one_sweep
    return [row for row in rows if are_trials_shown or row.kind != "trial"]
