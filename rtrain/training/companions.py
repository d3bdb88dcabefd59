"""The threads that accompany a run: its copy in a store, its trackers, its callbacks."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rtrain.callbacks import Callback
from rtrain.runs.recorder import Recorder
from rtrain.storage.mirror import Mirror, mirror_run
from rtrain.tracking.callbacks import CallbackThread
from rtrain.tracking.trackers import Trackers, logged_run, outcome_of
from rtrain.training.preparation import Prepared


class Companions:
    """Copies a run, logs it and calls its callbacks, each in a separate thread.

    Args:
        prepared: The job.
        recorder: Writes the run.
        callbacks: Those of ``run.callbacks``.
    """

    def __init__(self, prepared: Prepared, recorder: Recorder, callbacks: Sequence[Callback]) -> None:
        self._prepared, self._recorder, self._stop = prepared, recorder, prepared.stop
        self._conf = prepared.composed.conf.run
        redact, notice = prepared.composed.redact, recorder.observer.notice
        self._mirror = self._start_mirror()
        sweep = recorder.run_dir.parent if prepared.composed.sweep else None
        run = logged_run(recorder.run_dir, recorder.manifest, sweep)
        self._trackers = Trackers(self._conf, run, redact, notice) if self._conf.loggers else None
        self._calls = CallbackThread(
            callbacks, run, recorder.manifest, prepared.stop, lambda text: notice(redact(text))
        )

    def start(self) -> None:
        """Call the callbacks from now on."""
        self._calls.start()

    def drain(self) -> None:
        """Wait for the callbacks of what has happened: one of them may end the run."""
        self._calls.drain(*self._patience())

    def finish(self, *, at_once: bool) -> None:
        """Wait until each is done, and report what the copy lacks. One more signal ends the waiting.

        Args:
            at_once: Don't wait for the copy: a signal ended the run.
        """
        run_dir, manifest = self._recorder.run_dir, self._recorder.manifest
        self._calls.finish(outcome_of(run_dir, manifest), *self._patience())
        if self._trackers is not None:
            self._trackers.finish(run_dir, manifest, self._one_more_signal())
        if self._mirror is not None:
            self._end_mirror(self._mirror, 0 if at_once else self._conf.storage_timeout_seconds)

    def _one_more_signal(self) -> Callable[[], bool]:
        before = self._stop.num_signals
        return lambda: self._stop.num_signals > before

    def _patience(self) -> tuple[float, Callable[[], bool]]:
        """Return how many seconds to wait for pending reports, and whether another signal has ended the wait."""
        return self._conf.loggers_timeout_seconds, self._one_more_signal()

    def _start_mirror(self) -> Mirror | None:
        if self._prepared.storage is None:
            return None
        recorder = self._recorder
        folder = self._prepared.storage.below(recorder.run_dir.name)
        recorder.manifest.storage = {"url": folder.url, "complete": False}
        return mirror_run(recorder.run_dir, folder, recorder.retention, recorder.observer.notice)

    def _end_mirror(self, mirror: Mirror, patience: float) -> None:
        recorder, manifest = self._recorder, self._recorder.manifest
        assert manifest.storage is not None
        url = manifest.storage["url"]
        recorder.observer.stage(f"copying to {url}")
        ending = mirror.finish(patience, self._one_more_signal())
        manifest.storage["complete"] = ending.complete
        if not ending.complete:
            manifest.storage |= {"missing": ending.missing, "error": ending.error}
            manifest.exit_reason = f"{manifest.exit_reason}; its copy is NOT COMPLETE"
            lacks = f"{len(ending.missing)} checkpoints" if ending.missing else "the end of the run"
            recorder.observer.notice(f"{url} lacks {lacks} ({ending.error}); everything is in {recorder.run_dir}")
        recorder.write()
