"""Loops after the guides of Ray Train: each goes on from its checkpoint, and reports its loss once an epoch."""

import json
import tempfile
from pathlib import Path

import numpy as np
import ray.train
from sklearn.datasets import load_breast_cancer

EPOCHS = 4


def rows():
    """Return this worker's rows, scaled: x (n, 30), y (n,); all workers have as many."""
    context = ray.train.get_context()
    x, y = load_breast_cancer(return_X_y=True)
    x = ((x - x.mean(0)) / x.std(0)).astype("float32")
    rank, size = context.get_world_rank(), context.get_world_size()
    return x[rank:568:size], y[rank:568:size].astype("int64")


def is_first():
    return ray.train.get_context().get_world_rank() == 0


def done_before():
    """Return the folder of the checkpoint to go on from, if there is one, and how many epochs it has."""
    checkpoint = ray.train.get_checkpoint()
    if checkpoint is None:
        return None, 0
    folder = Path(checkpoint.to_directory())
    return folder, json.loads((folder / "done.json").read_text())


def report(metrics, epoch, save):
    """Report, with what ``save(folder)`` writes on the first worker."""
    with tempfile.TemporaryDirectory() as folder:
        checkpoint = None
        if is_first():
            save(Path(folder))
            (Path(folder) / "done.json").write_text(json.dumps(epoch + 1))
            checkpoint = ray.train.Checkpoint.from_directory(folder)
        ray.train.report({**metrics, "epoch": epoch + 1}, checkpoint=checkpoint)


def torch_checkpoints(config):
    """Saving and loading checkpoints: model and optimizer."""
    import torch
    from ray.train.torch import prepare_model

    torch.manual_seed(0)
    x, y = map(torch.from_numpy, rows())
    model = torch.nn.Sequential(torch.nn.Linear(30, 16), torch.nn.ReLU(), torch.nn.Linear(16, 2))
    folder, start = done_before()
    model = prepare_model(model)
    bare = getattr(model, "module", model)
    optimizer = torch.optim.Adam(model.parameters(), lr=config["lr"])
    if folder:
        saved = torch.load(folder / "state.pt")
        bare.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
    for epoch in range(start, config.get("epochs", EPOCHS)):
        for first in range(0, len(x), 71):
            loss = torch.nn.functional.cross_entropy(model(x[first : first + 71]), y[first : first + 71])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        state = {"model": bare.state_dict(), "optimizer": optimizer.state_dict()}
        report({"loss": loss.item()}, epoch, lambda folder, state=state: torch.save(state, folder / "state.pt"))


def accelerate(config):
    """Hugging Face Accelerate: its own preparation of model, optimizer and data."""
    import torch
    from accelerate import Accelerator

    torch.manual_seed(0)
    accelerator = Accelerator(cpu=True)
    x, y = map(torch.from_numpy, rows())
    model = torch.nn.Linear(30, 2)
    folder, start = done_before()
    if folder:
        model.load_state_dict(torch.load(folder / "model.pt"))
    model, optimizer = accelerator.prepare(model, torch.optim.SGD(model.parameters(), lr=config["lr"]))
    for epoch in range(start, config.get("epochs", EPOCHS)):
        loss = torch.nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        accelerator.backward(loss)
        optimizer.step()
        state = accelerator.unwrap_model(model).state_dict()
        report({"loss": loss.item()}, epoch, lambda folder, state=state: torch.save(state, folder / "model.pt"))


def lightning(config):
    """PyTorch Lightning: Ray's strategy, environment and callback."""
    import torch
    from lightning.pytorch import LightningModule, Trainer
    from ray.train import lightning as of_ray

    class Module(LightningModule):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(30, 2)

        def training_step(self, batch):
            loss = torch.nn.functional.cross_entropy(self.layer(batch[0]), batch[1])
            self.log("loss", loss, on_step=False, on_epoch=True, sync_dist=True)
            return loss

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), lr=config["lr"])

    torch.manual_seed(0)
    data = torch.utils.data.TensorDataset(*map(torch.from_numpy, rows()))
    trainer = Trainer(
        max_epochs=config.get("epochs", EPOCHS),
        accelerator="cpu",
        devices="auto",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        use_distributed_sampler=False,
        strategy=of_ray.RayDDPStrategy(),
        plugins=[of_ray.RayLightningEnvironment()],
        callbacks=[of_ray.RayTrainReportCallback()],
    )
    checkpoint = ray.train.get_checkpoint()
    saved = checkpoint and Path(checkpoint.to_directory()) / "checkpoint.ckpt"
    of_ray.prepare_trainer(trainer).fit(Module(), torch.utils.data.DataLoader(data, batch_size=71), ckpt_path=saved)


