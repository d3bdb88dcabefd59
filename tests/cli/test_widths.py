"""What commands print on terminals of several widths: no line is broken inside a word."""

import io
import re
from collections.abc import Iterator

import pytest
import typer
from made_runs import make_run, make_sweep

from rtrain.cli.app import app, run
from rtrain.datasets import registry as datasets
from rtrain.recipes import recipes
from rtrain.trainers import registry as trainers


class Terminal(io.StringIO):
    """A stream that is a terminal of as many columns as ``COLUMNS`` says."""

    def isatty(self):
        return True


def verbs(group, path=()) -> Iterator[list[str]]:
    yield [*path, "--help"]
    for name, command in getattr(group, "commands", {}).items():
        yield from verbs(command, (*path, name))


LISTS = [
    ["trainers"],
    ["datasets"],
    *(["trainers", name] for name in trainers.confs()),
    *(["datasets", name] for name in datasets.confs()),
    ["recipes", "ls"],
    *(["recipes", "show", name] for name in [one.name for one in recipes()]),
]
RUNS = [
    ["runs", "ls"],
    ["runs", "show", "last"],
    ["runs", "best", "--metric", "val/loss"],
    ["runs", "compare", "last:mlp", "last:resnet"],
    ["runs", "diff", "last:mlp", "last:resnet"],
    ["runs", "logs", "last"],
    ["runs", "gc", "--dry-run"],
    ["runs", "path", "last"],
    ["sweep", "show", "last:swept"],
    ["runs", "show", "last:swept"],
]
REFUSED = [
    ["fit", "nope"],
    [
        "fit",
        "mlp",
        "lerning_rate=0.1",
        "trainer.optimizer.weight_decay=0.001",
        "run.tags=[one,two]",
        "run.name=long-name",
    ],
    ["fit", "mlp", "trainer.model.hidden=[a]", "trainer.max_epochs=15", "dataset.limit=100", "trainer.batch_size=64"],
    ["fit", "mlp", "optimizer={name: adam, lr: 0.001}", "run.notes='a note of several words about this run'"],
    ["fit", "xgboost", "max_depth=3", "trainer.num_boost_round=100", "trainer.params.eta=0.1", "run.name=some-trees"],
    ["fit", "mlp", "trainer.loss=nonsense", "dataset.path=/a/path/that/is/rather/long/and/longer/still.csv"],
    ["fit", "mlp", "gpus=4", "trainer=lightning"],
    ["predict", "nope", "-o", "out.csv"],
    ["evaluate", "runs/nope/with/a/long/path/to/it/that/does/not/exist/at/all"],
    ["trainers", "xgbost"],
    ["runs", "show", "nope"],
    ["recipes", "cp", "digits-resnet"],
    ["sweep", "mlp", "lr=0.1,0.01", "trainer.max_epochs=15", "trainer.optimizer.weight_decay=0.001", "run.name=long"],
    ["nonsense"],
]


@pytest.fixture
def shown(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NO_COLOR", "1")

    def show(words, width):
        terminal = Terminal()
        monkeypatch.setenv("COLUMNS", str(width))
        monkeypatch.setattr("sys.stdout", terminal)
        monkeypatch.setattr("sys.stderr", terminal)
        run(words)
        return re.sub(r"\x1b\[[\d;]*m", "", terminal.getvalue()).splitlines()

    return show


def check(lines, width):
    assert lines
    too_long = [line for line in lines if len(line.rstrip()) > width and len(line.split()) > 2]
    assert too_long == []


def test_no_help_is_wider_than_the_terminal(shown):
    for words in verbs(typer.main.get_command(app)):
        check(shown(words, 80), 80)


@pytest.mark.parametrize("width", [80, 50])
def test_no_list_is_wider_than_the_terminal(shown, width):
    for words in LISTS:
        lines = shown(words, width)
        check(lines[: lines.index("```yaml")] if "```yaml" in lines else lines, width)  # a config stays as it is


@pytest.mark.parametrize("words", RUNS, ids=" ".join)
def test_nothing_about_runs_is_wider_than_the_terminal(shown, words, tmp_path):
    for name in ("mlp", "resnet"):
        folder = make_run(tmp_path / "runs", name, resources={"num_workers": 0})
        (folder / "logs").mkdir(exist_ok=True)
        (folder / "logs" / "driver.log").write_text("INFO a line\n")
    make_sweep(tmp_path / "runs", "swept")
    check(shown(words, 80), 80)


@pytest.mark.parametrize("words", REFUSED, ids=lambda words: " ".join(words[:3]))
@pytest.mark.parametrize("width", [80, 120])
def test_no_error_is_wider_than_the_terminal(shown, words, width):
    check(shown(words, width), width)


@pytest.mark.parametrize("words", [["recipes", "show", "digits-resnet"], ["runs", "ls", "--json"]], ids=" ".join)
def test_what_may_be_copied_or_read_by_a_program_is_never_broken(shown, words, tmp_path):
    make_run(tmp_path / "runs", "mlp", resources={"num_workers": 0})
    narrow, wide = shown(words, 40), shown(words, 1000)
    copied = wide.index("```yaml") if "```yaml" in wide else 0
    assert narrow[-len(wide[copied:]) :] == wide[copied:]
