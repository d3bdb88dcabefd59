"""Does training still work? Train what every smoke block describes, in one process with one Ray start, and judge it."""

from __future__ import annotations

import io
import re
import shlex
import time
import traceback
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path

from rtrain.cluster.ray_cluster import StartingCluster, connect
from rtrain.cluster.scaling import cluster_cpus, sharing_notice
from rtrain.config.compose.bounds import check_words
from rtrain.config.composed import Composed
from rtrain.config.did_you_mean import closest, did_you_mean
from rtrain.config.files.home import expanded
from rtrain.config.files.locations import Primary, builtin_dir, find_primary, shown
from rtrain.config.files.yaml_file import read_yaml
from rtrain.config.run_conf import BoundsConf
from rtrain.config.schema import ClusterConf, RtrainConf
from rtrain.config.secrets.redact import Redactor
from rtrain.config.session import Session
from rtrain.config.targets.forgetting import project_forgotten
from rtrain.errors import ConfigError, NotInstalledError, RtrainError
from rtrain.process.interrupts import stopped_after
from rtrain.runs.observer import SilentObserver
from rtrain.runs.run import Run
from rtrain.runs.status import Status
from rtrain.schemas import schemas
from rtrain.text.numbers import number_text
from rtrain.training.fit import fit_session
from rtrain.training.preparation import DATA_CPUS

ROOT_DIR = "runs/smoke"
"""Where the runs are recorded."""
PLACE = (f"run.root_dir={ROOT_DIR}", "run.storage=null", "run.resume=never")
"""Overrides of all smoke runs."""
BLOCK = "smoke.overrides:"
"""What stands before the overrides where an error shows them."""
Lines = tuple[str, ...]
MARK = re.compile(r"^smoke:", re.MULTILINE)


@dataclass(frozen=True)
class Smoke:
    """A config with a smoke block."""

    primary: Primary

    @property
    def name(self) -> str:
        """Name of its runs."""
        return self.primary.job_name

    @property
    def folder(self) -> str:
        """Folder of its file, as a user would type it."""
        return shown(self.primary.path.parent)

    @property
    def overrides(self) -> list[str]:
        """The overrides of the block; errors in them are reported when they are composed."""
        block = read_yaml(self.primary.path)[0]["smoke"]
        words = block.get("overrides") if isinstance(block, Mapping) else None
        own = [str(word) for word in words] if isinstance(words, list) else []
        return [*own, *PLACE]

    @contextmanager
    def session(self) -> Iterator[Session]:
        """Open a session for it, and forget its project afterwards."""
        check_words("smoke.overrides", self.overrides)
        own = Session(str(self.primary.path), self.overrides, schemas(), typed=(BLOCK,))
        with project_forgotten(), _of_block(), own as session:
            session.request.of_file = True
            yield session


