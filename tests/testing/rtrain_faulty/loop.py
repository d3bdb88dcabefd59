"""Training and prediction, right but for the fault that the config names."""

import numpy as np

from rtrain.trainers.loops.auto import standardization, standardized


class Model:
    def __init__(self, weights, info):
        self.weights, self.scale = weights, standardization(info)

    def flat(self, x):
        return standardized(x, self.scale).reshape(len(x), -1)

    def predict(self, x):
        scores = self.flat(x) @ self.weights
        powers = np.exp(scores - scores.max(axis=1, keepdims=True))
        return (powers / powers.sum(axis=1, keepdims=True)).astype("float32")

    def step(self, x, y):
        wrong = self.predict(x) - np.eye(self.weights.shape[1])[y]
        self.weights = self.weights - 0.5 * self.flat(x).T @ wrong / len(x)


def rows_of(worker, split):
    (rows,) = worker.dataset.splits[split].own_rows(0, 1)
    x, y = rows["x"], rows["y"]
    if split == "train" and worker.conf.fault in ("drops the last rows", "drops the last rows in silence"):
        return x[:-8], y[:-8]
    if split == "train" and worker.conf.fault == "reads rows twice":
        return np.concatenate([x, x]), np.concatenate([y, y])
    return x, y


def train(worker):
    fault, info = worker.conf.fault, worker.dataset.info
    seed = None if fault == "ignores the seed" else worker.run.seed
    shape = (int(np.prod(info.input_shape)), info.num_classes)
    model, step = Model(np.random.default_rng(seed).normal(0, 0.01, shape), info), 0
    if worker.resume_dir() is not None and fault != "ignores checkpoints":
        saved = np.load(worker.resume_dir() / "model.npz")
        step = int(saved["step"])
        model.weights = model.weights if fault == "resumes without its weights" else saved["weights"]
        if fault == "resumes with fewer digits":
            model.weights = model.weights.astype("float32")
    rows = {split: rows_of(worker, split) for split in worker.dataset.splits}
    num_rows = {split: len(y) for split, (_, y) in rows.items()}
    worker.describe({"num_rows": info.num_rows if fault == "drops the last rows in silence" else num_rows})
    metrics = {}
    while step < worker.conf.num_steps and (worker.stop_reason is None or fault == "ignores a request to stop"):
        model.step(*rows["train"])
        step, metrics = step + 1, evaluated(model, *rows["test"])
        worker.report(metrics, step=step, epoch=step)
    if metrics and fault != "saves nothing":
        weights = model.weights * 0 if fault == "saves untrained weights" else model.weights
        copy = {"weights": weights.copy(), "step": step}
        worker.save_checkpoint(
            lambda: lambda folder: np.savez(folder / "model.npz", **copy), step=step, epoch=step, metrics=metrics
        )


def evaluated(model, x, y):
    found = model.predict(x)
    loss = -np.log(found[np.arange(len(y)), y]).mean()
    return {"test/loss": float(loss), "test/accuracy": float((found.argmax(axis=1) == y).mean())}


def load(trained):
    file = trained.folder / "model.npz"
    if trained.conf.fault == "predicts without its file" and not file.exists():
        return Model(np.zeros((int(np.prod(trained.info.input_shape)), trained.info.num_classes)), trained.info)
    with np.load(file) as saved:
        return Model(saved["weights"] * (trained.conf.fault != "predicts with untrained weights"), trained.info)
