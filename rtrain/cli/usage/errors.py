"""Command lines that no command takes: each error names the word and the whole command that works."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from rtrain.cli.usage.verbs import command_meant
from rtrain.config.diagnostics.screen import CliWord, render
from rtrain.config.did_you_mean import closest, to_try
from rtrain.config.files.data_files import words_for
from rtrain.config.files.no_config import EXAMPLE
from rtrain.errors import ConfigError

HELP = {"help_option_names": ["--help", "-h"]}
UsageError: Any = typer.BadParameter.__base__
"""Of all that is wrong with a command line; its module differs from one version of Typer to the next."""


class Command(TyperCommand):
    """A command whose errors name the whole command that works."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the words of the command.

        Raises:
            ConfigError: Some are missing or unknown.
        """
        typed = list(args)
        try:
            return super().parse_args(ctx, args)
        except UsageError as error:
            raise _explained(["rtrain", *_before(ctx)], typed, error) from None


class Group(TyperGroup):
    """A group of commands that knows what a word means that is none of them."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the options of the group.

        Raises:
            ConfigError: One is unknown.
        """
        typed = list(args)
        try:
            return super().parse_args(ctx, args)
        except UsageError as error:
            if not typed or not typed[0].startswith("-"):  # no words: the help
                raise
            raise self._unknown(ctx, typed, _sentence(error)) from None

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the command that the first word names, with the words that follow.

        Raises:
            ConfigError: It names none.
        """
        if args[0] not in self.commands:
            raise self._unknown(ctx, args, f"there is no command '{args[0]}'")
        return super().resolve_command(ctx, args)

    def _unknown(self, ctx: Any, args: Sequence[str], problem: str) -> ConfigError:
        groups = _before(ctx)
        root: Any = ctx.find_root().command
        known: Mapping[str, Sequence[str]] = {
            name: list(getattr(one, "commands", ())) for name, one in root.commands.items() if not one.hidden
        }
        place = CliWord(["rtrain", *groups, *args], len(groups) + 1)
        return ConfigError(render(problem, place), command_meant(groups, args, known))


def _before(ctx: Any) -> list[str]:
    """Return the words of the command line that name ``ctx``, without the program's own."""
    return [] if ctx.parent is None else [*_before(ctx.parent), str(ctx.info_name)]


def _explained(command: Sequence[str], args: Sequence[str], error: Any) -> ConfigError:
    """Return a usage error with the word that it is about, and a command that works where one is known."""
    if type(error).__name__ == "MissingParameter":
        return _missing(command, args, error.param)
    index = _position(args, error)
    if index is None:
        return ConfigError(_sentence(error))
    return ConfigError(
        render(_sentence(error), CliWord([*command, *args], len(command) + index)),
        _corrected(command, args, index, error),
    )


def _missing(command: Sequence[str], args: Sequence[str], param: Any) -> ConfigError:
    """Return the error of an argument, or an option, that a command can't do without."""
    if param.param_type_name == "option" and command[-1] != "predict":
        return _missing_option(command, args, param)
    words = [one if "=" in one or words_for(one) is None else f"dataset.path={one}" for one in args]
    if param.param_type_name == "argument":
        name = str(param.name).upper()
        named = EXAMPLE if name == "CONFIG" else name
        words = [*words, named] if any("=" not in one for one in words) else [named, *words]
    else:
        name = param.opts[0]
    if command[-1] == "predict":
        words += ["--output", "predictions.csv"]
    return ConfigError(f"{name} is missing", "  " + to_try(shlex.join([*command, *words])))


def _missing_option(command: Sequence[str], args: Sequence[str], param: Any) -> ConfigError:
    """Return the error of an option that is missing, of which a word without an option may be the value."""
    name, words = param.opts[0], list(args)
    of_options = {index + 1 for index, one in enumerate(words) if one.startswith("-") and "=" not in one}
    bare = [index for index, one in enumerate(words) if not one.startswith("-") and index not in of_options]
    if len(bare) == 1:
        words[bare[0] : bare[0] + 1] = [name, words[bare[0]].rpartition("=")[2]]
    else:
        words += [name, param.metavar or str(param.name).upper()]
    return ConfigError(f"{name} is missing", "  " + to_try(shlex.join([*command, *words])))


def _position(args: Sequence[str], error: Any) -> int | None:
    """Return where the option or the value stands that a usage error is about; None if that is unknown."""
    option, param = getattr(error, "option_name", None), getattr(error, "param", None)
    names = [option] if option else getattr(param, "opts", [])
    places = [index for index, one in enumerate(args) if one.partition("=")[0] in names or one in str(error.message)]
    return next(iter(places), None)


def _corrected(command: Sequence[str], args: Sequence[str], index: int, error: Any) -> str | None:
    """Return the line with the command that has the option, or the choice, that is nearest."""
    name, is_set, value = args[index].partition("=")
    param = getattr(error, "param", None)
    choices = re.findall(r"'([^']+)'", str(error.message))[1:]
    words = list(args)
    if param is None:
        near = closest(name, [*(getattr(error, "possibilities", None) or ())])
        words[index] = f"{near}{is_set}{value}"
    else:
        at = index if is_set or not name.startswith("-") else min(index + 1, len(args) - 1)
        typed = value if is_set else args[at]
        near = closest(typed, choices)
        words[at] = f"{name}={near}" if is_set else str(near)
    return None if near is None else "  " + to_try(shlex.join([*command, *words]))


def _sentence(error: Any) -> str:
    """Return what a usage error says, in the words of other messages."""
    if option := getattr(error, "option_name", None) if hasattr(error, "possibilities") else None:
        return f"there is no option '{option}'"
    return str(error.format_message()).replace("Value error, ", "").rstrip(".")
