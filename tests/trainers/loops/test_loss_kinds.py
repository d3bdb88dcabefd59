"""A loss that is for other targets than those of the dataset is refused before anything starts, with one that fits."""

import shlex
from types import SimpleNamespace

import numpy as np
import pytest

from rtrain import evaluate, fit
from rtrain.cli.app import run as rtrain
from rtrain.config.schema import RtrainConf
from rtrain.datasets.base import Dataset, DatasetInfo, ResidentSplit
from rtrain.errors import ConfigError
from rtrain.testing.workers import make_job
from rtrain.trainers.loops.loss_kinds import check_loss_kind, is_cross_entropy
from rtrain.trainers.registry import confs

HOMES = [home for conf in confs().values() for home in getattr(conf, "homes", {}).get("loss", ())]
TRAINER = SimpleNamespace(homes={"loss": HOMES})
WORDS = {"of_numbers": "trainer/loss=mse", "of_classes": "trainer/loss=cross_entropy"}
NUMBERS, SHARES, SIGNS = [0.5, 3.0, -2.0], [0.0, 0.25, 1.0], [-1.0, 1.0, 1.0]


def check(loss, targets, num_classes=None):
    info = DatasetInfo(
        **{"name": "small", "task": "classification" if num_classes else "regression", "num_classes": num_classes},
        **{"input_shape": (1,), "num_rows": {"train": 3}, "fingerprint": "", "memory": "", "memory_reason": ""},
    )
    split = ResidentSplit({"x": np.zeros((3, 1)), "y": np.array(targets)})
    job = make_job(RtrainConf(trainer=TRAINER), Dataset(info, {"train": split}))
    check_loss_kind(loss, job, **WORDS)


@pytest.mark.parametrize(
    ("loss", "targets", "num_classes", "fix"),
    [
        ("torch.nn.CrossEntropyLoss", NUMBERS, None, "mse"),
        ("torch.nn.functional.nll_loss", SHARES, None, "mse"),
        ("torch.nn.BCEWithLogitsLoss", NUMBERS, None, "mse"),
        ("torch.nn.functional.binary_cross_entropy", SIGNS, None, "mse"),
        ("torch.nn.SoftMarginLoss", NUMBERS, None, "mse"),
        ("keras.losses.CategoricalCrossentropy", NUMBERS, None, "mse"),
        ("keras.losses.sparse_categorical_crossentropy", NUMBERS, None, "mse"),
        ("keras.losses.BinaryCrossentropy", NUMBERS, None, "mse"),
        ("optax.softmax_cross_entropy", NUMBERS, None, "mse"),
        ("optax.losses.softmax_cross_entropy_with_integer_labels", NUMBERS, None, "mse"),
        ("optax.sigmoid_binary_cross_entropy", NUMBERS, None, "mse"),
        ("torch.nn.MSELoss", [0, 1, 2], 3, "cross_entropy"),
        ("torch.nn.functional.smooth_l1_loss", [0, 1, 2], 3, "cross_entropy"),
        ("keras.losses.MeanSquaredError", [0, 1, 2], 3, "cross_entropy"),
        ("keras.losses.Huber", [0, 1, 2], 3, "cross_entropy"),
        ("optax.squared_error", [0, 1, 2], 3, "cross_entropy"),
        ("optax.l2_loss", [0, 1, 2], 3, "cross_entropy"),
    ],
)
def test_a_loss_for_other_targets_is_refused_with_one_that_fits(loss, targets, num_classes, fix):
    with pytest.raises(ConfigError) as raised:
        check(loss, targets, num_classes)
    assert raised.value.message.startswith(f"trainer.loss: {loss.rpartition('.')[2]} is for ")
    assert f"trainer/loss={fix}" in raised.value.hint


@pytest.mark.parametrize(
    ("loss", "targets", "num_classes"),
    [
        ("torch.nn.MSELoss", NUMBERS, None),
        ("torch.nn.PoissonNLLLoss", NUMBERS, None),
        ("torch.nn.GaussianNLLLoss", NUMBERS, None),
        ("torch.nn.BCEWithLogitsLoss", SHARES, None),
        ("torch.nn.SoftMarginLoss", SIGNS, None),
        ("keras.losses.BinaryCrossentropy", SHARES, None),
        ("torch.nn.CrossEntropyLoss", [0, 1, 2], 3),
        ("keras.losses.MeanSquaredError", [0, 1, 1], 2),
        ("optax.softmax_cross_entropy_with_integer_labels", [0, 1, 2], 3),
        ("my_losses.cross_entropy", NUMBERS, None),
    ],
)
def test_a_loss_that_fits_is_taken(loss, targets, num_classes):
    check(loss, targets, num_classes)


@pytest.mark.parametrize(
    ("config", "loss"),
    [
        ("mlp", "torch.nn.CrossEntropyLoss"),
        ("keras", "keras.losses.CategoricalCrossentropy"),
        ("jax", "optax.softmax_cross_entropy"),
    ],
)
def test_each_trainer_refuses_it_and_what_it_proposes_works(config, loss, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    words = ["dataset=sklearn", "dataset.name=diabetes", "num_workers=0", "dataset.limit=60"]
    if config != "mlp":  # its model is one of images
        model = {"jax": "jax.MLP", "keras": "keras.mlp"}[config]
        words += [
            f"trainer.model._target_=rtrain.models.{model}",
            "~trainer.model.channels",
            "~trainer.model.dropout",
        ]
    assert rtrain(["fit", config, *words, f"trainer.loss={{_target_: {loss}}}"]) == 2
    told = capsys.readouterr().err
    assert "is for classes, but sklearn is for regression" in told
    attempt = told.rpartition("try: ")[2].partition("\n")[0]
    assert rtrain([*shlex.split(attempt)[1:], "trainer.max_epochs=1"]) == 0


@pytest.mark.parametrize(
    ("loss", "plain"),
    [
        (None, True),
        ({"_target_": "torch.nn.CrossEntropyLoss"}, True),
        ({"_target_": "torch.nn.CrossEntropyLoss", "label_smoothing": 0.0, "weight": None}, True),
        ({"_target_": "torch.nn.functional.cross_entropy", "reduction": "none"}, True),
        ({"_target_": "keras.losses.SparseCategoricalCrossentropy", "from_logits": True}, True),
        ({"_target_": "optax.softmax_cross_entropy_with_integer_labels"}, True),
        ({"_target_": "torch.nn.CrossEntropyLoss", "label_smoothing": 0.3}, False),
        ({"_target_": "torch.nn.CrossEntropyLoss", "weight": [1.0, 2.0]}, False),
        ({"_target_": "torch.nn.MultiMarginLoss"}, False),
        ({"_target_": "my_project.losses.Focal"}, False),
    ],
    ids=str,
)
def test_what_is_cross_entropy_and_nothing_else(loss, plain):
    assert is_cross_entropy(loss) == plain


@pytest.mark.parametrize("words", [[], ["trainer.loss.label_smoothing=0.3"]])
def test_an_evaluation_says_where_its_loss_is_another_one_than_the_runs(words, tmp_path, caplog):
    words = [*("num_workers=0", "dataset.limit=200", "max_epochs=1", "loss=cross_entropy"), *words]
    run = fit("mlp", [*words, f"run.root_dir={tmp_path}"])
    found = evaluate(run.path, split="val")["loss"]
    told = [record.getMessage() for record in caplog.records if "trainer.loss" in record.getMessage()]
    same = found == pytest.approx(run.metrics["val/loss"], rel=1e-4)
    assert (same, len(told)) == ((False, 1) if len(words) > 4 else (True, 0))
