"""Every model that ships with a trainer, with rows of every shape: it trains, or one error names it and the shape."""

import pytest

from rtrain.config.schema import RtrainConf
from rtrain.errors import RtrainError
from rtrain.testing.small_data import few_rows, small_dataset, small_text
from rtrain.testing.workers import RecordingChannel, make_job, make_worker
from rtrain.trainers.registry import load_trainer

DATA = {
    "table": lambda task: small_dataset(task, shape=(5,)),
    "image": lambda task: small_dataset(task, shape=(1, 8, 8)),
    "series": lambda task: small_dataset(task, shape=(4, 6)),
    "tokens": lambda task: small_text(),
}
OPTIMIZERS = {
    "torch": {"_target_": "torch.optim.SGD", "lr": 0.01},
    "jax": {"_target_": "optax.sgd", "learning_rate": 0.01},
    "tensorflow": {"_target_": "keras.optimizers.SGD", "learning_rate": 0.01},
}
HOMES = {"torch": "rtrain.models.torch", "jax": "rtrain.models.jax", "tensorflow": "rtrain.models.keras"}
NUMBERS = {"table", "image", "series"}
MODELS = [
    ("torch", "MLP", {"in_features": "auto", "num_classes": "auto"}, NUMBERS),
    ("torch", "MLP", {"in_features": 5, "num_classes": "auto"}, {"table"}),
    ("torch", "ResNet", {"in_channels": "auto", "num_classes": "auto", "width": 4}, {"image"}),
    ("torch", "ResNet", {"in_channels": 1, "num_classes": "auto", "width": 4}, {"image"}),
    ("torch", "ResNet", {"in_channels": 3, "num_classes": "auto", "width": 4}, set()),
    ("torch", "GPT", {"vocab_size": "auto", "block_size": "auto", "width": 8}, {"tokens"}),
    ("torch", "GPT", {"vocab_size": 9, "block_size": 6, "width": 8}, {"tokens"}),
    ("torch", "GPT", {"vocab_size": 4, "block_size": 6, "width": 8}, set()),
    ("torch", "GPT", {"vocab_size": 9, "block_size": 5, "width": 8}, set()),
    ("jax", "MLP", {"num_classes": "auto"}, NUMBERS),
    ("jax", "CNN", {"num_classes": "auto", "channels": [4]}, {"image"}),
    ("tensorflow", "mlp", {"input_shape": "auto", "num_classes": "auto"}, NUMBERS),
    ("tensorflow", "mlp", {"input_shape": [5], "num_classes": "auto"}, {"table"}),
    ("tensorflow", "cnn", {"input_shape": "auto", "num_classes": "auto", "channels": [4]}, {"image"}),
    ("tensorflow", "cnn", {"input_shape": [8, 8, 3], "num_classes": "auto", "channels": [4]}, set()),
]


def train(trainer, model, data, folder, **keys):
    """Check and train as a run does; return the error that says why not."""
    plugin = load_trainer(trainer)
    usual = {"optimizer": OPTIMIZERS[trainer], "max_steps": 1, "global_batch_size": 16}
    conf = plugin.Conf(model=model, **{**usual, **keys})
    channel = RecordingChannel()
    try:
        plugin.check(make_job(RtrainConf(trainer=conf), data, trainer))
        plugin.train_loop(conf)(make_worker(folder, conf, data, channel=channel))
    except RtrainError as error:
        return error
    assert channel.checkpoints
    return None


@pytest.mark.parametrize("task", ["classification", pytest.param("regression", marks=pytest.mark.slow)])
@pytest.mark.parametrize(("trainer", "name", "keys", "fitting"), MODELS)
def test_it_trains_or_one_error_names_the_model_and_the_shape(tmp_path, trainer, name, keys, fitting, task):
    trained = set()
    for kind, make in DATA.items():
        if kind == "tokens" and task == "regression":
            continue
        data = few_rows(make(task))
        error = train(trainer, {"_target_": f"{HOMES[trainer]}.{name}", **keys}, data, tmp_path / kind)
        if error is None:
            trained.add(kind)
            continue
        assert "model" in error.message
        assert error.hint or "failed: " in error.message  # in the library's own words
        said = f"{error.message} {error.hint}"
        assert any(word in said for word in (str(data.info.input_shape), "numbers per row", "shape", "such rows")), said
        assert name in said or "the model returns" in said or "trainer.model" in said
    assert trained == fitting - ({"tokens"} if task == "regression" else set())


@pytest.mark.parametrize(
    ("trainer", "loss", "task"),
    [
        ("jax", {"_target_": "optax.l2_loss"}, "classification"),
        ("jax", {"_target_": "optax.cosine_distance"}, "regression"),
        ("jax", {"_target_": "optax.softmax_cross_entropy"}, "classification"),
        ("jax", {"_target_": "jax.numpy.vdot"}, "regression"),
        ("tensorflow", {"_target_": "keras.losses.MeanSquaredError"}, "classification"),
        ("tensorflow", {"_target_": "keras.losses.SparseCategoricalCrossentropy"}, "regression"),
    ],
)
def test_a_loss_that_does_not_fit_is_told_with_its_shapes_and_not_broadcast(tmp_path, trainer, loss, task):
    data, shape = few_rows(small_dataset(task, shape=(5,))), {"input_shape": "auto"} if trainer == "tensorflow" else {}
    name = {"jax": "MLP", "tensorflow": "mlp"}[trainer]
    model = {"_target_": f"{HOMES[trainer]}.{name}", "num_classes": "auto", **shape}
    # As many rows as classes: what broadcasts would do so in silence.
    error = train(trainer, model, data, tmp_path, loss=loss, global_batch_size=3)
    assert error is not None
    assert "trainer.loss" in error.message
    assert "outputs of shape" in error.message or f"but small is for {task}" in error.message
