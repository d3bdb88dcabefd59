"""Train, predict and resume with a base in the hub's cache, without a network; run with the folder of the cache."""

import shutil
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from pretrained_models import adapting, pretrained
from transformers_runs import fit, predict

from rtrain.config.targets.builder import Builder
from rtrain.errors import CheckpointError
from rtrain.runs.checkpoints import latest_checkpoint
from rtrain.testing.workers import newest
from rtrain.trainers.transformers.checkpoint.base import read_base
from rtrain.trainers.transformers.predictor import load_predictor

FIRST, SECOND = "a" * 40, "b" * 40


def commit(repository, name, seed):
    """Put a model into the cache, as the newest one."""
    pretrained(repository / "snapshots" / name, seed=seed)
    (repository / "refs").mkdir(exist_ok=True)
    (repository / "refs" / "main").write_text(name)


def main(folder):
    """Check that the commit of the first training is the one that is loaded later."""
    repository = folder / "cache" / "models--tiny--bert"
    commit(repository, FIRST, 0)
    data, conf = adapting("sequence-classification", "tiny/bert", max_epochs=4)
    fit(folder / "run", conf, data, stop_after=5)
    checkpoint = latest_checkpoint(folder / "run")
    assert read_base(checkpoint).revision == FIRST
    before = predict(folder / "run", conf, data)
    commit(repository, SECOND, 1)
    np.testing.assert_array_equal(predict(folder / "run", conf, data), before)
    foreign = replace(newest(folder / "run", conf, data), builder=Builder(trusted=False))
    x = data.splits["val"].columns["x"]
    np.testing.assert_array_equal(load_predictor(foreign).predict(x), before)
    fit(folder / "run", conf, data, stop_after=5)
    assert read_base(latest_checkpoint(folder / "run")).revision == FIRST
    fit(folder / "new", conf, data)
    assert read_base(latest_checkpoint(folder / "new")).revision == SECOND
    with pytest.raises(CheckpointError, match=r"tiny/bert .revision aaaa.*as it was in training"):
        fit(folder / "strange", conf, data, init_from=str(checkpoint))  # nobody signed it: it chooses no commit
    shutil.rmtree(repository / "snapshots" / FIRST)
    with pytest.raises(CheckpointError, match=r"tiny/bert .revision aaaa.*can't be loaded"):
        predict(folder / "run", conf, data)
    with pytest.raises(CheckpointError, match="not downloaded before") as raised:
        load_predictor(foreign)
    assert f"hf download tiny/bert --revision {FIRST}" in raised.value.hint


if __name__ == "__main__":
    main(Path(sys.argv[1]))
