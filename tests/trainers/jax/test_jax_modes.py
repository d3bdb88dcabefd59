"""A module is told whether it is trained, or the run ends before it begins."""

import jax
import jax.numpy as jnp
import pytest
from flax import linen, nnx
from jax_runs import fit, make_conf

from rtrain.config.schema import RtrainConf
from rtrain.config.targets import allow_list
from rtrain.errors import ConfigError, TrainingError
from rtrain.testing.small_data import small_dataset
from rtrain.testing.workers import make_job
from rtrain.trainers.jax.checks import check_conf
from rtrain.trainers.jax.nets.linen import Linen
from rtrain.trainers.jax.nets.modes import MODES
from rtrain.trainers.jax.nets.nnx import Nnx


@pytest.fixture(autouse=True)
def this_file_may_be_named(monkeypatch):
    monkeypatch.setattr(allow_list, "FRAMEWORKS", allow_list.FRAMEWORKS | {__name__})


def outputs(net):
    """Return what a module makes of ones in training, and in an evaluation."""
    rows = jnp.ones((4, 50))
    weights, state = net.init(rows)
    return [net.apply(weights, state, rows, jax.random.key(0), training=one)[0] for one in (True, False)]


def assert_told(net):
    trained, evaluated = outputs(net)
    assert (evaluated == 1).all()
    assert (trained == 0).any()


def linen_class(name, default, *, field=False):
    """Return a class with dropout whose mode is an argument of its call, or a field, by any name."""

    def call(self, x, value):
        return linen.Dropout(0.5, deterministic=value if MODES.get(name) is False else not value)(x)

    if field:
        keys = {} if default is None else {name: default}
        annotations = {name: bool}
        body = {"__call__": linen.compact(lambda self, x: call(self, x, getattr(self, name)))}
        return type("Dropping", (linen.Module,), {"__annotations__": annotations, **keys, **body})
    found = {"call": call}
    exec(f"def __call__(self, x, {name}={default}): return call(self, x, {name})", found)
    return type("Dropping", (linen.Module,), {"__call__": linen.compact(found["__call__"])})


@pytest.mark.parametrize("name", MODES)
def test_every_usual_name_is_told(name):
    default = not MODES[name]
    assert_told(Linen(linen_class(name, default)(), 0))
    assert_told(Linen(linen_class(name, default, field=True)(), 0))

    class Dropping(nnx.Module):
        def __init__(self):
            self.dropout = nnx.Dropout(0.5, rngs=nnx.Rngs(0))

    found = {}
    value = f"not {name}" if MODES[name] else name
    exec(f"def __call__(self, x, {name}): return self.dropout(x, deterministic={value})", found)
    Dropping.__call__ = found["__call__"]
    assert_told(Nnx(Dropping()))


class Classifier(linen.Module):
    """Its mode is a field without a default."""

    num_classes: int
    training: bool

    @linen.compact
    def __call__(self, x):
        x = linen.Dropout(0.5, deterministic=not self.training)(x.reshape(len(x), -1))
        return linen.Dense(self.num_classes)(x)


class OddArgument(linen.Module):
    """Its mode has a name that nobody knows."""

    num_classes: int

    @linen.compact
    def __call__(self, x, on: bool = False, residual: bool = False):
        x = linen.BatchNorm(use_running_average=not on)(x.reshape(len(x), -1))
        return linen.Dense(self.num_classes)(x if not residual else x * 2)


class OddField(linen.Module):
    """The same as a field."""

    num_classes: int
    wild: bool = False
    use_bias: bool = True

    @linen.compact
    def __call__(self, x):
        x = linen.Dropout(0.5, deterministic=not self.wild)(x.reshape(len(x), -1))
        return linen.Dense(self.num_classes, use_bias=self.use_bias)(x)


class OddNnx(nnx.Module):
    """The same in nnx."""

    def __init__(self, in_features, num_classes, rngs):
        self.norm, self.dropout = nnx.BatchNorm(in_features, rngs=rngs), nnx.Dropout(0.5, rngs=rngs)
        self.dense = nnx.Linear(in_features, num_classes, rngs=rngs)

    def __call__(self, x, residual=False, wild=False):
        x = self.dropout(x.reshape(len(x), -1), deterministic=not wild)
        return self.dense(self.norm(x if not residual else x * 2))


class Needs(linen.Module):
    """Can't be called with rows alone."""

    num_classes: int

    @linen.compact
    def __call__(self, x, temperature):
        return linen.Dense(self.num_classes)(x.reshape(len(x), -1) / temperature)


def own(name, **keys):
    return {"_target_": f"{__name__}.{name}", "num_classes": "auto", **keys}


@pytest.mark.parametrize(
    ("model", "says"),
    [
        (own("OddArgument"), "OddArgument has on, which turns on dropout"),
        (own("OddField"), "OddField has wild, which"),
        (own("OddNnx", in_features="auto"), "OddNnx has wild, which"),
        (own("Classifier", training=False), "Classifier has training, which"),
    ],
)
def test_a_mode_that_nobody_sets_is_refused_before_training(tmp_path, model, says):
    with pytest.raises(TrainingError, match=says):
        fit(tmp_path, make_conf(model=model))


def test_a_module_that_needs_more_than_its_mode_is_refused(tmp_path):
    with pytest.raises(ConfigError, match=r"Needs\.__call__ needs temperature"):
        fit(tmp_path, make_conf(model=own("Needs")))


@pytest.mark.parametrize("model", [own("Classifier"), own("OddField", wild=False)])
def test_a_field_is_set_by_rtrain_or_on_purpose(tmp_path, model):
    conf = make_conf(model=model, max_steps=1)
    check_conf(make_job(RtrainConf(trainer=conf), small_dataset(), "jax"))
    assert fit(tmp_path, conf).checkpoints
