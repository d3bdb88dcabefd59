"""The names of what is known of runs, as users write them in ``--where``, ``--sort`` and ``--columns``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rtrain.config.compose.aliases import KEYS
from rtrain.config.did_you_mean import closest, did_you_mean
from rtrain.errors import ConfigError
from rtrain.history.rows import Row

TIMES = ("started", "ended")
DURATIONS = ("age", "seconds")
SIZES = ("size",)
OWN = {
    "id": "short id; for a trial, that of its sweep and its number",
    "name": "run.name",
    "kind": "run, trial or sweep",
    "status": "running, succeeded, failed, interrupted, preempted, killed (its process no longer exists) or damaged",
    "trainer": "trainer.type",
    "dataset": "name of the dataset",
    "best": "best value of the monitored metric",
    "monitor": "the metric that decides which checkpoint is best",
    "started": "when it started",
    "ended": "when it ended",
    "age": "time since it started",
    "seconds": "how long it took",
    "step": "optimizer steps (boosting rounds)",
    "epoch": "epochs",
    "tags": "tags, a list",
    "note": "note",
    "reason": "why it ended",
    "error": "type of the error it failed with",
    "problem": "why its manifest can't be read",
    "workers": "num_workers",
    "seed": "run.seed",
    "host": "machine",
    "commit": "git commit of the project",
    "dirty": "whether the project had uncommitted changes",
    "checkpoints": "number of checkpoints",
    "size": "bytes of all checkpoints",
    "resumes": "how many times it was resumed",
    "overrides": "the typed overrides, a list",
    "config_file": "the config",
    "parent": "the run whose weights it started with",
    "sweep": "for a trial, the folder of its sweep",
    "trial": "for a trial, its number",
    "trials": "for a sweep, the number of its trials",
    "search": "for a sweep, the search that proposes trials",
    "path": "the folder",
}
"""Name -> what it is. All others are metrics, keys of the config and values that loops reported."""
GROUPS = ("config", "metrics", "values")


class Fields:
    """The names that some rows have facts of.

    Args:
        rows: Any kind of rows.
        shown: Those of them that are listed: a name that is ambiguous among all may be clear among these.
    """

    def __init__(self, rows: Iterable[Row], shown: Iterable[Row] = ()) -> None:
        names = _names(rows)
        self._shown = _names(shown)
        self._names = {one for one in names if one.partition(".")[0] in GROUPS and "." in one}
        self.is_empty = not names

    def names(self, groups: Sequence[str] = GROUPS) -> list[str]:
        """Return the names of metrics, keys of the config and values, without their groups."""
        found = (one.partition(".") for one in sorted(self._names))
        return list(dict.fromkeys(name for group, _, name in found if group in groups))

    def find(self, name: str) -> str:
        """Return the fact that a name stands for: ``lr`` is ``config.trainer.optimizer.lr``.

        Raises:
            ConfigError: There is none, or there are several.
        """
        whole = [name] if name in OWN else []
        whole += [one for one in (name, *(f"{group}.{name}" for group in GROUPS)) if one in self._names]
        whole += [f"config.{KEYS[name]}"] if name in KEYS and f"config.{KEYS[name]}" in self._names else []
        if whole or self.is_empty:
            return (whole or [name])[0]
        ends = sorted(one for one in self._names if one.endswith((f".{name}", f"/{name}")))
        for clear in (ends, [one for one in ends if one in self._shown]):
            if len(clear) == 1:
                return clear[0]
        if ends:
            raise ConfigError(f"'{name}' is ambiguous: it matches several fields.", did_you_mean(*map(short, ends)))
        raise ConfigError(f"there is no field '{name}'.", self._hint(name))

    def _hint(self, name: str) -> str:
        shorts = [short(one) for one in sorted(self._names)]
        ends = {one.rpartition(".")[2].rpartition("/")[2]: one for one in reversed(shorts)}
        near = closest(name, [*OWN, *shorts]) or ends.get(closest(name, ends) or "")
        lines = [] if near is None else [did_you_mean(near)]
        metrics = [one for one in shorts if one.startswith("metrics.")]
        return "\n".join([*lines, *listing("available: ", [*OWN, *metrics, "and each key of the config"])])


def _names(rows: Iterable[Row]) -> set[str]:
    shapes = {id(row.names): row.names for row in rows}  # thousands of rows share a few
    return {name for shape in shapes.values() for name in shape}


def short(name: str) -> str:
    """Return a name as users write it: keys of the config need no ``config.``."""
    return name.removeprefix("config.")


def listing(before: str, words: Sequence[str], width: int = 100) -> list[str]:
    """Return words with commas in as many lines as they need, each as wide as ``before`` and what fits."""
    lines, line = list[str](), before
    for number, word in enumerate(words):
        text = word if number == len(words) - 1 else f"{word},"
        if len(line) + len(text) + 1 > width and line.strip():
            lines.append(line.rstrip())
            line = " " * len(before)
        line += f"{text} "
    return [*lines, line.rstrip()]
