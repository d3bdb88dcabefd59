"""Modules whose dropout a usual argument or field does not switch: they are told all the same, or found out."""

from functools import partial

import jax
import jax.numpy as jnp
import pytest
from flax import linen, nnx
from jax_runs import fit, make_conf

from rtrain.config.targets import allow_list
from rtrain.errors import TrainingError
from rtrain.trainers.jax.nets.linen import Linen
from rtrain.trainers.jax.nets.nnx import Nnx


@pytest.fixture(autouse=True)
def this_file_may_be_named(monkeypatch):
    monkeypatch.setattr(allow_list, "FRAMEWORKS", allow_list.FRAMEWORKS | {__name__})


ROWS = jnp.ones((4, 50))


def found(net):
    """Return the hidden mode of a module, and its dropout that stays off."""
    at = net.init(ROWS)
    return net.hidden_mode(*at, ROWS), net.idle_dropout(*at, ROWS)


def share_of_zeros(net):
    """Return how much of ones a module drops in training, and in an evaluation."""
    at = net.init(ROWS)
    return [float((net.apply(*at, ROWS, jax.random.key(0), training=one)[0] == 0).mean()) for one in (True, False)]


def assert_told(net):
    trained, evaluated = share_of_zeros(net)
    assert 0.2 < trained < 0.8
    assert evaluated == 0
    assert found(net) == (None, [])


def linen_call(signature, is_training, *, layer=linen.Dropout):
    """Return a module with a signature of its call and an expression of its arguments."""
    names = {"layer": layer}
    exec(f"def __call__(self, x, {signature}): return layer(0.5, deterministic=not ({is_training}))(x)", names)
    return type("Dropping", (linen.Module,), {"__call__": linen.compact(names["__call__"])})()


class Inner(linen.Module):
    @linen.compact
    def __call__(self, x, train=False):
        return linen.Dropout(0.5, deterministic=not train)(x)


@pytest.mark.parametrize(
    ("signature", "is_training"),
    [
        ("is_tr: bool | None = None", "is_tr"),
        ("is_tr=0", "is_tr"),
        ("is_tr=False", "is_tr"),
        ("mode='eval'", "mode == 'train'"),
        ("phase=None", "phase == 'train'"),
        ("deterministic_=None", "deterministic_ is not None and not deterministic_"),
    ],
)
@pytest.mark.parametrize("layer", [linen.Dropout, linen.remat(linen.Dropout)])
def test_linen_arguments_that_nobody_sets_are_found(signature, is_training, layer):
    name, _ = found(Linen(linen_call(signature, is_training, layer=layer), 0))
    assert name
    assert signature.startswith(name)


@pytest.mark.parametrize(
    ("signature", "is_training"),
    [
        ("**kw", "kw.get('train', False)"),
        ("**kw", "kw.get('train', True)"),
        ("**kw", "not kw.get('deterministic', True)"),
        ("scale=1.0, **kw", "kw.get('is_training')"),
        ("train, /", "train"),
        ("scale=1.0, train=False, /", "train"),
        ("train=0", "train"),
        ("*, training=None", "training"),
    ],
)
@pytest.mark.parametrize("layer", [linen.Dropout, linen.remat(linen.Dropout)])
def test_linen_arguments_of_any_kind_are_told(signature, is_training, layer):
    assert_told(Linen(linen_call(signature, is_training, layer=layer), 0))


def test_all_modes_through_keywords_are_told():
    class Both(linen.Module):
        @linen.compact
        def __call__(self, x, **kw):
            x = linen.BatchNorm(use_running_average=kw.get("use_running_average", True))(x)
            return Inner()(x + 1, train=kw.get("train", False))

    net = Linen(Both(), 0)
    weights, state = net.init(ROWS)
    _, new = net.apply(weights, state, ROWS, jax.random.key(0), training=True)
    assert (new["batch_stats"]["BatchNorm_0"]["mean"] != 0).all()
    assert share_of_zeros(net)[0] > 0


class Forgets(linen.Module):
    """Tells only one of its layers."""

    @linen.compact
    def __call__(self, x, train):
        return Inner(name="told")(Inner(name="forgotten")(x), train)


class Layers(linen.Module):
    """Is scanned over layers that are not told."""

    @linen.compact
    def __call__(self, x, train):
        class Step(linen.Module):
            @linen.compact
            def __call__(self, carry, _):
                return linen.Dropout(0.5, deterministic=True)(carry), None

        scanned = linen.scan(Step, variable_axes={"params": 0}, split_rngs={"params": True, "dropout": True}, length=2)
        return scanned(name="scanned")(x, None)[0]


@pytest.mark.parametrize(
    ("module", "says"),
    [
        (Forgets(), "forgotten/Dropout_0"),
        (Layers(), "scanned/Dropout_0"),
        (linen.Sequential([Inner(), linen.Dropout(0.5, deterministic=True)]), "layers_1"),
        (linen.Sequential([linen.remat(Inner)()]), "Dropout_0"),
        (linen.Sequential([linen.MultiHeadAttention(2, dropout_rate=0.5, deterministic=True)]), "layers_0"),
    ],
)
def test_linen_dropout_that_stays_off_is_named(module, says):
    name, idle = found(Linen(module, 0))
    assert name is None
    assert any(says in one for one in idle)


class Frozen(linen.Module):
    """Has dropout that is off by its own settings."""

    rate: float = 0.0
    use_dropout: bool = True

    @linen.compact
    def __call__(self, x, train, residual=False, mask=None, activation="relu"):
        x = getattr(linen, activation)(x)
        if self.use_dropout:
            x = linen.Dropout(self.rate, deterministic=not train)(x)
        return x if mask is None else x * mask


