"""Losses, gradients and weights that are not finite."""

import h5py
import numpy as np
import pytest
from keras_runs import fit, make_conf, weights
from not_finite_contract import NotFinite, dataset

from rtrain.config.run_conf import FailureConf

HERE = __name__


def root():
    """A linear model whose root has no finite gradient at 0."""
    import keras

    class Root(keras.layers.Layer):
        def build(self, shape):
            self.root = self.add_weight(shape=(1,), initializer="ones")

        def call(self, x):
            return keras.ops.sqrt(keras.ops.abs(self.root * x[:, :1]))

    x = keras.Input((4,))
    return keras.Model(x, keras.layers.Dense(1)(x) + Root()(x))


@pytest.fixture(autouse=True)
def this_file_may_be_named(monkeypatch):
    from rtrain.config.targets import allow_list

    monkeypatch.setattr(allow_list, "FRAMEWORKS", allow_list.FRAMEWORKS | {HERE})


class TestNotFinite(NotFinite):
    def fit(self, folder, data, **run):
        conf = make_conf(model={"_target_": f"{HERE}.root"}, global_batch_size=10, max_epochs=1)
        return fit(folder, conf, data, **run)

    def arrays(self, checkpoint):
        found = {}
        with h5py.File(checkpoint / "model.weights.h5") as file:
            file.visititems(lambda name, one: found.update({name: one[()]}) if isinstance(one, h5py.Dataset) else None)
        return found


@pytest.mark.parametrize("kind", ["nan", "gradient"])
def test_an_optimizer_that_scales_the_loss_leaves_out_what_overflows_itself(tmp_path, kind):
    adam = {"_target_": "keras.optimizers.Adam", "learning_rate": 0.01}
    optimizer = {"_target_": "keras.optimizers.LossScaleOptimizer", "inner_optimizer": adam}
    conf = make_conf(model={"_target_": f"{HERE}.root"}, global_batch_size=10, max_epochs=1, optimizer=optimizer)
    fit(tmp_path, conf, dataset(kind), failure=FailureConf(nan_loss="skip"))
    found = weights(tmp_path)
    assert all(np.isfinite(one).all() for one in found.values())
    scales = [float(one) for name, one in found.items() if one.ndim == 0 and float(one) == 2.0**14]
    assert scales if kind == "gradient" else not scales, "the scale goes down for gradients only"
