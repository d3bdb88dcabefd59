"""``rtrain recipes``: list the recipes that come with rtrain, read one, copy one."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from rtrain.cli.usage.errors import Command, Group
from rtrain.process.terminal import check_written, say, say_as_it_is

recipes = typer.Typer(
    cls=Group, help="List, show and copy recipes: small projects that train a real model.", no_args_is_help=True
)
Recipe = Annotated[str, typer.Argument(help="Name of a recipe: see `rtrain recipes ls`.")]


@recipes.command("ls", cls=Command)
def ls() -> None:
    """List the recipes."""
    from rtrain.recipes import recipes

    found = recipes()
    width = max(len(recipe.name) for recipe in found)
    for recipe in found:
        say(f"{recipe.name:<{width}}  {recipe.summary}")
    check_written()


@recipes.command("show", cls=Command)
def show(recipe: Recipe) -> None:
    """Print the README, config and path of a recipe."""
    from rtrain.recipes import find_recipe

    found = find_recipe(recipe)
    say(found.readme)
    say_as_it_is(f"```yaml\n# {found.path / 'config.yaml'}\n{found.config}```")
    check_written()


@recipes.command("cp", cls=Command)
def cp(recipe: Recipe, folder: Annotated[Path, typer.Argument(help="The folder to create.")]) -> None:
    """Copy a recipe to a folder of your choice."""
    from rtrain.recipes import copy_recipe

    copy_recipe(recipe, folder)
    say(f"copied {recipe} -> {folder}\nnext    rtrain fit {shlex.quote(str(folder))}")
