"""Texts that stay in the files of a data set of Hugging Face train as those in memory, a few at a time."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from transformers_runs import fit, make_conf, sentences

from rtrain.datasets.registry import confs, load_source
from rtrain.datasets.texts.mapped import MappedTexts
from rtrain.runs.checkpoints import latest_checkpoint

datasets = pytest.importorskip("datasets")
NUM_ROWS = 2500
KINDS = {
    "classes": ("sequence-classification", {"label": "y"}, {}),
    "numbers": ("regression", {"label": "y"}, {}),
    "packed": ("causal-lm", {"task": "language-modeling"}, {"max_length": 6}),
    "a row per text": ("causal-lm", {"task": "language-modeling"}, {"packing": False}),
    "masked": ("masked-lm", {"task": "language-modeling"}, {}),
}


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def seen(monkeypatch):
    """How many texts are read each time."""
    counts, read = [], MappedTexts.x

    def x(self, rows):
        counts.append(len(rows))
        return read(self, rows)

    monkeypatch.setattr(MappedTexts, "x", x)
    return counts


def data_of(folder, what, keys, memory):
    columns = sentences("regression" if what == "regression" else "sequence-classification", NUM_ROWS, 0)
    y = columns["y"] * (1.5 if what == "regression" else 1)
    if not folder.exists():
        datasets.Dataset.from_dict({"text": columns["x"].tolist(), "y": y.tolist()}).save_to_disk(str(folder))
    conf = confs()["huggingface"](path=str(folder), input="text", memory=memory, **keys)
    return load_source("huggingface").load(conf)


def weights(folder):
    return (latest_checkpoint(Path(folder)) / "model.safetensors").read_bytes()


@pytest.mark.parametrize(("what", "keys", "more"), KINDS.values(), ids=KINDS)
def test_a_run_is_equal_to_the_last_bit_and_reads_texts_once_and_a_few_at_a_time(tmp_path, seen, what, keys, more):
    conf = make_conf(what, **more, max_epochs=None, max_steps=3)
    fit(tmp_path / "held", conf, data_of(tmp_path / "data", what, keys, "resident"))
    assert seen == []
    mapped = data_of(tmp_path / "data", what, keys, "stream")
    fit(tmp_path / "mapped", conf, mapped)
    assert weights(tmp_path / "held") == weights(tmp_path / "mapped")
    assert max(seen) <= 1000
    assert sum(seen) <= 3 * NUM_ROWS, "for the tokenizer, once to look for letters and once to learn; and for tokens"
    seen.clear()
    fit(tmp_path / "again", conf, data_of(tmp_path / "data", what, keys, "stream"))
    assert weights(tmp_path / "held") == weights(tmp_path / "again")
    assert seen == []


def test_data_sets_of_one_name_size_and_time_are_told_apart(tmp_path):
    """As they come out of an archive, side by side, or as one that was replaced."""
    found = []
    for number, word in enumerate(("good", "ugly")):
        folder = tmp_path / f"version-{number}" / "train"
        rows = {"text": [f"{word} film {row}" for row in range(1000)]}
        datasets.Dataset.from_dict(rows).save_to_disk(str(folder))
        for file in folder.iterdir():
            os.utime(file, (1_000_000_000, 1_000_000_000))
        conf = confs()["huggingface"](path=str(folder), input="text", task="language-modeling", memory="stream")
        data = load_source("huggingface").load(conf)
        worker = make_conf("causal-lm", max_epochs=None, max_steps=1)
        fit(tmp_path / f"run-{number}", worker, data)
        found.append((data.splits["train"].fingerprint, weights(tmp_path / f"run-{number}")))
    assert found[0][0] != found[1][0]
    assert found[0][1] != found[1][1]
