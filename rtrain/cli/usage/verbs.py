"""Words that aren't commands: the whole command that was probably meant."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence

from rtrain.config.did_you_mean import closest, did_you_mean, plain, there_are, to_try
from rtrain.config.files.locations import find_primary
from rtrain.config.files.no_config import EXAMPLE
from rtrain.errors import ConfigError

MEANT = {
    "fit": "train run start launch learn execute exec submit go do finetune train_model",
    "resume": "continue restart restore recover extend retry",
    "evaluate": "eval test score measure metrics validate",
    "predict": "infer inference forecast apply generate",
    "check": "lint dry dryrun",
    "fit --cfg job": "config print explain compose show_config",
    "fit --multirun": "sweep tune search hpo optimize multirun grid",
    "recipes ls": "new create example examples template templates quickstart demo",
    "trainers": "models plugins frameworks backends model",
    "datasets": "data",
    "--version": "version v",
    "--help": "help h usage man commands",
    "ls": "list all",
    "show": "cat info view open describe print status inspect",
    "cp": "copy clone get",
    "verify": "check test validate fsck",
    "fetch": "download pull get",
    "upload": "push copy sync",
    "compare": "diff cmp",
    "rm": "delete remove del",
    "gc": "prune clean cleanup purge",
    "logs": "log tail",
    "tag": "label mark",
    "note": "comment annotate",
    "best": "top leaderboard",
}
"""Command -> the words that other tools have for it; those of a group of commands mean one of the group's first."""
LISTING = ("ls", "list")
"""Words that don't say what is to be listed."""
CUTOFF = 0.7
"""How alike a misspelt command has to be."""
WANTS = {"fit": "CONFIG", "check": "CONFIG", "resume": "RUN", "evaluate": "RUN", "predict": "RUN"}
"""What has to follow a command."""

CONFIG = (
    "--config",
    "--config-name",
    "--config-file",
    "--config_name",
    "--config_file",
    "--conf",
    "--yaml",
    "-c",
    "-f",
)
"""Options of other tools that name the config."""
FOLDER = ("--config-path", "--config_path")
"""Those that name its folder."""


def command_meant(groups: Sequence[str], words: Sequence[str], known: Mapping[str, Sequence[str]]) -> str:
    """Return the hint for a command line whose first word isn't a command.

    Args:
        groups: The groups of commands that stand before it: ``["runs"]``, or none.
        words: The word, and what follows it.
        known: The commands, each with those inside it.
    """
    word, *rest = words
    inside = known[groups[-1]] if groups else list(known)
    if word.startswith("-") and (found := None if groups else _of_option(words, known)) is not None:
        return found
    for meant in (*_synonyms(word, inside), *([] if groups else _with_option(word))):
        small_project = meant == "evaluate" and bool(rest) and is_config(rest[0])
        return _whole([*groups, *("check" if small_project else meant).split()], rest)
    if is_config(word):
        return _whole(["fit", word], [*rest, *(["--multirun"] if groups == ["sweep"] else [])])
    if "=" in word and word[0].isalpha():
        key, _, value = word.partition("=")
        return _whole([key], [value, *rest]) if key in known else _whole(["fit"], words)
    near = closest(word, inside, CUTOFF)
    if near is not None:
        return _whole([*groups, near], rest)
    if word in LISTING and not groups:
        return f"  {did_you_mean('runs ls', 'recipes ls', 'trainers', 'datasets')}"
    homes = [f"{one} {word}" for one, inner in known.items() if word in inner and not groups]
    if homes:
        return _whole(homes[0].split(), rest) if len(homes) == 1 else f"  {did_you_mean(*homes)}"
    return f"  {there_are(inside, len(inside))}"


def is_config(word: str) -> bool:
    """Return whether a word names a config that exists."""
    try:
        return bool(word) and "=" not in word and find_primary(word) is not None
    except (ConfigError, OSError):
        return False


def config_first(args: Sequence[str]) -> list[str] | None:
    """Return the words with the config, which an option of another tool names, in front; None if none does."""
    found, kept, position = dict[bool, str](), list[str](), 0
    while position < len(args):
        name, is_set, value = args[position].partition("=")
        following = args[position + 1] if position + 1 < len(args) else ""
        is_option = name in CONFIG + FOLDER and (value or following) not in ("", "job", "hydra", "all")
        if is_option and (name != "-c" or is_config(value or following)):
            found[name in FOLDER] = value or following
            position += not is_set
        else:
            kept.append(args[position])
        position += 1
    if not found:
        return None
    folder, config = found.get(True), found.get(False)
    if folder is not None and config is not None:
        return [f"{folder.rstrip('/')}/{config.removesuffix('.yaml')}.yaml", *kept]
    return [config, *kept] if config is not None else [*kept, "--config-dir", str(folder)]


def _synonyms(word: str, known: Sequence[str]) -> list[str]:
    words = {meant: names.split() for meant, names in MEANT.items()}
    return [one for one in known if plain(word) in map(plain, words.get(one, ()))]


def _with_option(word: str) -> list[str]:
    """Return the command with an option, or the command of a group, that a word of the root means."""
    several = [one for one in MEANT if " " in one or one.startswith("--")]
    return [one for one in several if plain(word) in map(plain, MEANT[one].split())]


def _of_option(words: Sequence[str], known: Mapping[str, Sequence[str]]) -> str | None:
    """Return the hint for an option that stands before the command; None if it means something else."""
    found = config_first(words)
    if found is not None:
        return _whole(["fit"], found)
    place = next((index for index, one in enumerate(words) if one in known), None)
    if place is None:
        return None
    return _whole([words[place]], [*words[place + 1 :], *words[:place]])


def _whole(command: Sequence[str], rest: Sequence[str]) -> str:
    """Return the line with the command; what it needs and was not typed is named."""
    placed, dashes, option = " ".join(command).partition("--")
    if dashes and not placed:  # of rtrain itself
        return "  " + to_try(shlex.join(["rtrain", *(rest[:1] if option == "help" else []), f"--{option}"]))
    words = [*placed.split(), *rest]
    if words[0] in WANTS and all("=" in one or one.startswith("-") for one in words[1:]):
        words.insert(1, EXAMPLE if words[0] in ("fit", "check") else WANTS[words[0]])
    return "  " + to_try(shlex.join(["rtrain", *words, *f"{dashes}{option}".split()]))
