"""Load and use models of LightGBM whose files were changed: run as a program, which a bad file would kill.

Arguments: a seed, and how many changes of each model. Each line of the output says what is tried next.
"""

from __future__ import annotations

import logging
import random
import re
import resource
import sys
import tempfile
import warnings
from contextlib import suppress
from pathlib import Path
from typing import Any

import lightgbm
import numpy as np

from rtrain.trainers.lightgbm.model_file import MODEL, read_trees

RNG = np.random.default_rng(0)
X = RNG.normal(size=(200, 3))
X[:, 2] = RNG.integers(0, 40, 200)
NUMERIC = (X[:, 0] + X[:, 1] > 0).astype("float32")
BY_CATEGORY = (X[:, 0] + X[:, 2] % 3 > 1).astype("float32")
THREE = np.arange(200) % 3
FEW_LEAVES = {"num_leaves": 4, "min_data_in_leaf": 5}
FOREST = {"boosting": "rf", "bagging_fraction": 0.5, "bagging_freq": 1, **FEW_LEAVES}
CATEGORIES = {"categorical_feature": [2]}
SORTED = {"min_data_per_group": 2, "cat_smooth": 1, "max_cat_to_onehot": 1, **FEW_LEAVES}
KINDS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "gbdt": ({"objective": "binary", **FEW_LEAVES}, {"label": NUMERIC}),
    "categorical": ({"objective": "binary", **SORTED}, {"label": BY_CATEGORY, **CATEGORIES}),
    "classes": ({"objective": "multiclass", "num_class": 3, "num_leaves": 3}, {"label": THREE}),
    "one against all": ({"objective": "multiclassova", "num_class": 3, "num_leaves": 3}, {"label": THREE}),
    "linear": ({"objective": "regression", "linear_tree": True, **FEW_LEAVES}, {"label": X[:, 0] + X[:, 1]}),
    "linear by category": (
        {"objective": "regression", "linear_tree": True, **SORTED},
        {"label": X[:, 0] + X[:, 2] % 3, **CATEGORIES},
    ),
    "linear leaves alone": (
        {"objective": "multiclass", "num_class": 3, "linear_tree": True, "num_leaves": 2, "min_gain_to_split": 20},
        {"label": (X[:, 0] > 1) + 2 * (X[:, 0] < 0) * (np.arange(200) % 2)},
    ),
    "quantile": ({"objective": "quantile", "alpha": 0.2, **FEW_LEAVES}, {"label": X[:, 0]}),
    "leaves alone": ({"objective": "regression", "min_data_in_leaf": 150}, {"label": NUMERIC}),
    "constraints": ({"objective": "regression", "monotone_constraints": [1, 0, 0], **FEW_LEAVES}, {"label": NUMERIC}),
    "ranking": ({"objective": "lambdarank", **FEW_LEAVES}, {"label": THREE, "group": [50] * 4}),
    "dart": ({"objective": "binary", "boosting": "dart", **FEW_LEAVES}, {"label": NUMERIC}),
    "forest": ({"objective": "binary", **FOREST}, {"label": BY_CATEGORY, **CATEGORIES}),
}
NUMBERS = ("-1", "0", "1", "2", "3", "4", "63", "-2", "-4", "-5", "1000000", "2147483647", "-2147483648", "99999999999")
TOKENS = (
    *NUMBERS,
    "",
    "x",
    "nan",
    "inf",
    "-0",
    "0.5",
    "1e300",
    "1e9",
    "1_0",
    "  ",
    "multiclass num_class:9",
    "none",
    "binary",
)
TOKENS += ("multiclass num_class:0", "binary sigmoid:0", "poisson", "quantile", "custom", "v3", "0x10", "=", "Tree=0")


def data(kind: str) -> lightgbm.Dataset:
    """Return the rows that a model of the kind is trained on."""
    return lightgbm.Dataset(X, **KINDS[kind][1], params={"verbosity": -1}, free_raw_data=False)


