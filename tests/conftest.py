"""Fixtures for all tests: none may leak a variable, a folder, a signal handler, a process or a running Ray."""

from __future__ import annotations

import ctypes
import gc
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

# A failure in a helper shows the values that it compared, as one in a test does.
pytest.register_assert_rewrite(*(path.stem for path in (Path(__file__).parent / "support").glob("*.py")))

from s3_server import S3Server, serve_s3  # noqa: E402

# Ray sets these for its own processes when it is imported or started; they outlive it by design.
LEFT_BY_LIBRARIES = (
    "_RJEM_MALLOC_CONF",
    "RAY_",
    "OMP_NUM_THREADS",
    "KMP_",
    "TORCH",
    "_TORCHINDUCTOR_",
    "TRITON_",
    "PYTORCH_",
    "WANDB_SERVICE",
    "CRC32C_SW_MODE",
    "PYTEST_CURRENT_TEST",
    "COLUMNS",
    "LINES",
    "TF_",
    "CUDA_",
    "TPU_",
    "KERAS_",
    "TF2_",
    "GRPC_",
    "HDF5_",
    "ENABLE_RUNTIME_UPTIME_TELEMETRY",
    "PYTHONBREAKPOINT",
)
PR_SET_PDEATHSIG = 1
Start = Callable[..., "subprocess.Popen[Any]"]


def pytest_configure(config: pytest.Config) -> None:
    """Leave no process behind: SIGTERM ends the tests as Ctrl-C does, and what they fork is killed with them.

    A job in the background ignores Ctrl-C, as all do that it starts; here it is heard, wherever the tests were started.
    """
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.default_int_handler)
    if sys.platform == "linux":
        prctl = ctypes.CDLL(None).prctl
        os.register_at_fork(after_in_child=lambda: prctl(PR_SET_PDEATHSIG, signal.SIGKILL))
    if not hasattr(config, "workerinput"):  # of pytest-xdist, whose processes inherit the variables
        compile_once(config)


def compile_once(config: pytest.Config) -> None:
    """Have all processes of the tests share what JAX compiles: each small model takes seconds."""
    folder = tempfile.TemporaryDirectory(prefix="rtrain-jax-")
    config.add_cleanup(folder.cleanup)
    os.environ["JAX_COMPILATION_CACHE_DIR"] = folder.name
    os.environ["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0"
    os.environ["JAX_DISABLE_MOST_OPTIMIZATIONS"] = "1"  # compiling takes longer than what is compiled


def pytest_collection_finish() -> None:
    """Spare the garbage collector what the imports have made, and most of its rounds, an eighth of the CPU time."""
    gc.freeze()
    gc.set_threshold(100_000, 50, 100)


@pytest.fixture(scope="session", autouse=True)
def own_state(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep what rtrain leaves in the home of an account out of that of whoever runs the tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        patch.setenv("RTRAIN_UP", "off")
        yield


@pytest.fixture(autouse=True)
def no_leaks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Fail a test that leaves an environment variable, another working directory, a handler or a Ray session behind.

    A Ray session that the tests of a file share is the fixture's, which ends it.

    The folders of projects stay on the path of a process that trains, each before all others: a thousand of them would
    be looked through by each import of the tests that follow. Their modules are forgotten: others have the same names.
    """
    before, folder, path = dict(os.environ), os.getcwd(), list(sys.path)  # noqa: PTH109
    modules, projects = set(sys.modules), f"{tmp_path_factory.getbasetemp()}{os.sep}"
    is_shared = ray_is_running()
    on_interrupt = signal.getsignal(signal.SIGINT)
    yield
    leaked = {
        name for name in os.environ if os.environ[name] != before.get(name) and not name.startswith(LEFT_BY_LIBRARIES)
    }
    ray_runs = ray_is_running() and not is_shared
    moved = os.getcwd()  # noqa: PTH109
    interrupted = signal.getsignal(signal.SIGINT)
    sys.path[:] = path
    for name in sys.modules.keys() - modules:
        if place_of(sys.modules.get(name)).startswith(projects):
            del sys.modules[name]
    if dict(os.environ) != before:
        os.environ.update(before)
    os.chdir(folder)
    signal.signal(signal.SIGINT, on_interrupt)
    if ray_runs:
        sys.modules["ray"].shutdown()
    assert not leaked, f"the test leaves environment variables behind: {sorted(leaked)}"
    assert not ray_runs, "the test leaves a Ray session running"
    assert moved == folder, "the test leaves another working directory behind"
    assert interrupted is on_interrupt, "the test leaves a handler of Ctrl-C behind"


def place_of(module: Any) -> str:
    """Return the file of a module, or the folder of a package that has no ``__init__.py``; empty for all else."""
    own = getattr(module, "__dict__", {})
    return str(own.get("__file__") or next(iter(own.get("__path__") or ()), ""))


def ray_is_running() -> bool:
    """Tell whether this process is connected to Ray, but for a cluster that was closed while it started.

    Such a cluster is shut down as soon as it answers, which may be during another test.
    """
    if "ray" not in sys.modules:
        return False
    import ray  # waits for the thread that imports it

    if not ray.is_initialized():
        return False
    from rtrain.cluster.ray_cluster import wait_for_left

    wait_for_left(60)
    return ray.is_initialized()


@pytest.fixture
def start() -> Iterator[Start]:
    """Start processes, as ``subprocess.Popen`` does, that are over when the test is, whatever becomes of it."""
    processes = []

    def popen(*args: Any, **kwargs: Any) -> subprocess.Popen[Any]:
        processes.append(subprocess.Popen(*args, **kwargs))
        return processes[-1]

    yield popen
    for process in processes:
        with process:
            process.kill()


@pytest.fixture
def kept_sessions(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A ``RAY_TMPDIR`` in which the folders of clusters that this process has finished stay."""
    from rtrain.cluster.ray_session import RaySession

    close = RaySession.close
    monkeypatch.setattr(RaySession, "close", lambda session, **_: close(session, keep=True))
    with tempfile.TemporaryDirectory(prefix="rt", dir="/tmp") as folder:  # short, as names of sockets have to be
        monkeypatch.setenv("RAY_TMPDIR", folder)
        yield Path(folder)


@pytest.fixture(scope="session")
def s3_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    """A server that all tests share; one that stops it starts its own."""
    with serve_s3(tmp_path_factory.mktemp("s3")) as server:
        yield server


@pytest.fixture
def s3(s3_server: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> S3Server:
    """The server as the environment of a user names it; copies of its files are the test's own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for name, value in s3_server.variables.items():
        monkeypatch.setenv(name, value)
    return s3_server
