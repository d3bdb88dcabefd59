"""The shape of the code that DESIGN promises: who may import whom, and what stays unimported."""

import ast
import re
import subprocess
import sys
from collections import Counter
from functools import cache
from graphlib import CycleError, TopologicalSorter
from importlib import import_module
from pathlib import Path

import pytest

import rtrain
from rtrain.trainers.registry import packages

ROOT = Path(rtrain.__file__).parent
FILES = sorted(ROOT.rglob("*.py"))
LAYERS = [
    {"__main__"},
    {"cli", "api"},
    {"testing"},
    {"displays"},
    {"history"},
    {"smoke"},
    {"recipes", "first_config"},
    {"sync"},
    {"sweeps"},
    {"evaluation"},
    {"prediction"},
    {"training"},
    {"schemas"},
    {"engine"},
    {"trainers.*"},
    {"trainers"},
    {"tracking"},
    {"datasets", "cluster", "schedulers", "driver_log"},
    {"callbacks"},
    {"callback_methods"},
    {"searches", "run_lines", "loggers"},
    {"plugins", "callers_view"},
    {"storage"},
    {"config"},
    {"process"},
    {"runs"},
    {"errors"},
    {"models"},
    {"text"},
]
"""From top to bottom; a layer imports only layers below it, and siblings don't import each other."""
BUILT_ON_TORCH = ("lightning", "transformers")
OWNERS = {
    "typer": ("cli",),
    "hydra": ("config",),
    "omegaconf": ("config",),
    "ray": ("engine", "trainers", "datasets", "cluster", "prediction", "sweeps"),
    "torch": (
        *("models/torch", "models/lightning.py", "trainers/torch", "trainers/lightning", "trainers/transformers"),
        "trainers/loops/custom/shards/local.py",  # the shards of Ray have batches of tensors
    ),
    "torchmetrics": ("trainers/torch", "trainers/lightning"),
    "accelerate": ("trainers/torch", "trainers/transformers"),
    "deepspeed": ("trainers/torch",),
    "lightning": ("models/lightning.py", "trainers/lightning"),
    "transformers": ("trainers/transformers",),
    "peft": ("trainers/transformers",),
    "xgboost": ("trainers/xgboost",),
    "lightgbm": ("trainers/lightgbm",),
    "tensorflow": ("trainers/tensorflow",),
    "keras": ("models/keras.py", "trainers/tensorflow"),
    "jax": ("trainers/jax",),
    "flax": ("models/jax.py", "trainers/jax"),
    "optax": ("trainers/jax",),
    "rich": ("cli", "displays"),
    "tensorboardX": ("loggers/tensorboard.py",),
    "mlflow": ("loggers/mlflow.py",),
    "wandb": ("loggers/wandb.py",),
}


def layer_of(module):
    parts = module.split(".")[1:]
    if not parts or parts == ["__init__"]:
        return None
    if parts[0] == "trainers" and len(parts) > 1 and (ROOT / "trainers" / parts[1] / "plugin.py").exists():
        return next(i for i, names in enumerate(LAYERS) if "trainers.*" in names), parts[1]
    return next(i for i, names in enumerate(LAYERS) if parts[0] in names), parts[0]


def may_import(here, there):
    """A layer imports those below it; frameworks that train torch's models use what the torch trainer has."""
    return there[0] > here[0] or (here[1] in BUILT_ON_TORCH and there[1] == "torch")


@cache
def nodes_of(path):
    return list(ast.walk(ast.parse(path.read_text())))


@cache
def imports_of(path):
    """Return what a file imports anywhere when it runs, and where: not what only its annotations need."""
    return list(_imports_of(nodes_of(path)))