@contextmanager
def _of_block() -> Iterator[None]:
    """Leave out of errors what the block does not have."""
    try:
        yield
    except ConfigError as error:
        own = f" {shlex.join(PLACE)}"
        error.message, error.hint = error.message.replace(own, ""), error.hint and error.hint.replace(own, "")
        raise


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What became of one smoke block."""

    smoke: Smoke
    status: str
    """``passed``, ``missed``, ``wrong``: the config can't be trained, or ``skipped``: something isn't installed."""
    seconds: float = 0.0
    lines: Lines = ()
    """Each metric with its bounds, those outside first; or why it missed or was skipped."""
    output: str = ""
    """What was printed meanwhile."""
    run: Run | None = None


def find_smokes(paths: Sequence[str]) -> list[Smoke]:
    """Return what has a smoke block: files, and all YAML files in folders at any depth.

    Args:
        paths: Files and folders; none for ``recipes`` in the current folder, or else rtrain's own recipes.

    Raises:
        ConfigError: A file, or a folder, has none.
    """
    default = "recipes" if Path("recipes").is_dir() else str(builtin_dir("recipes"))
    files = [file for path in paths or [default] for file in _files(expanded(path))]
    return [Smoke(find_primary(str(file))) for file in dict.fromkeys(file.resolve() for file in files)]


def titles(smokes: Sequence[Smoke]) -> dict[Smoke, str]:
    """Return what to call each: its name, or its file if others have the same name."""
    counts = Counter(smoke.name for smoke in smokes)
    return {one: one.name if counts[one.name] == 1 else shown(one.primary.path) for one in smokes}


def run_smokes(smokes: Sequence[Smoke], max_seconds: float) -> Iterator[Outcome]:
    """Check all configs, then train one after the other and yield each outcome; those that need no Ray come first.

    Args:
        smokes: What to train.
        max_seconds: Longest time for one of them; then it is stopped and has missed.
    """
    checked: list[tuple[Smoke, Composed]] = []
    for smoke in smokes:
        try:
            with smoke.session() as session:
                checked.append((smoke, session.check()))
        except RtrainError as error:
            yield Outcome(smoke=smoke, status="wrong", lines=tuple(str(error).splitlines()))
    with _shared_cluster([composed.conf for _, composed in checked]) as cluster:
        for smoke, composed in sorted(checked, key=lambda pair: pair[1].conf.scaling.num_workers > 0):
            own = cluster if composed.conf.cluster == ClusterConf() else None
            yield _try(smoke, max_seconds, own, composed.redact)


def _files(path: Path) -> list[Path]:
    if not path.exists():
        raise ConfigError(f"{path} doesn't exist.", "Name files or folders with smoke blocks: rtrain smoke recipes/")
    files = [path] if path.is_file() else sorted(path.rglob("*.yaml"))
    inner = [file for file in files if not _is_aside(file.relative_to(path))]
    found = [file for file in inner if MARK.search(file.read_text(encoding="utf-8", errors="replace"))]
    if not found:
        what = "has no smoke block" if path.is_file() else "contains no YAML file with a smoke block"
        raise ConfigError(f"{path} {what}.", "Add one: smoke: {overrides: [trainer.max_epochs=1], expect: {}}")
    return found


def _is_aside(path: Path) -> bool:
    """Return whether a file belongs to runs or to something hidden."""
    return any(part == "runs" or part.startswith(".") for part in path.parts)


@contextmanager
def _shared_cluster(confs: Sequence[RtrainConf]) -> Iterator[StartingCluster | None]:
    """Start the one cluster of all that want workers, and leave it when the block ends."""
    shared = [conf.scaling for conf in confs if conf.scaling.num_workers > 0 and conf.cluster == ClusterConf()]
    with ExitStack() as stack:
        num_cpus = max((cluster_cpus(scaling, DATA_CPUS) for scaling in shared), default=0)
        yield stack.enter_context(connect(ClusterConf(), num_cpus)) if shared else None


def _try(smoke: Smoke, max_seconds: float, cluster: StartingCluster | None, redact: Redactor) -> Outcome:
    began, output = time.monotonic(), io.StringIO()
    with redirect_stdout(output), redirect_stderr(output):
        status, lines, run = _train(smoke, max_seconds, cluster)
    seconds = time.monotonic() - began
    said = redact(output.getvalue())
    return Outcome(smoke=smoke, status=status, seconds=seconds, lines=tuple(map(redact, lines)), output=said, run=run)


def _train(smoke: Smoke, max_seconds: float, cluster: StartingCluster | None) -> tuple[str, Lines, Run | None]:
    run, crowded = None, None
    with stopped_after(max_seconds) as limit:
        try:
            with smoke.session() as session:
                conf = session.check().conf
                crowded = sharing_notice(conf.scaling)
                run = fit_session(session, SilentObserver(), cluster)
                expect = conf.smoke.expect
        except NotInstalledError as error:
            return "skipped", tuple(str(error).splitlines()), None
        except RtrainError as error:
            status = "wrong" if isinstance(error, ConfigError) else "missed"
            return status, tuple(str(error).splitlines()), None
        except KeyboardInterrupt:
            if not limit.passed:
                raise
        except Exception as error:  # a fault of rtrain: this one has missed, the others are tried all the same
            traceback.print_exc()
            return "missed", (f"{type(error).__name__}: {error}",), None
    if limit.passed or run is None:
        so_far = "had not started to train" if run is None else "was still training"
        return "missed", (f"{so_far} after {max_seconds:g} seconds", *filter(None, [crowded])), run
    if run.status != Status.SUCCEEDED:
        raise KeyboardInterrupt  # Ctrl-C or SIGTERM ended the run, and is meant for all
    judged = sorted(_judge(metric, bounds, run.metrics) for metric, bounds in expect.items())
    return "passed" if all(good for good, _ in judged) else "missed", tuple(line for _, line in judged), run


def _judge(metric: str, bounds: BoundsConf, metrics: Mapping[str, float | None]) -> tuple[bool, str]:
    """Return whether a metric lies within its bounds, and the line that tells."""
    if metric not in metrics:
        close = closest(metric, metrics)
        return False, f"{metric} was not reported; " + (
            did_you_mean(close) if close else f"available: {', '.join(metrics)}"
        )
    value = metrics[metric]
    limits = [(">=", bounds.min), ("<=", bounds.max)]
    wanted = " and ".join(f"{sign} {bound:g}" for sign, bound in limits if bound is not None)
    if value is None:
        return False, f"{metric} is not a number, but must be {wanted}"
    good = bounds.hold(value)
    return good, f"{metric} {number_text(value)} " + (f"({wanted})" if good else f"must be {wanted}")
