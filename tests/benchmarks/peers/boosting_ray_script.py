"""The documented way with Ray Train: a trainer of one worker with 2 CPUs. Arguments: LIBRARY FILE ROUNDS."""

import sys
from pathlib import Path

import ray
import ray.data
import ray.train
from ray.train import RunConfig, ScalingConfig

library, path, rounds = sys.argv[1:]


def train_xgboost() -> None:
    import xgboost
    from ray.train.xgboost import RayTrainReportCallback

    frame = ray.train.get_dataset_shard("train").materialize().to_pandas()
    rows = xgboost.DMatrix(frame.drop(columns="y"), label=frame["y"])
    params = {"objective": "binary:logistic", "max_depth": 6, "eta": 0.3, "nthread": 2}
    xgboost.train(params, rows, num_boost_round=int(rounds), callbacks=[RayTrainReportCallback()])


def train_lightgbm() -> None:
    import lightgbm
    from ray.train.lightgbm import RayTrainReportCallback, get_network_params, normalize_pandas_for_lightgbm

    frame = normalize_pandas_for_lightgbm(ray.train.get_dataset_shard("train").materialize().to_pandas())
    rows = lightgbm.Dataset(frame.drop(columns="y"), label=frame["y"])
    params = {"objective": "binary", "num_leaves": 31, "learning_rate": 0.1, "num_threads": 2, "verbosity": -1}
    lightgbm.train(
        {**params, **get_network_params()}, rows, num_boost_round=int(rounds), callbacks=[RayTrainReportCallback()]
    )


if library == "xgboost":
    from ray.train.xgboost import XGBoostTrainer as Trainer
else:
    from ray.train.lightgbm import LightGBMTrainer as Trainer

# Reading needs a processor beside the worker's two; where there are no more, Ray Data waits forever.
ray.init("local", num_cpus=4)
trainer = Trainer(
    train_xgboost if library == "xgboost" else train_lightgbm,
    scaling_config=ScalingConfig(num_workers=1, resources_per_worker={"CPU": 2}),
    run_config=RunConfig(storage_path=str(Path("ray_results").resolve())),
    datasets={"train": ray.data.read_parquet(path)},
)
trainer.fit()
