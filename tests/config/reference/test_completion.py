"""Completion of overrides."""

from __future__ import annotations

import pytest
from tests_config import SCHEMAS

from rtrain.config.reference.completion import complete


@pytest.mark.parametrize(
    ("incomplete", "expected"),
    [
        ("scal", ["scaling.", "scaling="]),
        ("scaling.num", ["scaling.num_workers="]),
        ("num", ["num_workers="]),
        ("optimizer=", ["optimizer=adamw", "optimizer=sgd"]),
        ("optimizer=a", ["optimizer=adamw"]),
        ("optimizer.", ["optimizer._target_=", "optimizer.lr=", "optimizer.momentum="]),
        ("dataset=", ["dataset=csv", "dataset=digits"]),
        ("trainer.max", ["trainer.max_epochs="]),
        ("trainer.stop.", ["trainer.stop.metric=", "trainer.stop.options.", "trainer.stop.patience="]),
        ("trainer.type=", ["trainer.type=torch", "trainer.type=xgboost"]),
        ("trainer.precision=", ["trainer.precision=bf16", "trainer.precision=fp32"]),
        ("use_gpu=", ["use_gpu=false", "use_gpu=true"]),
        ("run.checkpoint.upload=", ["run.checkpoint.upload=async", "run.checkpoint.upload=sync"]),
        ("+exp", ["+experiment="]),
        ("zzz", []),
    ],
)
def test_completes_the_word_at_the_cursor(incomplete, expected, project):
    assert complete(["digits"], incomplete, SCHEMAS) == expected


def test_earlier_words_count(project):
    assert "trainer.num_rounds=" in complete(["inline", "trainer=xgboost"], "trainer.", SCHEMAS)
    assert complete(["inline", "optimizer=adamw"], "optimizer.l", SCHEMAS) == ["optimizer.lr="]


def test_a_broken_word_or_config_doesnt_disturb(project):
    assert complete(["digits", "nothing=1"], "scaling.num", SCHEMAS) == ["scaling.num_workers="]
    assert complete(["nothing"], "scal", SCHEMAS) == []
    assert complete([], "scal", SCHEMAS) == []
