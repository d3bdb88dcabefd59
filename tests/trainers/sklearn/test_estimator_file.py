"""Estimators in files: as data where skops holds them, and nothing but data of another account's."""

import ast
import importlib
import inspect
import io
import json
import os
import pickle
import random
import subprocess
import sys
import zipfile
from contextlib import suppress
from functools import cache

import numpy as np
import pytest
import sklearn.base
from attacks import GLOBALS, pickles, watched
from sklearn import ensemble, linear_model, naive_bayes, neural_network, pipeline, preprocessing, tree
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier

from rtrain.errors import CheckpointError
from rtrain.testing.damage import Calls
from rtrain.trainers.sklearn.estimator_file import data_types
from rtrain.trainers.sklearn.estimator_file.content import DATA, PICKLE, load, written

RNG = np.random.default_rng(0)
X = RNG.random((60, 4)).astype("float32")
Y = RNG.integers(0, 3, 60)
ESTIMATORS = [
    ensemble.RandomForestClassifier(3, random_state=np.random.RandomState(0)),
    ensemble.ExtraTreesClassifier(3, class_weight={0: 1.0, 1: 2.0, 2: 1.0}),
    ensemble.HistGradientBoostingClassifier(max_iter=2),
    ensemble.HistGradientBoostingClassifier(max_iter=2, categorical_features=[3]),
    ensemble.AdaBoostClassifier(n_estimators=3),
    ensemble.BaggingClassifier(n_estimators=3, max_features=2),
    ensemble.VotingClassifier([("a", naive_bayes.GaussianNB()), ("b", tree.DecisionTreeClassifier())]),
    tree.DecisionTreeClassifier(),
    linear_model.LogisticRegression(),
    linear_model.SGDClassifier(loss="log_loss"),
    linear_model.RidgeClassifier(),
    naive_bayes.GaussianNB(),
    LinearDiscriminantAnalysis(),
    neural_network.MLPClassifier(max_iter=3),
    pipeline.make_pipeline(
        preprocessing.StandardScaler(), preprocessing.FunctionTransformer(np.tanh), linear_model.LogisticRegression()
    ),
    GridSearchCV(linear_model.LogisticRegression(), {"C": [0.1, 1.0]}, cv=2),
]
QUIET = pytest.mark.filterwarnings("ignore")


class Own(sklearn.base.ClassifierMixin, sklearn.base.BaseEstimator):
    """A class of the user's."""

    def fit(self, x, y):
        self.classes_ = np.unique(y)
        return self

    def predict(self, x):
        return np.zeros(len(x), int)


@pytest.fixture(scope="module")
def forest():
    """The file of a small forest, as data."""
    name, content = written(ensemble.RandomForestClassifier(2, max_depth=3).fit(X, Y), X, 3)
    assert name == DATA
    return content


@QUIET
@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda one: type(one).__name__)
def test_usual_estimators_are_data_that_predicts_the_same_whoever_wrote_it(tmp_path, estimator):
    x = X.copy()
    x[:, 3] = Y % 2
    estimator.fit(x, Y)
    name, content = written(estimator, x, 3)
    assert name == DATA
    (tmp_path / name).write_bytes(content)
    with watched() as events:
        found = load(tmp_path, trusted=False)
        np.testing.assert_array_equal(found.predict(x), estimator.predict(x))
    assert not events


@pytest.mark.parametrize("estimator", [Own(), KNeighborsClassifier()], ids=["own", "neighbours"])
def test_what_is_no_such_data_is_a_pickle_for_this_account_alone(tmp_path, estimator):
    name, content = written(estimator.fit(X, Y), X, 3)
    assert name == PICKLE
    (tmp_path / name).write_bytes(content)
    assert (load(tmp_path, trusted=True).predict(X) == estimator.predict(X)).all()
    with watched() as events, pytest.raises(CheckpointError) as raised:
        load(tmp_path, trusted=False)
    assert "--trust" in raised.value.hint
    assert not events


