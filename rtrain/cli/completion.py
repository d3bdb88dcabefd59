"""``rtrain completion SHELL``: tab completion of commands, config files, groups, options, keys and values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

BASH = r"""# bash: put  source <(rtrain completion bash)  into ~/.bashrc
_rtrain_complete() {
    local line="${COMP_LINE:0:COMP_POINT}" word prefix
    word="${line##*[[:space:]]}"
    prefix="${word%"${COMP_WORDS[COMP_CWORD]#[=:]}"}"
    local IFS=$'\n'
    COMPREPLY=($(rtrain complete -- "$line" 2>/dev/null))
    COMPREPLY=("${COMPREPLY[@]#"$prefix"}")
    if [[ ${#COMPREPLY[@]} -ne 1 || "${COMPREPLY[0]}" == *[=./,] ]]; then compopt -o nospace; fi
}
complete -F _rtrain_complete rtrain
"""
ZSH = r"""#compdef rtrain
# zsh: put  source <(rtrain completion zsh)  into ~/.zshrc, after compinit
_rtrain_complete() {
    local -a found
    found=("${(@f)$(rtrain complete -- "${LBUFFER}" 2>/dev/null)}")
    compadd -Q -S '' -- $found
}
compdef _rtrain_complete rtrain
"""
FISH = r"""# fish: put  rtrain completion fish | source  into ~/.config/fish/config.fish
complete -c rtrain -f -a '(rtrain complete -- (commandline -cp) 2>/dev/null)'
"""


class Shell(StrEnum):
    """Shells with a completion script."""

    bash = "bash"
    zsh = "zsh"
    fish = "fish"


TAKES_RUN = ("resume", "predict", "evaluate")
"""Commands whose first word is a run."""
LISTING = ("ls", "best", "gc")
"""Commands of ``rtrain runs`` that take folders."""
SCRIPTS = {Shell.bash: BASH, Shell.zsh: ZSH, Shell.fish: FISH}


def completion(shell: Annotated[Shell, typer.Argument(help="The shell to print the script for.")]) -> None:
    """Print the script that switches tab completion on; its first lines say where to put it."""
    typer.echo(SCRIPTS[shell], nl=False)


def complete(
    context: typer.Context, line: Annotated[str, typer.Argument(help="The command line up to the cursor.")]
) -> None:
    """Print what may follow, one candidate per line (called by the completion scripts)."""
    for candidate in candidates(line, _commands(context)):
        typer.echo(candidate)


def candidates(line: str, commands: Mapping[str, Sequence[str]]) -> list[str]:
    """Return the words that can stand where ``line`` ends.

    Args:
        line: The command line up to the cursor.
        commands: The commands of rtrain, each with those inside it.
    """
    *words, incomplete = line.split(" ") if " " in line else [line, ""]
    words = [word for word in words if word][1:]
    if not words:
        return [name for name in commands if name.startswith(incomplete)]
    if words[0] == "smoke":
        return _config_files(incomplete)
    if words[0] == "recipes":
        return _recipe_words(words[1:], incomplete)
    if words[0] in TAKES_RUN and len(words) == 1:
        return _runs(incomplete)
    if words[0] in ("runs", "sweep"):
        return _of_group(commands[words[0]], words[1:], incomplete)
    if words[0] != "fit":
        return []
    if incomplete.startswith("-"):
        return [name for name in _options() if name.startswith(incomplete)]
    positional = [word for word in words[1:] if not word.startswith("-")]
    if not positional:
        return _config_files(incomplete)
    from rtrain.config.reference.completion import complete as complete_override
    from rtrain.schemas import schemas

    return complete_override(positional, incomplete, schemas())


def _of_group(commands: Sequence[str], words: Sequence[str], incomplete: str) -> list[str]:
    """Return what may follow ``rtrain runs`` or ``rtrain sweep``: a command, then runs or folders."""
    if not words:
        return [name for name in commands if name.startswith(incomplete)]
    if words[0] in LISTING:
        return [path for path in _config_files(incomplete) if path.endswith("/")]
    return _runs(incomplete)


def _runs(incomplete: str) -> list[str]:
    """Return short names of runs, and folders, that start with ``incomplete``."""
    from rtrain.history.references import reference_words

    return [*reference_words(incomplete), *(path for path in _config_files(incomplete) if path.endswith("/"))]


def _commands(context: typer.Context) -> dict[str, list[str]]:
    group: Any = context.find_root().command
    shown = {name: command for name, command in group.commands.items() if not command.hidden}
    return {name: list(getattr(shown[name], "commands", ())) for name in sorted(shown)}


def _recipe_words(words: list[str], incomplete: str) -> list[str]:
    """Return what may follow ``rtrain recipes``: its commands, then the name of a recipe, then a folder."""
    from rtrain.recipes import recipes

    if len(words) > 1:
        return [path for path in _config_files(incomplete) if path.endswith("/")]
    found = ["cp", "ls", "show"] if not words else [] if words == ["ls"] else [recipe.name for recipe in recipes()]
    return [word for word in found if word.startswith(incomplete)]


def _options() -> list[str]:
    return ["--cfg", "--config-dir", "--help", "--info", "--multirun", "--package", "--resolve"]


def _config_files(incomplete: str) -> list[str]:
    """Return YAML files and folders that start with ``incomplete``, and the names of built-in configs."""
    from rtrain.config.files.locations import builtin_config_dir

    folder, _, start = incomplete.rpartition("/")
    found = []
    for path in sorted(Path(folder or ".").glob(f"{start}*")):
        shown = f"{folder}/{path.name}" if folder or incomplete.startswith("/") else path.name
        if path.is_dir() and not path.name.startswith("."):
            found.append(f"{shown}/")
        elif path.suffix == ".yaml":
            found.append(shown)
    names = [path.stem for path in sorted(builtin_config_dir().glob("*.yaml"))]
    return found + [name for name in names if name.startswith(incomplete)]
