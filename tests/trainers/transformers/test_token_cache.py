"""Tokens come from the disk where they have been made before, and are those that would be made now."""

import fcntl
import logging
import os
import time
import weakref
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from threading import Barrier

import numpy as np
import pytest
from transformers_runs import dataset, fit, make_conf, predict

from rtrain.datasets.base import objects
from rtrain.errors import DatasetError
from rtrain.runs.checkpoints import latest_checkpoint
from rtrain.trainers.transformers import token_cache, token_splits, tokens
from rtrain.trainers.transformers.config import TokenizerConf
from rtrain.trainers.transformers.token_cache import cached


class Some:
    """Texts that are read in two parts."""

    fingerprint = None

    def __init__(self, *texts):
        self.texts = objects(texts)

    def __iter__(self):
        yield self.texts[:1]
        yield self.texts[1:]


TEXTS = Some("one", "two")
KINDS = {
    "classes": ("sequence-classification", {}),
    "packed": ("causal-lm", {"max_length": 6}),
    "a row per text": ("causal-lm", {"packing": False}),
    "masked": ("masked-lm", {}),
    "words": ("token-classification", {}),
}


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """The folder of an empty cache, which keeps short texts as well."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(token_cache, "LEAST_CHARACTERS", 1)
    return tmp_path / "cache" / "rtrain" / "tokens"


def folders(cache):
    return {one.name for one in cache.iterdir() if one.suffix != ".lock"} if cache.exists() else set()


def numbers():
    yield {"a": np.arange(3), "b": np.ones(1, np.uint8)}
    yield {"a": np.arange(0), "b": np.ones(0, np.uint8)}
    yield {"a": np.arange(3, 30), "b": np.full(2, 255, np.uint8)}


NUMBERS = {"a": np.arange(30), "b": np.asarray([1, 255, 255], np.uint8)}


def refuse(*_, **__):
    raise AssertionError("is made again")


def weights(folder):
    return (latest_checkpoint(Path(folder)) / "model.safetensors").read_bytes()


@pytest.mark.parametrize(("task", "keys"), KINDS.values(), ids=KINDS)
def test_a_run_with_kept_tokens_is_equal_to_the_last_bit(tmp_path, monkeypatch, cache, task, keys):
    data, conf = dataset(task), make_conf(task, **keys)
    monkeypatch.setattr(token_cache, "LEAST_CHARACTERS", 10**9)
    fit(tmp_path / "uncached", conf, data)
    assert folders(cache) == set()
    monkeypatch.setattr(token_cache, "LEAST_CHARACTERS", 1)
    fit(tmp_path / "first", conf, data)
    made = folders(cache)
    monkeypatch.setattr(tokens, "_trained", refuse)
    for name in ("joined", "tokens_of"):
        monkeypatch.setattr(token_splits, name, refuse)
    fit(tmp_path / "second", conf, data)
    assert folders(cache) == made
    assert len(made) == 3  # the tokenizer, and the tokens of two splits
    assert weights(tmp_path / "uncached") == weights(tmp_path / "first") == weights(tmp_path / "second")


@pytest.mark.parametrize(
    "changed",
    [
        {"max_length": 11},
        {"packing": False},
        {"tokenizer": TokenizerConf(train="wordpiece", vocab_size=50)},
        {"tokenizer": TokenizerConf(train="characters")},
        {"tokenizer": TokenizerConf(train="wordpiece", vocab_size=60, lowercase=True)},
    ],
    ids=str,
)
def test_other_settings_give_what_they_give_without_a_cache(tmp_path, monkeypatch, changed):
    data = dataset("causal-lm")
    conf = make_conf("causal-lm", **{"max_length": 6, **changed})
    fit(tmp_path / "before", make_conf("causal-lm", max_length=6), data)
    fit(tmp_path / "cached", conf, data)
    monkeypatch.setattr(token_cache, "LEAST_CHARACTERS", 10**9)
    fit(tmp_path / "uncached", conf, data)
    assert weights(tmp_path / "cached") == weights(tmp_path / "uncached")


@pytest.mark.parametrize(
    "other",
    [
        *(["one", "twO"], ["on", "etwo"], ["one", "two", ""], ["onetwo"], ["two", "one"]),
        *([["one"], ["two"]], [["one", "two"]]),
    ],
    ids=str,
)
def test_other_texts_are_other_entries(cache, other):
    cached(TEXTS, {}, numbers)
    cached(Some(*other), {}, lambda: [{"a": np.zeros(1)}])
    assert len(folders(cache)) == 2
    np.testing.assert_array_equal(cached(Some(*other), {}, refuse)["a"], [0])


@pytest.mark.parametrize("num_parts", [1, 2, 1000])  # of the first there are no values at all
def test_arrays_that_come_in_parts_are_joined_and_never_as_a_whole_in_memory(cache, num_parts):
    alive = []

    def make():
        for number in range(num_parts):
            part = np.full(number % 7, number)
            alive.append(weakref.ref(part))
            assert sum(one() is not None for one in alive) <= 2
            yield {"a": part}

    want = np.concatenate([np.full(number % 7, number) for number in range(num_parts)])
    np.testing.assert_array_equal(cached(TEXTS, {}, make)["a"], want)
    np.testing.assert_array_equal(cached(TEXTS, {}, refuse)["a"], want)


def test_texts_that_are_known_without_reading_them_are_not_read(cache):
    class Known(Some):
        fingerprint = "those of a file"

        def __iter__(self):
            raise AssertionError("they are read")

    cached(Known(), {}, numbers)
    np.testing.assert_array_equal(cached(Known(), {}, refuse)["a"], NUMBERS["a"])


def test_arrays_come_back_as_they_were():
    cached(TEXTS, {"length": 3}, numbers)
    found = cached(TEXTS, {"length": 3}, refuse)
    assert found.keys() == NUMBERS.keys()
    for name, values in NUMBERS.items():
        assert isinstance(found[name], np.memmap)
        assert found[name].dtype == values.dtype
        np.testing.assert_array_equal(found[name], values)


def test_those_who_ask_at_the_same_time_wait_for_the_first():
    made, ready = [], Barrier(4)

    def make():
        made.append(1)
        time.sleep(0.1)
        yield from numbers()

    def ask(_):
        ready.wait()
        return cached(TEXTS, {}, make)["a"].tolist()

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(ask, range(4))) == [[*range(30)]] * 4
    assert len(made) == 1


@pytest.mark.parametrize("broken", ["write", "flock"])
def test_a_disk_that_keeps_nothing_is_told_and_costs_nothing_else(monkeypatch, caplog, cache, broken):
    def fail(*_, **__):
        raise OSError(28, "No space left on device")

    if broken == "write":
        monkeypatch.setattr(token_cache.GrowingFile, "append", fail)
    else:
        monkeypatch.setattr(fcntl, broken, fail)
    with caplog.at_level(logging.WARNING):
        found = cached(TEXTS, {}, numbers)
    np.testing.assert_array_equal(found["a"], NUMBERS["a"])
    assert "tokens are not kept for the next run: [Errno 28] No space left on device" in caplog.text
    assert folders(cache) == set()


def test_tokens_of_texts_on_disk_are_never_in_memory_because_it_is_full(monkeypatch, cache):
    class Known(Some):
        fingerprint = "those of a file"

    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(token_cache.GrowingFile, "append", fail)
    with pytest.raises(DatasetError, match=r"tokens can't be written to the cache: .*No space.*\nLet XDG_CACHE_HOME"):
        cached(Known("one"), {}, numbers)
    assert folders(cache) == set()


def test_what_a_killed_process_left_is_made_again(cache):
    cached(TEXTS, {}, numbers)
    (name,) = folders(cache)
    half = (cache / name).rename(cache / f"{name}.tmp")
    (half / "a.npy").write_bytes(b"half of")
    np.testing.assert_array_equal(cached(TEXTS, {}, numbers)["a"], NUMBERS["a"])
    assert folders(cache) == {name}


def test_what_was_not_used_for_a_month_is_removed(cache):
    ages = {"old": 31, "used": 31, "new": 29}
    for name in ages:
        cached(Some(name), {}, numbers)
    places = dict(zip(ages, sorted(cache.glob("*[!k]"), key=lambda one: one.stat().st_ctime_ns), strict=False))
    held = cached(Some("old"), {}, refuse)["a"]
    for name, days in ages.items():
        then = time.time() - days * 86_400
        os.utime(places[name], (then, then))
    cached(Some("used"), {}, refuse)
    cached(Some("another one"), {}, numbers)
    assert {name for name, place in places.items() if place.exists()} == {"used", "new"}
    np.testing.assert_array_equal(held, NUMBERS["a"])


def test_new_rows_to_predict_are_not_kept(tmp_path, cache):
    data = dataset()
    conf = make_conf()
    fit(tmp_path / "run", conf, data)
    made = folders(cache)
    predict(tmp_path / "run", replace(conf), data)
    assert folders(cache) == made
