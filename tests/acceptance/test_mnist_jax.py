"""The MLP of JAX's tutorial on MNIST reaches its accuracy.

    RTRAIN_TEST_DATA=DIR pytest -m slow tests/acceptance/test_mnist_jax.py

The tutorial ("Training a simple neural network") gives 0.967 on the test images after 8 epochs: layers of 784, 512, 512
and 10, weights from a normal distribution of 0.01, pixels from 0 to 255, stochastic gradient descent with 0.01 and 128
rows in the order of the files, and a loss that is the mean over rows and classes.
"""

import flax.linen as nn
import jax
import optax
import pytest

import rtrain

WEIGHTS = nn.initializers.normal(0.01)


class TutorialMLP(nn.Module):
    """Takes pixels from 0 to 1, as the dataset has them, and scales them back."""

    @nn.compact
    def __call__(self, x):
        x = x.reshape(len(x), -1) * 255
        for width in (512, 512):
            x = nn.relu(nn.Dense(width, kernel_init=WEIGHTS, bias_init=WEIGHTS)(x))
        return nn.Dense(10, kernel_init=WEIGHTS, bias_init=WEIGHTS)(x)


def tutorial_loss(output, target):
    """Cross entropy, divided by the number of classes."""
    return optax.softmax_cross_entropy(output, jax.nn.one_hot(target, 10)) / 10


CONFIG = f"""
defaults: [trainer: jax, dataset: mnist]
allow: [{__name__}]
dataset: {{normalize: false}}
trainer:
  model: {{_target_: {__name__}.TutorialMLP}}
  optimizer: {{_target_: optax.sgd, learning_rate: 0.01}}
  loss: {{_target_: {__name__}.tutorial_loss}}
  max_epochs: 8
  batch_size: 128
  shuffle: false
"""


def test_the_mlp_of_the_tutorial_reaches_0_967(tmp_path, data):
    (tmp_path / "mnist_mlp.yaml").write_text(CONFIG)
    words = [f"dataset.path={data('mnist')}", "num_workers=0", f"run.root_dir={tmp_path}/runs"]
    run = rtrain.fit(str(tmp_path / "mnist_mlp.yaml"), words)
    assert run.metrics["test/accuracy"] == pytest.approx(0.967, abs=0.004)
