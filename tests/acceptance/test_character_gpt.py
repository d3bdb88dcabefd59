"""A character GPT on tiny shakespeare reaches the known loss.

RTRAIN_TEST_DATA=... pytest -m slow tests/acceptance/test_character_gpt.py
"""

import math

import numpy as np
import pytest

import rtrain
from rtrain.trainers.registry import load_trainer
from rtrain.trainers.torch.config import Conf
from rtrain.trainers.trained import LoadedCheckpoint, read_about

CONFIG = """
defaults:
  - trainer: torch
  - model: gpt
  - optimizer: adamw
  - scheduler: warmup_cosine
  - dataset: text

dataset: {tokenizer: characters, block_size: 64, split: {val: 0.1}}
trainer:
  model: {num_layers: 4, num_heads: 4, width: 128, dropout: 0.0, bias: false}
  optimizer: {lr: 0.001, betas: [0.9, 0.99], weight_decay: 0.1}
  scheduler: {num_warmup_steps: 100, final_share: 0.1}
  clip_norm: 1.0
  batch_size: 12
  max_epochs: null
  max_steps: 2000
  eval_every_epochs: null
  eval_every_steps: 1000
  num_threads: 1          # matrices are small
"""


@pytest.mark.timeout(1800)
def test_a_character_gpt_on_shakespeare_reaches_a_loss_of_1_93(data, tmp_path):
    (tmp_path / "gpt.yaml").write_text(CONFIG)
    words = [f"dataset.path={data('tinyshakespeare/input.txt')}", "num_workers=0", f"run.root_dir={tmp_path}/runs"]
    run = rtrain.fit(str(tmp_path / "gpt.yaml"), words)
    assert run.manifest.dataset["num_classes"] == 65
    assert run.manifest.checkpoints[-1]["step"] == 2000
    assert run.metrics["val/loss"] <= 1.93
    assert run.metrics["val/perplexity"] == pytest.approx(math.exp(run.metrics["val/loss"]))
    about = read_about(run.best_checkpoint)
    conf = Conf(model=about.trainer["model"], optimizer=about.trainer["optimizer"], max_epochs=1)
    predictor = load_trainer("torch").load_predictor(
        LoadedCheckpoint(folder=run.best_checkpoint, conf=conf, info=about.info), "cpu"
    )
    text = data("tinyshakespeare/input.txt").read_text()
    codes = np.searchsorted(sorted(set(text)), list(text[-65 * 64 :]))
    x, y = (codes[shift : shift + 64 * 64].reshape(64, 64).astype("int64") for shift in (0, 1))
    right = np.take_along_axis(predictor.predict(x), y[..., None], axis=2)
    assert -np.log(right).mean() < 2.1
