"""What may follow on a command line."""

from __future__ import annotations

import pytest
import typer
from made_runs import make_run

from rtrain.cli.app import app
from rtrain.cli.completing import index as kept_index
from rtrain.cli.completing import quick, words
from rtrain.cli.completing.answer import _index
from rtrain.cli.completing.words import candidates


@pytest.fixture(scope="module")
def index():
    return _index(typer.main.get_command(app))


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder with a config, a table, two runs and a sweep."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "mine.yaml").write_text("trainer: {type: xgboost}\n")
    (tmp_path / "table.csv").write_text("a,b c\n1,2\n")
    for number, name in enumerate(("trees", "mlp")):
        made = make_run(tmp_path / "runs", name, f"0a1{number}")
        (made / "config.yaml").write_text("trainer: {type: xgboost}\n")
    return tmp_path


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("rtrain ", {"fit", "resume", "runs", "schema"}),
        ("rtrain fi", {"fit"}),
        ("rtrain runs ", {"ls", "show", "compare"}),
        ("rtrain runs sho", {"show"}),
        ("rtrain sweep ", {"show"}),
        ("rtrain recipes ", {"cp", "ls", "show"}),
        ("rtrain --", {"--version", "--help"}),
        ("rtrain fit -", {"--multirun", "-m", "--cfg", "--help"}),
        ("rtrain runs ls --wh", {"--where"}),
        ("rtrain fit resnet --cfg ", {"job", "hydra", "all"}),
        ("rtrain fit resnet --config-dir ", {"runs/"}),
        ("rtrain fit ", {"mine.yaml", "resnet", "runs/"}),
        ("rtrain fit m", {"mine.yaml", "mlp"}),
        ("rtrain smoke mi", {"mine.yaml"}),
        ("rtrain fit mine.yaml trainer.num_b", {"trainer.num_boost_round="}),
        ("rtrain fit -m mine.yaml trainer.num_b", {"trainer.num_boost_round="}),
        ("rtrain fit --cfg job mine.yaml trainer.num_b", {"trainer.num_boost_round="}),
        ("rtrain fit mine.yaml 'model={a: b}' dataset=cs", {"dataset=csv"}),
        ("rtrain fit mine.yaml dataset=csv dataset.path=t", {"dataset.path=table.csv"}),
        ("rtrain fit mine.yaml run.init_from=la", {"run.init_from=last", "run.init_from=last:mlp"}),
        ("rtrain up --trainer ", {"torch", "xgboost"}),
        ("rtrain resume ", {"last", "best", "last:mlp", "0a10", "runs/"}),
        ("rtrain runs show 0a", {"0a10", "0a11"}),
        ("rtrain runs compare 0a10 ", {"0a11", "last"}),
        ("rtrain runs rm runs/", {"runs/mlp/", "runs/trees/"}),
        ("rtrain runs ls ", {"runs/"}),
        ("rtrain evaluate last --checkpoint best --sp", {"--split"}),
        ("rtrain resume last cluster.add", {"cluster.address="}),
        ("rtrain trainers x", {"xgboost"}),
        ("rtrain datasets c", {"csv"}),
        ("rtrain schema sw", {"sweep", "sweep/scheduler"}),
        ("rtrain completion z", {"zsh"}),
        ("rtrain recipes cp digits", {"digits-resnet", "digits-accelerate"}),
        ("rtrain recipes cp digits-resnet r", {"runs/"}),
    ],
)
def test_proposes(line, expected, index, here):
    found = candidates(line, index)
    assert expected <= set(found)
    assert all(one.startswith(line.rpartition(" ")[2]) for one in found)


@pytest.mark.parametrize(
    "line", ["rtrain nothing ", "rtrain fit nothing x", "rtrain runs ls --nothing", "rtrain trainers x x"]
)
def test_proposes_nothing(line, index, here):
    assert candidates(line, index) == []


def test_what_every_argument_may_be_is_known_or_its_text_is_free(index):
    names = {name.removesuffix("...") for node in _nodes(index["commands"]) for name in node["arguments"]}
    assert names - set(words.PROPOSED) == {"OVERRIDES", "TAG", "TEXT", "URL", "INTO", "[KEY=VALUE]"}


