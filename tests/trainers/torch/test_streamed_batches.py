"""The way of a streamed batch, from a line of a file to the model."""

from __future__ import annotations

import inspect
import sys
import threading

import pytest
import torch
from pydantic import TypeAdapter

import rtrain
from rtrain.datasets.base import EpochPlan
from rtrain.datasets.registry import confs, load_source
from rtrain.trainers.torch.inputs.loader import TensorLoader
from rtrain.trainers.torch.ranks import TorchRanks

ROOT = rtrain.__path__[0]


@pytest.fixture
def generators():
    """The names of rtrain's generators that run, in any thread; small expressions inside of functions aside."""
    names = set()

    def note(frame, event, argument):
        code = frame.f_code
        is_generator = code.co_flags & inspect.CO_GENERATOR and code.co_name != "<genexpr>"
        if event == "call" and is_generator and code.co_filename.startswith(ROOT):
            names.add(code.co_qualname)

    threading.setprofile(note)
    sys.setprofile(note)
    yield names
    sys.setprofile(None)
    threading.setprofile(None)


def test_a_streamed_row_of_csv_passes_eight_generators_at_most(tmp_path, generators):
    file = tmp_path / "train.csv"
    file.write_text("a,b,y\n" + "".join(f"{row},{row % 7},{row % 2}\n" for row in range(1_000)))
    keys = {"path": str(file), "label": "y", "memory": "stream", "dtypes": {"b": "float64"}, "na_values": ["-999"]}
    dataset = load_source("csv").load(TypeAdapter(confs()["csv"]).validate_python(keys))
    loader = TensorLoader(dataset.splits["train"], dataset.info, TorchRanks(0, 1, torch.device("cpu")), False)
    generators.clear()
    steps = list(loader.steps(EpochPlan(rank=0, world_size=1, global_batch_size=64, seed=0)))
    assert sum(len(step.y) for step in steps) == dataset.info.num_rows["train"]
    assert len(generators) <= 8
    assert {"CsvFormat.batches", "StreamSplit.batches"} <= generators
