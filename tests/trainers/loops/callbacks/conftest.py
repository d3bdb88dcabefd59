"""A project of its own for each test, with a config of transformers for a few texts."""

from pathlib import Path

import pytest

TEXTS_YAML = """
trainer:
  type: transformers
  model:
    config: {model_type: bert, hidden_size: 8, intermediate_size: 8, num_hidden_layers: 1, num_attention_heads: 1}
  tokenizer: {train: wordpiece}
  arguments: {lr_scheduler_type: constant}
  max_length: 8
  max_epochs: 2
dataset: {type: text, path: texts.csv, text: text, label: label}
"""


@pytest.fixture(autouse=True)
def project(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("pyproject.toml").write_text("")
    Path("texts.yaml").write_text(TEXTS_YAML)
    rows = "".join(f"{word} {number},{word}\n" for number in range(40) for word in ("good", "bad"))
    Path("texts.csv").write_text(f"text,label\n{rows}")
    return tmp_path
