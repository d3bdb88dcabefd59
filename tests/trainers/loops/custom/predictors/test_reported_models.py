"""Models that Ray's callbacks report from a loop predict without a word: as the model does that is loaded by hand."""

import importlib
import json
import zipfile

import numpy as np
import pytest
import torch
from pyarrow import parquet

import rtrain
from rtrain.errors import CheckpointError, PredictionError
from rtrain.trainers.registry import load_trainer, packages

LOOPS = """
import tempfile

import numpy as np
import ray.train
import torch
from lightning import pytorch as pl


def rows(split):
    (batch,) = ray.train.get_dataset_shard(split).iter_batches(batch_size=None)
    return batch["x"].reshape(len(batch["x"]), -1), batch["y"]


def xgboost(config):
    import xgboost
    from ray.train.xgboost import RayTrainReportCallback

    data = xgboost.DMatrix(*rows("train"), feature_names=config.get("names"))
    parameters = {"objective": config["objective"], "nthread": 1}
    if config["objective"].startswith("multi"):
        parameters["num_class"] = 10
    callbacks = [RayTrainReportCallback(**config.get("callback", {}))]
    xgboost.train(parameters, data, 5, evals=[(data, "train")], callbacks=callbacks)


def fewer(config):
    import xgboost
    from ray.train.xgboost import RayTrainReportCallback

    x, y = rows("train")
    xgboost.train({"nthread": 1}, xgboost.DMatrix(x[:, :3], y), 2, callbacks=[RayTrainReportCallback()])


def two():
    import pathlib
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        for name in "ab":
            pathlib.Path(folder, f"{name}.ubj").write_text("")
        ray.train.report({}, ray.train.Checkpoint(folder))


def lightgbm(config):
    import lightgbm
    from ray.train.lightgbm import RayTrainReportCallback

    data = lightgbm.Dataset(*rows("train"))
    parameters = {"objective": config["objective"], "verbose": -1, "num_threads": 1}
    parameters |= {"num_class": 10} if config["objective"] == "multiclass" else {}
    lightgbm.train(parameters, data, 5, valid_sets=[data], valid_names=["a"], callbacks=[RayTrainReportCallback()])


def keras(config):
    import tensorflow
    from ray.train.tensorflow.keras import ReportCheckpointCallback

    keras = tensorflow.keras
    x, y = rows("train")
    model = keras.Sequential([keras.layers.Dense(1, input_shape=(x.shape[1],))])
    model.compile(loss=keras.losses.BinaryCrossentropy(from_logits=True), optimizer="sgd")
    model.fit(x / 1000, y, verbose=0, callbacks=[ReportCheckpointCallback()])


class Net(pl.LightningModule):
    def __init__(self, num_features, num_classes):
        super().__init__()
        self.save_hyperparameters()
        self.layer = torch.nn.Linear(num_features, num_classes)

    def forward(self, x):
        return self.layer(x / 1000)

    def training_step(self, batch, index):
        loss = torch.nn.functional.cross_entropy(self(batch[0]), batch[1])
        self.log("loss", loss)
        return loss

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 0.1)


def lightning(config):
    from ray.train.lightning import RayTrainReportCallback

    x, y = map(torch.as_tensor, rows("train"))
    x = x.float()
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, y), batch_size=64)
    trainer = pl.Trainer(
        max_epochs=1, accelerator="cpu", logger=False, enable_checkpointing=False, enable_progress_bar=False,
        enable_model_summary=False, callbacks=[RayTrainReportCallback()] if config["by_callback"] else [],
    )
    trainer.fit(Net(x.shape[1], 2), loader)
    if not config["by_callback"]:
        with tempfile.TemporaryDirectory() as folder:
            trainer.save_checkpoint(f"{folder}/checkpoint.ckpt", weights_only=False)
            ray.train.report({}, ray.train.Checkpoint(folder))


def transformers(config):
    import tempfile

    from ray.train.huggingface.transformers import RayTrainReportCallback, prepare_trainer
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import (
        BertConfig, BertForSequenceClassification, PreTrainedTokenizerFast, Trainer, TrainingArguments,
    )

    words = Tokenizer(models.WordLevel({"[PAD]": 0, "[UNK]": 1, "good": 2, "bad": 3}, "[UNK]"))
    words.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=words, pad_token="[PAD]", unk_token="[UNK]")
    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
    model = BertForSequenceClassification(BertConfig(vocab_size=4, num_labels=2, **sizes))
    rows = ray.train.get_dataset_shard("train").iter_rows()
    data = [{**tokenizer(row["x"]), "labels": int(row["y"])} for row in rows]
    arguments = TrainingArguments(
        output_dir=tempfile.mkdtemp(), max_steps=1, save_strategy="steps", save_steps=1, use_cpu=True, report_to=[],
        disable_tqdm=True, logging_steps=1,
    )
    trainer = Trainer(model, arguments, train_dataset=data, processing_class=tokenizer)
    trainer.add_callback(RayTrainReportCallback())
    prepare_trainer(trainer).train()
"""


