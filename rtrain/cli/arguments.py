"""Arguments and options of commands that take a config."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

CONFIG_HELP = "A YAML file, or the name of a config in ./configs or built in."
OVERRIDES_HELP = "Hydra overrides: num_workers=2 optimizer.lr=0.1 dataset=mnist"
Config = Annotated[str, typer.Argument(help=CONFIG_HELP)]
Overrides = Annotated[list[str] | None, typer.Argument(help=OVERRIDES_HELP)]
ConfigDir = Annotated[str | None, typer.Option("--config-dir", help="Additional folder of config groups.")]


def with_short_names(overrides: Sequence[str]) -> Sequence[str]:
    """Return overrides with the paths of the runs that their short names stand for: ``run.init_from=last``."""
    if not any(word.startswith(("run.init_from=", "run.resume=")) for word in overrides):
        return overrides
    from rtrain.history.references import with_paths

    return with_paths(overrides)
