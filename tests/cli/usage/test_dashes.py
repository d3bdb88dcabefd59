"""Overrides typed as options are told the form that works."""

from __future__ import annotations

import pytest

from rtrain.cli.app import run
from rtrain.cli.usage.dashes import without_dashes

KNOWN = {"--multirun": False, "-m": False, "--config-dir": True, "--help": False, "-o": True}


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("resnet --lr=0.1", "resnet lr=0.1"),
        ("resnet --lr 0.1", "resnet lr=0.1"),
        ("--lr 0.1 resnet", "resnet lr=0.1"),
        ("resnet --num-workers=2 -m", "resnet -m num_workers=2"),
        ("resnet --trainer.max-epochs 3 --batch-size=32", "resnet trainer.max_epochs=3 batch_size=32"),
        ("resnet --optimizer.nesterov --multirun", "resnet --multirun optimizer.nesterov=true"),
        ("RUN -o a.csv --seed 1", "RUN -o a.csv seed=1"),
        ("resnet -b 64", "resnet batch_size=64"),
        ("resnet --cfg-options lr=0.1 seed=1", "resnet lr=0.1 seed=1"),
        ("resnet --set lr=0.1", "resnet lr=0.1"),
        ("resnet --opts=lr=0.1", "resnet lr=0.1"),
        ("resnet --log-dir logs", "resnet log_dir=logs"),  # which is no --config-dir
    ],
)
def test_overrides_lose_their_dashes(typed, meant):
    first, words = without_dashes(typed.split(), KNOWN)
    assert typed.split()[first].startswith("-")
    assert words == meant.split()


@pytest.mark.parametrize(
    "typed", ["resnet -m lr=0.1", "resnet --config-dir --lr", "resnet --multirn", "x -- --lr=1", "-5"]
)
def test_what_is_no_override_stays(typed):
    assert without_dashes(typed.split(), KNOWN) == (None, typed.split())


def test_the_command_says_what_to_type(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run(["fit", "mlp", "--lr=0.1"]) == 2
    text = capsys.readouterr().err
    assert "'--lr=0.1': overrides have no dashes" in text
    assert text.endswith("  try: rtrain fit mlp lr=0.1\n")
    assert not list(tmp_path.iterdir())


def test_a_wrong_key_with_dashes_is_told_too(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run(["fit", "mlp", "--learning_rate", "0.1"]) == 2
    assert capsys.readouterr().err.endswith("  try: rtrain fit mlp lr=0.1\n")


@pytest.mark.parametrize("option", ["--cfg job", "--cfg=job", "--info defaults", "--resolve", "-p trainer --cfg job"])
def test_an_option_of_fit_leads_from_check_to_fit(capsys, tmp_path, monkeypatch, option):
    monkeypatch.chdir(tmp_path)
    assert run(["check", "mlp", "lr=0.1", *option.split()]) == 2
    text = capsys.readouterr().err
    assert "'rtrain check' has no option '-" in text
    assert text.endswith(f"  try: rtrain fit mlp lr=0.1 {option}\n")


@pytest.mark.parametrize("verb", ["predict", "evaluate"])
@pytest.mark.parametrize("typed", ["--dataset new.csv", "--dataset=new.csv"])
def test_a_file_to_predict_is_named_alone(capsys, tmp_path, monkeypatch, verb, typed):
    monkeypatch.chdir(tmp_path)
    assert run([verb, "runs/one", "-o", "out.csv", *typed.split()]) == 2
    assert capsys.readouterr().err.endswith(f"  try: rtrain {verb} runs/one -o out.csv new.csv\n")
