"""Loops for Ray Train's trainers that compute where Ray or the framework finds a GPU, and report where that was."""

import tempfile
from pathlib import Path

import numpy as np
import ray.train
from probes import device_of
from sklearn.datasets import load_breast_cancer


def rows():
    """Return x (569, 30), scaled, and y (569,)."""
    x, y = load_breast_cancer(return_X_y=True)
    return ((x - x.mean(0)) / x.std(0)).astype("float32"), y.astype("int64")


def report(loss, model_device, found_device):
    """Report the loss, and whether the model and the device that Ray gives are the GPU's."""
    found = {"loss": float(loss), "model_on_gpu": model_device == "cuda", "gpu_given": found_device == "cuda"}
    ray.train.report(found)


def torch(config):
    """``prepare_model`` puts the model on the device that ``get_device`` names."""
    import torch
    from ray.train.torch import get_device, prepare_data_loader, prepare_model

    torch.manual_seed(0)
    model = prepare_model(torch.nn.Linear(30, 2))
    optimizer = torch.optim.Adam(model.parameters(), lr=config["lr"])
    data = torch.utils.data.TensorDataset(*map(torch.from_numpy, rows()))
    for _ in range(3):
        for x, y in prepare_data_loader(torch.utils.data.DataLoader(data, batch_size=64)):
            loss = torch.nn.functional.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        report(loss.item(), device_of(model), get_device().type)


def lightning(config):
    """Lightning with Ray's strategy, on the device that Lightning chooses."""
    import torch
    from lightning.pytorch import LightningModule, Trainer
    from ray.train import lightning as of_ray
    from ray.train.torch import get_device

    class Module(LightningModule):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(30, 2)

        def training_step(self, batch):
            self.loss = torch.nn.functional.cross_entropy(self.layer(batch[0]), batch[1])
            return self.loss

        def on_train_epoch_end(self):
            report(self.loss.item(), self.device.type, get_device().type)

        def configure_optimizers(self):
            return torch.optim.Adam(self.parameters(), lr=config["lr"])

    torch.manual_seed(0)
    data = torch.utils.data.TensorDataset(*map(torch.from_numpy, rows()))
    trainer = Trainer(
        max_epochs=3,
        accelerator="auto",
        devices="auto",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        strategy=of_ray.RayDDPStrategy(),
        plugins=[of_ray.RayLightningEnvironment()],
    )
    of_ray.prepare_trainer(trainer).fit(Module(), torch.utils.data.DataLoader(data, batch_size=64))


def transformers(config):
    """The Trainer of transformers with Ray's callback, on the device that Accelerate chooses."""
    import torch
    from ray.train.huggingface.transformers import prepare_trainer
    from ray.train.torch import get_device
    from transformers import (
        BertConfig,
        BertForSequenceClassification,
        Trainer,
        TrainerCallback,
        TrainingArguments,
        set_seed,
    )

    class Reports(TrainerCallback):
        def on_log(self, args, state, control, logs=None, model=None, **keys):
            if "loss" in logs:
                report(logs["loss"], device_of(model), get_device().type)

    set_seed(0)
    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
    model = BertForSequenceClassification(BertConfig(vocab_size=50, **sizes))
    data = [{"input_ids": torch.arange(8) + one, "labels": one % 2} for one in range(32)]
    arguments = TrainingArguments(
        output_dir=tempfile.mkdtemp(),
        num_train_epochs=3,
        learning_rate=config["lr"],
        per_device_train_batch_size=8,
        logging_strategy="epoch",
        save_strategy="no",
        use_cpu=not config["gpu"],
        report_to=[],
        disable_tqdm=True,
    )
    trainer = Trainer(model, arguments, train_dataset=data)
    trainer.add_callback(Reports())
    prepare_trainer(trainer).train()


def jax(config):
    """JAX, on its first device."""
    import jax

    x, y = rows()

    def loss(weights):
        return jax.numpy.logaddexp(0, -(2 * y - 1) * (x @ weights)).mean()

    weights = jax.numpy.zeros(30)
    for _ in range(3):
        weights = weights - config["lr"] * jax.grad(loss)(weights)
        found = "cuda" if jax.default_backend() == "gpu" else jax.default_backend()
        report(loss(weights), device_of(weights), found)


def xgboost(config):
    """XGBoost with Ray's callback, on the device that the parameters name."""
    import xgboost
    from ray.train.xgboost import RayTrainReportCallback

    device = "cuda" if config["gpu"] else "cpu"
    data = xgboost.DMatrix(*rows())
    parameters = {"objective": "binary:logistic", "device": device, "eta": config["lr"]}
    booster = xgboost.train(parameters, data, 3, evals=[(data, "train")], callbacks=[RayTrainReportCallback()])
    predicted = booster.predict(data)
    with tempfile.TemporaryDirectory() as folder:
        booster.save_model(Path(folder) / RayTrainReportCallback.CHECKPOINT_NAME)
    report(np.mean((predicted - rows()[1]) ** 2), device_of(booster), device)
