"""Command lines that no command takes lead to the whole command that works."""

from __future__ import annotations

import pytest

from rtrain.cli.app import run


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("train mlp lr=0.1", "fit mlp lr=0.1"),
        ("fti mlp", "fit mlp"),
        ("mlp epochs=2", "fit mlp epochs=2"),
        ("own.yaml", "fit own.yaml"),
        ("lr=0.1", "fit resnet lr=0.1"),
        ("fit=mlp", "fit mlp"),
        ("sweep mlp lr=0.1,0.2", "fit mlp lr=0.1,0.2 --multirun"),
        ("tune mlp lr=0.1,0.2", "fit mlp lr=0.1,0.2 --multirun"),
        ("validate mlp", "check mlp"),
        ("eval runs/a", "evaluate runs/a"),
        ("resum runs/a", "resume runs/a"),
        ("upload runs/a", "runs upload runs/a"),
        ("runs verfy runs/a", "runs verify runs/a"),
        ("runs list", "runs ls"),
        ("runs delete last", "runs rm last"),
        ("runs prune", "runs gc"),
        ("logs last", "runs logs last"),
        ("compare last best", "runs compare last best"),
        ("runs ls --colums lr", "runs ls --columns lr"),
        ("help fit", "fit --help"),
        ("version", "--version"),
        ("-v", "--version"),
        ("--config own.yaml", "fit own.yaml"),
        ("--multirun fit mlp lr=0.1,0.2", "fit mlp lr=0.1,0.2 --multirun"),
        ("fit --config-name=mlp lr=0.1", "fit mlp lr=0.1"),
        ("fit --config-path conf --config-name a", "fit conf/a.yaml"),
        ("fit -c own.yaml", "fit own.yaml"),
        ("fit -lr=0.1", "fit resnet lr=0.1"),
        ("fit mlp -lr 0.1", "fit mlp lr=0.1"),
        ("fit mlp --multirn", "fit mlp --multirun"),
        ("fit mlp --cfg jobs", "fit mlp --cfg job"),
        ("fit", "fit resnet"),
        ("predict runs/a new.csv", "predict runs/a dataset.path=new.csv --output predictions.csv"),
        ("init", "init --dataset DATASET"),
        ("init new.csv", "init --dataset new.csv"),
        ("init dataset.path=new.csv --label=y", "init --dataset new.csv --label=y"),
        ("init -o own.yaml new.csv", "init -o own.yaml --dataset new.csv"),
        ("init --label price -o own.yaml", "init --label price -o own.yaml --dataset DATASET"),
        ("recipes cp digits-resnet", "recipes cp digits-resnet FOLDER"),
        ("fit lr=0.1 mlp", "fit mlp lr=0.1"),
        ("fit config=mlp", "fit mlp"),
        ("fit own lr=0.1", "fit own.yaml lr=0.1"),
        ("fit own.yml", "fit own.yaml"),
        ("fit OWN.yaml lr=0.1", "fit own.yaml lr=0.1"),
        ("fit resnt lr=0.1", "fit resnet lr=0.1"),
        ("fit digits_resnet", "recipes cp digits-resnet digits-resnet && rtrain fit digits-resnet"),
        ("fit mlp resnet lr=0.1", "fit mlp lr=0.1 && rtrain fit resnet lr=0.1"),
        ("fit xgboost new.csv", "fit xgboost dataset=csv dataset.path=new.csv dataset.label=..."),
    ],
)
def test_a_wrong_command_line_leads_to_the_whole_one(typed, meant, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own.yaml").write_text("defaults: [trainer: xgboost, dataset: digits]\n")
    assert run(typed.split()) == 2
    assert capsys.readouterr().err.endswith(f"  try: rtrain {meant}\n")


def test_an_unknown_command_is_told_with_all_commands(capsys):
    assert run(["serve", "runs/a"]) == 2
    listed = capsys.readouterr().err.partition("available: ")[2].strip().split(", ")
    assert {"fit", "check", "init", "resume", "predict", "runs"} <= set(listed)


@pytest.mark.parametrize("words", [["-h"], ["fit", "-h"], ["runs", "-h"], ["trainers", "-h"]])
def test_help_has_a_letter(words, capsys):
    assert run(words) == 0
    assert "Usage:" in capsys.readouterr().out