@pytest.mark.parametrize("trusted", [True, False])
@pytest.mark.parametrize("content", [b"", b"hello", b"PK\x05\x06" + bytes(18)])
def test_something_that_is_no_estimator_is_told(tmp_path, content, trusted):
    for name in (DATA, PICKLE):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(CheckpointError):
            load(tmp_path, trusted=trusted)
        (tmp_path / name).unlink()


def test_a_folder_without_an_estimator_is_told(tmp_path):
    with pytest.raises(CheckpointError):
        load(tmp_path, trusted=True)


def check_pickles(folder, number, seed):
    mark = folder / "it-ran"
    for content in pickles(number, f"touch {mark}", seed):
        for name in (DATA, PICKLE):
            (folder / name).write_bytes(content)
            with watched() as events, pytest.raises(CheckpointError):
                load(folder, trusted=False)
            assert not events, content
            (folder / name).unlink()
    assert not mark.exists()


def test_generated_pickles_of_somebody_else_are_not_opened(tmp_path):
    check_pickles(tmp_path, 300, seed=0)


def repacked(content, change, more=(), compression=zipfile.ZIP_STORED):
    """Return a skops file whose schema ``change`` has changed, with more files."""
    found = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as before, zipfile.ZipFile(found, "w", compression) as after:
        schema = json.loads(before.read("schema.json"))
        schema = change(schema) or schema
        for name in before.namelist():
            if name != "schema.json":
                after.writestr(name, before.read(name))
        for name, text in more:
            after.writestr(name, text)
        after.writestr("schema.json", json.dumps(schema))
    return found.getvalue()


def nodes(value):
    """Yield all entries of a schema."""
    if isinstance(value, dict):
        if "__loader__" in value:
            yield value
        for one in value.values():
            yield from nodes(one)
    elif isinstance(value, list):
        for one in value:
            yield from nodes(one)


def put(**entry):
    """Return a change that puts an entry into the estimator, under a name that nobody reads."""

    def change(schema):
        schema["content"]["content"]["verbose"] = {"__id__": 1, **entry}

    return change


def text(value):
    return {"__loader__": "JsonNode", "__module__": "builtins", "__class__": "str", "content": value, "__id__": 2}


def named(loader, module, name, **more):
    return {"__loader__": loader, "__module__": module, "__class__": name, **more}


def sequence(*values, loader="TupleNode", name="tuple"):
    return {**named(loader, "builtins", name), "content": list(values), "__id__": 3}


ECHO = sequence(text('"touch it-ran"'))
HOSTILE = {
    "a function": put(**named("FunctionNode", "os", "system")),
    "a function as a type": put(**named("TypeNode", "os", "system")),
    "an object of any class": put(**named("ObjectNode", "scipy.stats._distn_infrastructure", "rv_continuous")),
    "a call of the constructor": put(**named("ConstructorFromReduceNode", "subprocess", "Popen", content=ECHO)),
    "of a listed class": put(**named("ConstructorFromReduceNode", "sklearn.pipeline", "Pipeline", content=ECHO)),
    "a list of another class": put(**named("ListNode", "sklearn.pipeline", "Pipeline", content=[])),
    "a mapping of another class": put(**named("DictNode", "os", "_Environ", content={}, key_types=ECHO)),
    "a method": put(**named("MethodNode", "builtins", "str", content={"obj": text('"x"'), "func": "format"})),
    "an operator": put(**named("OperatorFuncNode", "operator", "methodcaller", attrs=ECHO)),
    "an operator that calls": put(**named("OperatorFuncNode", "operator", "call", attrs=ECHO)),
    "a kept entry": put(**named("CachedNode", "builtins", "str")),
    "a generator": put(
        **named("RandomGeneratorNode", "numpy.random._generator", "Generator"),
        content={"bit_generator": {"content": {"bit_generator": text('"seed"')}}, "seed_seq": ECHO},
    ),
    "a sparse matrix": put(**named("SparseMatrixNode", "scipy.sparse._csr", "csr_matrix", type="scipy", file="x.npz")),
    "bytes": put(**named("BytesNode", "builtins", "bytes", file="schema.json")),
    "a loader that is none": put(**{**named("ListNode", "builtins", "list"), "__loader__": ["ListNode"]}),
    "a type without a name": put(**named("ObjectNode", "sklearn.pipeline", None)),
    "a loss that is none": put(
        **named("LossNode", "sklearn.pipeline", "Pipeline", content=ECHO), __reduce__={"args": ECHO}
    ),
    "an older protocol": lambda schema: schema.update(protocol=0),
    "a newer protocol": lambda schema: schema.update(protocol=3),
    "no schema": lambda schema: [1],
    "keys that are called": lambda schema: schema["content"].update(
        key_types={**sequence(named("FunctionNode", "numpy", "exp", __id__=4), loader="ListNode", name="list")}
    ),
    "an estimator as its own list": lambda schema: [
        node.update(__id__=schema["__id__"]) for node in nodes(schema) if node["__loader__"] == "ListNode"
    ],
    "a deep nest": lambda schema: json.loads('{"a":' * 900 + "1" + "}" * 900) | {"protocol": 2},
}


