"""``rtrain smoke``: train every smoke block within seconds and say what passed; made for CI."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rtrain.config.files.locations import shown
from rtrain.process.terminal import say

if TYPE_CHECKING:
    from rtrain.smoke import Outcome


def smoke(
    paths: Annotated[
        list[str] | None,
        typer.Argument(help="YAML files, or folders of them; by default ./recipes, or rtrain's recipes."),
    ] = None,
    *,
    junit: Annotated[Path | None, typer.Option("--junit", help="Also write the results here as JUnit XML.")] = None,
    max_seconds: Annotated[
        float, typer.Option("--max-seconds", min=1, help="Stop a run that takes longer and report it as missed.")
    ] = 120,
) -> None:
    """Train every config with a smoke block and check that its metrics are within bounds."""
    from rtrain.cli.junit import check_junit, write_junit
    from rtrain.smoke import find_smokes, run_smokes, titles

    if junit is not None:
        check_junit(junit)
    smokes = find_smokes(paths or [])
    named = titles(smokes)
    width = max(map(len, named.values()))
    outcomes = []
    for outcome in run_smokes(smokes, max_seconds):
        say(_row(outcome, f"{named[outcome.smoke]:<{width}}"))
        outcomes.append(outcome)
    if junit is not None:
        write_junit(junit, outcomes)
    counts = Counter(outcome.status for outcome in outcomes)
    told = [status for status in ("passed", "missed", "wrong", "skipped") if status != "wrong" or counts[status]]
    seconds = sum(outcome.seconds for outcome in outcomes)
    say(f"{', '.join(f'{counts[status]} {status}' for status in told)} in {seconds:.0f} s")
    if counts["missed"] or counts["wrong"] or not counts["passed"]:
        raise typer.Exit(1)


def _row(outcome: Outcome, title: str) -> str:
    """Return the lines for one outcome; a failure names its config and its run directory."""
    first, *more = outcome.lines or ("trained to the end",)
    if outcome.status in ("missed", "wrong"):
        more += [f"config  {shown(outcome.smoke.primary.path)}"]
        more += [f"run     {shown(outcome.run.path)}"] if outcome.run else []
    head = f"{title}  {outcome.status:<7}  {outcome.seconds:>5.1f} s  "
    return "\n".join([head + first, *(" " * len(head) + line for line in more)])
