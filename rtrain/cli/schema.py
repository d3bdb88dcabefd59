"""``rtrain schema``: the JSON schema of the config, for editors."""

from __future__ import annotations

from typing import Annotated

import typer

from rtrain.process.terminal import check_written


def schema(
    group: Annotated[
        str | None,
        typer.Argument(
            help="Print the schema of option files of this config group: trainer, dataset, scaling, run, sweep, ..."
        ),
    ] = None,
) -> None:
    """Print the JSON schema of configs. Editors use it to complete, explain and check keys.

    Save it with `rtrain schema > rtrain.schema.json`, and put `# yaml-language-server: $schema=rtrain.schema.json`
    at the top of a config.
    """
    import json

    from rtrain.config.reference.json_schema import json_schema
    from rtrain.schemas import schemas

    typer.echo(json.dumps(json_schema(schemas(), group), indent=1))
    check_written()
