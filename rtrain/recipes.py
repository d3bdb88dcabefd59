"""The recipes that come with rtrain: small projects to try, read and copy."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from rtrain.config.did_you_mean import nearest_or_all
from rtrain.config.files.locations import builtin_dir
from rtrain.errors import ConfigError

LEFT_BEHIND = shutil.ignore_patterns("__pycache__", "runs")


@dataclass(frozen=True)
class Recipe:
    """A folder with a config.yaml, a README.md and, if needed, its own code."""

    path: Path

    @property
    def name(self) -> str:
        """Name of the folder."""
        return self.path.name

    @property
    def readme(self) -> str:
        """What it shows and what to expect of it, in Markdown."""
        return (self.path / "README.md").read_text(encoding="utf-8")

    @property
    def config(self) -> str:
        """The YAML."""
        return (self.path / "config.yaml").read_text(encoding="utf-8")

    @property
    def summary(self) -> str:
        """The first paragraph of the README after its title, on one line."""
        paragraphs = [part for part in self.readme.split("\n\n") if part.strip() and not part.startswith("#")]
        return " ".join(paragraphs[0].split())


def recipes() -> list[Recipe]:
    """Return all recipes, by name."""
    return [Recipe(path.parent) for path in sorted(builtin_dir("recipes").glob("*/config.yaml"))]


def find_recipe(name: str) -> Recipe:
    """Return the recipe called ``name``.

    Raises:
        ConfigError: There is none.
    """
    by_name = {recipe.name: recipe for recipe in recipes()}
    if name not in by_name:
        raise ConfigError(f"there is no recipe '{name}'.", nearest_or_all(name, by_name))
    return by_name[name]


def copy_recipe(name: str, folder: Path) -> None:
    """Copy the recipe called ``name``; ``folder`` becomes the copy.

    Raises:
        ConfigError: There is no such recipe, or something is in ``folder`` already.
    """
    recipe = find_recipe(name)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ConfigError(f"{folder} already exists.", f"Use another folder: rtrain recipes cp {name} my-{name}")
    shutil.copytree(recipe.path, folder, ignore=LEFT_BEHIND, dirs_exist_ok=True)