def params(kind: str) -> dict[str, Any]:
    """Return the parameters of a model of the kind."""
    return {"verbosity": -1, "num_threads": 2, "metric": "None", **KINDS[kind][0]}


def fitted(kind: str) -> lightgbm.Booster:
    """Return a model of the kind."""
    return lightgbm.train(params(kind), data(kind), num_boost_round=3)


def changed(content: bytes, rng: random.Random) -> tuple[str, bytes]:
    """Return a file with other bytes, or with one to three other lines, and what was done."""
    if rng.random() < 0.1:
        place = rng.randrange(len(content))
        ways = [content[:place], content[:place] + bytes([rng.randrange(256)]) + content[place + 1 :], content * 2]
        return f"{(way := rng.randrange(len(ways)))} of bytes at {place}", ways[way]
    lines = content.decode().split("\n")
    # Most parameters count for nothing.
    places = [at for at, line in enumerate(lines) if line and (not line.startswith("[") or rng.random() < 0.1)]
    told = [_change(lines, rng.choice(places), rng) for _ in range(rng.choice((1, 1, 1, 2, 3)))]
    text = "\n".join(lines)
    return "; ".join(told), (with_sizes(text) if rng.random() < 0.8 else text).encode()


def with_sizes(text: str) -> str:
    """Return the text with the sizes that its trees have."""
    begin, end = text.find("Tree="), text.find("end of trees")
    sizes = [len(tree) for tree in re.split(r"(?m)^(?=Tree=)", text[begin:end]) if tree]
    return re.sub(r"(?m)^tree_sizes=.*$", "tree_sizes=" + " ".join(map(str, sizes)), text)


def _change(lines: list[str], place: int, rng: random.Random) -> str:
    key, mark, value = lines[place].partition("=")
    way = rng.choice("dtttttttnssx")
    if way == "d":
        lines[place] = ""
        return f"no {key}"
    if way == "n":
        lines[place] = f"{key}{mark}{rng.choice(TOKENS)}"
        return f"all of {lines[place]!r}"
    if way == "x":
        lines[place] = rng.choice(lines)
        return f"{key} is {lines[place]!r}"
    tokens = value.split(" ")
    at = rng.randrange(len(tokens))
    if way == "s":
        other = rng.choice([tokens[:-1], tokens * 2, tokens[::-1], [*tokens, "1"], tokens[:1]])
    else:
        other = [*tokens[:at], rng.choice(TOKENS), *tokens[at + 1 :]]
    lines[place] = f"{key}{mark}{' '.join(other)}"
    return f"{way} {key} at {at}: {lines[place][-40:]!r}"


def use(booster: lightgbm.Booster, kind: str) -> None:
    """Do what rtrain does with a model."""
    for count in (200, 1):
        with suppress(Exception):  # a file that makes no sense raises anything
            booster.predict(X[:count], num_iteration=2)
        with suppress(Exception):
            booster.predict(X[:count], raw_score=True)
    with suppress(Exception):
        booster.feature_importance("gain")
    with suppress(Exception):
        few = lightgbm.Booster(model_str=booster.model_to_string(num_iteration=2))
        grown = lightgbm.train(params(kind), data(kind), num_boost_round=1, init_model=few)
        grown.predict(X)
        grown.model_to_string(num_iteration=-1)


def main(seed: int, number: int) -> None:
    """Try ``number`` changes of each model."""
    warnings.simplefilter("ignore")
    resource.setrlimit(resource.RLIMIT_AS, (16 << 30, 16 << 30))  # of a large number, an error and no full memory
    lightgbm.register_logger(logging.getLogger("lightgbm"))  # nothing but what is tried goes to the output
    num_loaded = 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for kind in KINDS:
            content, rng = fitted(kind).model_to_string().encode(), random.Random(f"{seed} {kind}")
            for _ in range(number):
                told, other = changed(content, rng)
                print(kind, seed, told, flush=True)
                (folder / MODEL).write_bytes(other)
                with suppress(Exception):
                    found = read_trees(folder, trusted=False)
                    num_loaded += 1
                    use(found, kind)
    print(f"loaded {num_loaded}", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
