"""``rtrain schema``: the JSON schema of the config, for editors."""

from __future__ import annotations

from typing import Annotated

import typer

from rtrain.terminal import check_written


def schema(
    group: Annotated[str | None, typer.Argument(help="Only trainer, dataset, scaling, run or cluster.")] = None,
) -> None:
    """Print the JSON schema of a config, for completion and checks in an editor.

    Put `# yaml-language-server: $schema=rtrain.schema.json` on top of a YAML after
    `rtrain schema > rtrain.schema.json`.
    """
    import json

    from rtrain.config.reference.json_schema import json_schema
    from rtrain.schemas import schemas

    typer.echo(json.dumps(json_schema(schemas(), group), indent=2))
    check_written()
