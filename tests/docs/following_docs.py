"""Whoever follows a page of the docs: writes its files, runs its code and its commands, in their order.

All happens in this process, in the folder of a project, with few rows and a single epoch. What asks for more than this
process, for workers or a GPU say, is checked as it stands and not trained.
"""

from __future__ import annotations

import os
import re
import runpy
import shlex
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from unittest.mock import patch

import yaml
from assumed_by_docs import Assumed
from blocks_of_docs import BLOCKS, ROOT, Block

from rtrain.cli.app import run as run_rtrain
from rtrain.config.targets.forgetting import project_forgotten

ELSEWHERE = re.compile(
    r"num_workers=(?!0)|cluster\.|RAY_ADDRESS|use_gpu=true|strategy[=:]|://|tracking_uri|pretrained"
    r"|smoke:|\b(jax|keras|tensorflow|sklearn)\b"
)
"""What this process has not (workers, clusters, GPUs, stores, servers, models of the hub), and what other tests train:
recipes, and libraries that take seconds."""
ABSENT = re.compile(r"s3://|pretrained|smoke:")
"""Data and models that are not there, so that only the config can be checked; and recipes, whose data takes seconds."""
LENGTH = re.compile(r"(trainer\.)?(max_)?epochs=\d+|sweep\.num_trials=\d+")
NO_LENGTH = re.compile(r"train_loop|train_function|sklearn|centroid|experiment=")
NO_ROWS = re.compile(r"train_loop|train_function|datamodule|dataset[=:.](?!.*digits)")
VARIABLE = re.compile(r"\$\{?\w+\}?")
STARTED = re.compile(r"\brtrain fit (.*?)(?: &)?$", re.MULTILINE)
ROUNDS = re.compile(r"xgboost|lightgbm")


class Follower:
    """Somebody in the folder of a project, which is the current folder."""

    def __init__(self, page: str, assumed: Assumed) -> None:
        """Do what the page assumes to be done; the first version of each of its files is there from the start."""
        self._assumed = assumed
        self._words = {"RUN": "last", "CONFIG": "mlp", **assumed.words}
        self._names: dict[str, object] = {}
        for block in reversed(BLOCKS[page]):
            if block.file:
                write(block.file, block.text)
        for line in assumed.before:
            with output() as said, project_forgotten():
                assert run_rtrain(shlex.split(line)[1:]) == 0, said.getvalue()
        exec(assumed.names, self._names)

    def follow(self, block: Block) -> str | None:
        """Do what a block says; return what is wrong with it, if anything is."""
        with output() as said, project_forgotten():
            try:
                right, error = self._follow(block), ""
            except Exception as found:
                right, error = False, f"{type(found).__name__}: {found}"
        return None if right else f"{block}\n{said.getvalue()}{error}"

    def _follow(self, block: Block) -> bool:
        text = self._here(block.text)
        if block.file:
            write(block.file, block.text)
            return compile(text, block.file, "exec") if block.language == "python" else bool(yaml.safe_load(text))
        if block.language == "python":
            exec(compile(text, str(block), "exec"), self._names)
            return True
        if block.language == "yaml":
            return self._train(text)
        if block.language == "bash":
            return self._check_script(text)
        assert block.language == "shell", "neither code nor a command: NOT_RUN lacks it, and a reason"
        return all(self._run(part, block.shown) for part in text.replace("\\\n", " ").split(" && "))

    def _here(self, text: str) -> str:
        """Return a text of the page with what stands for its words in this project."""
        for word, meant in sorted(self._words.items(), key=lambda one: -len(one[0])):
            text = re.sub(rf"(?<![\w.-]){re.escape(word)}(?!\w)", lambda _, meant=meant: meant, text)
        return text

    def _train(self, text: str) -> bool:
        """Train a config, or a section of one; check a sweep."""
        is_whole = re.search(r"^defaults:|^trainer: *(\{| *\n *)type:", text, re.MULTILINE)
        write("section.yaml", text if is_whole else f"defaults: {self._assumed.base}\n{text}")
        command = ["check", "--multirun"] if text.startswith("sweep:") else ["fit"]
        return run_rtrain(possible_here([*command, "section.yaml", *self._assumed.more.split()])) == 0

    def _check_script(self, text: str) -> bool:
        """Check the syntax of a script, and the trainings that it starts; its variables have some value."""
        subprocess.run(["bash", "-n"], input=text, text=True, check=True)
        started = STARTED.findall(VARIABLE.sub("2", text.replace("\\\n", " ")))
        assert started, "it starts no training"
        return all(run_rtrain(["check", *shlex.split(words)]) == 0 for words in started)

    def _run(self, line: str, shown: str) -> bool:
        """Run a command line; return whether it ended as the page says."""
        words = shlex.split(line, comments=True)
        variables = dict(word.split("=", 1) for word in words if re.fullmatch(r"[A-Z_]+=.*", word))
        program, *words = words[len(variables) :]
        if program == "make":
            return f"\n{words[0]}:" in (ROOT / "Makefile").read_text()
        if program == "python":
            with patch.object(sys, "argv", words):
                runpy.run_path(words[0], run_name="__main__")
            return True
        assert program == "rtrain", f"no way to run {program}: NOT_RUN lacks it, and a reason"
        if "-o" in words and (written := Path(words[words.index("-o") + 1])).is_file():
            written.unlink()  # each command is an example by itself
        words, file = (words[:-2], words[-1]) if ">" in words else (words, None)
        expected = error_in(shown)
        with patch.dict(os.environ, variables), output() as said:
            code = run_rtrain(words if expected else possible_here(words, " ".join(variables)))
        print(said.getvalue())
        if file:
            write(file, said.getvalue())
        return code == (2 if expected else 0) and are_said(expected, said.getvalue())