class Caches(linen.Module):
    """Has a switch that changes what is no statistics."""

    decode: bool = False

    @linen.compact
    def __call__(self, x):
        last = self.variable("cache", "last", lambda: x)
        if self.decode:
            last.value = x
        return x


@pytest.mark.parametrize("module", [Caches(), Frozen(), Frozen(0.5), Frozen(0.5, use_dropout=False), Inner()])
def test_honest_linen_modules_are_accepted(module):
    assert found(Linen(module, 0)) == (None, [])


class Block(nnx.Module):
    """Has dropout with a mode of its own."""

    def __init__(self, rngs, decide, **attributes):
        self.dropout, self._decide = nnx.Dropout(0.5, rngs=rngs), decide
        for name, value in attributes.items():
            setattr(self, name, value)

    def __call__(self, x):
        return self.dropout(x, deterministic=not self._decide(self))


class Outer(nnx.Module):
    """Calls a block, however it is wrapped."""

    def __init__(self, block, wrap=lambda function: function):
        self.block, self._wrap = block, wrap

    def __call__(self, x):
        return self._wrap(lambda block, x: block(x))(self.block, x)


WRAPS = [lambda function: function, nnx.remat, nnx.jit]


@pytest.mark.parametrize("wrap", WRAPS)
@pytest.mark.parametrize("value", [False, None, 0, True])
def test_nnx_attributes_of_a_usual_name_are_told_at_any_depth(wrap, value):
    block = Block(nnx.Rngs(0), lambda self: self.training, training=value)
    assert_told(Nnx(Outer(block, wrap)))
    assert_told(Nnx(nnx.Sequential(block)))
    assert_told(Nnx(block))


@pytest.mark.parametrize("wrap", WRAPS)
@pytest.mark.parametrize(
    ("value", "decide"),
    [(False, lambda self: self.is_tr), (None, lambda self: self.is_tr), ("eval", lambda self: self.is_tr == "train")],
)
def test_nnx_attributes_of_other_names_are_found(wrap, value, decide):
    assert found(Nnx(Outer(Block(nnx.Rngs(0), decide, is_tr=value), wrap)))[0] == "is_tr"
    assert found(Nnx(Outer(Block(nnx.Rngs(0), decide, is_tr=value), wrap), given=("is_tr",)))[0] is None


@pytest.mark.parametrize("wrap", WRAPS)
def test_nnx_dropout_that_stays_off_is_named(wrap):
    off = Outer(Block(nnx.Rngs(0), lambda self: False), wrap)
    assert found(Nnx(off)) == (None, ["block/dropout"])
    on = Outer(Block(nnx.Rngs(0), lambda self: not self.dropout.deterministic), wrap)
    assert_told(Nnx(on))


def test_honest_nnx_modules_are_accepted():
    class Honest(nnx.Module):
        def __init__(self, rngs):
            self.drop, self.none = nnx.Dropout(0.5, rngs=rngs), nnx.Dropout(0.0, rngs=rngs)
            self.use_bias, self.activation, self.capture = True, "relu", False
            self.last = nnx.Cache(jnp.zeros(()))
            self.norm = nnx.BatchNorm(50, rngs=rngs)

        def __call__(self, x, residual=False):
            if self.capture or residual:
                self.last[...] = x.mean()
            return self.none(self.drop(getattr(nnx, self.activation)(x))) + 0 * self.norm(x)

    assert_told(Nnx(Honest(nnx.Rngs(0))))


def test_nnx_attention_that_drops_nothing_is_named():
    class Attention(nnx.Module):
        def __init__(self, keep):
            self.layer, self._keep = (
                nnx.MultiHeadAttention(2, 50, dropout_rate=0.5, decode=False, rngs=nnx.Rngs(0)),
                keep,
            )

        def __call__(self, x):
            return self.layer(x[:, None], deterministic=self._keep)

    assert found(Nnx(Attention(True))) == (None, ["layer"])
    assert found(Nnx(Attention(None))) == (None, [])


def test_an_nnx_call_takes_its_mode_in_any_way():
    def call(signature, is_training):
        names = {}
        exec(f"def __call__(self, x, {signature}): return self.dropout(x, deterministic=not {is_training})", names)
        return Nnx(type("Own", (Block,), {"__call__": names["__call__"]})(nnx.Rngs(0), None))

    assert_told(call("**kw", "kw.get('train', False)"))
    assert_told(call("train, /", "train"))
    assert found(call("mode='eval'", "(mode == 'train')"))[0] == "mode"


class Classifier(linen.Module):
    """Adds noise of a stream of its own."""

    num_classes: int
    always: bool = False
    idle: bool = False

    @linen.compact
    def __call__(self, x, train):
        x = x.reshape(len(x), -1)
        if train or self.always:
            x = x + jax.random.normal(self.make_rng("noise"), x.shape)
        x = linen.Dropout(0.5, deterministic=not train or self.idle)(x)
        return linen.Dense(self.num_classes)(x)


model = partial(dict, _target_=f"{__name__}.Classifier", num_classes="auto")


def test_streams_of_any_name_have_numbers_in_training_and_idle_dropout_is_told(tmp_path):
    (notice,) = fit(tmp_path, make_conf(model=model(idle=True), max_steps=1)).notices
    assert "dropout is off in training (Dropout_0)" in notice


def test_random_numbers_in_an_evaluation_are_refused(tmp_path):
    with pytest.raises(TrainingError, match=r'draws random numbers in an evaluation: .*"noise"') as raised:
        fit(tmp_path, make_conf(model=model(always=True)))
    assert "named train" in raised.value.hint
