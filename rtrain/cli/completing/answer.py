"""``rtrain complete LINE [REPLACED]``: called by the completion scripts at each TAB."""

from __future__ import annotations

from enum import Enum
from typing import Annotated, Any

import typer

from rtrain.cli.completing.index import kept_or_made
from rtrain.cli.completing.quick import answer


def complete(
    context: typer.Context,
    line: Annotated[str, typer.Argument(help="The command line up to the cursor.")],
    replaced: Annotated[str | None, typer.Argument(help="The end of LINE that takes a candidate's place.")] = None,
) -> None:
    """Print what may follow, one candidate per line (called by the completion scripts)."""
    index = kept_or_made("index", lambda: _index(context.find_root().command))
    answer(line, index, replaced)


def _index(root: Any) -> dict[str, Any]:
    """Return all commands and keys as plain data."""
    from rtrain.config.compose.aliases import GROUPS
    from rtrain.config.reference.key_index import key_index
    from rtrain.schemas import schemas

    keys = key_index(schemas())
    sections = [name for name, following in keys["root"].items() if "section" in following or "plugin" in following]
    return {**keys, "commands": _tree(root), "groups": [*sections, "sweep/scheduler", *GROUPS]}


def _tree(command: Any) -> dict[str, Any]:
    """Return the arguments and options of a command, and the commands inside it.

    For each option there are the values that it takes, or else what stands in ``PROPOSED`` for them: what help calls
    them, or the option itself.
    """
    shown = {name: one for name, one in getattr(command, "commands", {}).items() if not one.hidden}
    options = {
        name: None if one.is_flag or one.count else one.metavar or _values(one) or one.opts[0]
        for one in command.params
        if one.param_type_name == "option"
        for name in one.opts
    }
    arguments = [_shown_name(one) for one in command.params if one.param_type_name == "argument"]
    inner = {"commands": {name: _tree(one) for name, one in shown.items()}} if shown else {}
    return {"arguments": arguments, "options": {**options, "--help": None}, **inner}


def _shown_name(argument: Any) -> str:
    """Return the name of an argument as help shows it: CONFIG, RUN, OVERRIDES..."""
    name = str(argument.metavar or argument.name.upper()).removesuffix("...")
    return f"{name}..." if argument.nargs == -1 else name


def _values(option: Any) -> list[str]:
    """Return what an option can be: Typer keeps the enum, and kept Click's type before."""
    kind = getattr(getattr(option, "type_descriptor", None), "annotation", None)
    if isinstance(kind, type) and issubclass(kind, Enum):
        return [str(one.value) for one in kind]
    return list(getattr(getattr(option, "type", None), "choices", ()))
