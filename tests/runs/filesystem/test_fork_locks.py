"""A fork of a process whose threads print, or record, doesn't wait for threads that it has not."""

from __future__ import annotations

import threading

from processes import fork_ends

from rtrain.engine.log_capture import copied_output
from rtrain.runs.filesystem.fork_locks import fork_safe_lock


def test_a_fork_prints_while_a_thread_of_its_parent_does(capsys):
    printing, go_on = threading.Event(), threading.Event()

    def send(record: object) -> None:
        if threading.current_thread() is thread:
            printing.set()
            go_on.wait(10)

    thread = threading.Thread(target=print, args=("slow",))
    with copied_output(0, send):
        thread.start()
        printing.wait(10)
        assert fork_ends(lambda: print("quick"))
        go_on.set()
        thread.join()


def test_the_lock_of_a_thread_is_free_in_a_fork_and_stays_held_in_its_parent():
    lock, held, over = fork_safe_lock(), threading.Event(), threading.Event()

    def hold() -> None:
        with lock:
            held.set()
            over.wait(10)

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait(10)
    assert fork_ends(lambda: lock.acquire())
    assert not lock.acquire(blocking=False)
    over.set()
    thread.join()
