"""Each logger against the contract, read by the tracker's own means."""

import json

import pytest
from tracker_readers import of_csv, of_mlflow, of_tensorboard, of_wandb

from rtrain.testing.logger_contract import LoggerContract
from rtrain.tracking.position import FOLDER


class TestCsv(LoggerContract):
    logger = "csv"

    def read(self, run, keys):
        return of_csv(run.folder / "metrics.csv")


class TestTensorboard(LoggerContract):
    logger = "tensorboard"

    def read(self, run, keys):
        return of_tensorboard(run.folder / "tensorboard")


class TestMlflow(LoggerContract):
    logger = "mlflow"

    @pytest.fixture
    def keys(self, mlflow_uri):
        return {"tracking_uri": mlflow_uri}

    def read(self, run, keys):
        ids = json.loads((run.folder / FOLDER / "mlflow.json").read_text())["ids"]
        return of_mlflow(keys["tracking_uri"], ids["run_id"])


class TestWandb(LoggerContract):
    logger = "wandb"

    @pytest.fixture(autouse=True)
    def _service(self, monkeypatch):
        """A process that is killed has a service of its own, as the driver of a run does."""
        monkeypatch.delenv("WANDB_SERVICE", raising=False)

    @pytest.fixture
    def keys(self):
        return {"mode": "offline"}

    def read(self, run, keys):
        return of_wandb(run.folder / "wandb")
