"""The sklearn trainer keeps the contract of every trainer."""

from rtrain.testing.trainer_contract import TrainerContract


class TestSklearn(TrainerContract):
    config = "sklearn"
    overrides = ("trainer.estimator.n_estimators=10", "trainer.num_threads=1")
    trainer = "sklearn"
    framework = "sklearn"
    at_once = True
    distributed = False


class TestSklearnInEpochs(TrainerContract):
    config = "sklearn"
    overrides = (
        "~trainer.estimator.n_estimators",
        "trainer.estimator._target_=sklearn.neural_network.MLPClassifier",
        "trainer.max_epochs=2",
        "trainer.batch_size=500",
        "trainer.num_threads=1",
    )
    trainer = "sklearn"
    framework = "sklearn"
    distributed = False
