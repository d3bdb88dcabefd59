"""Where the runs of tests are tracked."""

from contextlib import chdir

import pytest
from mlflow import MlflowClient


@pytest.fixture(scope="session")
def mlflow_uri(tmp_path_factory):
    """A store of MLflow's, which takes seconds to make; it keeps artifacts in the folder where it is first used."""
    folder = tmp_path_factory.mktemp("mlflow")
    with chdir(folder):
        MlflowClient(f"sqlite:///{folder}/mlflow.db").search_experiments()
    return f"sqlite:///{folder}/mlflow.db"
