"""``rtrain runs attach``, ``stop`` and ``reproduce``: watch a run, end it, repeat it."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Annotated

import typer

from rtrain.cli.runs.arguments import Run, RunOrUrl, Trust
from rtrain.config.did_you_mean import to_try
from rtrain.config.files.locations import shown
from rtrain.process.terminal import say
from rtrain.runs.status import Status

if TYPE_CHECKING:
    from rtrain.history.running.watching import Watched
    from rtrain.training.reproduction import Reproduction


def attach(run: RunOrUrl) -> None:
    """Watch RUN, or a sweep, as if it were trained in this terminal.

    Ctrl-C ends watching, not the run.
    """
    from rtrain.history.opening import watched
    from rtrain.sweeps.record.sweep_record import is_sweep

    with watched(run) as found:
        could_say = _attach_to_sweep(found) if is_sweep(found.folder) else _attach_to_run(found)
    if not could_say:
        raise typer.Exit(1)


def _attach_to_run(run: Watched) -> bool:
    """Show a run until it is over; return whether it could say how it ended."""
    from rtrain.displays.run import make_display
    from rtrain.history.running.watching import watch

    with make_display() as display:
        could_say = watch(run, display)
    from rtrain.runs.manifest import read_manifest

    manifest = read_manifest(run.folder)
    if not could_say:
        from rtrain.training.recording import how_it_was_cut_off

        say(how_it_was_cut_off(run.folder, manifest) or "", err=True)
    elif manifest.status == Status.FAILED:
        say(f"error: {manifest.exit_reason}", err=True)
    return could_say


def _attach_to_sweep(sweep: Watched) -> bool:
    from rtrain.cli.sweep import sweep_display
    from rtrain.history.running.watching_sweeps import watch_sweep
    from rtrain.storage.stores import is_url

    with sweep_display() as display:
        could_say = watch_sweep(sweep, display)
    if not could_say:
        place = shown(sweep.folder)
        why = (
            "the copy of this sweep was not updated for two minutes"
            if is_url(place)
            else "the process of this sweep no longer exists"
        )
        command = shlex.join(["rtrain", "resume", place])
        say(f"{why}: it was killed, or its machine went down\n{to_try(command)}", err=True)
    return could_say


def stop(
    run: Run,
    *,
    wait: Annotated[bool, typer.Option("--wait", help="Wait until it has ended.")] = False,
) -> None:
    """Ask RUN to save a checkpoint and end.

    It can be resumed later. For a sweep, all trials end and no other trial starts. Repeating the command does no harm.
    """
    from rtrain.history.index import read_row
    from rtrain.history.references import existing_run
    from rtrain.history.running.stopping import stop_run
    from rtrain.runs.filesystem.lock import wait_until_free

    asked = stop_run(read_row(existing_run(run)).path)
    for one in asked:
        if one.already:
            now = f"to end it immediately: kill {one.pid}"
            say(f"process {one.pid} has been asked to save and end already: {shown(one.folder)} ({now})")
        else:
            say(f"asked process {one.pid} to save and end: {shown(one.folder)}")
    for one in asked if wait else ():
        wait_until_free(one.folder)
        say(f"{shown(one.folder)}: {read_row(one.folder).status}")


def reproduce(
    run: RunOrUrl,
    overrides: Annotated[list[str] | None, typer.Argument(help="Config changes for the new run: num_workers=0")] = None,
    *,
    trust: Trust = False,
) -> None:
    """Train RUN again, and compare the metrics.

    The new run has the same config and seed. Then code, versions, data and metrics are compared; the exit code is 1
    if the metrics are not equal, or none could be compared.
    """
    from rtrain.displays.run import make_display
    from rtrain.history.opening import opened_run
    from rtrain.training.reproduction import reproduce as train_again

    with opened_run(run) as row:
        with make_display() as display:
            found = train_again(row.path, overrides or (), display, trust=trust)
        say("\n" + "\n".join(_verdict(found)))
    if found.differing or not found.metrics:
        raise typer.Exit(1)


def _verdict(found: Reproduction) -> list[str]:
    changed, before, after = {**found.code, **found.data}, found.before.manifest, found.after.manifest
    lines = [f"changed      {name} was {was}, and is {now}" for name, (was, now) in changed.items()]
    if not changed:
        lines.append("same         code, versions and data" if before.git else "same         versions and data")
    if not (before.git and after.git):
        lines.append("unknown      code: it is not in git")
    if found.went_on:
        lines.append(f"ended        at step {before.step} ({before.exit_reason}), and now at step {after.step}")
    for name, step in found.not_compared.items():
        lines.append(f"not compared {name} of step {step}, of which the new run has no value")
    if not found.metrics:
        return [*lines, "not compared metrics: there are none of the same steps"]
    for name, difference in found.differing.items():
        was, now = found.metrics[name]
        lines.append(f"not equal    {name} was {was}, and is {now} (relative difference {difference:.1e})")
    what = f"all metrics of step {before.step}, as in" if found.went_on else "all metrics of"
    return lines if found.differing else [*lines, f"equal        {what} {shown(found.before.path)}"]
