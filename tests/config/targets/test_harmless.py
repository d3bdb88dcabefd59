"""What a ``_target_`` of another account may name: a list of exact names, and nothing that is found by walking."""

import importlib
import inspect
import pkgutil
import re
import sys
import types

import pytest
from attacks import GLOBALS

from rtrain.config.targets import harmless
from rtrain.config.targets.builder import Builder
from rtrain.config.targets.harmless import HARMLESS, is_harmless
from rtrain.errors import TargetError

STRANGER = Builder(trusted=False)
WALKED = ("torch", "torch.nn", "keras", "keras.layers", "flax", "flax.linen", "flax.nnx", "sklearn", "numpy", "scipy")
MORE = ("torch.hub", "torch.nn.utils", "torch.nn.functional", "torch.ao.nn.quantized", "keras.saving", "keras.utils")
WORDS = (
    "path url file filename filepath vocabulary folder directory pretrained checkpoint repo hub download code import"
)
UNWANTED = re.compile(rf"(^|_)({WORDS.replace(' ', '|')})s?(_|$)")


def others():
    """Yield public and private names in and below the frameworks' modules, as targets may be spelt."""
    for module_name in (*WALKED, *MORE):
        module = importlib.import_module(module_name)
        for name in dir(module):
            yield f"{module_name}.{name}"
            yield f"{module_name}:{name}"
            found = vars(module).get(name)
            if isinstance(found, types.ModuleType | type):
                yield from (f"{module_name}.{name}.{one}" for one in vars(found))
        for one in pkgutil.iter_modules(getattr(module, "__path__", ())):
            yield f"{module_name}.{one.name}.load"
    yield from (f"{module}.{name}" for module, name in GLOBALS)
    yield from (f"torch.nn.{module}.{name}" for module, name in GLOBALS)


@pytest.fixture(scope="module")
def walked():
    return sorted({path for path in others() if not is_harmless(path.replace(":", "."))})


def test_nothing_that_is_found_by_walking_may_be_named(walked):
    assert len(walked) > 5000
    before = set(sys.modules)
    for path in walked:
        with pytest.raises(TargetError):
            STRANGER.locate(path, "trainer.model._target_")
        nested = {"_target_": "torch.nn.Sequential", "_args_": [{"a": [{"_target_": path}]}]}
        with pytest.raises(TargetError):
            STRANGER.build(nested, "trainer.model")
    assert set(sys.modules) == before, "something was imported to find out"


@pytest.mark.parametrize(
    "path",
    [
        *("torch.nn.Module", "torch.nn.DataParallel", "torch.nn.modules.linear.Linear", "torch.nn.Linear.forward"),
        *("torch.nn.functional.relu", "torch.nn.utils.parametrize.register_parametrization", "torch.nn.linear"),
        *("torch.nn.Linear.__init__", "torch.nn.TripletMarginWithDistanceLoss", "torch.nn.init.constant_"),
        *("keras.layers.Lambda", "keras.layers.TFSMLayer", "keras.layers.TorchModuleWrapper", "keras.layers.JaxLayer"),
        *("keras.layers.FlaxLayer", "keras.layers.TextVectorization", "keras.layers.StringLookup", "keras.Model"),
        *(
            "keras.layers.IntegerLookup",
            "keras.saving.load_model",
            "keras.layers.Layer",
            "keras.Sequential.load_weights",
        ),
        *("keras.src.layers.core.dense.Dense", "tensorflow.keras.layers.Lambda", "tensorflow.io.write_file"),
        *("flax.linen.Module", "flax.linen.BatchApply", "flax.linen.vmap", "flax.nnx.Module", "jax.nn.relu"),
        *("torchvision.models.get_model", "torchvision.models._api.WeightsEnum.get_state_dict"),
        *("torchvision.models.resnet.resnet18", "torchvision.transforms.Lambda", "torchvision.io.read_image"),
        *("rtrain.trainers.torch.build.build_model", "rtrain.models.torch.resnet.BasicBlock"),
    ],
)
def test_what_takes_code_paths_or_urls_is_not_listed(path):
    with pytest.raises(TargetError) as raised:
        STRANGER.locate(path, "trainer.model._target_")
    assert raised.value.key == "trainer.model._target_"


