"""``rtrain completion SHELL``: the scripts for tab completion."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

BASH = r"""# bash: put  source <(rtrain completion bash)  into ~/.bashrc
_rtrain_complete() {
    local line="${COMP_LINE:0:COMP_POINT}" program="${COMP_WORDS[0]/#\~/$HOME}" word prefix
    word="${line##*[[:space:]]}"
    prefix="${word%"${COMP_WORDS[COMP_CWORD]#[=:]}"}"
    local IFS=$'\n'
    COMPREPLY=($("$program" complete -- "$line" 2>/dev/null))
    COMPREPLY=("${COMPREPLY[@]#"$prefix"}")
    if [[ ${#COMPREPLY[@]} -ne 1 || "${COMPREPLY[0]}" == *[=./,] ]]; then compopt -o nospace; fi
}
complete -F _rtrain_complete rtrain
"""
ZSH = r"""#compdef rtrain
# zsh: put  source <(rtrain completion zsh)  into ~/.zshrc, after compinit
_rtrain_complete() {
    local -a found
    found=("${(@f)$(${~words[1]} complete -- "${LBUFFER}" 2>/dev/null)}")
    compadd -Q -S '' -- ${(M)found:#*[=./,]}
    compadd -Q -- ${found:#*[=./,]}
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


SCRIPTS = {Shell.bash: BASH, Shell.zsh: ZSH, Shell.fish: FISH}


def completion(shell: Annotated[Shell, typer.Argument(help="The shell to print the script for.")]) -> None:
    """Print the script for tab completion. Its first lines explain how to install it."""
    typer.echo(SCRIPTS[shell], nl=False)
