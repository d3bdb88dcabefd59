"""Load estimators whose files were changed at random, and use them: run as a program, which a bad file would kill.

Arguments: a seed, and how many changes of each estimator. Each line of the output says what is tried next.
"""

from __future__ import annotations

import copy
import io
import json
import random
import resource
import signal
import sys
import warnings
import zipfile
from contextlib import suppress
from importlib import import_module

import numpy as np
from sklearn.base import BaseEstimator, is_classifier
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge, SGDClassifier
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from skops.io import dumps

from rtrain.trainers.sklearn.estimator_file.content import from_data
from rtrain.trainers.sklearn.estimator_file.data_types import ESTIMATORS

RNG = np.random.default_rng(0)
X = RNG.random((30, 4))
LEAVES = [("a", LogisticRegression()), ("b", DecisionTreeClassifier(max_depth=3))]
ARGUMENTS: dict[str, dict[str, object]] = {
    "CCA": {"n_components": 1},
    "ColumnTransformer": {"transformers": [("a", StandardScaler(), [0, 1]), ("b", MinMaxScaler(), [2, 3])]},
    "FeatureUnion": {"transformer_list": [("a", StandardScaler()), ("b", MinMaxScaler())]},
    "GridSearchCV": {"estimator": DecisionTreeClassifier(), "param_grid": {"max_depth": [2]}, "cv": 2},
    "HistGradientBoostingClassifier": {"max_iter": 2, "categorical_features": [3], "min_samples_leaf": 2},
    "HistGradientBoostingRegressor": {"max_iter": 2, "min_samples_leaf": 2},
    "LinearSVC": {"max_iter": 10},
    "MLPClassifier": {"max_iter": 2},
    "MLPRegressor": {"max_iter": 2},
    "OrthogonalMatchingPursuitCV": {"cv": 2, "max_iter": 2},
    "OneVsOneClassifier": {"estimator": SGDClassifier()},
    "OneVsRestClassifier": {"estimator": LinearSVC()},
    "OutputCodeClassifier": {"estimator": LogisticRegression()},
    "Pipeline": {"steps": LEAVES[1:]},
    "PLSCanonical": {"n_components": 1},
    "PLSRegression": {"n_components": 1},
    "RANSACRegressor": {"estimator": LinearRegression()},
    "RFE": {"estimator": DecisionTreeClassifier()},
    "RFECV": {"estimator": DecisionTreeClassifier(), "cv": 2},
    "RandomizedSearchCV": {"estimator": Ridge(), "param_distributions": {"alpha": [1.0]}, "n_iter": 1, "cv": 2},
    "SGDClassifier": {"average": True, "random_state": np.random.RandomState(0)},
    "SGDRegressor": {"random_state": np.random.RandomState(0)},
    "VotingClassifier": {"estimators": LEAVES},
    "VotingRegressor": {"estimators": [("a", Ridge()), ("b", DecisionTreeRegressor())]},
}
FEW = {
    "max_iter": 5,
    "n_estimators": 2,
    "n_alphas": 3,
    "n_quantiles": 5,
    "n_nonzero_coefs": 2,
    "max_subpopulation": 20,
    "n_components": 2,
}
OF_TARGETS = {"LabelBinarizer", "LabelEncoder", "KernelCenterer", "IsotonicRegression"}
OF_TABLES = {"MultiTaskElasticNet", "MultiTaskLasso"}
NUMBERS = (-1, 0, 1, 3, 255, 10**6, 2**31, 2**40, -(10**9), 10**12, 2**63 - 1)


def makes() -> dict[str, type]:
    """Return all listed estimators by name."""
    kinds = [getattr(import_module(module), name) for module, names in ESTIMATORS.items() for name in names]
    found = [one for one in kinds if issubclass(one, BaseEstimator) and hasattr(one, "fit")]
    return {one.__name__: one for one in found if not one.__name__.startswith("_")}


def fitted(name: str, kind: type) -> object:
    """Return an estimator of the kind, fitted on a few rows."""
    few = {key: value for key, value in FEW.items() if key in kind._get_param_names()}  # type: ignore[attr-defined]
    estimator = kind(**(copy.deepcopy(ARGUMENTS[name]) if name in ARGUMENTS else few))
    return estimator.fit(*_rows(name, estimator))


def _rows(name: str, estimator: object) -> tuple[np.ndarray, ...]:
    targets = np.arange(30) % (2 if name == "OneVsRestClassifier" else 3)
    if name in OF_TARGETS:
        given = {"KernelCenterer": (X @ X.T,), "IsotonicRegression": (X[:, 0], X[:, 1])}
        return given.get(name, (targets,))
    if name in OF_TABLES:
        return X, X[:, :2]
    return X, targets if is_classifier(estimator) else X[:, 0] + targets + 1


