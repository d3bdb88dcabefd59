"""Arguments that several verbs of ``rtrain runs`` have."""

from __future__ import annotations

from typing import Annotated

import typer

RUN_HELP = "A run: its folder, last, last:NAME, best:NAME, its short id, or SWEEP/3 for a trial."
RUN_OR_URL_HELP = f"{RUN_HELP[:-1]}, or the URL of its copy."
Trust = Annotated[
    bool, typer.Option("--trust", help="Run the code that the config of RUN names, even if another account wrote it.")
]
Run = Annotated[str, typer.Argument(metavar="RUN", help=RUN_HELP)]
RunOrUrl = Annotated[str, typer.Argument(metavar="RUN", help=RUN_OR_URL_HELP)]
RunsOrUrls = Annotated[list[str], typer.Argument(metavar="RUN", help=RUN_OR_URL_HELP)]
Runs = Annotated[list[str] | None, typer.Argument(metavar="RUN", help=RUN_HELP)]
Folders = Annotated[
    list[str] | None,
    typer.Argument(metavar="FOLDER", help="Where to look; by default runs, multirun and each run.root_dir."),
]
FoldersOrUrls = Annotated[
    list[str] | None,
    typer.Argument(metavar="FOLDER", help="Folders, or URLs; by default runs, multirun and each run.root_dir."),
]
Where = Annotated[
    str | None, typer.Option("--where", "-w", help="Filter: 'val/accuracy > 0.9 and started > \"3 days ago\"'")
]
