"""A perceptron 784-128-10 in Lightning on MNIST: Adam 1e-3, 10 epochs, 2 workers.

    RTRAIN_TEST_DATA=DIR pytest -m slow tests/acceptance/test_mnist_lightning.py

The reference is .970 ± .005 and leaves batch size and pixel scale open: here 256 rows per worker and step, pixels from
0 to 1. Steps of 64 rows of standardized pixels, the defaults of rtrain, reach .9786.
"""

import pytest

import rtrain


def test_perceptron_reaches_its_accuracy_with_two_workers(data, tmp_path):
    rows = ["dataset=mnist", f"dataset.path={data('mnist')}", "dataset.normalize=false"]
    steps = ["trainer.module.lr=0.001", "trainer.max_epochs=10", "trainer.global_batch_size=512"]
    words = [*rows, *steps, "num_workers=2", f"run.root_dir={tmp_path}"]
    run = rtrain.fit("lightning", words)
    assert run.metrics["test/accuracy"] == pytest.approx(0.970, abs=0.005)
