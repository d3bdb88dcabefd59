"""Ctrl-C, SIGTERM and a time limit during a run: the first asks it to stop, the second ends it immediately."""

from __future__ import annotations

import faulthandler
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from types import FrameType

from rtrain.runs.status import Status

REASONS = {
    signal.SIGINT: Status.INTERRUPTED,
    signal.SIGTERM: Status.PREEMPTED,
    signal.SIGHUP: Status.PREEMPTED,
    signal.SIGUSR1: Status.PREEMPTED,
}
"""Signal to the run status that it leads to. Slurm sends SIGUSR1 some time before a job's time is over; SIGHUP comes
when the terminal, or the connection to it, is closed."""
BY_CTRL_C = "stopped by Ctrl-C"
"""The reason why a run ended that Ctrl-C has ended."""
AT_ONCE = "ended immediately by a second signal"
"""The reason why a run ended that did not stop at its next step."""
REPEAT_SECONDS = 1.0
"""Within which a signal of the system is one with the first: ``timeout`` sends it to the process and to its group."""
LOOK_SECONDS, SLOW_SECONDS = 0.5, 3.0
"""How often to look for a signal, and after how long to say that it was heard."""
GRACE_SECONDS = 10.0
"""Time between asking a run to stop, ending it immediately, and ending the process."""


class StopRequest:
    """Whether, and why, the run should end early. Set by signals, read by the loops.

    Args:
        outer: The request of the block around this one, which the first signal stops as well.
    """

    def __init__(self, outer: StopRequest | None = None) -> None:
        self.reason: str | None = None
        self.signal: signal.Signals | None = None
        self._num_signals = 0
        self._pid, self.received = os.getpid(), 0.0
        self._outer = outer
        self._note: Callable[[str, str], None] | None = None
        self.asked: tuple[str, str] | None = None
        """The status and the reason that the run is to end with, where it is not a signal that ends it."""
        self.ending = False
        """The run is over and its record is being written: signals interrupt nothing."""

    @property
    def num_signals(self) -> int:
        """How many signals have come, those that count as one counted once."""
        return self._num_signals

    def ask(self, status: str, reason: str) -> None:
        """Have the run end soon, as a signal would."""
        self.asked, self.reason = (status, reason), self.reason or Status.INTERRUPTED

    def note_by(self, note: Callable[[str, str], None]) -> None:
        """Have the first signal noted, with the status and the reason it leads to: another process may look for it.

        Args:
            note: Called by the handler of the signal.
        """
        self._note = note
        self._note_signal()

    def _note_signal(self) -> None:
        if self._note is not None and self.signal is not None and (verdict := self.verdict()) is not None:
            self._note(*verdict)

    def verdict(self) -> tuple[str, str] | None:
        """Return the status and the reason of a stopped run; None if it was not stopped."""
        if self.asked is not None:
            return self.asked
        if self.signal is None or self.reason is None:
            return None
        return self.reason, BY_CTRL_C if self.by_ctrl_c else f"stopped by {self.signal.name}"

    @property
    def by_ctrl_c(self) -> bool:
        """Whether Ctrl-C came first of the signals."""
        return self.signal is signal.SIGINT

    def receive(self, signum: int, frame: FrameType | None = None) -> None:
        """Take a signal. A fork of the process, a loader's worker say, is ended by it.

        Raises:
            KeyboardInterrupt: It is the second one: end now.
        """
        number = signal.Signals(signum)
        if os.getpid() != self._pid:
            _end_by(number)
        elif not self._is_repeated(number):
            self._take(number)

    def _is_repeated(self, number: signal.Signals) -> bool:
        """Return whether a signal adds nothing to the one before it.

        A SIGHUP never does: the terminal of a run that is already stopping may be closed. The other signals of the
        system are sent to the process and to its group.
        """
        if self.signal is None or number is signal.SIGHUP:
            return self.signal is not None
        if signal.SIGINT in (self.signal, number):
            return False
        return time.monotonic() - self.received < REPEAT_SECONDS

    def _take(self, number: signal.Signals) -> None:
        self._num_signals += 1
        if self.signal is None:
            self.signal, self.received = number, time.monotonic()
            self.reason = REASONS[number]
            self._note_signal()
            if self._outer is not None and self._outer.signal is None:
                self._outer._take(number)
        elif not self.ending:
            raise KeyboardInterrupt


