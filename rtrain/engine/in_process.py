"""Train inside this process: no Ray cluster, so that debuggers, notebooks and quick tests work."""

from __future__ import annotations

from dataclasses import replace

from rtrain.config.targets.forgetting import forget_project
from rtrain.engine.crash import crash_log
from rtrain.engine.failures import FailureReason, frames_to_tell, told
from rtrain.engine.log_capture import copied_output
from rtrain.engine.run_worker import choose_checkpoint, run_worker
from rtrain.errors import RtrainError, TrainingError, in_brief, said_by
from rtrain.process.interrupts import StopRequest, is_by_signal
from rtrain.runs.facts import num_cores
from rtrain.runs.recorder import Recorder
from rtrain.runs.records import FailureKind, RunRecord
from rtrain.trainers.base import Job, TrainerPlugin
from rtrain.trainers.known_errors import what_to_try
from rtrain.trainers.liveness import Life
from rtrain.trainers.loops.seeding import kept_random_numbers


class DirectChannel:
    """A channel to a driver that is this very process."""

    def __init__(self, recorder: Recorder, stop: StopRequest) -> None:
        self._recorder, self._stop = recorder, stop

    def send(self, record: RunRecord) -> None:
        """Record immediately."""
        self._recorder.accept(record)

    @property
    def save_requested(self) -> str | None:
        """Nothing: no one takes this machine away without a signal."""
        return None

    @property
    def stop_reason(self) -> str | None:
        """Why the user or the system wants the run to end."""
        return self._stop.reason


def train_in_process(
    plugin: TrainerPlugin,
    job: Job,
    recorder: Recorder,
    stop: StopRequest,
    num_threads: int | None = None,
    *,
    shows_output: bool = True,
) -> None:
    """Run the plugin's train loop here as the only worker.

    Args:
        plugin: The plugin.
        job: What it trains.
        recorder: Keeps the run directory.
        stop: Says when training is to end.
        num_threads: Cores that this process may use; None: all.
        shows_output: What is printed goes where the caller prints, and not to the log alone.

    Raises:
        TrainingError: The loop raised; its own exception is the cause.
        KeyboardInterrupt: A second signal ends the run.
    """
    forget_project(job.project_root)  # checks have built models, which may have changed what modules hold
    channel, life, run_dir = DirectChannel(recorder, stop), Life(), recorder.run_dir
    worker = job.worker(
        rank=0,
        world_size=1,
        local_rank=0,
        num_threads=num_threads or num_cores(),
        run_dir=run_dir,
        channel=channel,
        life=life,
        use_gpu=job.conf.scaling.use_gpu,
        resume_from=choose_checkpoint(run_dir, channel),
        in_process=True,
    )
    try:
        output = copied_output(0, channel.send, job.redact, life, shows=shows_output)
        with crash_log(run_dir, 0), output, kept_random_numbers():
            run_worker(plugin, worker)
    except BaseException as error:
        if isinstance(error, RtrainError):
            _locate(error, recorder)
            raise
        if is_by_signal(error, stop):
            raise
        raise _as_training_error(error, recorder) from error


def _locate(error: RtrainError, recorder: Recorder) -> None:
    """Add the user's own lines to an error of rtrain's that was caused by one of theirs."""
    ending = _ending(recorder, error.message, error.hint)
    if ending.frames is not None:
        error.hint = told(ending, recorder.run_dir)


def _as_training_error(error: BaseException, recorder: Recorder) -> TrainingError:
    kind, message = type(error).__name__, said_by(error)
    hint = what_to_try(kind, message)
    ending = _ending(recorder, f"{kind}: {in_brief(message)}" if message else kind, hint)
    return TrainingError(ending.message, told(ending, recorder.run_dir))


def _ending(recorder: Recorder, message: str, hint: str | None) -> FailureReason:
    """Return how training ended, with what was recorded of it."""
    reason = FailureReason(kind=FailureKind.EXCEPTION, message=message, hint=hint, rank=0)
    if not recorder.failures:
        return reason
    last = recorder.failures[-1]
    return replace(reason, type=last.type, frames=frames_to_tell(last))
