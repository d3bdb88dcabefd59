"""``rtrain runs``: the table of contents of its verbs."""

from __future__ import annotations

import typer

from rtrain.cli.runs import copies, exporting, labelling, listing, removing, running, showing, trackers
from rtrain.cli.usage.dashes import WithOverrides
from rtrain.cli.usage.errors import Command, Group

TEXT = "List, show, compare and clean up runs."
runs = typer.Typer(cls=Group, help=TEXT, no_args_is_help=True)


@runs.callback(help=TEXT)
def options() -> None:
    """Take no options of the group itself."""


runs.command("ls", cls=Command)(listing.ls)
runs.command("show", cls=Command)(showing.show)
runs.command("best", cls=Command)(listing.best)
runs.command("path", cls=Command)(listing.path)
runs.command("compare", cls=Command)(showing.compare)
runs.command("diff", cls=Command, hidden=True)(showing.compare)
runs.command("logs", cls=Command)(showing.logs)
runs.command("attach", cls=Command)(running.attach)
runs.command("stop", cls=Command)(running.stop)
runs.command("reproduce", cls=WithOverrides)(running.reproduce)
runs.command("tag", cls=Command)(labelling.tag)
runs.command("note", cls=Command)(labelling.note)
runs.command("rm", cls=Command)(removing.rm)
runs.command("gc", cls=Command)(removing.gc)
runs.command("export", cls=Command)(exporting.export)
runs.command("verify", cls=Command)(copies.verify)
runs.command("upload", cls=Command)(copies.upload)
runs.command("fetch", cls=Command)(copies.fetch)
runs.command("sync", cls=Command)(trackers.sync)
