"""The declared loop on one worker, and parity with a script."""

import jax
import jax.numpy as jnp
import jax_runs
import numpy as np
import optax
import pytest
from epochs_contract import EpochsOnOneRank, assert_same
from flax import linen
from flax.traverse_util import flatten_dict
from jax_runs import DROPOUT, MLP, fit, make_conf, weights
from normalized import LINEN, NNX

from rtrain.datasets.base import Dataset, ResidentSplit
from rtrain.errors import DatasetError, RtrainError, TrainingError
from rtrain.models.jax import MLP as Module
from rtrain.testing.small_data import small_dataset
from rtrain.testing.workers import RecordingChannel, make_worker, newest
from rtrain.trainers.jax.predictor import load_predictor

HERE = f"{__name__}"


class Bigrams(linen.Module):
    """Predicts the next token from the one before."""

    vocab_size: int

    @linen.compact
    def __call__(self, x):
        return linen.Dense(self.vocab_size)(linen.Embed(self.vocab_size, 8)(x))


class Pair(linen.Module):
    """Gives no array."""

    @linen.compact
    def __call__(self, x):
        return linen.Dense(3)(x.reshape(len(x), -1)), x


def local(name, **keys):
    """Name a class of this file in a config."""
    return {"_target_": f"{HERE}.{name}", **keys}


@pytest.fixture(autouse=True)
def this_file_may_be_named(monkeypatch):
    from rtrain.config.targets import allow_list

    monkeypatch.setattr(allow_list, "FRAMEWORKS", allow_list.FRAMEWORKS | {HERE, "normalized"})


MODELS = {
    "dropout": DROPOUT,
    "batch statistics": LINEN,
    "nnx": NNX,
}


def test_it_trains_what_a_script_trains(tmp_path):
    """Parity: the loop of Flax's and Optax's documentation, by hand, with the same seed and order of rows."""
    data = small_dataset()
    channel = fit(tmp_path, make_conf(), data, seed=5)
    model, tx = Module(num_classes=3, hidden=[16]), optax.adam(0.01)

    def ready(x):
        return jnp.moveaxis((x - 0.1) / 2.0, 1, -1)

    columns = data.splits["train"].columns
    params = model.init(jax.random.key(5), ready(columns["x"][:1]))["params"]
    state = tx.init(params)

    @jax.jit
    def step(params, state, x, y):
        def loss_fn(params):
            logits = model.apply({"params": params}, ready(x))
            return optax.softmax_cross_entropy_with_integer_labels(logits, y).mean()

        loss, grads = jax.value_and_grad(loss_fn)(params)
        updates, state = tx.update(grads, state, params)
        return optax.apply_updates(params, updates), state, loss

    for epoch in range(3):
        order = np.random.default_rng((5, epoch)).permutation(150)
        for start in range(0, 150, 32):
            rows = order[start : start + 32]
            params, state, _ = step(params, state, columns["x"][rows], columns["y"][rows])
    by_hand = {f"0/{name}": one for name, one in flatten_dict(params, sep="/").items()}
    found = {name: one for name, one in weights(tmp_path).items() if name in by_hand}
    assert_same(found, by_hand, rtol=1e-5, atol=1e-7)
    test = data.splits["test"].columns
    logits = model.apply({"params": params}, ready(test["x"]))
    loss = float(optax.softmax_cross_entropy_with_integer_labels(logits, test["y"]).mean())
    assert channel.metrics["test/accuracy"] == pytest.approx(float((logits.argmax(1) == test["y"]).mean()))
    assert channel.metrics["test/loss"] == pytest.approx(loss, rel=1e-5)


@pytest.mark.parametrize("name", MODELS)
def test_resuming_inside_an_epoch_changes_nothing(tmp_path, name):
    conf = make_conf(model=MODELS[name])
    whole = fit(tmp_path / "a", conf)
    stopped = fit(tmp_path / "b", conf, channel=RecordingChannel(stop_after=7))
    assert stopped.checkpoints[-1]["step"] == 7
    resumed = fit(tmp_path / "b", conf)
    assert_same(weights(tmp_path / "a"), weights(tmp_path / "b"), rtol=0, atol=0)
    for metric in ("train/epoch_loss", "test/loss", "test/accuracy"):
        assert resumed.metrics[metric] == pytest.approx(whole.metrics[metric], rel=1e-12)


NOISE = {"eta": 0.01, "gamma": 0.55, "key": 0}
NOISY = {
    "noisy_sgd": {"_target_": "optax.noisy_sgd", "learning_rate": 0.1},
    "add_noise": {
        "_target_": "optax.chain",
        "_args_": [{"_target_": "optax.adam", "learning_rate": 0.01}, {"_target_": "optax.add_noise", **NOISE}],
    },
}


@pytest.mark.parametrize("name", NOISY)
def test_an_optimizer_that_draws_random_numbers_goes_on_drawing_them(tmp_path, name):
    conf = make_conf(optimizer=NOISY[name])
    fit(tmp_path / "a", conf)
    fit(tmp_path / "b", conf, channel=RecordingChannel(stop_after=7))
    fit(tmp_path / "b", conf)
    assert_same(weights(tmp_path / "a"), weights(tmp_path / "b"), rtol=0, atol=0)


