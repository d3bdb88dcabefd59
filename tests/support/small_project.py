"""A small project with configs, plugins that are nothing but dataclasses, and short ways to use them."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import pytest
from pydantic import Field

from rtrain.config.schema import Schemas
from rtrain.config.session import Session
from rtrain.config.targets.gate import Gate
from rtrain.config.value_types.texts import one_of
from rtrain.errors import ConfigError
from rtrain.searches import grid


@dataclass(kw_only=True)
class StopConf:
    patience: Annotated[int, Field(ge=1)] = 3
    metric: str = "val/loss"
    options: dict[str, Any] = field(default_factory=dict)


@dataclass(kw_only=True)
class TorchConf:
    """Trains a network."""

    model: dict[str, Any]
    max_epochs: Annotated[int, Field(ge=1)] = 1
    """Passes over the data."""
    batch_size: Annotated[int, Field(ge=1)] = 32
    precision: Annotated[str, *one_of("fp32", "bf16")] = "fp32"
    optimizer: dict[str, Any] = field(default_factory=lambda: {"_target_": "torch.optim.SGD", "lr": 0.1})
    scheduler: dict[str, Any] | None = None
    gradient_clip: Annotated[float, Field(gt=0)] | None = None
    stop: StopConf = field(default_factory=StopConf)
    stop_early: StopConf | None = None
    own: dict[str, Any] = field(default_factory=dict, metadata={"checked": False})

    def __post_init__(self) -> None:
        if self.max_epochs > 1000 and self.gradient_clip is None:
            raise ValueError("more than 1000 epochs need gradient_clip")


@dataclass(kw_only=True)
class BoostConf:
    """Grows trees."""

    num_rounds: Annotated[int, Field(ge=1)] = 100
    params: dict[str, Any] = field(default_factory=dict)


@dataclass(kw_only=True)
class DigitsConf:
    split: Annotated[float, Field(gt=0, lt=1)] = 0.2
    columns: list[str] = field(default_factory=list)


@dataclass(kw_only=True)
class CsvConf:
    path: str
    separator: str = ","


SCHEMAS = Schemas(
    trainer={"torch": TorchConf, "xgboost": BoostConf},
    dataset={"digits": DigitsConf, "csv": CsvConf},
    sweep={"grid": grid.Conf},
)


def each_trial(session, task):
    """Run a task for each combination of a sweep, all of which are checked before."""
    trials = session.trials()
    search = grid.Search(trials.conf, trials.axes, [])
    plans = [trials.plan(number, search.propose(number)) for number in range(search.num_trials)]
    trials.folder.mkdir(parents=True)
    trials.save()
    return [plan.job.run(lambda _, one=plan.composed: task(one, one.run_dir)) for plan in plans]


FILES = {
    "pyproject.toml": "",
    "models.py": "class Net:\n    def __init__(self, width=8, depth=2):\n        self.width = width\n",
    "configs/digits.yaml": """\
defaults:
  - trainer: torch
  - dataset: digits

trainer:
  model:
    _target_: models.Net
    width: 16
run:
  seed: 7
""",
    "configs/inline.yaml": """\
trainer:
  type: torch
  max_epochs: 2
  model: {_target_: models.Net}
  optimizer: {_target_: torch.optim.SGD, lr: 0.5, momentum: 0.9}
dataset: {type: digits}
""",
    "configs/trainer/torch.yaml": "defaults:\n  - optimizer: sgd\nbatch_size: 64\n",
    "configs/trainer/mine.yaml": "type: torch\nmax_epochs: 9\nmodel: {_target_: models.Net}\n",
    "configs/trainer/bigger.yaml": "defaults: [torch]\nbatch_size: 256\n",
    "configs/trainer/xgboost.yaml": "num_rounds: 20\n",
    "configs/trainer/optimizer/sgd.yaml": "_target_: torch.optim.SGD\nlr: 0.1\nmomentum: 0.9\n",
    "configs/trainer/optimizer/adamw.yaml": "_target_: torch.optim.AdamW\nlr: 0.001\n",
    "configs/trainer/scheduler/cosine.yaml": "_target_: torch.optim.lr_scheduler.CosineAnnealingLR\nT_max: 10\n",
    "configs/dataset/digits.yaml": "split: 0.25\n",
    "configs/dataset/csv.yaml": "path: ???\n",
    "configs/scaling/two.yaml": "num_workers: 2\n",
    "configs/experiment/long.yaml": """\
# @package _global_
defaults:
  - override /trainer/optimizer: adamw
trainer:
  max_epochs: 50
run:
  name: long
""",
}


def write(path: str, text: str) -> str:
    """Write one more file below the current folder and return its path."""
    file = Path(path)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return path


def check(config: str, *overrides: str, config_dir: str | None = None):
    """Return the composed and checked config."""
    with Session(config, overrides, SCHEMAS, config_dir) as session:
        return session.check()


def refused(config: str, *overrides: str) -> str:
    """Return the text of the error."""
    with pytest.raises(ConfigError) as caught, Session(config, overrides, SCHEMAS) as session:
        session.check()
    assert caught.value.exit_code == 2
    return str(caught.value)


LOGGING = {
    "defaults": ["digits"],
    "hydra": {
        section: {"root": {"handlers": ["x"]}, "handlers": {"x": {"class": "logging.NullHandler"}}}
        for section in ("job_logging", "hydra_logging")
    },
}
"""A config whose handlers may be replaced."""


def nested(path: str, value: Any) -> dict[str, Any]:
    """Return a value at its place in a config."""
    for key in reversed(path.split(".")):
        value = {key: value}
    return value


def gate(**more: Any) -> Gate:
    """Return a gate that allows nothing."""
    return Gate(**{"allow": (), "root": Path.cwd(), "folder": Path("runs/mine").absolute(), **more})
