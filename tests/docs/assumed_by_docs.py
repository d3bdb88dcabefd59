"""What the pages of the docs assume: files, runs, and what cannot run in a test."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd
from blocks_of_docs import ROOT


@dataclass(frozen=True)
class Assumed:
    """What a page assumes."""

    before: tuple[str, ...] = ()
    """Command lines that were run."""
    words: dict[str, str] = field(default_factory=dict)
    """Words of its blocks, and what stands for them in the project."""
    base: str = "[mlp]"
    """Defaults list of its sections of configs."""
    more: str = ""
    """What is typed to train these."""
    names: str = ""
    """Code whose names its pieces of Python use."""


SHORT = "num_workers=0 epochs=1 dataset.limit=150"
RESNET = f"rtrain fit mlp {SHORT} run.name=resnet"
TOWNS = "rtrain fit mlp num_workers=0 epochs=1 dataset=parquet dataset.path=new.parquet dataset.label=town run.name=mlp"
HOUSES = "rtrain fit xgboost num_workers=0 dataset=csv dataset.path=houses.csv dataset.label=price"
IN_PROCESS = {"num_workers=4": "num_workers=0"}
NO_MODEL = "[{trainer: torch}, {optimizer: adam}, {dataset: digits}]"
ASSUMED = {
    "README.md": Assumed(
        before=(f"{HOUSES} trainer.num_boost_round=9", f"{HOUSES} trainer.num_boost_round=2 run.name=houses"),
        words={"runs/xgboost/...": "last:xgboost", "num_workers=2": "num_workers=0, epochs=1"},
        base=NO_MODEL,
    ),
    "docs/callbacks.md": Assumed(words={"${oc.env:CHAT_URL}": "http://127.0.0.1:9"}),
    "docs/data.md": Assumed(
        words={
            "torchvision.transforms.v2.RandomCrop, size: 32, padding: 4": "torch.nn.Identity",
            "torchvision.transforms.v2.CenterCrop, size: 32": "torch.nn.Identity",
            "torchvision.transforms.v2.RandomResizedCrop, size: 224": "torch.nn.AdaptiveAvgPool2d, output_size: 8",
            "torchvision.transforms.v2.RandomHorizontalFlip": "torch.nn.Identity",
            "torchvision.transforms.v2.Resize, size: 256": "torch.nn.AdaptiveAvgPool2d, output_size: 9",
            "torchvision.transforms.v2.CenterCrop, size: 224": "torch.nn.AdaptiveAvgPool2d, output_size: 8",
            "photos": str(ROOT / "recipes" / "image-folder" / "images"),
        },
        base="[resnet]",
    ),
    "docs/configs.md": Assumed(base=NO_MODEL),
    "docs/export.md": Assumed(before=("rtrain fit sklearn num_workers=0 run.name=forest",)),
    "docs/first-run.md": Assumed(
        words={
            "dataset=mnist dataset.path=DIR": "dataset=mnist dataset.path=mnist",
            "DIR": str(ROOT / "recipes" / "image-folder" / "images"),
        }
    ),
    "docs/plugins.md": Assumed(names="from typing import ClassVar"),
    "docs/predict.md": Assumed(before=(TOWNS,), words={"runs/mlp/2026-11-01_12-00-00-c5e7": "last", **IN_PROCESS}),
    "docs/python.md": Assumed(words={"range(10)": "range(1)", "seed=seed": "seed=seed, num_workers=0, epochs=1"}),
    "docs/reliability.md": Assumed(
        before=(RESNET,),
        words={"runs/resnet/2026-11-01_12-00-00-c5e7": "last:resnet", **IN_PROCESS},
    ),
    "docs/run-directory.md": Assumed(
        before=(RESNET,), words={'"runs/resnet/2026-11-01_12-00-00-1a2b"': "rtrain.runs()[0].path"}
    ),
    "docs/runs.md": Assumed(
        before=(
            f"rtrain fit mlp {SHORT} lr=0.1,0.2 run.name=sweep -m",
            f"rtrain fit mlp {SHORT} run.name=old",
            f"rtrain fit mlp {SHORT} lr=0.1",
            RESNET,
        ),
        words={
            "e8bf": "last:old",
            "d528": "last:mlp",
            "0a1b": "last:old",
            "330826": "last:sweep",
            "runs rm": "runs rm --yes",
            "accuracy > 0.9": "accuracy > 0",
        },
    ),
    "docs/strategies.md": Assumed(more="num_workers=2"),
    "docs/sweeps.md": Assumed(
        before=(f"rtrain fit mlp {SHORT} lr=0.1,0.2 run.name=resnet -m",),
        words={
            "runs/resnet-sweep-330826": "last:resnet",
            "range(16,65,16)": "range(16,17,16)",
            "titanic.yaml": "titanic.yaml dataset.split.val=0.2",
        },
    ),
    "docs/tables.md": Assumed(base="[{trainer: xgboost}]"),
    "docs/trackers.md": Assumed(before=(RESNET,)),
    "docs/train-loops.md": Assumed(
        before=("rtrain fit loop.yaml num_workers=0 run.name=own",),
        words={
            "RUN": "last:own",
            "RUN dataset=csv": "last:own trainer.predictor=predictors:load dataset=csv",
            "CONFIG": "loop.yaml",
        },
    ),
    "docs/troubleshooting.md": Assumed(before=(RESNET,)),
    "recipes/image-folder/README.md": Assumed(
        before=("rtrain fit recipes/image-folder num_workers=0 trainer.max_epochs=1",),
        words={"runs/image-folder/...": "last:image-folder"},
    ),
    "recipes/tabular-xgboost/README.md": Assumed(
        before=(f"{HOUSES} trainer.num_boost_round=2 run.name=tabular-xgboost",),
        words={"runs/tabular-xgboost/...": "last:tabular-xgboost"},
    ),
    "recipes/tuned-trees/README.md": Assumed(
        before=(
            "rtrain fit recipes/tuned-trees --multirun sweep.num_trials=2 "
            "num_workers=0 trainer.num_boost_round=2 dataset.limit=150",
        ),
        words={"runs/tuned-trees-sweep-...": "last:tuned-trees", "runs/tuned-trees-sweep-.../best": "last:tuned-trees"},
    ),
}
"""By page, where it is more than nothing."""

FOLDERS = "a picture of files"
SCREEN = "a picture of a terminal"
INSTALLS = "installs packages, as `make` does"
DEEPSPEED = "DeepSpeed is not among the packages of the tests"
NOT_RUN: dict[str, dict[str, str]] = {
    "docs/trainers/transformers.md": {
        "rtrain predict RUN new.csv -o out.csv trainer.model.pretrained=/models/base": (
            "needs a pretrained model: tests/trainers/transformers/test_transformers_base.py"
        ),
        "rtrain resume RUN trainer.model.pretrained=/models/base": (
            "needs a pretrained model: tests/trainers/transformers/test_transformers_base.py"
        ),
    },
    "docs/architecture.md": {"config": FOLDERS},
    "README.md": {"rtrain up": "leaves processes behind: tests/cli/test_up.py"},
    "docs/performance.md": {"rtrain up": "leaves processes behind: tests/cli/test_up.py"},
    "docs/contributing.md": {".venv/bin/pytest tests/datasets -n 2 --dist loadfile": "runs other tests"},
    "docs/export.md": {
        'torch.onnx.export(served, (raw,), "towns.onnx", dynamic_shapes=({0: rows},))': (
            "onnx and onnxscript are not among the packages of the tests"
        ),
    },
    "docs/first-run.md": {
        "git clone <this repository> && cd rtrain": INSTALLS,
        "training resnet with torch on digits (1,258 rows) on 1 worker -> runs/resnet/202": (
            "a picture of a terminal: tests/displays/test_docs_pictures.py"
        ),
    },
    "docs/install.md": {
        "git clone <this repository> && cd rtrain": INSTALLS,
        "python3 -m venv .venv && . .venv/bin/activate": INSTALLS,
        "pip install --constraint constraints.txt .": INSTALLS,
        "grep -v '^torch==' constraints.txt > versions.txt": INSTALLS,
        "pip install --constraint versions.txt .": INSTALLS,
        "pip install --constraint constraints.txt '.[jax,mlflow]'": INSTALLS,
    },
    "docs/own-search.md": {"pip install -e docs/examples/rtrain-centroid": INSTALLS},
    "docs/own-source.md": {"pip install -e docs/examples/rtrain-centroid": INSTALLS},
    "docs/plugins.md": {"pip install -e docs/examples/rtrain-centroid": INSTALLS},
    "docs/predict.md": {
        "rtrain predict RUN dataset.path=/shared/new.parquet -o out.parquet num_workers=3": (
            "needs a cluster: tests/prediction/test_prediction_on_ray.py"
        ),
    },
    "docs/python.md": {
        "Run mlp succeeded after 1.2 s: trained to the end": SCREEN,
        "ConfigError: there is no key 'optimizer.lrr'": SCREEN,
    },
    "docs/reliability.md": {
        "result": SCREEN,
        "training made no progress for 1800 seconds: worker 0 in autograd/graph.py:875 (_": SCREEN,
    },
    "docs/run-directory.md": {
        "runs/<name>/<timestamp>-<short id>/": FOLDERS,
        '{"step":20,"epoch":0,"time":"2026-11-01T12:00:00.123+00:00","metrics":{"train/lo': "a line of a file",
    },
    "docs/runs.md": {
        "rtrain runs stop last --wait": "needs a run that is running: tests/cli/runs/test_running.py",
        "rtrain runs export s3://bucket/runs/resnet-sweep-330826 -o events.csv": (
            "needs a store: tests/storage/test_s3_runs.py"
        ),
    },
    "docs/scripts.md": {"files": SCREEN},
    "docs/strategies.md": {
        "checkpoints/epoch-0002-step-00000046/": FOLDERS,
        'rtrain.consolidate(run.best_checkpoint, Path("model.safetensors"))': (
            "needs several workers: tests/trainers/torch/test_torch_blocks.py"
        ),
    },
    "docs/sweeps.md": {"runs/resnet-sweep-330826/": FOLDERS},
    "docs/trackers.md": {
        "tensorboard --logdir runs": "a server that does not end",
        "rtrain runs sync last --to mlflow tracking_uri=http://localhost:5000": "needs a server: tests/loggers",
        "rtrain fit mlp run.loggers.comet.project=digits": "needs Comet: tests/loggers/test_logger_of_docs.py",
    },
    "recipes/char-gpt-deepspeed/README.md": {
        "rtrain fit recipes/char-gpt-deepspeed": DEEPSPEED,
        "rtrain fit recipes/char-gpt-deepspeed trainer.strategy_options.zero_stage=2": DEEPSPEED,
        "rtrain fit recipes/char-gpt-deepspeed num_workers=0 trainer.num_threads=1": DEEPSPEED,
    },
}
"""By page and name, why a block is not run."""


def write_files() -> None:
    """Write the tables and texts that pages name into the current folder."""
    large = houses(60)["rooms"] > 3
    for folder in ("data/held_out", "new"):
        Path(folder).mkdir(parents=True)
    for name in ("houses.csv", "train.csv", "test.csv", "new.csv", "later.csv", "data/train.csv"):
        houses(60).to_csv(name, index=False)
    for name in ("new.parquet", "later.parquet", "new/one.parquet"):
        houses(60).to_parquet(name)
    for year in (2024, 2025):
        houses(60).rename(columns={"price": "y"}).to_csv(f"data/{year}.csv", index=False)
    days = pd.date_range("2026-01-01", periods=60)
    houses(60).assign(ordered_at=days).to_csv("orders.csv", index=False)
    houses(60).assign(fold=days.day % 3).to_csv("folds.csv", index=False)
    houses(60).assign(size=range(60), name="a house").to_parquet("data/held_out/rows.parquet")
    for name in ("adult.data", "adult.test"):
        houses(60).assign(income=large)[["rooms", "town", "area", "price", "income"]].to_csv(
            name, index=False, header=False
        )
    columns = ["population", "total_bedrooms", "ocean_proximity", "median_house_value"]
    houses(60).set_axis(columns, axis=1).assign(median_income=days.day).to_csv("housing.csv", index=False)
    sold = {"sold": large, "importance": 1.0, "prior": 0.0, "id": days.day, "comment": "none", "tmp_1": 0}
    houses(60).drop(columns="town").assign(**sold).to_parquet("sales.parquet")
    houses(60).drop(columns="town").assign(clicked=large, importance=1.0).to_parquet("rows.parquet")
    houses(60).assign(churned=large).to_csv("data/churn.csv", index=False)
    reviews = pd.DataFrame({"text": ["good", "bad"] * 30, "stars": ["five", "one"] * 30})
    reviews.to_csv("reviews.csv", index=False)
    for name in ("input.txt", "my.txt"):
        Path(name).write_text("to be or not to be " * 400)
    write_mnist(Path("mnist"))
    for name in ("rank.train", "rank.test"):
        Path(name).write_text("".join(f"{row % 3} 1:{row % 7} 2:{row % 5}\n" for row in range(60)))
        Path(f"{name}.query").write_text("10\n" * 6)


def write_mnist(folder: Path) -> None:
    """Write the four files of MNIST, with 20 images each."""
    folder.mkdir()
    labels = np.arange(20, dtype=np.uint8) % 10
    for name in ("train", "t10k"):
        head = struct.pack(">IIII", 2051, 20, 28, 28)
        (folder / f"{name}-images-idx3-ubyte").write_bytes(head + bytes(np.repeat(labels, 28 * 28)))
        (folder / f"{name}-labels-idx1-ubyte").write_bytes(struct.pack(">II", 2049, 20) + bytes(labels))


def houses(num_rows: int) -> pd.DataFrame:
    """Return a table with a price to learn."""
    random = np.random.default_rng(num_rows)
    area, rooms = random.uniform(40, 200, num_rows), random.integers(1, 7, num_rows)
    price = area * 3.5 + rooms * 20 + random.normal(0, 5, num_rows)
    town = random.choice(["Ulm", "Bonn", "Kiel"], num_rows)
    return pd.DataFrame({"area": area, "rooms": rooms, "town": town, "price": price})
