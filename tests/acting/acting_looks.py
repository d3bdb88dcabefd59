"""What of a run is looked at to see that a key acts. Each function reads one thing that the run has left."""

from __future__ import annotations

import numpy as np

from rtrain.runs.checkpoints import latest_checkpoint


def last_step(run):
    """The step at which training ended."""
    return run.manifest.step


def ending(run):
    """How it ended, and why."""
    return run.status, run.manifest.exit_reason


def measured(run):
    """The last value of each metric, but for speeds and what tells the clock."""
    return {name: value for name, value in run.metrics.items() if "second" not in name}


def names(run):
    """The names of all metrics, whatever the split."""
    return {name.partition("/")[2] for event in run.events() for name in event.metrics}


def evaluated_split(run):
    """The split that was evaluated."""
    return {name.partition("/")[0] for event in run.events() for name in event.metrics} & {"val", "test"}


def evaluated_steps(run):
    """The steps at which it was evaluated."""
    return [event.step for event in run.events() if any(name.startswith(("val/", "test/")) for name in event.metrics)]


def logged_steps(run):
    """The steps whose metrics of training are in the events."""
    return [event.step for event in run.events() if any(name.startswith("train/") for name in event.metrics)]


def saved_steps(run):
    """The steps of the checkpoints that have stayed."""
    return [record["step"] for record in run.manifest.checkpoints]


def saved_beside(run):
    """Whether files were written while training went on."""
    return True in run.saved_beside


def drawn(run):
    """The random numbers that a loop has reported."""
    return [event.metrics["train/drawn"] for event in run.events()]


def threads_told(run):
    """The number of threads that a loop has reported."""
    return run.metrics["train/threads"]


def best_monitor(run):
    """The metric that has chosen the best checkpoint."""
    return run.manifest.best["monitor"]


def best_mode(run):
    """Which way of the metric that chooses is better."""
    return run.manifest.best["mode"]


def best_step(run):
    """The step of the best checkpoint."""
    return run.manifest.best["step"]


def name(run):
    """Its name, and the folder that collects the runs of that name."""
    return run.manifest.run_name, run.path.parent.name


def root(run):
    """The folder that holds all runs."""
    return run.path.parent.parent.name


def modes(run):
    """Who may read the run."""
    return {one.stat().st_mode & 0o777 for one in (run.path, run.path / "events.jsonl")}


def copied(run):
    """Whether the run is in the store."""
    return run.manifest.storage is not None and run.manifest.storage["complete"]


def threads(run):
    """The number of threads of the worker."""
    return run.manifest.workers["0"]["num_threads"]


def parameters(run):
    """The number of weights of the model."""
    return run.manifest.workers["0"]["num_parameters"]


def num_trained(run):
    """The number of weights that are trained."""
    return run.manifest.workers["0"]["num_trained_parameters"]


def num_train_rows(run):
    """The number of rows that the worker trains on."""
    return run.manifest.workers["0"]["num_rows"]["train"]


def num_rows(run):
    """The number of rows of each split."""
    return run.manifest.dataset["num_rows"]


def fingerprint(run):
    """What the rows hold."""
    return run.manifest.dataset["fingerprint"]


def notices(run):
    """What the driver's log says."""
    return (run.path / "logs" / "driver.log").read_text()


def files(run):
    """The names of the files of the newest checkpoint."""
    folder = latest_checkpoint(run.path)
    return sorted(str(one.relative_to(folder)) for one in folder.rglob("*"))


def texts(run):
    """The files of the newest checkpoint that are text, such as those of a tokenizer; not what describes the run."""
    found = (latest_checkpoint(run.path) / name for name in ("tokenizer.json", "vocab.txt"))
    return [one.read_text() for one in found if one.exists()]


def weights(run):
    """The arrays of the model in the newest checkpoint, or its trees."""
    folder = latest_checkpoint(run.path)
    return next(read(folder / file) for file, read in MODELS.items() if (folder / file).exists())


def _safetensors(file):
    from safetensors.torch import load_file

    return {key: (str(one.dtype), one.double().numpy().tobytes()) for key, one in load_file(file).items()}


def _keras(file):
    import h5py

    found = {}
    with h5py.File(file) as opened:
        opened.visititems(
            lambda name, one: found.update({name: np.asarray(one).tobytes()}) if isinstance(one, h5py.Dataset) else None
        )
    return found


def _xgboost(file):
    import xgboost

    return xgboost.Booster(model_file=file).get_dump(with_stats=True)


def _lightgbm(file):
    return file.read_text().partition("\nend of trees")[0].partition("\nTree=0")[2]


MODELS = {
    "model.safetensors": _safetensors,
    "model.weights.h5": _keras,
    "model.ubj": _xgboost,
    "model.txt": _lightgbm,
}
