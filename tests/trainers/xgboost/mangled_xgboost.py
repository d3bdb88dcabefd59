"""Load and use models of XGBoost whose files were changed: run as a program, which a bad file would kill.

Arguments: a seed, and how many changes of each model. Each line of the output says what is tried next.
"""

from __future__ import annotations

import copy
import random
import resource
import struct
import sys
import tempfile
import warnings
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import xgboost

from rtrain.datasets.base import DatasetInfo
from rtrain.testing.small_data import in_memory
from rtrain.trainers.xgboost.model_file import MODEL, best_rounds, read_trees
from rtrain.trainers.xgboost.predictor import Predictor
from rtrain.trainers.xgboost.ubjson import read_ubjson

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3)).astype("float32")
X[:, 2] = RNG.integers(0, 8, 60)
NUMERIC = (X[:, 0] + X[:, 1] > 0).astype("float32")
BY_CATEGORY = (X[:, 0] + X[:, 2] % 3 > 1).astype("float32")
THREE = np.arange(60) % 3
CATEGORICAL = {"feature_types": ["q", "q", "c"], "enable_categorical": True}
KINDS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "gbtree": ({"max_depth": 3, "objective": "binary:logistic"}, {"label": NUMERIC}),
    "categorical": ({"max_depth": 2, "max_cat_to_onehot": 2}, {"label": BY_CATEGORY, **CATEGORICAL}),
    "one of each": ({"max_depth": 2, "max_cat_to_onehot": 99}, {"label": BY_CATEGORY, **CATEGORICAL}),
    "classes": ({"max_depth": 2, "objective": "multi:softprob", "num_class": 3}, {"label": THREE}),
    "forest": (
        {"max_depth": 1, "num_class": 3, "objective": "multi:softprob", "num_parallel_tree": 2},
        {"label": THREE},
    ),
    "vectors": ({"max_depth": 2, "multi_strategy": "multi_output_tree"}, {"label": np.c_[NUMERIC, BY_CATEGORY]}),
    "targets": ({"max_depth": 2}, {"label": np.c_[NUMERIC, BY_CATEGORY]}),
    "quantiles": ({"objective": "reg:quantileerror", "quantile_alpha": [0.1, 0.9], "max_depth": 2}, {"label": NUMERIC}),
    "pruned": ({"tree_method": "exact", "max_depth": 3, "gamma": 2}, {"label": NUMERIC}),
    "ranking": (
        {"objective": "rank:ndcg", "max_depth": 1, "lambdarank_unbiased": True, "lambdarank_num_pair_per_sample": 4},
        {"label": THREE, "group": [20, 20, 20]},
    ),
    "dart": ({"booster": "dart", "rate_drop": 0.5, "max_depth": 2}, {"label": NUMERIC}),
    "dart by category": ({"booster": "dart", "rate_drop": 0.5, "max_depth": 2}, {"label": BY_CATEGORY, **CATEGORICAL}),
    "gblinear": ({"booster": "gblinear"}, {"label": NUMERIC}),
    "gblinear of classes": ({"booster": "gblinear", "objective": "multi:softprob", "num_class": 3}, {"label": THREE}),
}
NUMBERS = (-1, 0, 1, 2, 3, 7, 63, 255, 10**6, 2**31 - 1, -(2**31), 2**40, 2**63 - 1)
TEXTS = (
    "",
    "-1",
    "0",
    "1",
    "2",
    "3",
    "99",
    "1000000",
    "2147483647",
    "4294967295",
    "x",
    "[1E0,2E0,3E0]",
    "gbtree",
    "dart",
)
TEXTS += ("gblinear", "multi:softprob", "reg:quantileerror", "rank:pairwise", "survival:aft", "1e-5", "[]", "nan")


def info() -> DatasetInfo:
    """Return what the models were trained on."""
    return in_memory({"train": {"x": X, "y": NUMERIC}}, "regression").info


def matrix(kind: str) -> xgboost.DMatrix:
    """Return the rows that a model of the kind is trained on."""
    return xgboost.DMatrix(X, **KINDS[kind][1])


def fitted(kind: str) -> xgboost.Booster:
    """Return a model of the kind."""
    booster = xgboost.train({"verbosity": 0, **KINDS[kind][0]}, matrix(kind), num_boost_round=3)
    booster.set_attr(best_iteration="1")
    return booster


def written(value: Any) -> bytes:
    """Return UBJSON."""
    if isinstance(value, dict):
        return b"{" + b"".join(_text(key) + written(one) for key, one in value.items()) + b"}"
    if isinstance(value, list):
        return b"[#L" + struct.pack(">q", len(value)) + b"".join(map(written, value))
    if isinstance(value, np.ndarray):
        array = value.astype(value.dtype.newbyteorder(">"))
        letter = {">f4": b"d", "|u1": b"U", ">i4": b"l", ">i8": b"L"}[array.dtype.str]
        return b"[$" + letter + b"#L" + struct.pack(">q", len(array)) + array.tobytes()
    if isinstance(value, str):
        return b"S" + _text(value)
    return b"d" + struct.pack(">f", value) if isinstance(value, float) else b"L" + struct.pack(">q", value)


def _text(text: str) -> bytes:
    return b"L" + struct.pack(">q", len(text.encode())) + text.encode()


