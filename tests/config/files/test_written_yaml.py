"""What a run writes of its config is what a resumed run reads: every text stays a text."""

import random

import pytest

import rtrain
from rtrain.config.files.written_yaml import to_yaml
from rtrain.config.files.yaml_file import read_yaml
from rtrain.config.session import Session
from rtrain.runs.manifest import read_manifest
from rtrain.schemas import schemas

TEXTS = [
    *("1e3", "1e-3", "12345e7", "+1e5", "1E5", "-.5e1", "1.", ".5", "1_000", "0x1F", "0o17", "017", "12:30:00", "1:2"),
    *("nan", "NaN", ".nan", "inf", "-inf", ".inf", "Infinity", "null", "None", "~", "", " ", "on", "off", "yes", "no"),
    *("true", "False", "y", "n", "2024-11-05", "2024-11-05 10:00:00", "=", "<<", "1 ", " 1", "- a", "a: b", "#c", "!x"),
]
ALPHABET = "0123456789eE.+-_:xoninfatruTNF "


def back(data, path):
    path.write_text(to_yaml(data), encoding="utf-8")
    return read_yaml(path)[0]


@pytest.mark.parametrize("text", TEXTS, ids=repr)
def test_a_text_is_read_back_as_a_text_also_as_a_key(tmp_path, text):
    data = {"value": text, "list": [text], "keys": {text: text}}
    assert back(data, tmp_path / "one.yaml") == data


def test_any_text_of_signs_that_numbers_have_is_read_back(tmp_path):
    rng = random.Random(0)
    texts = ["".join(rng.choices(ALPHABET, k=rng.randint(1, 8))) for _ in range(3000)]
    data = {"texts": texts, "keys": dict.fromkeys(texts, 1)}
    assert back(data, tmp_path / "one.yaml") == data


def test_numbers_and_switches_stay_what_they_are(tmp_path):
    data = {"a": 1, "b": 0.001, "c": 1e300, "d": True, "e": None, "f": [1, 2.5], "g": {}}
    assert repr(back(data, tmp_path / "one.yaml")) == repr(data)


def test_a_run_is_resumed_with_the_very_texts_that_it_began_with(tmp_path):
    words = ["num_workers=0", f"run.root_dir={tmp_path}", "trainer.max_epochs=1", "dataset.limit=100"]
    texts = [f"+vars.{name}='{text}'" for name, text in zip("abcdef", TEXTS, strict=False)]
    run = rtrain.fit("mlp", [*words, *texts, "run.notes='12345e7'"])
    with Session(str(run.path / "config.yaml"), [], schemas()) as session:
        again = session.check().resolved
    first = read_manifest(run.path).config
    assert again["vars"] == first["vars"] == dict(zip("abcdef", TEXTS, strict=False))
    assert again["run"]["notes"] == "12345e7"
