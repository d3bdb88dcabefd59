"""What may follow on a command line, from the index alone: nothing that takes time is imported before it is needed."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rtrain.cli.completing.index import kept_or_made
from rtrain.config.compose.aliases import split_word
from rtrain.config.files.group_options import files_at
from rtrain.config.files.locations import builtin_dir, config_names

OF_RUNS = ("run.init_from", "run.resume")
"""Keys that take runs."""
SHELLS = ("bash", "fish", "zsh")
SPLITS = ("train", "val", "test")


def candidates(line: str, index: Mapping[str, Any]) -> list[str]:
    """Return the words that can stand where ``line`` ends.

    Args:
        line: The command line up to the cursor.
        index: ``commands``, and what ``key_index`` returns.
    """
    _, *words, incomplete = unquoted(line)
    node = index["commands"]
    while words and words[0] in node.get("commands", {}):
        node = node["commands"][words.pop(0)]
    if "commands" in node and not incomplete.startswith("-"):
        return sorted(name for name in node["commands"] if name.startswith(incomplete)) if not words else []
    options = node.get("options", {})
    name, sign, value = incomplete.partition("=")
    stays = f"{name}=" if sign and options.get(name) is not None else ""
    if stays:  # --split=te
        words, incomplete = [*words, name], value
    of_option = options.get(words[-1]) if words else None
    found: Sequence[str]
    if of_option == "--label":
        found = _columns(words)
    elif isinstance(of_option, str):
        found = PROPOSED[of_option](incomplete, index) if of_option in PROPOSED else []
    elif of_option is not None:
        found = of_option
    elif incomplete.startswith("-"):
        found = list(options)
    else:
        found = _arguments(node.get("arguments", ()), _positional(words, options), incomplete, index)
    return [f"{stays}{one}" for one in found if one.startswith(incomplete)]


def unquoted(line: str) -> list[str]:
    """Return the words of a line that is being typed, as a shell reads them; the last one is at the cursor."""
    for quote in ("", "'", '"'):  # the one that is open
        try:
            *words, last = shlex.split(f"{line}x{quote}")  # x: nothing may have been typed of the word at the cursor
        except ValueError:
            continue
        return [*words, last[:-1]]
    raise AssertionError(line)


def _positional(words: Sequence[str], options: Mapping[str, Any]) -> list[str]:
    """Return the words without options and their values."""
    pairs = zip(["", *words], words, strict=False)
    return [word for before, word in pairs if not word.startswith("-") and options.get(before) is None]


def _arguments(names: Sequence[str], words: list[str], incomplete: str, index: Mapping[str, Any]) -> Sequence[str]:
    """Return what may stand for an argument of a command, which its name tells: ``CONFIG``, ``OVERRIDES...``."""
    last = names[-1] if names and names[-1].endswith("...") else ""
    name = (names[len(words)] if len(words) < len(names) else last).removesuffix("...")
    if name == "OVERRIDES":
        return _overrides(words, incomplete, index, of_run=names[0] == "RUN")
    return PROPOSED[name](incomplete, index) if name in PROPOSED else []


def _overrides(words: Sequence[str], incomplete: str, index: Mapping[str, Any], *, of_run: bool) -> list[str]:
    from rtrain.config.reference.completion import complete

    _, key, value = split_word(incomplete)
    if key in OF_RUNS and value is not None:
        head = incomplete[: len(incomplete) - len(value)]
        return [f"{head}{one}" for one in _runs(value)]
    if of_run:
        from rtrain.history.references import find_run

        words = [str(find_run(words[0]) / "config.yaml"), *words[1:]]
    return complete(words, incomplete, index, _parameters)


def _parameters(trainer: str) -> list[str]:
    """Return the names of the parameters of a trainer's library, which is imported the first time."""
    found: list[str] = kept_or_made(f"params-{trainer}", lambda: _known_parameters(trainer))
    return found


def _known_parameters(trainer: str) -> list[str]:
    from rtrain.config.compose.aliases import FREE
    from rtrain.schemas import schemas

    parameters = getattr(schemas().trainer[trainer], "parameters", dict)
    return sorted(name for name, key in parameters().items() if key == f"{FREE}{name}")


def _runs(incomplete: str) -> list[str]:
    """Return short names of runs, and folders, that start with ``incomplete``."""
    from rtrain.history.references import reference_words

    return [*reference_words(incomplete), *_folders(incomplete)]


def _folders(incomplete: str) -> list[str]:
    return [path for path in files_at(incomplete) if path.endswith("/")]


def _fields(incomplete: str, before: str) -> list[str]:
    """Return the fields of the runs that are listed, after what may stand ``before`` one in the same word."""
    from rtrain.history.index import list_rows
    from rtrain.history.query.fields import OWN, Fields

    match = re.fullmatch(rf"({before})[\w./@+-]*", incomplete, re.DOTALL)
    return [f"{match[1]}{name}" for name in (*OWN, *Fields(list_rows()).names())] if match is not None else []


def _metrics() -> list[str]:
    from rtrain.history.index import list_rows
    from rtrain.history.query.fields import Fields

    return Fields(list_rows()).names(["metrics"])


def _columns(words: Sequence[str]) -> list[str]:
    """Return the columns of the table that was named before."""
    from rtrain.first_config.look import column_names

    return column_names(words[words.index("--dataset") + 1]) if "--dataset" in words else []


def _configs(incomplete: str) -> list[str]:
    return [*files_at(incomplete, ".yaml"), *config_names()]


PROPOSED: Mapping[str, Callable[[str, Mapping[str, Any]], Sequence[str]]] = {
    "--checkpoint": lambda *_: ("best", "latest"),
    "--columns": lambda incomplete, _: _fields(incomplete, r"(?:.*,)?\+?"),
    "--config-dir": lambda incomplete, _: _folders(incomplete),
    "--dataset": lambda incomplete, _: files_at(incomplete),
    "--junit": lambda incomplete, _: files_at(incomplete),
    "--metric": lambda *_: _metrics(),
    "--output": lambda incomplete, _: files_at(incomplete),
    "--sort": lambda incomplete, _: _fields(incomplete, "-?"),
    "--split": lambda *_: SPLITS,
    "--where": lambda incomplete, _: _fields(incomplete, r"(?:.*\b(?:and|or|not)\s+)?\(*"),
    "CONFIG": lambda incomplete, _: _configs(incomplete),
    "DATASET": lambda _, index: index["plugins"]["dataset"],
    "FOLDER": lambda incomplete, _: _folders(incomplete),
    "GROUP": lambda _, index: index["groups"],
    "PATHS": lambda incomplete, _: _configs(incomplete),
    "RECIPE": lambda *_: sorted(path.parent.name for path in builtin_dir("recipes").glob("*/config.yaml")),
    "RUN": lambda incomplete, _: _runs(incomplete),
    "SHELL": lambda *_: SHELLS,
    "SWEEP": lambda incomplete, _: _runs(incomplete),
    "TRAINER": lambda _, index: index["plugins"]["trainer"],
}
"""What an argument or option may be, by its name in the help of its command; others are free text.

Those of options are only for the options without a name for their value. ``--label`` depends on words before it.
"""
