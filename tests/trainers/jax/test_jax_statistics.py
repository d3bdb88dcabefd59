"""Models with batch statistics train what a plain script trains, also where rows don't fill a step."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from epochs_contract import assert_same, copied_and_weighted
from flax import nnx
from jax_runs import SGD, fit, make_conf, weights
from normalized import LINEN, NNX, Nnx, Normalized

from rtrain.testing.small_data import small_dataset
from rtrain.testing.workers import RecordingChannel
from rtrain.trainers.jax import arrays


def mean_loss(logits, y, weight):
    return (optax.softmax_cross_entropy_with_integer_labels(logits, y) * weight).sum() / weight.sum()


def train_linen(steps):
    """The loop of Flax's documentation for batch statistics."""
    model, tx = Normalized(num_classes=3), optax.sgd(0.1)
    variables = model.init(jax.random.key(0), steps[0][0], train=False)
    params, statistics = variables["params"], variables["batch_stats"]
    state = tx.init(params)

    @jax.jit
    def step(params, statistics, state, x, y, weight):
        def loss_of(params):
            both = {"params": params, "batch_stats": statistics}
            logits, new = model.apply(both, x, train=True, mutable=["batch_stats"])
            return mean_loss(logits, y, weight), new["batch_stats"]

        gradient, new = jax.grad(loss_of, has_aux=True)(params)
        updates, state = tx.update(gradient, state, params)
        return optax.apply_updates(params, updates), new, state

    for rows in steps:
        params, statistics, state = step(params, statistics, state, *rows)
    return arrays.copied((params, {"batch_stats": statistics}))


def train_nnx(steps):
    """The same with an optimizer of nnx."""
    model = Nnx(16, 3, nnx.Rngs(0), rate=0.0)
    optimizer = nnx.Optimizer(model, optax.sgd(0.1), wrt=nnx.Param)

    @nnx.jit
    def step(model, optimizer, x, y, weight):
        optimizer.update(model, nnx.grad(lambda model: mean_loss(model(x), y, weight))(model))

    for rows in steps:
        step(model, optimizer, *rows)
    return arrays.copied(nnx.split(model, nnx.Param, nnx.RngState, ...)[1::2])


SCRIPTS = {"linen": (LINEN, train_linen), "nnx": ({**NNX, "rate": 0.0}, train_nnx)}


@pytest.mark.parametrize("name", SCRIPTS)
def test_the_last_rows_of_an_epoch_have_statistics_of_their_own(tmp_path, monkeypatch, name):
    from rtrain.config.targets import allow_list

    monkeypatch.setattr(allow_list, "FRAMEWORKS", allow_list.FRAMEWORKS | {"normalized"})
    model, by_hand = SCRIPTS[name]
    data = copied_and_weighted(small_dataset(num_rows=(70, 9)))["weighted"]  # steps of 32, 32 and 6 rows
    fit(tmp_path, make_conf(model=model, optimizer=SGD, shuffle=False, max_epochs=2), data)
    columns = data.splits["train"].columns
    x = jnp.moveaxis((columns["x"] - 0.1) / 2.0, 1, -1)
    parts = [slice(start, start + 32) for start in range(0, 70, 32)] * 2
    wanted = by_hand([(x[rows], columns["y"][rows], columns["weight"][rows]) for rows in parts])
    found = {key: one for key, one in weights(tmp_path).items() if key in wanted}
    assert_same(found, wanted, rtol=1e-5, atol=1e-6)


def test_statistics_follow_the_parts_of_a_step_and_resume(tmp_path, monkeypatch):
    from rtrain.config.targets import allow_list

    monkeypatch.setattr(allow_list, "FRAMEWORKS", allow_list.FRAMEWORKS | {"normalized"})
    conf = make_conf(model=LINEN, optimizer=SGD, global_batch_size=8, accumulate_steps=3)
    data = small_dataset(num_rows=(25, 3))  # the last step has one row
    fit(tmp_path / "whole", conf, data)
    fit(tmp_path / "parts", conf, data, channel=RecordingChannel(stop_after=3))
    fit(tmp_path / "parts", conf, data)
    whole, parts = weights(tmp_path / "whole"), weights(tmp_path / "parts")
    assert_same(whole, parts, rtol=1e-6, atol=1e-7)
    assert all(np.isfinite(values).all() for values in whole.values())