@pytest.mark.parametrize(
    ("optimizer", "hint"),
    [
        ({"_target_": "optax.MultiSteps", "opt": {"_target_": "optax.sgd", "learning_rate": 0.1}}, "accumulate_steps"),
        ({"_target_": "optax.lbfgs"}, "gradients and weights alone"),
        ({"_target_": "optax.contrib.reduce_on_plateau"}, "gradients and weights alone"),
    ],
    ids=["several steps", "a line search", "a plateau"],
)
def test_an_optimizer_that_needs_more_than_gradients_is_refused_with_what_there_is(tmp_path, optimizer, hint):
    steps = {"every_k_schedule": 2} if "MultiSteps" in optimizer["_target_"] else {}
    with pytest.raises(RtrainError) as caught:
        fit(tmp_path, make_conf(optimizer={**optimizer, **steps}))
    assert hint in caught.value.hint


@pytest.mark.parametrize("name", MODELS)
def test_a_checkpoint_predicts_what_was_evaluated(tmp_path, name):
    conf, data = make_conf(model=MODELS[name], max_epochs=6), small_dataset(dtype="uint8", shape=(2, 3, 4))
    channel = fit(tmp_path, conf, data)
    test = data.splits["test"].columns
    found = load_predictor(newest(tmp_path, conf, data)).predict(test["x"])
    assert found.shape == (37, 3)
    np.testing.assert_allclose(found.sum(1), 1, rtol=1e-5)
    assert (found.argmax(1) == test["y"]).mean() == pytest.approx(channel.metrics["test/accuracy"])
    loss = -np.log(found[np.arange(37), test["y"]]).mean()
    assert loss == pytest.approx(channel.metrics["test/loss"], rel=1e-4)


def test_the_rate_follows_its_schedule_to_the_end_of_the_run(tmp_path):
    schedule = {"_target_": "optax.linear_schedule", "init_value": 0.1, "end_value": 0.0, "transition_steps": "auto"}
    conf = make_conf(optimizer={"_target_": "optax.sgd", "learning_rate": schedule})
    rates = [record.metrics["train/lr"] for record in fit(tmp_path, conf).events]
    assert rates == pytest.approx([0.1 * 10 / 15, 0.1 * 5 / 15, 0.1 * 5 / 15, 0.0], abs=1e-7)


def test_own_loss_and_metrics_are_functions_of_rows(tmp_path):
    conf = make_conf(
        loss={"_target_": "optax.huber_loss", "delta": 0.5},
        metrics={"huber": {"_target_": "optax.huber_loss", "delta": 2.0}},
    )
    data = small_dataset("regression", shape=(5,))
    found = fit(tmp_path, conf, data).metrics
    assert found["test/loss"] < found["test/huber"] < found["test/mse"]


@pytest.mark.parametrize(
    ("model", "task", "says"),
    [
        ({**MLP, "num_classes": 2}, "classification", r"returns \(2,\) numbers per row, but small has 3 classes"),
        ({**MLP, "num_classes": 3}, "regression", r"returns \(3,\) numbers per row, but the target is one number"),
        (local("Pair"), "classification", "returns a tuple"),
    ],
)
def test_a_model_that_does_not_fit_the_data_is_told(tmp_path, model, task, says):
    with pytest.raises(TrainingError, match=says):
        fit(tmp_path, make_conf(model=model), small_dataset(task))


def mean_error(output, target):
    return jnp.square(output - target).mean()


def all_with_all(output, target):
    return jnp.square(output[:, None] - target[None, :])


def of_places(output, target):
    return jnp.square(output - target)[:, None] * jnp.ones((1, 3))


@pytest.mark.parametrize("key", ["loss", "metrics"])
@pytest.mark.parametrize(
    ("name", "says"),
    [("mean_error", "returns a single number for"), ("all_with_all", r"returns an array of shape \((\d), \1\) for")],
)
def test_a_function_of_all_rows_together_is_refused(tmp_path, key, name, says):
    one = local(name)
    conf = make_conf(**{key: one if key == "loss" else {"mine": one}})
    with pytest.raises(TrainingError, match=f"trainer.{key}.*{says}.*not a number for each row"):
        fit(tmp_path, conf, small_dataset("regression", shape=(5,)))


def test_a_row_may_have_several_numbers(tmp_path):
    found = fit(tmp_path, make_conf(loss=local("of_places")), small_dataset("regression", shape=(5,))).metrics
    assert found["test/loss"] == pytest.approx(found["test/mse"])


def own_function(worker):
    """A train function of the user's."""
    worker.report({"loss": worker.conf.train_function_config["loss"]}, step=1, epoch=1)


def test_a_function_of_ones_own_gets_the_worker(tmp_path):
    from rtrain.trainers.jax.plugin import Plugin

    conf = make_conf(train_function=f"{HERE}:own_function", train_function_config={"loss": 2.0})
    channel = RecordingChannel()
    Plugin().train_loop(conf)(make_worker(tmp_path, conf, small_dataset(), channel=channel))
    assert channel.metrics == {"loss": 2.0}


def test_rows_of_another_type_than_the_dataset_says_are_refused(tmp_path):
    data = small_dataset()
    wrong = ResidentSplit({**data.splits["train"].columns, "x": np.zeros((150, 1, 4, 4), "uint8")})
    with pytest.raises(DatasetError, match="the rows of small are uint8, but DatasetInfo"):
        fit(tmp_path, make_conf(), Dataset(data.info, {**data.splits, "train": wrong}))


class TestEpochs(EpochsOnOneRank):
    runs, trainer = jax_runs, "jax"
    bigrams = local("Bigrams", vocab_size="auto")