def changed(content: bytes, rng: random.Random) -> tuple[str, bytes]:
    """Return a skops file with one other array, number, entry or attribute, and what was done."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    arrays = [name for name in files if name.endswith(".npy")]
    if arrays and rng.random() < 0.5:
        name = rng.choice(arrays)
        array, told = _other_array(np.load(io.BytesIO(files[name])), rng)
        file = io.BytesIO()
        np.save(file, array)
        files[name] = file.getvalue()
    else:
        schema = json.loads(files["schema.json"])
        told = _other_schema(schema, rng)
        files["schema.json"] = json.dumps(schema).encode()
    found = io.BytesIO()
    with zipfile.ZipFile(found, "w") as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return told, found.getvalue()


def _other_array(array: np.ndarray, rng: random.Random) -> tuple[np.ndarray, str]:
    shapes = [np.zeros((0, *array.shape), array.dtype)]
    if array.ndim > 0:
        shapes += [array[:0], array[:-1], np.concatenate([array] * 3)]
    if array.ndim > 1:
        shapes += [array[:, :0], array[:, :1], array.T, np.concatenate([array] * 9, axis=1)]
    if array.size == 0 or rng.random() < 0.3:
        return shapes[place := rng.randrange(len(shapes))], f"shape {place} of {array.shape}"
    array = array.copy()
    field = rng.choice(array.dtype.names) if array.dtype.names else None
    numbers = array if field is None else array[field]
    if numbers.dtype.kind not in "biuf":
        return array, "nothing"
    value = np.array(rng.choice(NUMBERS)).astype(numbers.dtype)
    place = rng.randrange(numbers.size)
    numbers.reshape(-1)[: place + 1 if rng.random() < 0.5 else None] = value
    return array, f"{value} at {place} of {field or array.shape}"


def _nodes(value: object) -> list[dict]:
    inner = list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else []
    here = [value] if isinstance(value, dict) and "__loader__" in value else []
    return [*here, *(node for one in inner for node in _nodes(one))]


def _other_schema(schema: dict, rng: random.Random) -> str:
    nodes = _nodes(schema)
    plain = [one for one in nodes if one["__loader__"] == "JsonNode" and not str(one.get("content")).startswith('"')]
    mappings = [one for one in nodes if one["__loader__"] == "DictNode" and one["content"]]
    way = rng.choice("nnss-")
    if way == "n" and plain:
        node = rng.choice(plain)
        told, node["content"] = f"{node['content']} of {node['__id__']}", str(rng.choice([*NUMBERS, "true", "null"]))
        node["__id__"] = 10**9
        return f"{told} becomes {node['content']}"
    mapping = rng.choice(mappings)["content"]
    key = rng.choice(list(mapping))
    if way == "-":
        return f"no {key}: {mapping.pop(key)['__loader__']}"
    other = copy.deepcopy(rng.choice(nodes))
    mapping[key] = other
    return f"{key} is {other['__class__']} {other['__id__']}"


def use(estimator: object, rows: tuple[np.ndarray, ...]) -> None:
    """Do what rtrain does with an estimator."""
    for verb in ("predict_proba", "predict", "transform", "partial_fit"):
        for count in (30, 1):
            given = tuple(one[:count].copy() for one in rows)
            with suppress(Exception):  # a file that makes no sense raises anything
                getattr(estimator, verb)(*(given if verb == "partial_fit" else given[:1]))


def main(seed: int, number: int) -> None:
    """Try ``number`` changes of each estimator."""
    warnings.simplefilter("ignore")
    resource.setrlimit(resource.RLIMIT_AS, (16 << 30, 16 << 30))  # of a large number, an error and no full memory
    signal.signal(signal.SIGALRM, lambda *_: (_ for _ in ()).throw(TimeoutError()))
    num_loaded = 0
    for name, kind in makes().items():
        estimator = fitted(name, kind)
        content, rows = dumps(estimator), _rows(name, estimator)
        from_data(content)
        rng = random.Random(f"{seed} {name}")
        for _ in range(number):
            told, other = changed(content, rng)
            print(name, seed, told, flush=True)
            signal.setitimer(signal.ITIMER_REAL, 2)
            with suppress(Exception):
                found = from_data(other)
                num_loaded += 1
                use(found, rows)
            signal.setitimer(signal.ITIMER_REAL, 0)
    print(f"loaded {num_loaded}", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
