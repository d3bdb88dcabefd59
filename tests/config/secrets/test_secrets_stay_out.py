"""Secrets that a config names are in no byte that rtrain writes or prints, nor in the words of its processes."""

from __future__ import annotations

import base64
import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from rtrain.cli.app import run as command

ROWS = "a,b,y\n" + "\n".join(f"{index % 7}.5,{index % 5}.25,{index % 2}" for index in range(60)) + "\n"
SECRETS = {
    "environment": "Env1ronment-s3cret-8c1f",
    "own": "0wn-variable-s3cret-77ab",
    "typed": "Typ3d-s3cret-41d0",
    "nested": "N3sted-s3cret-90ee",
    "password": "Us3r-s3cret-55c2",
    "signature": "S1gnature-s3cret-b3b3",
    "model": "M0del-s3cret-1f1f",
    "job": "J0b-s3cret-6e6e",
    "worker": "W0rker-s3cret-2d2d",
}
NET = """
import ctypes
import json
import logging
import os
import pathlib
import subprocess
import sys

import torch


class Net(torch.nn.Linear):
    def __init__(self, api_key, address, explode=False):
        super().__init__(2, 2)
        assert api_key.startswith("M0del") and address.startswith("Env1"), "the model gets the true values"
        self.explode, self.before = explode, self.weight.detach().clone()
        self.key = api_key + " " + address

    def forward(self, x):
        print("my key is", self.key, flush=True)
        print("my key is", self.key, file=sys.stderr, flush=True)
        logging.getLogger("mine").warning("my key is %s", self.key)
        logging.getLogger("ray.train").error("my key is %s", self.key)
        subprocess.run(["sh", "-c", f"echo a child says {self.key}; echo a child says {self.key} >&2"])
        ctypes.CDLL(None).puts(f"a library says {self.key}".encode())
        for one in (1, 2):
            os.write(one, f"a descriptor says {self.key}\\n".encode())
        if "ray" in sys.modules and sys.modules["ray"].is_initialized():
            ray = sys.modules["ray"]
            seen = [str(ray.get_runtime_context().runtime_env), str(ray._private.state.state.job_table())]
            pathlib.Path(os.environ["SEEN_BY_RAY"]).write_text(json.dumps(seen))
        if self.explode and not torch.equal(self.weight, self.before):  # after the first step
            raise RuntimeError(f"the server refused {self.key}")
        return super().forward(x)
"""


@pytest.fixture
def server() -> Iterator[str]:
    """A server of rows that wants a user and a password; yields its host and port."""

    class Answer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            wanted = base64.b64encode(f"me:{SECRETS['password']}".encode()).decode()
            known = self.headers.get("Authorization") == f"Basic {wanted}" and SECRETS["signature"] in self.path
            body = ROWS.encode() if known and ".csv?" in self.path else b""
            self.send_response(200 if body else 404)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    httpd = ThreadingHTTPServer(("127.0.0.1", 0), Answer)
    threading.Thread(target=httpd.serve_forever, daemon=True).start()
    yield f"127.0.0.1:{httpd.server_port}"
    httpd.shutdown()
    httpd.server_close()


