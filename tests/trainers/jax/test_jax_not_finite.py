"""Losses, gradients and weights that are not finite."""

import jax.numpy as jnp
import pytest
from flax import linen
from jax_runs import fit, make_conf
from not_finite_contract import NotFinite
from safetensors.numpy import load_file

HERE = __name__


class Root(linen.Module):
    """A linear model whose root has no finite gradient at 0."""

    @linen.compact
    def __call__(self, x):
        root = self.param("root", lambda _: jnp.ones(1))
        return linen.Dense(1)(x)[:, 0] + jnp.sqrt(jnp.abs(root * x[:, 0]))


@pytest.fixture(autouse=True)
def this_file_may_be_named(monkeypatch):
    from rtrain.config.targets import allow_list

    monkeypatch.setattr(allow_list, "FRAMEWORKS", allow_list.FRAMEWORKS | {HERE})


class TestNotFinite(NotFinite):
    def fit(self, folder, data, **run):
        conf = make_conf(model={"_target_": f"{HERE}.Root"}, global_batch_size=10, max_epochs=1)
        return fit(folder, conf, data, **run)

    def arrays(self, checkpoint):
        return load_file(checkpoint / "model.safetensors")