@pytest.mark.parametrize("change", HOSTILE.values(), ids=HOSTILE.keys())
def test_what_is_not_listed_is_refused_before_skops_reads_it(tmp_path, monkeypatch, forest, change):
    monkeypatch.chdir(tmp_path)
    (tmp_path / DATA).write_bytes(repacked(forest, change))
    with watched() as events, pytest.raises(CheckpointError):
        load(tmp_path, trusted=False)
    assert not events
    assert not (tmp_path / "it-ran").exists()


def test_an_entry_is_not_taken_for_another_one_with_its_id(tmp_path, forest):
    def change(schema):
        first = next(one for one in nodes(schema) if one["__loader__"] == "ListNode")
        types = schema["content"]["key_types"]
        schema["content"] = {
            "a": {**named("ListNode", "builtins", "list"), "__id__": types["__id__"], "content": [first]},
            **schema["content"],
        }

    (tmp_path / DATA).write_bytes(repacked(forest, change))
    with pytest.raises(CheckpointError, match="keys"):
        load(tmp_path, trusted=False)


@pytest.mark.parametrize("way", ["nodes", "values", "state", "arguments"])
def test_a_tree_is_made_of_arrays(tmp_path, forest, way):
    def change(schema):
        tree = next(one for one in nodes(schema) if one["__loader__"] == "TreeNode")
        number = {**named("NdArrayNode", "numpy", "int64", type="numpy", file="evil.npy"), "__id__": 1}
        if way == "arguments":
            tree["__reduce__"]["args"]["content"][1] = number
        elif way == "state":  # skops takes the first entry with an id
            state = tree["content"]
            schema["content"]["content"] = {
                "a": {**state, "content": {**state["content"], "nodes": number}},
                **schema["content"]["content"],
            }
        else:
            tree["content"]["content"][way] = number

    file = io.BytesIO()
    np.save(file, np.int64(3))
    (tmp_path / DATA).write_bytes(repacked(forest, change, [("evil.npy", file.getvalue())]))
    with pytest.raises(CheckpointError, match="does not consist of arrays"):
        load(tmp_path, trusted=False)


def of_array(array, header=None):
    """Return a change that puts an array into the estimator, and the file with it."""
    file = io.BytesIO()
    np.save(file, array, allow_pickle=True)
    content = file.getvalue() if header is None else header(file.getvalue())
    return put(**named("NdArrayNode", "numpy", "ndarray", type="numpy", file="evil.npy")), [("evil.npy", content)]


@pytest.mark.parametrize(
    ("change", "more"),
    [
        of_array(np.array([Calls(os.system, "touch it-ran")], object)),
        of_array(np.zeros(3), lambda content: content.replace(b"(3,)", b"(3000000000000,)"[:4])[:-8]),
        of_array(np.zeros(3), lambda content: content.replace(b"(3,)", b"(9,)")),
        of_array(np.zeros(3), lambda _: pickle.dumps(Calls(os.system, "touch it-ran"))),
        of_array(np.zeros(3), lambda content: content.replace(b"'<f8'", b"'|O' ")),
    ],
    ids=["objects", "short", "larger than it is", "a pickle", "objects by the header"],
)
def test_arrays_hold_numbers_and_as_many_as_they_say(tmp_path, monkeypatch, forest, change, more):
    monkeypatch.chdir(tmp_path)
    (tmp_path / DATA).write_bytes(repacked(forest, change, more))
    with watched() as events, pytest.raises(CheckpointError):
        load(tmp_path, trusted=False)
    assert not events
    assert not (tmp_path / "it-ran").exists()