@pytest.mark.parametrize("table", ["OWN", "TORCH", "KERAS", "FLAX"])
def test_what_is_listed_is_a_class_that_takes_no_path_or_code(table):
    for module, names in getattr(harmless, table).items():
        for name in names.split():
            found = getattr(importlib.import_module(module), name)
            assert isinstance(found, type) or table == "OWN", name
            parameters = inspect.signature(found.__init__ if isinstance(found, type) else found).parameters
            assert not {one for one in parameters if UNWANTED.search(one)}, name


def test_every_listed_name_is_public_and_spelt_in_one_way():
    for path in HARMLESS:
        assert not any(part.startswith("_") for part in path.split("."))
        assert re.fullmatch(r"[a-zA-Z0-9_.]+", path)
    assert is_harmless("tensorflow.keras.layers.Dense")
    for odd in (
        "tensorflow.torch.nn.Linear",
        "torch.nn.Linear ",
        "Torch.nn.Linear",
        "torch..nn.Linear",
        "torch.nn.Línear",
    ):
        assert not is_harmless(odd)


@pytest.fixture
def torchvision(monkeypatch):
    """A module of that name which notes what its builders are called with."""
    called = []

    def resnet18(*args, **kwargs):
        called.append((args, kwargs))
        return "a model"

    top, models = types.ModuleType("torchvision"), types.ModuleType("torchvision.models")
    top.__path__ = []
    top.models, models.resnet18 = models, resnet18
    resnet18.__module__ = "torchvision.models.resnet"
    monkeypatch.setitem(sys.modules, "torchvision", top)
    monkeypatch.setitem(sys.modules, "torchvision.models", models)
    return called


def test_a_builder_of_torchvision_builds_without_trained_weights(torchvision):
    node = {"_target_": "torchvision.models.resnet18", "num_classes": 3, "weights": None}
    assert STRANGER.build(node, "trainer.model") == "a model"
    assert torchvision == [((), {"num_classes": 3, "weights": None})]


@pytest.mark.parametrize(
    "arguments",
    [
        {"weights": "DEFAULT"},
        {"weights": {"_target_": "torch.nn.Linear", "in_features": 1, "out_features": 1}},
        {"weights_backbone": "DEFAULT"},
        {"pretrained": True},
        {"_args_": [True]},
        {"_partial_": True},
    ],
    ids=str,
)
def test_a_builder_of_torchvision_is_not_called_with_what_fetches_weights(torchvision, arguments):
    node = {"_target_": "torchvision.models.resnet18", **arguments}
    for one in (node, {"_target_": "torch.nn.Sequential", "_args_": [node]}):
        with pytest.raises(TargetError):
            STRANGER.build(one, "trainer.model")
    assert not torchvision


def test_layers_of_the_frameworks_build_as_before():
    layers = [{"_target_": "torch.nn.Linear", "in_features": 4, "out_features": 2}, {"_target_": "torch.nn:ReLU"}]
    node = {"_target_": "torch.nn.Sequential", "_args_": layers}
    STRANGER.check_node(node, "trainer.model")
    assert len(STRANGER.build(node, "trainer.model")) == 2


@pytest.mark.parametrize("inner", [{"class_name": "Lambda", "config": {}}, {"registered_name": "os>system"}])
def test_objects_in_the_form_of_keras_are_refused(inner):
    for value in (inner, [inner], {"a": [{"b": inner}]}):
        node = {"_target_": "keras.layers.Dense", "units": 1, "activation": value, "_recursive_": False}
        with pytest.raises(TargetError):
            STRANGER.build(node, "trainer.model")
