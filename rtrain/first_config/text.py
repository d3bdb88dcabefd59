"""The text of a first config, in the style of the recipes."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import Any

from rtrain.first_config.columns import LEFT_OUT, NAME, Column
from rtrain.first_config.flow import in_flow
from rtrain.first_config.look import TableLook
from rtrain.text.printable import printable

RARE = 0.1
"""Share of the rows below which a class is rare: accuracy says little then."""
MOST_CLASSES = 6
MOST_COLUMNS = 60
"""Most columns that are described, each on a line."""
WIDEST = 28
"""Most characters of a column's name in the list of columns."""
SIGNS = {"\t": "tab", ";": "semicolon", "|": "pipe"}


def first_config(found: TableLook) -> str:
    """Return the YAML of a config that trains boosted trees on a table."""
    defaults = f"defaults:\n  - trainer: xgboost\n  - dataset: {found.source}\n  - scaling: in_process\n"
    return "\n".join([_head(found), defaults, _dataset(found), _trainer(found)])


def _head(found: TableLook) -> str:
    """Return the comment that says what was found."""
    what = f"one of {len(found.classes)} classes" if found.classes else "a number"
    rows = f"{found.num_rows} rows{' without a header line' if 'names' in found.reading else ''}"
    lines = [f"{_plain(found.label)}, {what}, is learned from {_plain(found.path)}, {rows}:", ""]
    lines += _columns(found)
    lines += ["", *_classes(found)] if found.classes else []
    return "".join(f"# {line}".rstrip() + "\n" for line in lines)


def _classes(found: TableLook) -> Iterator[str]:
    shown = [
        f"{_plain(name)} {count / found.num_rows:.1%}" for name, count in list(found.classes.items())[:MOST_CLASSES]
    ]
    more = f", and {len(found.classes) - MOST_CLASSES} more" if len(found.classes) > MOST_CLASSES else ""
    yield f"Rows of each class: {', '.join(shown)}{more}."
    if _has_rare(found):
        yield "Some are rare: trust the metrics of trainer.params.eval_metric more than the accuracy."


def _has_rare(found: TableLook) -> bool:
    return bool(found.classes) and min(found.classes.values()) < RARE * found.num_rows


def _columns(found: TableLook) -> Iterator[str]:
    """Yield a line for each column: its name, what it holds, how much of it is missing, and what becomes of it."""
    shown = found.columns[:MOST_COLUMNS]
    missing = [f"{one.num_missing} missing" if one.num_missing else "" for one in shown]
    names = [_plain(one.name)[:WIDEST] for one in shown]
    rows = list(zip(names, [one.holds for one in shown], missing, [_use(one, found) for one in shown], strict=True))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        texts = [text.ljust(width) for text, width in zip(row, widths, strict=True) if width]
        yield f"  {'  '.join(texts).rstrip()}"
    if len(found.columns) > MOST_COLUMNS:
        yield f"  and {len(found.columns) - MOST_COLUMNS} columns more"


def _use(column: Column, found: TableLook) -> str:
    if column.name == found.label:
        return "the label"
    return f"{column.use} ({column.note})" if column.note else column.use


def _dataset(found: TableLook) -> str:
    keys: dict[str, Any] = {"path": {"train": found.path, **found.splits} if found.splits else found.path}
    comments = {
        "ids": "shown next to predictions",
        "dtypes": "keeps codes as they are written",
        "split": "val decides when to stop; test decides nothing",
    }
    if found.unlabelled:
        file = shlex.quote(_plain(found.unlabelled[0]))
        comments["path"] = f"to predict later: rtrain predict RUN dataset.path={file} -o OUT.csv"
    keys |= {key: _named(value) for key, value in found.reading.items() if (key, value) != ("delimiter", ",")}
    keys["label"] = found.label
    if names := found.used(NAME):
        keys["ids"] = [one.name for one in names]
    if left_out := found.used(LEFT_OUT):
        keys["drop"] = [_pattern(one.name) for one in left_out]
    split = {name: 0.2 for name in ("val", "test") if name not in found.splits}
    if split:
        keys["split"] = split
    lines = [_line(key, value, comments.get(key)) for key, value in keys.items()]
    times = [one.name for one in found.used(LEFT_OUT) if one.is_time and not one.num_missing]
    if times and not found.splits:
        by_time = in_flow({"by_time": times[0], **split})
        lines.append(f"  # to train on the oldest rows and test on the newest: split: {by_time}\n")
    return "dataset:\n" + "".join(lines)


def _trainer(found: TableLook) -> str:
    params: dict[str, Any] = {"max_depth": 6, "eta": 0.1}
    if len(found.classes) == 2:
        params["eval_metric"] = ["aucpr" if _has_rare(found) else "auc", "logloss"]
    lines = [
        _line("num_boost_round", 500, "at most"),
        _line("early_stopping", {"patience": 30}),
        _line("eval_splits", ["test", "val"], "early stopping uses the last metric of the last one"),
        _line("params", params),
    ]
    return "trainer:\n" + "".join(lines)


def _line(key: str, value: Any, comment: str | None = None) -> str:
    return f"  {key}: {in_flow(value)}" + (f"   # {comment}\n" if comment else "\n")


def _named(value: Any) -> Any:
    """Return a delimiter by its name; other values as they are."""
    return SIGNS.get(value, value) if isinstance(value, str) else value


def _pattern(name: str) -> str:
    """Return the pattern that a column's name alone fits."""
    return "".join(f"[{one}]" if one in "*?[" else one for one in name)


def _plain(text: str) -> str:
    return printable(text, "")
