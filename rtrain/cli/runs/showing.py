"""``rtrain runs show``, ``compare`` and ``logs``: look into runs."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from rtrain.cli.runs.arguments import RunOrUrl, RunsOrUrls
from rtrain.config.did_you_mean import to_try
from rtrain.errors import ConfigError
from rtrain.process.terminal import check_written, say
from rtrain.text.printable import printable


def show(run: RunOrUrl) -> None:
    """Show how RUN ended, its metrics, checkpoints and timings.

    For a sweep, show its trials, best first, and which parameters mattered.
    """
    from rtrain.displays.history.texts import line_width, show
    from rtrain.history.opening import opened

    with opened(run) as row:
        if row.kind == "sweep":
            from rtrain.displays.sweep_lines import sweep_report
            from rtrain.sweeps.record.sweep_record import load_record

            say("\n".join(sweep_report(load_record(row.path))))
        else:
            from rtrain.displays.history.report import run_report

            show(run_report(row, line_width()))
    check_written()


def compare(
    runs: RunsOrUrls,
    *,
    metric: Annotated[list[str] | None, typer.Option("--metric", "-m", help="Draw the curves of this metric.")] = None,
    all_keys: Annotated[bool, typer.Option("--all", help="Also show keys that only some of the runs have.")] = False,
) -> None:
    """Compare runs: their differences and their results.

    The comparison covers config, environment, code, data, results and metric curves.
    """
    from rtrain.displays.history.comparison import MOST, comparison_lines
    from rtrain.displays.history.texts import line_width, show
    from rtrain.history.comparison import Comparison
    from rtrain.history.opening import all_opened

    with all_opened(runs) as rows:
        if len(rows) == 1 and len(runs) > 1:
            raise ConfigError(f"{' and '.join(runs)} are the same run.", to_try("rtrain runs ls"))
        if not 1 < len(rows) <= MOST:
            raise ConfigError(f"compare takes 2 to {MOST} runs.", to_try("rtrain runs compare last best"))
        show(comparison_lines(Comparison(rows, all_keys=all_keys), metric or (), line_width()))
    check_written()


def logs(
    run: RunOrUrl,
    *,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Follow the log until the run ends.")] = False,
    rank: Annotated[int | None, typer.Option("--rank", "-r", min=0, help="Print the output of this worker.")] = None,
    lines: Annotated[int | None, typer.Option("--lines", "-n", min=0, help="Only the last lines.")] = None,
) -> None:
    """Print the log of RUN.

    The log holds what rtrain reported. With --rank, print the output of a worker instead.
    """
    from rtrain.history.opening import opened_run
    from rtrain.history.running.log_files import followed, last_lines, log_name

    with opened_run(run) as row:
        name = log_name(row.path, rank)
        for line in followed(row.path, name, lines) if follow else last_lines(row.path, name, lines):
            print(printable(line, "\t"), flush=follow)
        if not os.path.lexists(row.path / name):
            say(f"note: worker {rank} printed nothing", err=True)
    check_written()