def test_names_of_files_are_those_of_rays_callbacks():
    from ray.train import lightgbm, lightning, xgboost
    from ray.train.huggingface import transformers

    usual = {name: load_trainer(name).reported[0] for name in packages() if load_trainer(name).reported}
    assert usual == {
        "xgboost": xgboost.RayTrainReportCallback.CHECKPOINT_NAME,
        "lightgbm": lightgbm.RayTrainReportCallback.CHECKPOINT_NAME,
        "lightning": lightning.RayTrainReportCallback.CHECKPOINT_NAME,
        "transformers": f"{transformers.RayTrainReportCallback.CHECKPOINT_NAME}/config.json",
        "tensorflow": "model.keras",
    }
    assert all(callable(load_trainer(name).part("reported").load_model) for name in usual)


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    folder = tmp_path_factory.mktemp("reported")
    (folder / "pyproject.toml").write_text("")
    (folder / "reporting_loops.py").write_text(LOOPS)
    return folder


@pytest.fixture
def fit(project):
    def train(trainer, loop, data, config=None):
        given = json.dumps(config or {})
        (project / "one.yaml").write_text(
            f"trainer: {{type: {trainer}, train_loop: 'reporting_loops:{loop}', train_loop_config: {given}}}\n"
            f"dataset: {data if '{' in data else f'{{type: sklearn, name: {data}}}'}\n"
            f"run: {{root_dir: {project}/runs}}\nscaling: {{num_workers: 0}}\n"
        )
        return rtrain.fit(str(project / "one.yaml"))

    return train


def predicted(run, folder, *words):
    """Return the scores of all test rows, and the rows."""
    rtrain.predict(run.path, folder / "out.parquet", words, split="test")
    table = parquet.read_table(folder / "out.parquet")
    names = [name for name in table.column_names if name.startswith("probability_")] or ["prediction"]
    return np.stack([table[name].to_numpy() for name in names], 1)


def rows_of_test(run):
    from rtrain.prediction import open_checkpoint

    opened = open_checkpoint(run.path, ["trainer.predictor=reporting_loops:Net"], "best")
    (chunk,) = opened.rows("test").read(0, True)
    return chunk.x.reshape(len(chunk.x), -1), chunk.y


@pytest.mark.parametrize(
    ("objective", "data"),
    [("reg:squarederror", "diabetes"), ("binary:logistic", "breast_cancer"), ("multi:softprob", "digits")],
)
def test_xgboost(fit, tmp_path, objective, data):
    import xgboost

    run = fit("xgboost", "xgboost", data, {"objective": objective})
    x, _ = rows_of_test(run)
    booster = xgboost.Booster(model_file=run.best_checkpoint / "model.ubj")
    found, expected = predicted(run, tmp_path), booster.predict(xgboost.DMatrix(x))
    np.testing.assert_array_equal(found[:, -1:] if expected.ndim == 1 else found, expected.reshape(len(x), -1))
    assert rtrain.evaluate(run.path)["num_rows"] == len(x)


def test_xgboost_gives_classes_by_number_and_finds_features_by_name(fit, tmp_path):
    import xgboost

    run = fit("xgboost", "xgboost", "digits", {"objective": "multi:softmax", "callback": {"filename": "own.ubj"}})
    x, y = rows_of_test(run)
    expected = xgboost.Booster(model_file=run.best_checkpoint / "own.ubj").predict(xgboost.DMatrix(x))
    assert rtrain.evaluate(run.path)["accuracy"] == pytest.approx((expected == y).mean())
    names = ["bmi", "age", "sex", "bp", "s1", "s2", "s3", "s4", "s5", "s6"]
    run = fit("xgboost", "xgboost", "diabetes", {"objective": "reg:squarederror", "names": names})
    x, _ = rows_of_test(run)
    booster = xgboost.Booster(model_file=run.best_checkpoint / "model.ubj")
    by_name = xgboost.DMatrix(x[:, [2, 0, 1, *range(3, 10)]], feature_names=names)
    np.testing.assert_array_equal(predicted(run, tmp_path)[:, 0], booster.predict(by_name))