def _imports_of(nodes):
    blocks = [node for node in nodes if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"]
    for_types = {node for block in blocks for part in block.body for node in ast.walk(part)}
    for node in nodes:
        if node in for_types:
            continue
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            yield from ((f"{node.module}.{alias.name}", node.lineno) for alias in node.names)


def module_of(path):
    return ".".join(["rtrain", *path.relative_to(ROOT).with_suffix("").parts]).removesuffix(".__init__")


@pytest.fixture(scope="module")
def all_imports():
    """What each file imports: (path, name, line)."""
    return [(path, name, line) for path in FILES for name, line in imports_of(path)]


def test_a_layer_imports_only_layers_below_it(all_imports):
    wrong = []
    for path, name, line in all_imports:
        here = layer_of(module_of(path))
        is_own = name.startswith("rtrain.") and name.split(".")[1][0] != "_"
        there = layer_of(name) if is_own and here is not None else None
        if there is not None and there[1] != here[1] and not may_import(here, there):
            wrong.append(f"{path.relative_to(ROOT)}:{line} imports {name}, which is not below it")
    assert not wrong, "\n".join(wrong)


def test_a_library_is_imported_only_by_its_owner(all_imports):
    wrong = []
    for path, name, line in all_imports:
        where, owners = path.relative_to(ROOT).as_posix(), OWNERS.get(name.split(".")[0])
        if owners and not where.startswith(owners):
            wrong.append(f"{where}:{line} imports {name}; only {', '.join(owners)} may")
    assert not wrong, "\n".join(wrong)


NAMING = {
    "lists of what is safe, read as a whole: no package that is installed widens them (trainers add their homes)": (
        *("config/targets/allow_list.py", "config/targets/harmless.py"),
    ),
    "names that older versions wrote": ("config/targets/moved.py",),
    "the trainer whose workers `rtrain up` keeps ready by default": ("cli/up.py",),
    "names of configs and recipes, not of trainers": ("config/files/no_config.py",),
    "examples and recommendations in messages, and the trainer that init writes": (
        *("config/compose/sources/config_source.py", "config/files/locations.py", "config/targets/builder.py"),
        *("datasets/sources/python.py", "datasets/tables/preprocessor_conf.py", "datasets/texts/conf.py"),
        *("first_config/text.py", "trainers/loops/auto.py"),
    ),
    "scikit-learn where it trains nothing": (
        *("datasets/sources/digits.py", "datasets/sources/libsvm.py", "datasets/sources/sklearn.py"),
        "datasets/arrays/libsvm_text.py",
        *("evaluation.py", "schedulers/pb2.py"),
    ),
    "arrays and tensors, whatever the trainer": (
        *("config/targets/argument_types.py", "trainers/loops/custom/shards/local.py"),
    ),
    "where TensorFlow's generated code lies": ("config/diagnostics/own_lines.py",),
    "a function of import rtrain": ("__init__.py",),
    "whether an import takes a GPU": ("testing/trainer_contract.py",),
    "whatever draws random numbers in this process": ("testing/random_numbers.py",),
    "data of tests": ("testing/logger_contract.py", "testing/workers.py"),
}
"""Why files outside of the folders of trainers and models name one: the rest of what is to be said, its plugin says."""


def test_what_is_to_be_said_of_a_framework_its_plugin_says():
    installed = {one for package in packages().values() for one in getattr(import_module(package), "PACKAGES", ())}
    named = re.compile(rf"(?<![\w-])({'|'.join({*packages(), *installed})})(?![\w-])")
    own = tuple(f"trainers/{name}/" for name in packages())
    found = set()
    for path in FILES:
        where = path.relative_to(ROOT).as_posix()
        if not where.startswith((*own, "models/")):
            docs = {id(one.value) for one in nodes_of(path) if isinstance(one, ast.Expr)}
            texts = [one.value for one in nodes_of(path) if isinstance(one, ast.Constant) and id(one) not in docs]
            texts += [name for name, _ in imports_of(path)]
            found |= {where for one in texts if isinstance(one, str) and named.search(one)}
    assert found == {one for files in NAMING.values() for one in files}


def test_no_files_import_each_other_in_a_circle():
    modules = {module_of(path): path for path in FILES}
    below = {}
    for module, path in modules.items():
        found = {name if name in modules else name.rpartition(".")[0] for name, _ in imports_of(path)}
        below[module] = (found & set(modules)) - {module}
    try:
        tuple(TopologicalSorter(below).static_order())
    except CycleError as error:
        pytest.fail(f"these files import each other: {' <- '.join(error.args[1])}")


def test_the_record_of_runs_needs_only_the_standard_library():
    for path in (ROOT / "runs").glob("*.py"):
        for name, line in imports_of(path):
            first = name.split(".")[0]
            assert first in sys.stdlib_module_names or first == "rtrain", f"{path.name}:{line} imports {name}"


def test_a_folder_is_taken_in_at_a_glance():
    """In the folders of plugins, a file for each value of a key is looked for by its name: they may have any number."""
    of_plugins = {ROOT / "datasets" / "sources", ROOT / "loggers", ROOT / "searches", ROOT / "schedulers"}
    folders = {path.parent for path in FILES} - of_plugins
    loose = {folder: sum(path.parent == folder for path in FILES) - 1 for folder in folders}
    assert not {folder: number for folder, number in loose.items() if number > 17}


def test_nobody_is_called_utils():
    for path in FILES:
        assert not {"utils", "helpers", "common", "manager"} & set(path.relative_to(ROOT).with_suffix("").parts)


def test_the_maps_of_the_code_show_every_room():
    rooms = {path.name for path in ROOT.iterdir() if path.name[0] not in "._"} - {"py.typed"}
    shown = (ROOT.parent / "docs" / "architecture.md").read_text()
    assert not {room for room in rooms if f"{room}`" not in shown and f"{room}/`" not in shown}
    readme = (ROOT.parent / "README.md").read_text()
    assert not {room for room in rooms if "." not in room and f"{room}/`" not in readme}


def test_the_files_of_a_framework_are_explained():
    """The table of ``docs/architecture.md`` tells what a file holds that several folders of frameworks have."""
    table = (ROOT.parent / "docs" / "architecture.md").read_text().split("## The files of a framework")[1]
    names = Counter(path.stem for path in (ROOT / "trainers").glob("*/*.py") if path.parent.name != "loops")
    assert not {name for name, number in names.items() if number > 1 and f"`{name}.py`" not in table} - {"__init__"}


TESTS = ROOT.parent / "tests"
OF_WHOLE_RUNS = {"acceptance", "acting", "benchmarks", "docs", "faults", "gpu", "golden", "support"}
"""Folders of tests that no single room is responsible for."""


def test_the_tests_of_a_room_are_found_in_the_same_place():
    folders = {path.parent.relative_to(TESTS) for path in TESTS.rglob("test_*.py")}
    rooms = {path.parent.relative_to(ROOT) for path in FILES}
    assert not {folder for folder in folders - rooms if folder.parts[0] not in OF_WHOLE_RUNS}


def test_what_tests_of_several_folders_share_is_in_support():
    files = [path for path in TESTS.rglob("*.py") if TESTS / "support" not in path.parents]
    helpers = {path.stem: path.parent for path in files if not path.name.startswith(("test_", "conftest", "__init__"))}
    astray = {
        f"{path.relative_to(TESTS)} imports {name}"
        for path in files
        for name, _ in imports_of(path)
        if name in helpers and helpers[name] not in path.parents
    }
    assert not astray


HEAVY = (
    "{'ray', 'torch', 'pandas', 'sklearn', 'pyarrow', 'xgboost', 'lightgbm', 'torchmetrics', 'lightning', "
    "'transformers', 'tensorflow', 'keras', 'jax', 'flax'}"
)


@pytest.mark.parametrize(
    "words",
    [
        ["--help"],
        ["fit", "--help"],
        ["fit", "resnet", "--cfg", "job"],
        ["trainers"],
        ["datasets"],
        ["schema"],
        ["runs", "ls"],
    ],
    ids=" ".join,
)
def test_light_commands_import_no_framework(words, tmp_path):
    heavy = f"{HEAVY} & set(sys.modules)"
    code = f"import sys; from rtrain.cli.app import run; code = run({words!r}); print(code, {heavy}, file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, check=True)
    assert done.stderr.strip().splitlines()[-1] == "0 set()"


def test_importing_the_package_imports_nothing_else():
    code = "import sys, rtrain; print({'typer', 'hydra', 'ray', 'torch', 'pydantic', 'numpy'} & set(sys.modules))"
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "set()"
