"""``rtrain predict`` and ``rtrain evaluate``: run inference with a checkpoint, and measure its quality."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rtrain.cli.runs.arguments import RUN_HELP
from rtrain.config.did_you_mean import to_try
from rtrain.config.files.locations import shown
from rtrain.errors import RtrainError
from rtrain.process.terminal import check_written, say, say_as_it_is

if TYPE_CHECKING:
    from rtrain.evaluation import Evaluation

Place = Annotated[str, typer.Argument(metavar="RUN", help=f"{RUN_HELP} Or a checkpoint, or a sweep: its best trial.")]
Overrides = Annotated[
    list[str] | None,
    typer.Argument(help="Changes to the training dataset: dataset.path=new.parquet; or num_workers=4 to use Ray."),
]
Which = Annotated[str, typer.Option("--checkpoint", help="Checkpoint of the run: best, latest, or a checkpoint name.")]
Trust = Annotated[
    bool, typer.Option("--trust", help="Run the code that the checkpoint names, even if another account wrote it.")
]
OneSplit = Annotated[str | None, typer.Option("--split", help="Only this split of the dataset: train, val or test.")]


def predict(
    run: Place,
    overrides: Overrides = None,
    *,
    output: Annotated[
        str, typer.Option("--output", "-o", help="What to write: a .parquet, .csv or .jsonl file, or a folder/.")
    ],
    checkpoint: Which = "best",
    split: OneSplit = None,
    force: Annotated[bool, typer.Option("--force", help="Replace the output if it exists.")] = False,
    trust: Trust = False,
) -> None:
    """Predict every row of a dataset with the model of RUN."""
    from rtrain.history.references import find_model
    from rtrain.prediction import write_predictions
    from rtrain.process.interrupts import ended_by_sigterm
    from rtrain.trainers.trained import find_checkpoint

    place = find_model(run)
    options = {"--output": output, "--checkpoint": checkpoint, "--split": split, "--force": force, "--trust": trust}
    with ended_by_sigterm(), _options_kept("predict", options):
        num_rows = write_predictions(
            place, output, overrides or (), checkpoint=checkpoint, split=split, force=force, trust=trust
        )
    say(f"predicted {num_rows:,} rows by {shown(find_checkpoint(place, checkpoint))} -> {output}")


def evaluate(
    run: Place,
    overrides: Overrides = None,
    *,
    output: Annotated[
        str | None, typer.Option("--output", "-o", help="Also write the result as JSON; replaces an evaluation.")
    ] = None,
    checkpoint: Which = "best",
    split: OneSplit = None,
    trust: Trust = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """Evaluate the model of RUN on its test split, or on the data that OVERRIDES name."""
    from dataclasses import asdict

    from rtrain.evaluation import measure
    from rtrain.history.references import find_model
    from rtrain.prediction.places import check_evaluation
    from rtrain.process.interrupts import ended_by_sigterm
    from rtrain.runs.filesystem.files import named_output, to_json, write_atomic

    if output is not None:
        check_evaluation(output)
    options = {"--output": output, "--checkpoint": checkpoint, "--split": split, "--trust": trust, "--json": as_json}
    with ended_by_sigterm(), _options_kept("evaluate", options):
        found = measure(find_model(run), overrides or (), checkpoint=checkpoint, split=split, trust=trust)
    if output is not None:
        with named_output(Path(output)):
            write_atomic(Path(output), to_json(asdict(found), indent=2) + "\n")
    if as_json:
        say_as_it_is(to_json(asdict(found), indent=2))
    else:
        say(_table(found))
    if output is None:
        check_written()


@contextmanager
def _options_kept(verb: str, options: Mapping[str, str | bool | None]) -> Iterator[None]:
    """Add the options of the command to those that hints propose, which have its other words."""
    typed = [words for name, value in options.items() if (words := _typed(name, value))]
    try:
        yield
    except RtrainError as error:
        proposed = re.compile(rf"^ *{to_try(f'rtrain {verb}')} .*$", re.MULTILINE)
        error.hint = error.hint and proposed.sub(lambda found: " ".join([found[0], *typed]), error.hint)
        raise


def _typed(name: str, value: str | bool | None) -> str:
    """Return an option as it is typed; nothing for one that has its default."""
    if value in (None, False) or (name, value) == ("--checkpoint", "best"):
        return ""
    return name if value is True else shlex.join([name, str(value)])


def _table(found: Evaluation) -> str:
    place = found.dataset.get("path", found.dataset["type"])
    facts = {
        "checkpoint": shown(Path(found.checkpoint)),
        "data": f"{place}" if found.split is None else f"{place}, split {found.split}",
        "num_rows": f"{found.num_rows:,}",
    }
    rows = facts | {name: f"{value:.6g}" for name, value in found.metrics.items()}
    width = max(map(len, rows))
    return "\n".join(f"{name:<{width}}  {value}" for name, value in rows.items())
