"""A perceptron 784-128-10 in Lightning on MNIST: Adam 1e-3, 10 epochs, 2 workers.

    RTRAIN_TEST_DATA=DIR pytest -m slow tests/acceptance/test_mnist_lightning.py

The reference is .970 ± .005 and leaves the batch size open. In batches of 64 rows of standardized pixels it was .9786,
above the reference's upper end, so that only its lower end is held.
"""

import rtrain


def test_perceptron_reaches_its_accuracy_with_two_workers(data, tmp_path):
    words = ["dataset=mnist", f"dataset.path={data('mnist')}", "trainer.module.lr=0.001", "trainer.max_epochs=10"]
    run = rtrain.fit("lightning", [*words, "num_workers=2", f"run.root_dir={tmp_path}"])
    assert run.metrics["test/accuracy"] >= 0.965
