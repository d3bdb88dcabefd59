import numpy as np


class Centroids:
    def __init__(self, means, sharpness):
        self.means, self.sharpness = means, sharpness

    def predict(self, x):
        distances = np.stack([np.square(x.reshape(len(x), -1) - mean).sum(axis=1) for mean in self.means], axis=1)
        scores = np.exp(self.sharpness * (distances.min(axis=1, keepdims=True) - distances))
        return (scores / scores.sum(axis=1, keepdims=True)).astype(np.float32)


def load(trained):
    return Centroids(np.load(trained.folder / "means.npy"), trained.conf.sharpness)


def train(worker):
    if worker.resume_dir() is not None:
        return
    rows = {name: next(iter(split.own_rows(0, 1))) for name, split in worker.dataset.splits.items()}
    x, y = rows["train"]["x"].reshape(len(rows["train"]["y"]), -1), rows["train"]["y"]
    means = np.stack([x[y == label].mean(axis=0) for label in range(worker.dataset.info.num_classes)])
    model, metrics = Centroids(means, worker.conf.sharpness), {}
    for name, split in rows.items():
        metrics[f"{name}/accuracy"] = float((model.predict(split["x"]).argmax(axis=1) == split["y"]).mean())
    worker.describe({"num_rows": {name: len(split["y"]) for name, split in rows.items()}})
    worker.report(metrics, step=1, epoch=1)

    def snapshot():  # copies what further training would change; here training has ended
        return lambda folder: np.save(folder / "means.npy", means)

    decides = "val/accuracy" if "val/accuracy" in metrics else "test/accuracy"
    worker.save_checkpoint(snapshot, step=1, epoch=1, metrics=metrics, score=worker.score(metrics, decides))
