"""``rtrain predict`` and ``rtrain evaluate``: what a checkpoint says of rows, and how right it is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

Place = Annotated[Path, typer.Argument(help="A run directory, or the folder of a checkpoint.")]
Overrides = Annotated[
    list[str] | None, typer.Argument(help="Changes of the dataset of training: dataset.path=new.parquet")
]
Which = Annotated[str, typer.Option("--checkpoint", help="Of a run: best, latest, or the name of one.")]
OneSplit = Annotated[str | None, typer.Option("--split", help="Only this split of the dataset: train, val or test.")]


def predict(
    run: Place,
    overrides: Overrides = None,
    *,
    output: Annotated[Path, typer.Option("--output", "-o", help="File to write: .parquet, .csv or .jsonl.")],
    checkpoint: Which = "best",
    split: OneSplit = None,
    force: Annotated[bool, typer.Option("--force", help="Replace the output if it is there.")] = False,
) -> None:
    """Predict every row that the dataset names, with the model of RUN alone."""
    from rtrain.prediction import predict as predict_rows

    num_rows = predict_rows(run, output, overrides or (), checkpoint=checkpoint, split=split, force=force)
    typer.echo(f"predicted {num_rows:,} rows -> {output}")


def evaluate(
    run: Place,
    overrides: Overrides = None,
    *,
    checkpoint: Which = "best",
    split: OneSplit = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Measure the model of RUN on its test rows, or on the data that OVERRIDES name."""
    from rtrain.evaluation import evaluate as evaluate_rows

    metrics = evaluate_rows(run, overrides or (), checkpoint=checkpoint, split=split)
    if as_json:
        typer.echo(json.dumps(metrics))
        return
    for name, value in metrics.items():
        typer.echo(f"{name:<12} {value:,.0f}" if name == "num_rows" else f"{name:<12} {value:.6g}")
