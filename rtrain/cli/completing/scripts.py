"""``rtrain completion SHELL``: the scripts for tab completion."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

BASH = r"""# bash: put  source <(rtrain completion bash)  into ~/.bashrc
_rtrain_complete() {
    local program="${1/#\~/$HOME}" line="${COMP_LINE:0:COMP_POINT}"
    mapfile -t COMPREPLY < <("$program" complete -- "$line" "$2" 2>/dev/null)
    if [[ ${#COMPREPLY[@]} -ne 1 || "${COMPREPLY[0]}" == *[=./,] ]]; then compopt -o nospace; fi
    # bash quotes only names of files, which folders end without a slash; it would put a \ before the = of keys, too
    local IFS='' before="${line%"$2"}"
    if [[ "$before" == *[\'\"] || "${COMPREPLY[*]}" == *[^[:alnum:]_.,:=/@%+~-]* ]]; then
        compopt -o filenames
        COMPREPLY=("${COMPREPLY[@]%/}")
    fi
}
complete -F _rtrain_complete rtrain
"""
ZSH = r"""#compdef rtrain
# zsh: put  source <(rtrain completion zsh)  into ~/.zshrc, after compinit
_rtrain_complete() {
    local line="${(j: :)words[1,CURRENT-1]} $QIPREFIX$PREFIX"
    local -a found=(${(f)"$(${~words[1]} complete -- "$line" 2>/dev/null)"})
    if compset -P '\~/'; then found=(${found#\~/}); fi  # compadd would escape it
    compadd -S '' -- ${(M)found:#*[=./,]}
    compadd -- ${found:#*[=./,]}
}
compdef _rtrain_complete rtrain
"""
FISH = r"""# fish: put  rtrain completion fish | source  into ~/.config/fish/config.fish
complete -c rtrain -f -a '(rtrain complete -- (commandline -cp | string collect) 2>/dev/null)'
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