def changed(content: bytes, rng: random.Random) -> tuple[str, bytes]:
    """Return a file with other bytes, or with one to three other parts, and what was done."""
    if rng.random() < 0.1:
        return _other_bytes(content, rng)
    model = read_ubjson(content)
    told = [_change(model, rng) for _ in range(rng.choice((1, 1, 1, 2, 3)))]
    return "; ".join(told), written(model)


def _other_bytes(content: bytes, rng: random.Random) -> tuple[str, bytes]:
    place = rng.randrange(len(content))
    lengths = [at for at in range(len(content) - 9) if content[at : at + 2] == b"L\0"]
    at, number = rng.choice(lengths), rng.choice(NUMBERS)
    ways = {
        "cut": content[:place],
        "another byte": content[:place] + bytes([rng.randrange(256)]) + content[place + 1 :],
        "another length": content[: at + 1] + struct.pack(">q", number) + content[at + 9 :],
        "more after the end": content + content,
        "deep": b"{L" + struct.pack(">q", 1) + b"a" + b"[" * 10**6,
        "deep lists": b"{L" + struct.pack(">q", 1) + b"a" + (b"[#L" + struct.pack(">q", 1)) * 10**5,
    }
    told = rng.choice(list(ways))
    return f"{told} at {place}, {at}: {number}", ways[told]


def _places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the paths of all parts, of long lists of the first two and the last."""
    found = [path] if path else []
    if isinstance(value, dict):
        return found + [place for key, one in value.items() for place in _places(one, (*path, key))]
    if isinstance(value, list):
        few = sorted({*range(min(2, len(value))), *range(max(0, len(value) - 1), len(value))})
        return found + [place for number in few for place in _places(value[number], (*path, number))]
    return found


def _change(model: Any, rng: random.Random) -> str:
    *path, last = rng.choice(_places(model))
    owner = model
    for name in path:
        owner = owner[name]
    if rng.random() < 0.05:
        del owner[last]
        return f"no {(*path, last)}"
    told, owner[last] = _other(owner[last], rng)
    return f"{(*path, last)} {told}"


def _other(value: Any, rng: random.Random) -> tuple[str, Any]:
    if rng.random() < 0.05:
        other = rng.choice([rng.choice(NUMBERS), rng.choice(TEXTS), 0.5, {}, [], np.zeros(3, ">i4")])
        return f"is {other!r}", other
    if isinstance(value, np.ndarray):
        return _other_array(value, rng)
    if isinstance(value, list):
        ways = [[], value[:-1], value * 2, value[::-1], [copy.deepcopy(one) for one in value[:1] * len(value)]]
        return f"is {(place := rng.randrange(len(ways)))} of lists", ways[place]
    if isinstance(value, dict):
        return "has more", {**value, "more": rng.choice(TEXTS)}
    other = rng.choice(TEXTS) if isinstance(value, str) else type(value)(rng.choice(NUMBERS))
    return f"is {other!r}", other


def _other_array(array: np.ndarray, rng: random.Random) -> tuple[str, np.ndarray]:
    if len(array) == 0 or rng.random() < 0.3:
        ways = [
            array[:0],
            array[:-1],
            np.concatenate([array] * 3),
            array.astype(rng.choice((">f4", ">i4", ">i8", "|u1"))),
        ]
        ways += [np.arange(len(array) + 1).astype(array.dtype), np.zeros(10**5, array.dtype)]
        return f"is {(place := rng.randrange(len(ways)))} of arrays", ways[place]
    array, number, place = array.copy(), rng.choice((*NUMBERS, *range(8))), rng.randrange(len(array))
    array[place : None if rng.random() < 0.2 else place + 1] = np.array(number).astype(array.dtype)
    return f"{place} is {number}", array


def use(booster: xgboost.Booster, kind: str) -> None:
    """Do what rtrain does with a model."""
    rows = matrix(kind)
    with suppress(Exception):  # a file that makes no sense raises anything
        Predictor(booster, info(), margins=False).predict(X)
    with suppress(Exception):
        booster.predict(rows)
    with suppress(Exception):
        booster.get_score(importance_type="gain")
    with suppress(Exception):
        booster.save_config()
    for is_whole in (True, False):
        with suppress(Exception):
            trees = booster if is_whole else booster[: best_rounds(booster) or None]
            grown = xgboost.Booster({"verbosity": 0, **KINDS[kind][0]}, [rows], model_file=trees)
            grown.update(rows, grown.num_boosted_rounds())
            grown.predict(rows)
            grown.save_raw("ubj")


def main(seed: int, number: int) -> None:
    """Try ``number`` changes of each model."""
    warnings.simplefilter("ignore")
    resource.setrlimit(resource.RLIMIT_AS, (16 << 30, 16 << 30))  # of a large number, an error and no full memory
    num_loaded, shape = 0, info()
    with tempfile.TemporaryDirectory() as name, xgboost.config_context(verbosity=0):
        folder = Path(name)
        for kind in KINDS:
            content, rng = bytes(fitted(kind).save_raw("ubj")), random.Random(f"{seed} {kind}")
            for _ in range(number):
                told, other = changed(content, rng)
                print(kind, seed, told, flush=True)
                (folder / MODEL).write_bytes(other)
                with suppress(Exception):
                    found = read_trees(folder, shape, trusted=False)
                    num_loaded += 1
                    use(found, kind)
    print(f"loaded {num_loaded}", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