def test_nothing_unpacks_to_more_than_the_file_holds(tmp_path, forest):
    def twice(schema):
        put(**named("NdArrayNode", "numpy", "ndarray", type="numpy", file=name), __id__=7)(schema)

    with zipfile.ZipFile(io.BytesIO(forest)) as archive:
        name = next(one for one in archive.namelist() if one.endswith(".npy"))
    bombs = [
        repacked(forest, lambda schema: None, [("zeros", bytes(1 << 20))], zipfile.ZIP_DEFLATED),
        repacked(forest, twice),
    ]
    for content in bombs:
        (tmp_path / DATA).write_bytes(content)
        with pytest.raises(CheckpointError):
            load(tmp_path, trusted=False)


@pytest.mark.parametrize(
    ("field", "value"),
    [("left_child", 0), ("right_child", 10**6), ("feature", 99), ("feature", -7), ("left_child", -2)],
)
@pytest.mark.parametrize("kind", ["forest", "boosting"])
def test_trees_lead_to_later_nodes_and_features_that_exist(tmp_path, kind, field, value):
    boosting = ensemble.HistGradientBoostingClassifier(max_iter=1)
    estimator = (ensemble.RandomForestClassifier(1) if kind == "forest" else boosting).fit(X, Y)
    name, content = written(estimator, X, 3)
    field = (
        {"left_child": "left", "right_child": "right", "feature": "feature_idx"}[field] if kind != "forest" else field
    )

    def changed(data):
        array = np.load(io.BytesIO(data))
        if array.dtype.names and field in array.dtype.names:
            array[field][0] = value if np.issubdtype(array.dtype[field], np.signedinteger) else value % 2**32
        file = io.BytesIO()
        np.save(file, array)
        return file.getvalue()

    found = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as before, zipfile.ZipFile(found, "w") as after:
        for one in before.namelist():
            after.writestr(one, changed(before.read(one)) if one.endswith(".npy") else before.read(one))
    (tmp_path / name).write_bytes(found.getvalue())
    with pytest.raises(CheckpointError, match="nodes or features"):
        load(tmp_path, trusted=False)


def test_a_forest_knows_as_many_features_as_its_trees(tmp_path, forest):
    def change(schema):
        schema["content"]["content"]["n_features_in_"].update(content="5", __id__=5)

    (tmp_path / DATA).write_bytes(repacked(forest, change))
    with pytest.raises(CheckpointError, match="nodes or features"):
        load(tmp_path, trusted=False)


def mutated(schema, rng):
    """Change a schema at a few places at random."""
    for _ in range(rng.randint(1, 3)):
        found = list(nodes(schema))
        change_entry(rng.choice(found), rng.choice(found), rng)


def change_entry(node, other, rng):
    module, name = rng.choice(GLOBALS)
    changes = [
        {"__module__": module, "__class__": name},
        {"__loader__": rng.choice(LOADERS)},
        {"__loader__": rng.choice(LOADERS), "__module__": module, "__class__": name},
        {"__id__": other.get("__id__")},
        {"content": other.get("content")},
        {"key_types": other},
        {"__class__": other.get("__class__"), "__module__": other.get("__module__")},
        {"file": "schema.json"},
    ]
    node.update(json.loads(json.dumps(rng.choice(changes))))
    if rng.random() < 0.1:
        node.pop(rng.choice(list(node)))


LOADERS = [*data_types.TYPES, "MethodNode", "OperatorFuncNode", "ConstructorFromReduceNode", "CachedNode", "BytesNode"]


def check_schemas(folder, content, number, seed):
    rng = random.Random(seed)
    for _ in range(number):
        state = rng.getstate()
        with suppress(AttributeError, KeyError, TypeError):  # what is changed is no schema any more
            (folder / DATA).write_bytes(repacked(content, lambda schema: mutated(schema, rng)))
        with watched() as events, suppress(CheckpointError):
            estimator = load(folder, trusted=False)
            with suppress(Exception):
                estimator.predict(X)
        assert not events, state


