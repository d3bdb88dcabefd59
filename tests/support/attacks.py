"""What attackers write into files, and a watch on what is done about it."""

from __future__ import annotations

import os
import random
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

GLOBALS = [
    ("os", "system"),
    ("posix", "system"),
    ("builtins", "eval"),
    ("builtins", "exec"),
    ("builtins", "getattr"),
    ("builtins", "__import__"),
    ("subprocess", "Popen"),
    ("importlib", "import_module"),
    ("runpy", "run_path"),
    ("shutil", "rmtree"),
    ("numpy", "load"),
    ("numpy", "memmap"),
    ("numpy", "frompyfunc"),
    ("joblib", "load"),
    ("functools", "partial"),
    ("functools", "reduce"),
    ("operator", "methodcaller"),
    ("operator", "attrgetter"),
    ("sklearn.metrics._scorer", "make_scorer.__builtins__.get"),
    ("sklearn.metrics._scorer", "__builtins__.get"),
    ("sklearn.cluster._kmeans", "kmeans_plusplus.__builtins__.get"),
    ("numpy.random._pickle", "__builtins__.get"),
    ("sklearn.metrics._scorer", "_Scorer"),
    ("sklearn.pipeline", "Pipeline.fit"),
    ("sklearn.ensemble._stacking", "StackingClassifier"),
    ("sklearn.preprocessing._function_transformer", "FunctionTransformer"),
    ("sklearn.feature_extraction.text", "CountVectorizer"),
    ("sklearn.datasets._base", "load_files"),
    ("sklearn.utils._bunch", "Bunch"),
    ("scipy.stats._distn_infrastructure", "rv_continuous"),
    ("scipy.stats._distn_infrastructure", "rv_discrete"),
    ("scipy.io._netcdf", "netcdf_file"),
    ("torch.hub", "load"),
    ("torch.serialization", "load"),
    ("torch._dynamo.utils", "import_submodule"),
    ("xgboost.core", "DMatrix"),
    ("joblib.memory", "Memory"),
    ("logging.config", "dictConfig"),
    ("pip", "main"),
    ("code", "InteractiveInterpreter"),
    ("timeit", "timeit"),
    ("pty", "spawn"),
    ("webbrowser", "open"),
]
"""Functions and classes that files name which are meant to harm, as module and name."""
HARM = ("os.system", "os.exec", "os.posix_spawn", "os.fork", "subprocess.", "pty.", "pickle.find_class", "shutil.")
"""Events of Python's audit log (PEP 578) that no data needs; ``exec`` and ``compile`` come with imports."""
MARKS = (*HARM, "socket.connect", "socket.getaddrinfo", "urllib.Request", "ctypes.dlopen")

_events: list[str] | None = None
_thread = 0


def _hook(event: str, args: tuple[object, ...]) -> None:
    if (
        _events is not None
        and threading.get_ident() == _thread
        and (event.startswith(MARKS) or (event == "open" and _is_written(args)))
    ):
        _events.append(f"{event} {args!r:.200}")


def _is_written(args: tuple[object, ...]) -> bool:
    flags = args[2] if len(args) > 2 else 0
    return isinstance(flags, int) and bool(flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT))


@contextmanager
def watched() -> Iterator[list[str]]:
    """Yield the events of harm that happen in the block, in this thread."""
    global _events, _thread
    if not getattr(sys, "_rtrain_watched", False):
        sys.addaudithook(_hook)  # can't be taken away again; it does nothing outside of such blocks
        sys._rtrain_watched = True
    _events, _thread = [], threading.get_ident()
    try:
        yield _events
    finally:
        _events = None


def pickles(number: int, command: str, seed: int = 0) -> Iterator[bytes]:
    """Yield pickles that call something, by each of the ways that the format has.

    Args:
        number: How many.
        command: What they would have a shell do.
        seed: Of the random choices.
    """
    rng = random.Random(seed)
    for _ in range(number):
        module, name = rng.choice(GLOBALS)
        protocol = rng.choice([0, 2, 4, 5])
        head = b"" if protocol == 0 else b"\x80" + bytes([protocol])
        body = rng.choice([_reduced, _inst, _obj, _newobj, _built, _stacked])(module, name, command)
        around = rng.choice([b"%s.", b"0]%sa.", b"(%s(lp0\nt.", b"}(V_x\n%su."])
        yield head + around.replace(b"%s", body)


def _text(value: str) -> bytes:
    return b"X" + len(value.encode()).to_bytes(4, "little") + value.encode()


def _reduced(module: str, name: str, command: str) -> bytes:
    return f"c{module}\n{name}\n".encode() + b"(" + _text(command) + b"tR"


def _inst(module: str, name: str, command: str) -> bytes:
    return b"(" + _text(command) + f"i{module}\n{name}\n".encode()


def _obj(module: str, name: str, command: str) -> bytes:
    return b"(" + f"c{module}\n{name}\n".encode() + _text(command) + b"o"


def _newobj(module: str, name: str, command: str) -> bytes:
    return f"c{module}\n{name}\n".encode() + b"(" + _text(command) + b"t\x81"


def _built(module: str, name: str, command: str) -> bytes:
    state = b"}(" + _text("_parse_arg_template") + _text(f"import os; os.system({command!r})") + b"u"
    return f"c{module}\n{name}\n".encode() + b")\x81" + state + b"b"


def _stacked(module: str, name: str, command: str) -> bytes:
    return _text(module) + _text(name) + b"\x93(" + _text(command) + b"tR"