@pytest.fixture
def words(tmp_path: Path, server: str) -> list[str]:
    """A project whose config names secrets in every way there is, and the overrides of a training."""
    (tmp_path / "pyproject.toml").write_text("")
    (tmp_path / "keyed.py").write_text(NET)
    model = "{_target_: keyed.Net, api_key: '${oc.env:OWN_KEY}', address: '${oc.env:PLAIN_NAME}', explode: false}"
    (tmp_path / "mine.yaml").write_text(
        """
defaults: [mlp, override dataset: csv]
trainer: {model: null, max_epochs: 1}
vars:
  plain: ${oc.env:PLAIN_NAME}
  own: ${oc.env:OWN_TOKEN}
"""
    )
    url = f"http://me:{SECRETS['password']}@{server}/rows.csv?v=1&X-Amz-Signature={SECRETS['signature']}"
    return [
        f"trainer.model={model}",
        f"dataset.path='{url}'",
        "dataset.label=y",
        f"+vars.hf_token={SECRETS['typed']}",
        f"+vars.nested={{client_secret: {SECRETS['nested']}}}",
        f"+hydra.job.env_set.JOB_PASSWORD={SECRETS['job']}",
        "optimizer.lr=0.01",
    ]


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Work in the folder of the project, with secrets in the environment."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PLAIN_NAME", SECRETS["environment"])
    monkeypatch.setenv("OWN_TOKEN", SECRETS["own"])
    monkeypatch.setenv("OWN_KEY", SECRETS["model"])
    monkeypatch.setenv("SEEN_BY_RAY", str(tmp_path / "seen-by-ray.json"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


OF_WORKERS = f"+cluster.runtime_env={{env_vars: {{WORKER_TOKEN: {SECRETS['worker']}}}}}"
KEEP_SESSIONS = (
    "from rtrain.cluster.ray_session import RaySession; close = RaySession.close; "
    "RaySession.close = lambda session, **_: close(session, keep=True)"
)


def watched(start: Callable[..., subprocess.Popen[bytes]], words: Sequence[str]) -> tuple[int, str]:
    """Run a command line in a process of its own; returns its exit code, its output, and what ``ps`` showed of it.

    The words come by stdin: that a command line shows what its user types into it is the user's affair.
    """
    main = f"{KEEP_SESSIONS}; import sys; from rtrain.cli.app import run; sys.exit(run(sys.stdin.read().splitlines()))"
    Path("words.txt").write_text("\n".join(words))
    with Path("output.txt").open("wb") as output, Path("words.txt").open() as typed:
        process = start([sys.executable, "-c", main], stdin=typed, stdout=output, stderr=subprocess.STDOUT)
    Path("words.txt").unlink()
    seen = set()
    while process.poll() is None:
        seen |= {title for child in (process.pid, *below(process.pid)) for title in titles(child)}
        time.sleep(0.1)
    return process.returncode, Path("output.txt").read_text() + "\n".join(seen)


def below(pid: int) -> list[int]:
    """Return the ids of the processes below one."""
    own = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            own += [int(child) for child in task.read_text().split()]
        except OSError:
            continue
    return own + [one for child in own for one in below(child)]


def titles(pid: int) -> list[str]:
    """Return what ``ps`` shows of a process."""
    try:
        return [Path(f"/proc/{pid}/{name}").read_text(errors="replace") for name in ("cmdline", "comm")]
    except OSError:
        return []


def leaks(text: str, *folders: Path) -> list[str]:
    """Return which secret is where."""
    found = [f"{name} in what was seen" for name, secret in SECRETS.items() if secret in text]
    for path in (path for folder in folders for path in folder.rglob("*") if path.is_file()):
        content = path.read_bytes() + str(path).encode()
        found += [f"{name} in {path}" for name, secret in SECRETS.items() if secret.encode() in content]
    return found


def test_no_secret_is_in_what_a_training_here_writes_and_prints(tmp_path, words, capfd):
    assert command(["fit", "mine.yaml", *words, "num_workers=0"]) == 0
    (run,) = (tmp_path / "runs" / "mine").iterdir()
    assert "my key is ***" in (run / "logs" / "worker-0.log").read_text()
    seen = "".join(capfd.readouterr())
    assert all(f"a {what} says ***" in seen for what in ("child", "library", "descriptor"))
    assert not leaks(seen, tmp_path)
    for verb, output in (("evaluate", "scores.json"), ("predict", "rows.csv")):
        assert command([verb, str(run), words[1], "-o", output]) == 0
        told = "".join(capfd.readouterr())  # the model's own words, too, which nothing takes out here
        assert not leaks(told.replace(f"{SECRETS['model']} {SECRETS['environment']}", ""), tmp_path)


def test_no_secret_is_in_what_a_sweep_writes_and_prints(tmp_path, words, capfd):
    words = [word.replace("explode: false", "explode: true") for word in words]
    assert command(["fit", "mine.yaml", *words, "num_workers=0", "--multirun", "run.seed=1,2"]) == 1
    assert "the server refused ***" in (seen := "".join(capfd.readouterr()))
    assert len(list(tmp_path.glob("runs/*/*/manifest.json"))) == 2
    assert not leaks(seen, tmp_path)


def test_no_secret_is_in_what_a_failing_training_tells(tmp_path, words, capfd):
    words = [word.replace("explode: false", "explode: true") for word in words]
    assert command(["fit", "mine.yaml", *words, "num_workers=0"]) == 1
    assert "the server refused ***" in (seen := "".join(capfd.readouterr()))
    assert not leaks(seen, tmp_path)
    with Path("mine.yaml").open("a") as file:
        file.write(f"\nsmoke: {{overrides: {json.dumps([*words, 'num_workers=0'])}}}\n")
    assert command(["smoke", "mine.yaml", "--junit", "report.xml"]) == 1
    Path("mine.yaml").unlink()  # which the user wrote
    assert not leaks("".join(capfd.readouterr()), tmp_path)


@pytest.mark.slow
def test_no_secret_is_in_what_a_failing_training_on_ray_writes_and_shows(start, tmp_path, words, kept_sessions):
    words = [word.replace("explode: false", "explode: true") for word in words]
    code, seen = watched(start, ["fit", "mine.yaml", *words, "num_workers=2", OF_WORKERS, "run.failure.max_failures=0"])
    assert code == 1
    assert "the server refused ***" in seen
    assert "ray::" in seen, "no process of Ray's was seen"
    Path("mine.yaml").unlink()
    sessions = list(kept_sessions.glob("ray/session_2*"))
    assert sessions
    logged = [path.read_text() for one in sessions for path in one.glob("logs/train/ray-train-app-worker-*.log")]
    assert any("my key is ***" in text for text in logged)
    raw = [
        path.read_text() for one in sessions for path in one.glob("logs/worker-*") if path.suffix in (".out", ".err")
    ]
    assert all(any(f"a {what} says ***" in text for text in raw) for what in ("child", "library", "descriptor"))
    assert not leaks(seen, tmp_path, *sessions)
    assert "seen-by-ray.json" in {path.name for path in tmp_path.iterdir()}


PRINTS = """
import os
import sys

print("imported with", os.environ["MY_TOKEN"], flush=True)
print("imported with", os.environ["MY_TOKEN"], file=sys.stderr, flush=True)


def loop(config):
    import ray.train

    ray.train.report({"loss": 1.0, config["token"]: 2.0})
    raise ExceptionGroup(config["token"], [ValueError({"k": config["token"]})])
"""
LOOP = """
defaults: [{trainer: torch}, {scaling: local}]
trainer: {train_loop: prints_it:loop, train_loop_config: {token: "${oc.env:MY_TOKEN}"}}
smoke: {overrides: [num_workers=0]}
"""


def test_a_module_that_prints_a_secret_where_it_is_imported(tmp_path, monkeypatch, capfd):
    secret = "sk-Zq9'hunterX77\"pw"
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MY_TOKEN", secret)
    for name, text in {"prints_it.py": PRINTS, "pyproject.toml": "", "prints.yaml": LOOP}.items():
        Path(name).write_text(text)
    assert command(["smoke", "prints.yaml", "--junit", "report.xml"]) == 1
    assert command(["fit", "prints.yaml", "num_workers=0"]) == 1
    shown = "".join(capfd.readouterr())
    assert "imported with ***" in shown
    files = [
        path.read_text(errors="replace") for path in tmp_path.rglob("*") if path.is_file() and path.suffix != ".pyc"
    ]
    assert any("imported with ***" in text for text in files)
    assert not any("hunterX77" in text for text in [shown, *files])


READS = """
import html
import sys
import urllib.parse


def loop(config):
    import ray.train

    told = config["decoded"]["password"]
    for half in (told[:8], told[8:], "\\n"):
        sys.stdout.write(half)
    for text in (config["login"], config["header"], config["sub"], config["values"], config["inner"], told):
        print(text, urllib.parse.quote(str(text)), html.escape(str(text)), config["decoded"])
    ray.train.report({"loss": 1.0})
"""
REFERS = """
defaults: [{trainer: torch}, {scaling: local}]
vars:
  api_token: sk-hunterX77-1/+a
  pin: 72617261557
  dbcfg: {password: sk-hunterX77-2<>}
  credentials: {user: bob-hunterX77, list: [sk-hunterX77-3]}
  decoded: ${oc.decode:${oc.env:SETTINGS}}
trainer:
  train_loop: reads_it:loop
  train_loop_config:
    login: ${vars.api_token}
    header: Bearer ${vars.api_token}
    sub: ${vars.dbcfg.password}
    values: ${oc.dict.values:vars.dbcfg}
    inner: ${vars.credentials}
    decoded: ${vars.decoded}
"""


def test_what_a_loop_reads_by_reference(tmp_path, monkeypatch, capfd):
    monkeypatch.setenv("SETTINGS", "{user: bob, password: sk-hunterX77-4}")
    for name, text in {"reads_it.py": READS, "pyproject.toml": "", "refers.yaml": REFERS}.items():
        Path(name).write_text(text)
    words = [r"+vars.typed={api_key: 'a\'hunterX77'}", "+vars.spell={tokens: 5, token: ${vars.pin}}"]
    assert command(["fit", "refers.yaml", *words, "num_workers=0"]) == 0
    shown = "".join(capfd.readouterr())
    (run,) = (tmp_path / "runs" / "refers").iterdir()
    assert "***\n" in (run / "logs" / "worker-0.log").read_text()
    Path("refers.yaml").unlink()
    told = [shown, *(path.read_text(errors="replace") for path in run.rglob("*") if path.is_file())]
    assert not [text for text in told if "hunterX77" in text or "72617261557" in text]
