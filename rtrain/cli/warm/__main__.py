"""``python -m rtrain.cli.warm OPTIONS``: import, listen and serve; the options of ``rtrain up`` as JSON."""

from __future__ import annotations

import fcntl
import gc
import importlib
import json
import os
import socket
import sys
from functools import partial
from pathlib import Path

from rtrain.cli.warm import seat
from rtrain.cli.warm.facts import companion, facts, socket_path
from rtrain.cli.warm.messages import TAKEN
from rtrain.cli.warm.server import Server
from rtrain.cluster.prestart import Prestart
from rtrain.cluster.scaling import cluster_cpus
from rtrain.config.schema import ScalingConf
from rtrain.runs.filesystem.files import private_files
from rtrain.trainers.loops.custom.plugin import LOOP_MODULE
from rtrain.trainers.registry import load_trainer
from rtrain.training.preparation import DATA_CPUS, ENGINE_MODULES

NEEDED = ("rtrain.cli.app", "rtrain.displays.run", "rtrain.training.fit", "rtrain.engine.ray.controller")
"""Modules of the command of every run on a cluster, beyond those of its workers."""


def main() -> int:
    """Return the exit code of the server, or of what a fork of it has run."""
    options, path = json.loads(sys.argv[1]), socket_path()
    assert path is not None, "rtrain up has checked it"
    lock = held(companion(path, "lock"))
    if lock is None:
        return TAKEN
    os.ftruncate(1, 0)  # the log of an earlier one
    here, before = facts(Path(options["folder"])), set(sys.path)
    modules = imported(options["trainer"])
    added = [one for one in sys.path if one not in before]
    scaling = ScalingConf(num_workers=options["workers"])
    num_cpus = cluster_cpus(scaling, DATA_CPUS)
    prestart = Prestart.of_run(scaling, modules, num_cpus)
    listener = listening(path)
    gc.collect()
    gc.freeze()  # pages that forks share stay shared
    run = partial(seat.run, folder=options["folder"], added=added, prestart=prestart)
    work = Server(listener, here, options, run).serve()
    if work is not None:
        os.close(lock)
        return work()
    path.unlink(missing_ok=True)
    return 0


def held(file: Path) -> int | None:
    """Return a lock that this process keeps, with its process id in the file; None if another one has it."""
    lock = os.open(file, os.O_CREAT | os.O_RDWR, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        return None
    os.ftruncate(lock, 0)
    os.write(lock, str(os.getpid()).encode())
    return lock


def imported(trainer: str) -> tuple[str, ...]:
    """Import what a run with a trainer needs, by a train loop too, and return the modules of its workers."""
    modules = (*load_trainer(trainer).worker_modules, *ENGINE_MODULES, LOOP_MODULE)
    for name in (*NEEDED, *modules):
        importlib.import_module(name)
    return modules


def listening(path: Path) -> socket.socket:
    """Return a socket for clients of this account alone."""
    path.unlink(missing_ok=True)
    listener = socket.socket(socket.AF_UNIX)
    with private_files(True):
        listener.bind(str(path))
    listener.listen()
    return listener


if __name__ == "__main__":
    sys.exit(main())