@QUIET
def test_changed_schemas_are_refused_or_harmless(tmp_path, forest):
    search = GridSearchCV(neural_network.MLPClassifier(max_iter=2), {"alpha": [0.1]}, cv=2).fit(X, Y)
    check_schemas(tmp_path, forest, 80, seed=1)
    check_schemas(tmp_path, written(search, X, 3)[1], 80, seed=2)


@pytest.mark.slow
@QUIET
def test_many_changed_schemas_and_pickles_are_refused_or_harmless(tmp_path, forest):
    times = int(os.environ.get("RTRAIN_TEST_FAULTS", "10"))
    for seed in range(times):
        check_schemas(tmp_path, forest, 300, seed=100 + seed)
        check_pickles(tmp_path, 1000, seed=100 + seed)


HOOKS = ("__setstate__", "__reduce__", "__reduce_ex__", "__new__", "__getattr__", "__getattribute__", "__setattr__")
REVIEWED = {
    "sklearn.base.BaseEstimator.__setstate__",  # takes attributes, and compares versions
    "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor.__setstate__",  # and casts an array
    "sklearn.isotonic.IsotonicRegression.__setstate__",  # and makes an interpolation of two arrays
    "sklearn.linear_model._passive_aggressive.PassiveAggressiveClassifier.__new__",  # warns
    "sklearn.linear_model._passive_aggressive.PassiveAggressiveRegressor.__new__",
}
FORBIDDEN = {"eval", "exec", "compile", "open", "__import__", "import_module", "system", "Popen", "loads", "memmap"}


@pytest.mark.parametrize("module", sorted(data_types.ESTIMATORS))
def test_no_listed_class_does_more_than_hold_and_compute(module):
    for name in data_types.ESTIMATORS[module]:
        kind = getattr(importlib.import_module(module), name)
        assert isinstance(kind, type)
        assert (kind.__module__, kind.__qualname__) == (module, name), "listed by its exact name"
        for hook in HOOKS:
            owner = next((one for one in kind.__mro__ if hook in vars(one)), object)
            assert owner is object or f"{owner.__module__}.{owner.__name__}.{hook}" in REVIEWED, (name, hook)
        assert not {_name_of(one) for one in calls_in(kind)} & FORBIDDEN, name


@cache
def calls_in(kind):
    return [one for one in ast.walk(ast.parse(inspect.getsource(kind).strip())) if isinstance(one, ast.Call)]


def _name_of(call):
    return getattr(call.func, "id", getattr(call.func, "attr", ""))


def test_no_listed_class_calls_a_method_that_the_file_names():
    """``getattr`` with a name that is neither written there nor a feature of ``available_if`` gets nothing called."""
    found = [
        f"{module}.{name}"
        for module, names in data_types.ESTIMATORS.items()
        for name in names
        for call in calls_in(getattr(importlib.import_module(module), name))
        if isinstance(call.func, ast.Call) and _name_of(call.func) == "getattr"
        if not isinstance(call.func.args[1], ast.Constant)
    ]
    assert not found


@pytest.mark.parametrize("table", ["FUNCTIONS", "LOSSES", "NUMBERS", "PRIMITIVES"])
def test_other_listed_names_exist_and_are_exact(table):
    for module, names in getattr(data_types, table).items():
        for name in names:
            found = getattr(importlib.import_module(module), name)
            assert callable(found)
            assert table != "LOSSES" or isinstance(found, type)


def test_a_run_does_not_import_torch(tmp_path):
    """It would take longer than most runs of scikit-learn."""
    code = (
        "import sys, rtrain; "
        f"run = rtrain.fit('sklearn', ['num_workers=0', 'run.root_dir={tmp_path}']); "
        "assert run.checkpoints[-1].joinpath('estimator.skops').exists(); assert 'torch' not in sys.modules; "
        "assert 'sklearn.externals.array_api_compat.torch' not in sys.modules; print('fine')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.splitlines()[-1:] == ["fine"], done.stderr