@contextmanager
def telling_of_signals(request: StopRequest, tell: Callable[[str], None]) -> Iterator[None]:
    """Confirm a signal if training has not ended seconds later: a loop may hang.

    Args:
        request: Receives the signals.
        tell: Takes a line for the user.
    """

    def look() -> bool:
        if request.signal is None or time.monotonic() - request.received <= SLOW_SECONDS:
            return False
        if not request.ending and request.num_signals == 1:
            tell(_confirmation(request.signal))
        return True

    with watching(look, LOOK_SECONDS, "rtrain-signals"):
        yield


@contextmanager
def watching(look: Callable[[], bool], period_seconds: float, name: str) -> Iterator[None]:
    """Call a function again and again in a thread while the block runs, until it returns True.

    Args:
        look: The function.
        period_seconds: The time before each call.
        name: Of the thread.
    """
    over = threading.Event()

    def watch() -> None:
        while not over.wait(period_seconds):
            if look():
                return

    thread = threading.Thread(target=watch, name=name, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def _confirmation(number: signal.Signals) -> str:
    name = "Ctrl-C" if number is signal.SIGINT else number.name
    return (
        f"{name} was received: the run ends at its next step or report, or when its workers have started; a second "
        "one ends it immediately"
    )


@contextmanager
def stop_on_signals() -> Iterator[StopRequest]:
    """Send the process's signals to a ``StopRequest`` while the block runs; does nothing outside the main thread.

    A signal that stops a block stops those around it: a trial of a sweep, and with it the sweep.
    """
    if threading.current_thread() is not threading.main_thread():
        yield StopRequest()
        return
    request = StopRequest(outer := _stopped_by_signals())
    if outer is not None and outer.signal is not None:
        request._take(outer.signal)
    before = {number: signal.signal(number, request.receive) for number in heard(REASONS)}
    try:
        yield request
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def leave_ctrl_c_to_parent() -> None:
    """Ignore Ctrl-C in this process outside of ``stop_on_signals``: a terminal sends it to the parent process too."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.SIG_IGN)


def _stopped_by_signals() -> StopRequest | None:
    """Return what receives this process's signals now, if it is a request."""
    found = getattr(signal.getsignal(signal.SIGTERM), "__self__", None)
    return found if isinstance(found, StopRequest) and found._pid == os.getpid() else None


@contextmanager
def imports_finished() -> Iterator[None]:
    """Let Ctrl-C wait in the block until a module that is being imported is complete; a second one does not wait.

    A process that lives on, the kernel of a notebook say, can't import a module again that was left half imported.
    """
    outer = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(outer):
        yield
        return
    waiting = _AfterImports(outer)
    signal.signal(signal.SIGINT, waiting.receive)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, outer)
        waiting.end()


class _AfterImports:
    """Hands Ctrl-C on to another handler once no module is being imported."""

    def __init__(self, outer: Callable[[int, FrameType | None], object]) -> None:
        self._outer = outer
        self._timer: threading.Timer | None = None
        self._is_again = False

    def receive(self, signum: int, frame: FrameType | None) -> None:
        """Take the signal, from the user or again from the timer."""
        if _is_importing(frame) and (self._timer is None or self._is_again):
            self._is_again = False
            self._timer = threading.Timer(LOOK_SECONDS / 5, self._come_again)
            self._timer.start()
            return
        self._drop_timer()
        self._outer(signum, frame)

    def end(self) -> None:
        """Hand on the signal that is still waiting, if there is one."""
        if self._timer is not None:
            self._drop_timer()
            self._outer(signal.SIGINT, None)

    def _drop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer, self._is_again = None, False

    def _come_again(self) -> None:
        self._is_again = True
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)