@pytest.mark.parametrize(
    ("objective", "data"), [("regression", "diabetes"), ("binary", "breast_cancer"), ("multiclass", "digits")]
)
def test_lightgbm(fit, tmp_path, objective, data):
    import lightgbm

    run = fit("lightgbm", "lightgbm", data, {"objective": objective})
    x, _ = rows_of_test(run)
    expected = lightgbm.Booster(model_file=run.best_checkpoint / "model.txt").predict(x)
    found = predicted(run, tmp_path)
    np.testing.assert_array_equal(found[:, -1:] if expected.ndim == 1 else found, expected.reshape(len(x), -1))


def test_keras_of_either_version_gives_probabilities_of_its_logits(fit, tmp_path):
    run = fit("tensorflow", "keras", "breast_cancer")
    x, _ = rows_of_test(run)
    with zipfile.ZipFile(run.best_checkpoint / "model.keras") as file:
        version = json.loads(file.read("metadata.json"))["keras_version"]  # Keras 3 where a test has imported it before
    keras = importlib.import_module("tf_keras" if version.startswith("2") else "keras")
    model = keras.models.load_model(run.best_checkpoint / "model.keras")
    expected = 1 / (1 + np.exp(-model.predict(x, verbose=0)[:, 0].astype("float64")))
    np.testing.assert_allclose(predicted(run, tmp_path)[:, 1], expected, rtol=1e-6)
    refuses_columns(rtrain.load_checkpoint(run.path))


def refuses_columns(loaded):
    """A model of one array says so where the rows are columns of a table."""
    with pytest.raises(PredictionError, match="takes one array, but the rows have the columns a, b") as caught:
        loaded.predict({"a": np.zeros(2), "b": np.ones(2)})
    assert "np.column_stack([batch['a'], batch['b'], ...])" in caught.value.hint


@pytest.mark.parametrize(
    "by_callback",  # for which Ray starts a cluster
    [False, pytest.param(True, marks=pytest.mark.slow)],
)
def test_lightning_needs_the_class_of_its_module(fit, tmp_path, by_callback):
    run = fit("lightning", "lightning", "breast_cancer", {"by_callback": by_callback})
    with pytest.raises(CheckpointError, match="not its class") as caught:
        rtrain.evaluate(run.path)
    assert "trainer.predictor=my_module:Net" in caught.value.hint
    found = predicted(run, tmp_path, "trainer.predictor=reporting_loops:Net")
    from reporting_loops import Net

    model = Net.load_from_checkpoint(run.best_checkpoint / "checkpoint.ckpt", weights_only=False)
    with torch.no_grad():
        expected = model(torch.as_tensor(rows_of_test(run)[0]).float()).softmax(-1)
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    refuses_columns(rtrain.load_checkpoint(run.path, ["trainer.predictor=reporting_loops:Net"]))


def test_transformers_tokenizes_texts_with_the_tokenizer_of_the_checkpoint(fit, project, tmp_path):
    from transformers import AutoTokenizer, BertForSequenceClassification

    texts = ["good", "bad bad", "good good bad", "so bad"] * 10
    lines = "".join(f"{text},{int('good' in text)}\n" for text in texts)
    (project / "texts.csv").write_text(f"text,label\n{lines}")
    run = fit("torch", "transformers", f"{{type: text, path: {project}/texts.csv, label: label}}")
    folder = run.best_checkpoint / "checkpoint"
    model, tokenizer = BertForSequenceClassification.from_pretrained(folder), AutoTokenizer.from_pretrained(folder)
    with torch.no_grad():
        inputs = tokenizer(texts, padding=True, return_tensors="pt", return_token_type_ids=False)
        expected = model.eval()(**inputs).logits.softmax(-1)
    rtrain.predict(run.path, tmp_path / "out.parquet", [f"dataset.path={project}/texts.csv"])
    found = parquet.read_table(tmp_path / "out.parquet")
    np.testing.assert_allclose(found["probability_1"], expected[:, 1], atol=1e-6)
    assert rtrain.evaluate(run.path)["num_rows"] == 8


def test_other_features_than_the_models_are_named_with_what_to_write(fit, project):
    run = fit("xgboost", "fewer", "diabetes")
    with pytest.raises(PredictionError, match="takes 3 features, but the rows have 10") as caught:
        rtrain.evaluate(run.path)
    assert "trainer.predictor" in caught.value.hint


def test_a_model_of_another_framework_than_the_trainers_is_found(fit, tmp_path):
    run = fit("torch", "xgboost", "diabetes", {"objective": "reg:squarederror"})
    assert len(predicted(run, tmp_path)) == 88


def test_several_models_are_named(fit):
    run = fit("xgboost", "two", "diabetes")
    with pytest.raises(CheckpointError, match=r"several files could be the model: a\.ubj, b\.ubj"):
        rtrain.evaluate(run.path)