def test_what_every_option_may_be_is_known_or_it_is_free(index):
    names = {name for node in _nodes(index["commands"]) for name in node["options"].values() if isinstance(name, str)}
    numbers = {"--max-seconds", "--workers", "--idle-minutes", "--limit", "--rank", "--lines"}
    assert names - set(words.PROPOSED) == {"--package", "--label", "--to", "TAG", "LOGGER", *numbers}


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("rtrain runs ls --where ", {"status", "val/loss", "trainer.type", "started"}),
        ("rtrain runs ls --where sta", {"status", "started"}),
        ("rtrain runs ls --where 'val/loss > 0.9 and (sta", {"val/loss > 0.9 and (started"}),
        ("rtrain runs ls --where 'val/loss > ", set()),
        ("rtrain runs ls -s sta", {"started"}),
        ("rtrain runs ls -s -sta", {"-started"}),
        ("rtrain runs ls -c +sta", {"+started"}),
        ("rtrain runs ls -c status,see", {"status,seed"}),
        ("rtrain runs best --metric ", {"val/loss"}),
        ("rtrain runs best --metric sta", set()),
        ("rtrain runs best --mode ", {"min", "max"}),
        ("rtrain runs best --mode=", {"--mode=min", "--mode=max"}),
        ("rtrain runs ls --where='status = running' --sort=-sta", {"--sort=-started"}),
        ("rtrain runs ls -n ", set()),
        ("rtrain fit mine.yaml -p ", set()),
        ("rtrain fit mine.yaml --config-dir t", set()),
        ("rtrain predict 0a10 --split ", {"train", "val", "test"}),
        ("rtrain predict 0a10 --checkpoint b", {"best"}),
        ("rtrain predict 0a10 -o t", {"table.csv"}),
        ("rtrain init --dataset t", {"table.csv"}),
        ("rtrain init --dataset table.csv --label ", {"a", "b c"}),
        ("rtrain init --label ", set()),
        ("rtrain init --dataset nothing.csv --label ", set()),
        ("rtrain up --workers ", set()),
    ],
)
def test_an_option_is_proposed_what_it_takes(line, expected, index, here, capsys):
    quick.answer(line, index)
    found = set(capsys.readouterr().out.splitlines())
    assert expected <= found
    assert not found & {"mine.yaml", "runs/"}
    assert bool(found) == bool(expected)


def _nodes(node):
    yield node
    for inner in node.get("commands", {}).values():
        yield from _nodes(inner)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("rtrain ", ["rtrain", ""]),
        ("rtrain fit a", ["rtrain", "fit", "a"]),
        ("rtrain fit my\\ folder/a", ["rtrain", "fit", "my folder/a"]),
        ("rtrain fit my\\", ["rtrain", "fit", "my"]),
        ("rtrain fit 'my folder/", ["rtrain", "fit", "my folder/"]),
        ("rtrain fit \"it's", ["rtrain", "fit", "it's"]),
        ("rtrain fit 'a \"b", ["rtrain", "fit", 'a "b']),
        ("rtrain fit 'a b' ", ["rtrain", "fit", "a b", ""]),
        ("rtrain fit #1 a", ["rtrain", "fit", "#1", "a"]),
    ],
)
def test_a_line_is_read_as_a_shell_reads_it(line, expected):
    assert words.unquoted(line) == expected


@pytest.mark.parametrize(
    ("typed", "replaced", "printed"),
    [
        ("dataset.path=t", None, "dataset.path=table.csv"),
        ("dataset.path=t", "dataset.path=t", "dataset.path=table.csv"),
        ("dataset.path=t", "t", "table.csv"),
        ("dataset.path='t", "t", "table.csv"),
        ("'dataset.path=t", "dataset.path=t", "dataset.path=table.csv"),
        ("dataset.path=", "", "table.csv"),
    ],
)
def test_the_part_of_the_word_that_stays_is_not_printed(typed, replaced, printed, index, here, capsys):
    quick.answer(f"rtrain fit mine.yaml dataset=csv {typed}", index, replaced)
    assert printed in capsys.readouterr().out.splitlines()


@pytest.mark.parametrize("typed", ["", "mine.yaml dataset.path="])
def test_a_path_below_home(typed, index, here, monkeypatch):
    monkeypatch.setenv("HOME", str(here))
    assert candidates(f"rtrain fit {typed}~/mi", index) == [f"{typed.rpartition(' ')[2]}~/mine.yaml"]


def test_a_run_that_can_not_be_found_is_no_error(index, here, capsys):
    quick.answer("rtrain resume best:nothing clu", index)
    assert capsys.readouterr() == ("", "")


def test_names_that_a_terminal_would_obey_are_left_out(index, here, capsys):
    for name in ("a\x1b[31m.yaml", "a\nb.yaml", "ab.yaml"):
        (here / name).write_text("")
    quick.answer("rtrain fit a", index)
    assert capsys.readouterr().out == "ab.yaml\n"


def test_parameters_of_libraries(index, here):
    found = candidates("rtrain fit mine.yaml trainer.params.max_d", index)
    assert {"trainer.params.max_depth=", "trainer.params.max_delta_step="} <= set(found)
    assert "num_leaves" in words._known_parameters("lightgbm")
    assert words._known_parameters("sklearn") == []


def test_an_index_is_kept_until_something_is_installed(here, index, monkeypatch, capsys):
    assert not quick.answered(["--", "rtrain fi"])
    kept_index.keep("index", index)
    assert quick.answered(["--", "rtrain fi"])
    assert capsys.readouterr().out == "fit\n"
    monkeypatch.setattr(kept_index, "_installation", lambda: "another")
    assert not quick.answered(["--", "rtrain fi"])


@pytest.mark.parametrize("text", ["", "{", '{"of": 1}', "[]"])
def test_a_damaged_index_is_made_again(text, here):
    kept_index.keep("index", {})
    (file,) = (here / "cache" / "rtrain").glob("completion-index*")
    file.write_text(text)
    assert kept_index.kept_or_made("index", lambda: {"a": 1}) == {"a": 1}
    assert kept_index.kept("index") == {"a": 1}


def test_no_place_for_an_index(here):
    (here / "cache").write_text("a file")
    assert kept_index.kept_or_made("index", lambda: {"a": 1}) == {"a": 1}