def _is_importing(frame: FrameType | None) -> bool:
    while frame is not None and frame.f_code.co_filename != "<frozen importlib._bootstrap>":
        frame = frame.f_back
    return frame is not None


def is_by_signal(error: BaseException, request: StopRequest) -> bool:
    """Return whether a signal caused an exception; user code raises KeyboardInterrupt without one as well."""
    return isinstance(error, KeyboardInterrupt) and request.num_signals > 0


def _end_by(number: signal.Signals) -> None:
    """End this process as the signal does without a handler."""
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)


def leave_signals_to_driver() -> None:
    """Have the signals that end a run do nothing to this worker: the driver gets them too, and says when to stop.

    They are blocked in all processes of a cluster that rtrain started (``ray_session``). What user code starts would
    inherit that, and could not be ended. On a cluster that was joined they are the cluster's business.
    """
    blocked = {signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1} & signal.pthread_sigmask(signal.SIG_BLOCK, ())
    if threading.current_thread() is not threading.main_thread():
        return
    pid = os.getpid()

    def receive(signum: int, frame: FrameType | None) -> None:
        if os.getpid() != pid:
            _end_by(signal.Signals(signum))

    for number in blocked:
        signal.signal(number, receive)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, blocked)


@contextmanager
def ended_by_sigterm() -> Iterator[None]:
    """Let SIGTERM leave the block as Ctrl-C does, so that what it started and half wrote is cleared away: exit 143.

    SIGHUP does the same, unless it is ignored: exit 129.
    """

    def leave(signum: int, frame: FrameType | None) -> None:
        sys.exit(128 + signum)

    before = {number: signal.signal(number, leave) for number in heard({signal.SIGTERM, signal.SIGHUP})}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def heard(numbers: Iterable[signal.Signals]) -> list[signal.Signals]:
    """Return signals without a SIGHUP that is ignored: ``nohup`` wants the command to outlive its terminal."""
    deaf = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    return [number for number in numbers if not (deaf and number is signal.SIGHUP)]


def renew_sigterm() -> None:
    """Put this process's own handler of SIGTERM back in front: Ray's prints the stack of every thread before it."""
    if threading.current_thread() is threading.main_thread():
        handler = signal.getsignal(signal.SIGTERM)
        if handler is not None:
            signal.signal(signal.SIGTERM, handler)


class TimeLimit:
    """A limit of time, and whether it has passed."""

    def __init__(self) -> None:
        self.passed = False

    def receive(self, signum: int, frame: FrameType | None = None) -> None:
        """Take the alarm as if it were Ctrl-C, also where the process was started without one."""
        self.passed = True
        handler = signal.getsignal(signal.SIGINT)
        if not callable(handler):
            raise KeyboardInterrupt
        handler(signal.SIGINT, frame)


@contextmanager
def stopped_after(seconds: float) -> Iterator[TimeLimit]:
    """Stop the block after ``seconds`` as Ctrl-C would, and once more after a grace period.

    If the block hangs and reacts to neither, the process ends, with the traceback of every thread on stderr.
    Only for the main thread.
    """
    limit = TimeLimit()
    handler = signal.signal(signal.SIGALRM, limit.receive)
    timer = signal.setitimer(signal.ITIMER_REAL, seconds, GRACE_SECONDS)
    faulthandler.dump_traceback_later(seconds + 3 * GRACE_SECONDS, exit=True, file=sys.__stderr__ or 2)
    try:
        yield limit
    finally:
        faulthandler.cancel_dump_traceback_later()
        signal.setitimer(signal.ITIMER_REAL, *timer)
        signal.signal(signal.SIGALRM, handler)
