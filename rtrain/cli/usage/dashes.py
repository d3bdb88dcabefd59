"""Overrides that are typed as options: ``--lr=0.1``, ``--lr 0.1``."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from rtrain.cli.usage.errors import Command
from rtrain.cli.usage.verbs import config_first, is_config
from rtrain.config.compose.aliases import KEYS
from rtrain.config.diagnostics.screen import CliWord, render
from rtrain.config.did_you_mean import alike, to_try
from rtrain.config.files.data_files import kind_of
from rtrain.errors import ConfigError

LONG = {
    "-v": "--verbose",
    "-q": "--quiet",
    "-b": "--batch_size",
    "-j": "--workers",
    "-a": "--arch",
    "-wd": "--weight_decay",
}
"""Letters of other tools -> their options."""
BEFORE_OVERRIDES = ("--cfg-options", "--cfg_options", "--opts", "--override", "--overrides", "--set", "--hparams")
"""Options of other tools that overrides follow."""


class WithOverrides(Command):
    """A command that takes overrides, and says so to those who type them with dashes."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the words of the command.

        Raises:
            ConfigError: Some are overrides with dashes.
        """
        before = ["rtrain", str(ctx.info_name)]
        moved = config_first(args) if ctx.info_name in ("fit", "check") else None
        configs = list(dict.fromkeys([*(moved or ())[:1], *(one for one in moved or () if is_config(one))]))
        if moved is not None and len(configs) > 1:
            rest = [one for one in moved if one not in configs]
            each = " && ".join(shlex.join([*before, one, *rest]) for one in configs)
            problem = render("a command trains one config", CliWord([*before, *args], len(before)))
            raise ConfigError(problem, "  " + to_try(each))
        if moved is not None:
            problem = render(
                "the config is an argument, not an option: put it first", CliWord([*before, *args], len(before))
            )
            raise ConfigError(problem, "  " + to_try(shlex.join([*before, *moved])))
        takes_value = {name: not getattr(one, "is_flag", True) for one in self.params for name in one.opts}
        known = {**takes_value, **dict.fromkeys(self.get_help_option_names(ctx), False)}
        first, new = without_dashes(args, known)
        if ctx.info_name in ("predict", "evaluate"):
            new = [_data_alone(one) for one in new]
        if first is not None:
            place, option = CliWord([*before, *args], len(before) + first), args[first].partition("=")[0]
            if (other := self._command_with(option, ctx)) is not None:
                problem = render(f"'rtrain {ctx.info_name}' has no option '{option}'", place)
                raise ConfigError(problem, "  " + to_try(shlex.join(["rtrain", other, *args])))
            problem = render(f"'{args[first]}': overrides have no dashes", place)
            raise ConfigError(problem, _way_out([*before, *new]) or "  " + to_try(shlex.join([*before, *new])))
        return super().parse_args(ctx, args)

    def _command_with(self, option: str, ctx: Any) -> str | None:
        """Return another command on configs that has an option; None if there is none."""
        commands = ctx.find_root().command.commands if ctx.info_name in ("fit", "check") else {}
        others = {name: commands[name] for name in ("fit", "check") if name in commands}
        return next((name for name, one in others.items() for param in one.params if option in param.opts), None)


def without_dashes(args: Sequence[str], known: Mapping[str, bool]) -> tuple[int | None, list[str]]:
    """Return where the first override with dashes is, None if nowhere, and the words without dashes, moved to the end.

    Args:
        args: The words.
        known: Whether a value follows, by option.
    """
    first, kept, moved, position = None, list[str](), list[str](), 0
    while position < len(args):
        word = args[position] if args[position] in known else LONG.get(args[position], args[position])
        following = args[position + 1] if position + 1 < len(args) else None
        name, is_set, value = word.partition("=")
        if word == "--":
            return first, [*kept, *moved, *args[position:]]
        if known.get(word) and following is not None:
            kept += [word, following]
            position += 1
        elif name in BEFORE_OVERRIDES and "=" in (value or following or ""):
            first = position if first is None else first
            moved += [value] if value else []
        elif _is_override(name, known):
            first = position if first is None else first
            if not is_set and following is not None and "=" not in following and not following.startswith("--"):
                value, position = following, position + 1
            moved.append(f"{name.lstrip('-').replace('-', '_')}={value or 'true'}")
        else:
            kept.append(word)
        position += 1
    return first, [*kept, *moved]


def _data_alone(word: str) -> str:
    key, _, value = word.partition("=")
    return value if key == "dataset" and kind_of(value) is not None else word


def _is_override(name: str, known: Mapping[str, bool]) -> bool:
    bare = name.lstrip("-").replace("-", "_")
    if bare in KEYS and name.startswith("-") and len(bare) > 1:
        return True
    if not name.startswith("--") or name in known or not bare.replace(".", "").replace("/", "").isidentifier():
        return False
    return bare in KEYS or "." in bare or alike(bare, [one.lstrip("-").replace("-", "_") for one in known]) is None


def _way_out(command: Sequence[str]) -> str | None:
    """Return what is wrong with a command without dashes, too; None if nothing is, or another command is meant."""
    words = [word for word in command[2:] if not word.startswith("-")]
    if command[1] != "fit" or not words or len(words) < len(command) - 2:
        return None
    from rtrain.config.session import Session
    from rtrain.schemas import schemas

    try:
        with Session(words[0], words[1:], schemas()) as session:
            session.check()
    except ConfigError as error:
        return f"  {error.message.partition(chr(10))[0]}" + (f"\n{error.hint}" if error.hint else "")
    return None
