"""Wrong values: what was meant by them, by classes of keys and values."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from types import SimpleNamespace
from typing import get_args, get_type_hints

import pytest

from rtrain.config.diagnostics.meant.keys.schema_keys import all_confs
from rtrain.config.diagnostics.meant.keys.suggest import Keys
from rtrain.config.diagnostics.meant.rewritten import rewritten
from rtrain.config.diagnostics.meant.unreadable import as_override, closed
from rtrain.config.diagnostics.meant.values import Values
from rtrain.config.diagnostics.screen import CliWord
from rtrain.config.files.data_files import words_for
from rtrain.config.schema import RtrainConf
from rtrain.config.session import Session
from rtrain.errors import ConfigError
from rtrain.schemas import schemas


@pytest.mark.parametrize(
    "word", ["lr:0.1", "lr 0.1", "lr==0.1", "lr = 0.1", "lr: 0.1", "lr:=0.1", "lr =0.1", "lr= 0.1"]
)
def test_a_key_and_a_value_with_something_else_between_them(word):
    assert as_override(word) == "lr=0.1"


@pytest.mark.parametrize("word", ["lr", "=0.1", "lr=0.1", "a b=c: d", "lr=", "", "name=a:b", "0.1 lr"])
def test_what_can_not_be_told_apart(word):
    assert as_override(word) in (None, "a=b=c: d")


@pytest.mark.parametrize(
    ("value", "problem", "meant"),
    [
        ("{hidden: [1}", "a ] is missing", "{hidden: [1]}"),
        ("[1,2", "a ] is missing", "[1,2]"),
        ("{a: 1", "a } is missing", "{a: 1}"),
        ("[{a: [1", "a ] is missing", "[{a: [1]}]"),
        ("[1]]", "there is a ] too many", "[1]"),
        ("'a", "a closing ' is missing", "'a'"),
        ("['[', 1", "a ] is missing", "['[', 1]"),
    ],
)
def test_brackets_and_quotes_are_closed(value, problem, meant):
    assert closed(value) == (problem, meant)


@pytest.mark.parametrize("value", ["[1,2]", "{a: '}'}", "plain", "a [b", ""])
def test_what_is_closed_stays(value):
    assert closed(value) is None


@pytest.mark.parametrize(
    ("file", "kind"),
    [
        *(("a.csv", "csv"), ("x/a.csv.gz", "csv"), ("a.parquet", "parquet"), ("a.jsonl", "json")),
        *(("a.tsv.zip", "csv"), ("a.csv.parquet", "parquet"), ("a.snappy.parquet", "parquet")),
    ],
)
def test_files_of_data_name_their_dataset(file, kind):
    assert words_for(file) == [f"dataset={kind}", f"dataset.path={file}", "dataset.label=..."]
    assert words_for(file, has_label=True) == [f"dataset={kind}", f"dataset.path={file}"]


OTHERS = ["resnet", "a.yaml", "csv", "torch.optim.Adam", ".gz", "a.zip", "a.parquet.yaml", "d.json.yaml", "a.csv.py"]


@pytest.mark.parametrize("file", OTHERS)
def test_other_words_are_no_data(file):
    assert words_for(file) is None


EVERY = schemas()


def sections():
    """Return the dataclass of every section, by key and plugin."""
    found = {}
    for trainer in EVERY.trainer:
        found |= {(where, trainer): conf for where, conf in all_confs(EVERY, {"trainer": trainer})}
    for dataset in EVERY.dataset:
        found |= {(where, dataset): conf for where, conf in all_confs(EVERY, {"dataset": dataset})}
    return {name: conf for name, conf in found.items() if is_dataclass(conf) and "." in name[0] and conf != RtrainConf}


SECTIONS = sections()


def corrected(key, value, confs, fits=lambda word: True):
    """Return the corrected word of a command that sets ``key``; ``fits`` stands for the checks."""
    words = ("rtrain", "fit", "x", f"{key}={value}")
    request = SimpleNamespace(command=list(words), overrides=words[3:], words=())
    values = Values(request, Keys([], confs), lambda new: None if fits(new[0]) else ValueError())
    found = values.corrected(key, CliWord(words, 3))
    return found and found.removeprefix("rtrain fit x ").strip("'")


def takes(hint, kind):
    return kind in (hint, *get_args(hint))


@pytest.mark.parametrize("name", SECTIONS, ids=".".join)
def test_one_value_for_a_section_names_a_key_of_it(name):
    key, conf = name[0], SECTIONS[name]
    assert Values(SimpleNamespace(), Keys([], [(key, conf)]), lambda _: None).keys_of(key).startswith("its keys: ")
    assert corrected(key, "true", [(key, conf)]) == f"{key}={{}}"
    hints = get_type_hints(conf)
    for value, kinds in (("5", (int, float)), ("0.5", (float,)), ("abc", (str,))):
        able = [one.name for one in fields(conf) if any(takes(hints[one.name], kind) for kind in kinds)]
        found = corrected(key, value, [(key, conf)])
        assert (found is not None) == bool(able or hasattr(conf, "scalar")), value
        assert found is None or found.partition("=")[0].rpartition(".")[2] in [one.name for one in fields(conf)]


def test_a_key_that_fails_the_checks_is_not_proposed():
    (key, conf), *_ = ((name[0], conf) for name, conf in SECTIONS.items() if name[0] == "trainer.early_stopping")
    assert corrected(key, "5", [(key, conf)]) == "trainer.early_stopping.patience=5"
    assert (
        corrected(key, "5", [(key, conf)], lambda word: "patience" not in word) == "trainer.early_stopping.min_delta=5"
    )
    assert corrected(key, "5", [(key, conf)], lambda word: False) is None


@pytest.mark.parametrize("dataset", EVERY.dataset)
def test_counts_and_shares_name_each_other(dataset):
    confs = [("dataset", EVERY.dataset[dataset])]
    if {"limit", "sample"} <= {one.name for one in fields(EVERY.dataset[dataset])}:
        assert corrected("dataset.limit", "0.5", confs) == "dataset.sample=0.5"
        assert corrected("dataset.sample", "50", confs) == "dataset.limit=50"
        assert corrected("dataset.split.val", "20", confs) == "dataset.split.val=0.2"


@pytest.mark.parametrize(
    ("value", "meant"),
    [
        ("10.0", "10"),
        ("1e3", "1000"),
        ("20%", "0.2"),
        ("10k", "10000"),
        ("1.5k", "1500"),
        ("1/10", "0.1"),
        ("'0.1'", "0.1"),
        ("[5]", "5"),
        ("\uff11\uff10", "10"),
        ("10e\u22124", "10e-4"),
        ("off", "null"),
        ("my run", "my-run"),
        ("a/b c", "a-b-c"),
    ],
)
def test_a_value_in_another_form(value, meant):
    assert corrected("run.x", value, []) == f"run.x={meant}"


@pytest.mark.parametrize(
    ("value", "meant"), [("off", ["null", "false"]), ("null", ["false", "[]"]), ("None", ["null"])]
)
def test_nothing_is_written_by_the_type_of_the_key(value, meant):
    found = [corrected("run.x", value, [], lambda word, one=one: word == f"run.x={one}") for one in meant]
    assert found == [f"run.x={one}" for one in meant]


@pytest.mark.parametrize(
    ("value", "meant"),
    [
        ("a", "[a]"),
        ("5", "[5]"),
        ("(64,64)", "[64,64]"),
        ("64x64", "[64,64]"),
        ("'[64,64]'", "[64,64]"),
        ("{type: a}", "[{type: a}]"),
        ("null", "[]"),
    ],
)
def test_one_value_for_a_list(value, meant):
    assert meant in rewritten(value)


def test_a_list_for_a_key_of_one_value_is_a_sweep():
    assert corrected("run.x", "[1,2]", []) == "run.x=1,2 --multirun"
    assert corrected("run.x", "[1,2]", [], lambda word: False) is None


@pytest.mark.parametrize("value", ["fast", "nan", "", "-5", "200"])
def test_nothing_is_made_of_other_values(value):
    assert corrected("run.x", value, []) is None


PATHS = sorted(
    name
    for name, conf in schemas().group("dataset").items()
    if "path" in {one.name for one in fields(conf)} and name not in ("images", "huggingface", "webdataset", "mnist")
)

LABELLED = ("csv", "json", "parquet")
"""Those whose label is required."""


@pytest.mark.parametrize("source", PATHS)
def test_a_wrong_value_of_a_path_is_not_taken_for_a_path_without_its_source(source):
    words = [f"dataset={source}", "dataset.path={}", *(["dataset.label=y"] if source in LABELLED else [])]
    with pytest.raises(ConfigError) as failed, Session("xgboost", words, schemas()) as session:
        session.check()
    assert "dataset.path" in failed.value.message
    assert "set its type and location" not in str(failed.value)
