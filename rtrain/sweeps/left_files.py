"""The files that the trials of a sweep leave in the current folder, which all of them share."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rtrain.config.trials import Trials
from rtrain.run_lines import files_text, is_own_loop
from rtrain.runs.written_files import written_files
from rtrain.sweeps.observer import SweepObserver
from rtrain.training.left_files import OWN_FOLDER


@contextmanager
def files_reported(trials: Trials, observer: SweepObserver) -> Iterator[None]:
    """Report the files that train loops leave in the current folder, which all trials share."""
    if not is_own_loop(trials.probe.resolved["trainer"]):
        yield
        return
    with written_files(trials.probe.config_path) as files:
        yield
    if files:
        observer.notice(
            f"the trials have left {files_text(files.facts())}; files of the same name were overwritten. "
            f"For a separate folder per trial, {OWN_FOLDER}"
        )
