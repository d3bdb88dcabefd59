"""Compare rtrain with its peers in one run on this machine: ``make bench``, or some suites by their names.

Prints a line for each number, writes them to ``docs/benchmarks.json`` and the page ``docs/benchmarks.md`` from it.
``--smoke`` runs the same code on next to nothing, in seconds, to see that it works; its numbers say nothing, and are
not written.

Each number is the median of several runs, each of rtrain next to one of its peer. A ratio below 1 means that rtrain is
quicker. What rtrain trains has to be as good as what its peer does. On a machine that does something else as well,
ratios are less exact.
"""

from __future__ import annotations

import argparse
import inspect
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import page
from growth import growth
from measured import Growth, Row
from of_processes import boosting, ready, recovery, startup, whole
from of_sweeps import many, sweeps
from of_training import characters, epochs, images, records, streamed, texts

DOCS = Path(__file__).parents[2] / "docs"
WHOLE_GROWTH = {
    "rows": [10**4, 10**5, 10**6, 10**7],
    "workers": [1, 2, 4, 8, 16],
    "trials": [1, 10, 100, 500],
    "metrics": [1, 10, 50, 200],
    "events": [10**3, 10**4, 10**5, 10**6],
}
SMOKE_GROWTH = {"rows": [100, 200], "workers": [1, 2], "trials": [1, 2], "metrics": [1, 2], "events": [10, 20]}
SUITES: dict[str, tuple[Callable[..., Iterator[Row | Growth]], dict[str, Any], dict[str, Any]]] = {
    "startup": (startup, {"times": 9}, {"times": 1}),
    "whole": (whole, {"times": 9}, {"times": 1, "max_workers": 1}),
    "ready": (ready, {"times": 5}, {"times": 1}),
    "epochs": (epochs, {"times": 5}, {"times": 1, "num_epochs": 1}),
    "characters": (characters, {"times": 5}, {"times": 1, "num_steps": 2}),
    "streamed": (streamed, {"times": 3}, {"times": 1, "num_rows": 8000}),
    "images": (images, {"times": 3}, {"times": 1, "num_images": 70}),
    "texts": (texts, {"times": 3}, {"times": 1, "num_megabytes": 1}),
    "boosting": (boosting, {"times": 3}, {"times": 1, "num_rows": 1000, "num_rounds": 2}),
    "recovery": (recovery, {"times": 3}, {"times": 1}),
    "records": (records, {"times": 6}, {"times": 2, "num_megabytes": 1, "seconds": 1}),
    "sweeps": (sweeps, {"times": 5}, {"times": 1, "num_epochs": 1, "num_seeds": 1}),
    "many": (many, {}, {"num_trials": 2, "num_values": 2}),
    "growth": (growth, WHOLE_GROWTH, SMOKE_GROWTH),
}
"""Each with its sizes, and those of ``--smoke``. The docstring of the function stands on the page."""


def run(name: str, *, smoke: bool, times: int | None) -> list[Row | Growth]:
    """Run a suite, and print each of its numbers as soon as it is there."""
    suite, sizes, small = SUITES[name]
    sizes = small if smoke else {**sizes, **({"times": times} if times and "times" in sizes else {})}
    found = []
    for one in suite(**sizes):
        print(page.line(one), flush=True)
        found.append(one)
    return found


def keep(name: str, found: list[Row | Growth], docs: Path = DOCS) -> list[str]:
    """Write what can be compared to the page; return what is wrong with the rest."""
    problems = [one.problem() if isinstance(one, Row) else None for one in found]
    fine = [one for one, problem in zip(found, problems, strict=True) if problem is None]
    page.keep(docs, name, inspect.getdoc(SUITES[name][0]) or "", fine)
    return [problem for problem in problems if problem is not None]


def main() -> None:
    """Run the suites that the command names."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("suites", nargs="*", choices=[*SUITES, []], help="which to run; all without a name")
    parser.add_argument("--smoke", action="store_true", help="only see that they work, in seconds")
    parser.add_argument("--times", type=int, help="how often each is run, of the suites that repeat")
    arguments = parser.parse_args()
    problems = []
    for name in arguments.suites or SUITES:
        found = run(name, smoke=arguments.smoke, times=arguments.times)
        if not arguments.smoke:
            problems += keep(name, found)
    if problems:
        sys.exit("\n".join(problems))


if __name__ == "__main__":
    main()
