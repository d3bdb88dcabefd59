"""What someone who calls rtrain from Python sees of its errors."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType

from rtrain.errors import RtrainError
from rtrain.process.interrupts import imports_finished
from rtrain.runs.run import Run


class CallersView:
    """Shows an error of rtrain's to who calls it from Python: with the run, and without the frames within rtrain.

    The message names the user's own lines, and the logs of the run have all of it. Ctrl-C shows no frames either.

    Args:
        place: The run directory that the call names, or the folder of a checkpoint in one; None: it starts a run.
    """

    def __init__(self, place: str | Path | None = None) -> None:
        self._place = place

    def __enter__(self) -> None:
        """Let Ctrl-C wait for the end of imports."""
        self._imports = imports_finished()
        self._imports.__enter__()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self._imports.__exit__(None, None, None)
        if isinstance(error, RtrainError):
            if error.run_dir is not None:
                error.run = Run.load(error.run_dir)
            elif self._place is not None:
                error.run = _run_of(Path(self._place))
                error.run_dir = None if error.run is None else error.run.path
            error.cause = error.cause or error.__cause__
        if isinstance(error, RtrainError | KeyboardInterrupt):
            error.__cause__, error.__suppress_context__, error.__traceback__ = None, True, None


def _run_of(place: Path) -> Run | None:
    """Return the run that ``place`` is, or that has it among its checkpoints; None without one."""
    for folder in (place, place.parent.parent):
        try:
            return Run.load(folder)
        except RtrainError:  # not a run directory, or a damaged one
            continue
    return None
