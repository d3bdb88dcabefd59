"""A file that is no config says at which line, and how the line should be."""

from __future__ import annotations

import pytest
from small_project import refused

HEAD = "defaults: [trainer: torch, dataset: digits]\n"


@pytest.mark.parametrize(
    ("text", "line", "hint"),
    [
        (f"{HEAD}trainer:\n  max_epochs:3\n", 2, "try: trainer: {max_epochs: 3}"),
        (f"{HEAD}trainer:\n  max_epochs:3\n  batch_size: 4\n", 3, "try: max_epochs: 3"),
        (f"{HEAD}trainer:\n  max_epochs = 3\n  batch_size: 4\n", 3, "try: max_epochs: 3"),
        (f"{HEAD}epochs:3\n", 2, "try: epochs: 3"),
        ("epochs = 3\nlr = 0.1\n", 1, "try: epochs: 3"),
        (f"{HEAD}trainer:\n  max_epochs: 3\n   batch_size: 4\n", 4, "2 spaces, not 3"),
        (f"{HEAD}trainer:\n  max_epochs: 3\n batch_size: 4\n", 4, "this line has 1 spaces, the one above 2"),
        (f"{HEAD}trainer:\n  - max_epochs: 3\n", 2, "remove the dashes"),
        (f"{HEAD}---\n{HEAD}", 2, "remove this '---'"),
        (f"{HEAD}run:\n  name: *x\n", 3, "an alias needs its anchor"),
        (f"{HEAD}dataset:\n  path: *.csv\n", 3, "'*.csv'"),
        (f'{HEAD}dataset:\n  path: "C:\\data\\t.csv"\n', 3, "write a path with /"),
        (f"{HEAD}trainer: {{max_epochs: 3\nrun: {{name: x}}\n", 3, "closing bracket or brace"),
        (f"{HEAD}run:\n  name: !env X\n", 3, "${oc.env:NAME}"),
        (f"{HEAD}run:\n  name: {{{{ name }}}}\n", 3, "quote text that starts with {"),
        (f"{HEAD}<<<<<<< HEAD\nlr: 0.1\n=======\nlr: 0.2\n>>>>>>> x\n", 2, "keep one of its two sides"),
        (f"{HEAD}trainer.max_epochs: 3\n", 2, "try: trainer: {max_epochs: 3}"),
        (f"{HEAD}optimizer.lr: 0.1\n", 2, "try: trainer: {optimizer: {lr: 0.1}}"),
        ("trainer: torch\nmodel: mlp\n", 1, "try: defaults: [trainer: torch, model: mlp, _self_]"),
        ("defaults:\n  trainer: torch\n  model: mlp\n", 1, "try: defaults: [trainer: torch, model: mlp, _self_]"),
        ("defaults:\n  - trainer: torch\n  - model=mlp\n", 3, "try: - model: mlp"),
        ("trainer:\n  type: torch\n  model: {_target_: models.Net}\n  scheduler: None\n", 4, "null"),
    ],
)
def test_the_line_and_the_way_out_are_named(text, line, hint, project):
    (project / "own.yaml").write_text(text)
    message = refused("own.yaml")
    assert f"own.yaml:{line}:" in message
    assert hint in message.partition(" | ")[2].rpartition("^")[2]


@pytest.mark.parametrize(
    ("text", "language"), [("[trainer]\nmax_epochs = 3\n", "TOML"), ("import torch\n\ndef main(): pass\n", "Python")]
)
def test_other_languages_are_recognized(text, language, project):
    (project / "own.yaml").write_text(text)
    assert f"own.yaml is {language}" in refused("own.yaml")


@pytest.mark.parametrize("encoding", ["latin-1", "utf-16"])
def test_other_encodings_are_converted_by_a_command(encoding, project):
    (project / "own.yaml").write_bytes(f"{HEAD}# é\n".encode(encoding))
    assert "try: iconv -f" in refused("own.yaml")


@pytest.mark.parametrize("head", ["\ufefftrainer: {type: torch}\n", "trainer: {type: torch}\r\n"])
def test_marks_and_line_ends_of_other_systems_do_no_harm(head, project):
    (project / "own.yaml").write_bytes(f"{head}run: {{sede: 3}}\r\n".encode())
    assert "own.yaml:2:7" in refused("own.yaml")


def test_a_secret_in_a_wrong_line_is_not_shown(project):
    (project / "own.yaml").write_text(f"{HEAD}vars:\n  password = hunter2\n  a: 1\n")
    assert "hunter2" not in refused("own.yaml")