def transformers(config):
    """Hugging Face Trainer: Ray's callback."""
    import torch
    from ray.train.huggingface.transformers import RayTrainReportCallback, prepare_trainer
    from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments, set_seed

    set_seed(0)
    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
    drawn = {"hidden_dropout_prob": 0, "attention_probs_dropout_prob": 0}
    model = BertForSequenceClassification(BertConfig(vocab_size=50, **sizes, **drawn))
    data = [{"input_ids": torch.arange(8) + one, "labels": one % 2} for one in range(32)]
    arguments = TrainingArguments(
        output_dir=tempfile.mkdtemp(),
        num_train_epochs=config.get("epochs", EPOCHS),
        learning_rate=config["lr"],
        per_device_train_batch_size=8,
        logging_strategy="epoch",
        save_strategy="epoch",
        use_cpu=True,
        report_to=[],
        disable_tqdm=True,
    )
    trainer = Trainer(model, arguments, train_dataset=data)
    trainer.add_callback(RayTrainReportCallback())
    checkpoint = ray.train.get_checkpoint()
    prepare_trainer(trainer).train(checkpoint and str(Path(checkpoint.to_directory()) / "checkpoint"))


def jax(config):
    """JAX: gradients of all processes, averaged."""
    import jax
    from jax.experimental import multihost_utils

    x, y = rows()

    def loss(weights):
        return jax.numpy.logaddexp(0, -(2 * y - 1) * (x @ weights)).mean()

    folder, start = done_before()
    weights = np.load(folder / "weights.npy") if folder else np.zeros(30, "float32")
    for epoch in range(start, config.get("epochs", EPOCHS)):
        gradient = jax.grad(loss)(weights)
        if jax.process_count() > 1:
            gradient = multihost_utils.process_allgather(gradient).mean(0)
        weights = np.asarray(weights - config["lr"] * gradient)
        found = {"loss": float(loss(weights))}
        report(found, epoch, lambda folder, weights=weights: np.save(folder / "weights.npy", weights))


def tensorflow(config):
    """Keras under MultiWorkerMirroredStrategy, with Ray's callback."""
    import tensorflow
    from ray.train.tensorflow.keras import ReportCheckpointCallback

    keras = tensorflow.keras
    keras.utils.set_random_seed(0)
    strategy = tensorflow.distribute.MultiWorkerMirroredStrategy()
    checkpoint = ray.train.get_checkpoint()
    with strategy.scope():
        if checkpoint is None:
            model = keras.Sequential([keras.layers.Dense(1, input_shape=(30,))])
            optimizer = keras.optimizers.SGD(config["lr"])
            model.compile(loss=keras.losses.BinaryCrossentropy(from_logits=True), optimizer=optimizer)
        else:
            model = keras.models.load_model(Path(checkpoint.to_directory()) / "model.keras")
    x, y = load_breast_cancer(return_X_y=True)
    x = ((x - x.mean(0)) / x.std(0)).astype("float32")
    data = tensorflow.data.Dataset.from_tensor_slices((x[:568], y[:568])).batch(142)
    start = model.optimizer.iterations.numpy() // 4
    callbacks = [ReportCheckpointCallback()]
    model.fit(data, initial_epoch=start, epochs=config.get("epochs", EPOCHS), callbacks=callbacks, verbose=0)


def xgboost(config):
    """XGBoost, with Ray's callback."""
    import xgboost
    from ray.train.xgboost import RayTrainReportCallback

    x, y = rows()
    data = xgboost.DMatrix(x, y)
    checkpoint = ray.train.get_checkpoint()
    before = RayTrainReportCallback.get_model(checkpoint) if checkpoint else None
    left = config.get("epochs", EPOCHS) - (before.num_boosted_rounds() if before else 0)
    parameters = {"objective": "binary:logistic", "nthread": 1, "eta": config["lr"]}
    callbacks = [RayTrainReportCallback(frequency=1, metrics={"loss": "train-logloss"})]
    if left:
        xgboost.train(parameters, data, left, evals=[(data, "train")], xgb_model=before, callbacks=callbacks)


def lightgbm(config):
    """LightGBM, with Ray's callback and the network of its workers."""
    import lightgbm
    from ray.train.lightgbm import RayTrainReportCallback, get_network_params

    x, y = rows()
    data = lightgbm.Dataset(x, y, free_raw_data=False)
    checkpoint = ray.train.get_checkpoint()
    before = RayTrainReportCallback.get_model(checkpoint) if checkpoint else None
    left = config.get("epochs", EPOCHS) - (before.current_iteration() if before else 0)
    parameters = {"objective": "binary", "tree_learner": "data", "pre_partition": True, "verbose": -1, "num_threads": 1}
    callbacks = [RayTrainReportCallback(frequency=1, metrics={"loss": "train-binary_logloss"})]
    if left:
        lightgbm.train(
            {**parameters, "learning_rate": config["lr"], **get_network_params()},
            data,
            left,
            valid_sets=[data],
            valid_names=["train"],
            init_model=before,
            callbacks=callbacks,
        )