def possible_here(words: Sequence[str], variables: str = "") -> list[str]:
    """Return a command line that this process can run: a training with few rows, or the check of one."""
    command, *rest = words
    if command != "fit" or {"--cfg", "--info"} & set(rest):
        return list(words)
    asked = " ".join([variables, *rest, *map(config_of, rest)])
    if ELSEWHERE.search(asked):
        return ["check", *rest, *(["--no-data"] if ABSENT.search(asked) else [])]
    kept = [word for word in rest if not LENGTH.fullmatch(word)]
    trials = ["sweep.num_trials=2"] if "sweep.num_trials" in asked else []
    length = ["trainer.num_boost_round=2"] if ROUNDS.search(asked) else ["trainer.max_epochs=1"]
    rows = [] if NO_ROWS.search(asked) else ["dataset.limit=150"]
    return [command, *kept, "num_workers=0", *trials, *([] if NO_LENGTH.search(asked) else length), *rows]


def config_of(word: str) -> str:
    """Return the text of the config that a word names, if it names one, without comments."""
    path = Path(word)
    path = path / "config.yaml" if path.is_dir() else path
    is_config = path.suffix == ".yaml" and path.is_file()
    return re.sub(r"(^| )#.*", "", path.read_text(), flags=re.MULTILINE) if is_config else ""


def error_in(shown: str) -> list[str]:
    """Return the lines of an error in what a page shows of a command; none if the command succeeds."""
    lines = [line.strip() for line in shown.strip().splitlines()]
    is_error = lines and (lines[0].startswith("error:") or lines[-1].startswith("try:"))
    return [line for line in lines if line != "..."] if is_error else []


def are_said(lines: Sequence[str], said: str) -> bool:
    """Return whether a command has said each of some lines, in this order."""
    found = iter(line.strip() for line in said.splitlines())
    return all(line in found for line in lines)


def write(name: str, text: str) -> None:
    """Write a file of the project."""
    Path(name).parent.mkdir(parents=True, exist_ok=True)
    Path(name).write_text(text)


@contextmanager
def output() -> Iterator[StringIO]:
    """Yield what the block prints."""
    with redirect_stdout(StringIO()) as said, redirect_stderr(said):
        yield said
