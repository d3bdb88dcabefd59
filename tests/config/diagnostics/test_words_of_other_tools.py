"""The words that users of other tools type: the corpus is what it claims to be, and each of its answers works."""

from __future__ import annotations

import csv
import inspect
import random
import re
import shlex
import sys
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.errors import HydraException
from lightning.pytorch import Trainer
from omegaconf import OmegaConf
from peft import LoraConfig

from rtrain.config.compose.aliases import GROUPS, expand_key, split_word
from rtrain.config.diagnostics.meant.keys.schema_keys import all_keys, names_of
from rtrain.config.diagnostics.meant.keys.words import Words
from rtrain.config.diagnostics.meant.keys.wrong_keys import WrongKeys
from rtrain.config.diagnostics.screen import CliWord, FileLocation
from rtrain.config.session import Session
from rtrain.config.targets.builder import Builder
from rtrain.config.validate import InvalidError, validate
from rtrain.datasets.registry import load_source
from rtrain.errors import ConfigError
from rtrain.schemas import schemas
from rtrain.testing.workers import make_job
from rtrain.trainers.lightgbm import names as lightgbm_names
from rtrain.trainers.lightning.arguments import OURS as LIGHTNING_OURS
from rtrain.trainers.loops.boosting.params import check_names
from rtrain.trainers.registry import load_trainer
from rtrain.trainers.transformers.arguments import check_arguments
from rtrain.trainers.xgboost import names as xgboost_names

CORPUS = Path(__file__).with_name("words_of_other_tools.tsv")
PARSER = OverridesParser.create()
PREFIXES = {
    "root": "",
    "file": "",
    "model": "trainer.model.",
    "optimizer": "trainer.optimizer.",
    **{name: f"{name}." for name in ("trainer", "dataset", "run", "scaling", "sweep")},
}
"""What stands before the name, by the place where it is typed."""
REQUIRED = {
    "csv": {"path": "rows.csv", "label": "y"},
    **{name: {"path": "rows"} for name in ("images", "huggingface", "text")},
}
"""Keys that a dataset needs, by its type; the user typed them too."""
EXCLUSIVE = {
    "trainer.batch_size": "trainer.global_batch_size",
    "trainer.global_batch_size": "trainer.batch_size",
    "trainer.model.pretrained": "trainer.model.config",
}
"""By key of an answer, the key that it takes the place of."""
PARAMETERS = {
    "xgboost": lambda: (sorted(xgboost_names.known_names()), xgboost_names.OURS),
    "lightgbm": lambda: (lightgbm_names.all_names(), lightgbm_names.ours()),
}
"""The names below ``trainer.params``, and those that rtrain sets itself."""
CHOICES = (*GROUPS, "trainer", "dataset", "sweep", "sweep/scheduler")
TARGETS = ("model", "module", "optimizer", "scheduler", "loss", "estimator")
"""Parts of a trainer that are built by ``_target_``."""
FREE = tuple(f"trainer.{part}." for part in (*TARGETS, "params", "arguments", "trainer_args"))
"""Where the trainer's library knows the names."""
SLOW = (pytest.mark.slow, pytest.mark.timeout(1800))
"""Marks of a test of all rows: minutes on a busy machine."""
KEY = re.compile(r"(trainer|dataset|run|scaling|sweep|cluster)(\.\w+)+")
"""A word of a sentence that is a key."""


@dataclass(frozen=True, kw_only=True)
class Row:
    """One word that the user of another tool types, and what the error must lead to."""

    tool: str
    config: str
    """The name of a shipped config, and words that follow it."""
    where: str
    name: str
    value: str
    expected: str

    @property
    def key(self) -> str:
        """The full key that is typed."""
        return expand_key(PREFIXES[self.where] + self.name)

    @property
    def answers(self) -> tuple[tuple[str, str], ...]:
        """The right answers, each a key and its value; none if a sentence is the answer."""
        if self.expected.startswith("says: "):
            return ()
        pairs = (answer.partition("=") for answer in self.expected.split(" | "))
        return tuple((key, value if sign else self.value) for key, sign, value in pairs)

    @property
    def says(self) -> tuple[str, ...]:
        """What the sentence must name; nothing if a key is the answer."""
        return tuple(self.expected.removeprefix("says: ").split(", ")) if not self.answers else ()


@cache
def load_rows() -> tuple[Row, ...]:
    """Return the rows of the corpus."""
    with CORPUS.open(encoding="utf-8", newline="") as file:
        lines = (line for line in file if not line.startswith("#"))
        return tuple(Row(**row) for row in csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE))


class Config:
    """One composed config, and what a change of one of its keys comes to."""

    def __init__(self, command: str) -> None:
        name, *words = command.split(" ")
        required = [
            f"dataset.{key}={value}"
            for kind, keys in REQUIRED.items()
            for key, value in keys.items()
            if f"dataset={kind}" in words and not any(word.startswith(f"dataset.{key}=") for word in words)
        ]
        self._name, self._words = name, [*words, *required]
        self._errors: dict[tuple[str, str], InvalidError | ConfigError | None] = {}
        with self.session() as session:
            composed = session.check()
            self._builder, self._data = composed.builder, composed.resolved
            if any(word.startswith("sweep") for word in words):  # a trial is recorded without it
                self._data = {**self._data, "sweep": OmegaConf.to_container(session.request.compose().sweep)}
        self._trainer = self._data["trainer"]["type"]

    def problem(self, key: str, value: str) -> str:
        """Return why rtrain refuses ``key=value`` on this config; an empty text if it does not."""
        error = self._refusal(key, value)
        if isinstance(error, InvalidError):
            return "; ".join(f"{one.key}: {one.message}" for one in error.problems)
        return "" if error is None else str(error)

    def _refusal(self, key: str, value: str) -> InvalidError | ConfigError | None:
        if (key, value) not in self._errors:
            self._errors[key, value] = self._refused(key, value)
        return self._errors[key, value]

    def _refused(self, key: str, value: str) -> InvalidError | ConfigError | None:
        try:
            if key == "run.loggers" or (key in CHOICES and not value.startswith("{")):
                with self.session(f"{key}={value}") as session:
                    session.check()
            else:
                self._check(key, parsed(value))
        except (InvalidError, ConfigError) as error:
            return error
        return None

    def check_words(self, words: Sequence[str]) -> Exception | None:
        """Return what is wrong with the last word of a command, whose others are those of the config."""
        _, key, value = split_word(words[-1])
        full = key if key in CHOICES and not (value or "").startswith("{") else expand_key(key)
        try:
            return self._refusal(full, value or "")
        except TypeError as error:  # a mapping where a plugin is named, which composing refuses
            return error

    def session(self, *more: str) -> Session:
        words = [word for word in self._words if word.partition("=")[0] not in [one.partition("=")[0] for one in more]]
        typed = ("rtrain", "fit", self._name, "--multirun")  # keys of a sweep have no effect without it
        return Session(self._name, [*words, *more], schemas(), typed=typed)

    def _check(self, key: str, value: Any) -> None:
        data = put(self._data, EXCLUSIVE[key], None) if key in EXCLUSIVE else self._data
        data = put(data, key, value)
        conf = validate(data, schemas())
        check_free_places(key, data["trainer"], self._builder)
        if key.startswith("trainer.model.config"):
            digits = load_source("digits").load(conf.dataset)
            load_trainer(self._trainer).check(make_job(conf, digits, self._trainer))


def check_free_places(key: str, trainer: dict[str, Any], builder: Builder) -> None:
    """Have rtrain check the part of a trainer that holds ``key``, where the trainer's library knows the names."""
    _, part, *rest = [*key.split("."), ""]
    node = trainer.get(part)
    if part in TARGETS and rest[:-1] and isinstance(node, dict) and trainer["type"] != "transformers":
        builder.check_node(node, f"trainer.{part}", provided={"params", "optimizer"})
        if node["_target_"].startswith("keras.optimizers."):
            with warnings.catch_warnings():
                warnings.filterwarnings("error", ".* will be ignored")  # which the trainer's check refuses
                try:
                    builder.build(node, f"trainer.{part}")
                except UserWarning as error:
                    raise ConfigError(str(error)) from error
    elif key.startswith("trainer.params"):
        check_names(node, *PARAMETERS[trainer["type"]](), schemas().trainer[trainer["type"]])
    elif part == "arguments":
        check_arguments(node, schemas().trainer["transformers"])
    elif part == "lora" and not {*(node or {})} <= {*inspect.signature(LoraConfig).parameters}:
        raise ConfigError(f"{key}: peft's LoraConfig has no such argument.")
    elif part == "trainer_args" and not {*node} <= {*inspect.signature(Trainer).parameters} - {*LIGHTNING_OURS}:
        raise ConfigError(f"{key}: Lightning's Trainer has no such argument, or rtrain sets it.")


def put(data: dict[str, Any], key: str, value: Any) -> dict[str, Any]:
    """Return the mapping with a dotted key set; a mapping as the value is merged with what is there."""
    head, _, tail = key.partition(".")
    inner = data.get(head) if isinstance(data.get(head), dict) else {}
    if tail:
        return {**data, head: put(inner, tail, value)}
    return {**data, head: {**inner, **value} if isinstance(value, dict) else value}


@cache
def parsed(value: str) -> Any:
    """Return the value of a word as Hydra reads it."""
    try:
        return PARSER.parse_override(f"x={value}").value()
    except HydraException:
        return value


@pytest.fixture(scope="module")
def configs(tmp_path_factory):
    """Return what composes a config of the corpus, each once."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("project"))
        patch.setattr(sys, "path", list(sys.path))
        yield cache(Config)


def test_the_corpus_is_large_and_says_nothing_twice():
    rows = load_rows()
    typed = [(row.config, row.where, row.name, row.value) for row in rows]
    assert len(rows) >= 800
    assert len({row.name for row in rows}) >= 650
    assert len(set(typed)) == len(typed)
    order = [(row.tool.lower(), row.name.lower()) for row in rows]
    assert order == sorted(order)


@pytest.mark.slow
def test_every_typed_name_is_one_that_rtrain_refuses(configs):
    accepted = [
        f"{row.config} {row.key}={row.value}"
        for row in load_rows()
        if not configs(row.config).problem(row.key, row.value)
    ]
    assert not accepted, "\n".join(accepted)


@pytest.mark.slow
def test_every_answer_passes_the_check(configs):
    answers = {(row.config, key, value) for row in load_rows() for key, value in row.answers}
    wrong = [
        f"{config} {key}={value}: {why}"
        for config, key, value in sorted(answers)
        if not key.endswith("._target_") and (why := configs(config).problem(key, value))
    ]
    assert not wrong, "\n".join(wrong)


def test_every_key_that_a_sentence_names_exists():
    known = {key for trainer in schemas().trainer for key in all_keys(schemas(), trainer)}
    known |= {key for dataset in schemas().dataset for key in all_keys(schemas(), dataset=dataset)}
    known |= {f"sweep.{name}" for conf in schemas().sweep.values() for name in names_of(conf)}
    known |= {f"sweep.scheduler.{name}" for conf in schemas().scheduler.values() for name in names_of(conf)}
    named = {word for row in load_rows() for word in row.says if KEY.fullmatch(word) and not word.startswith(FREE)}
    assert not named - known


def test_words_of_a_target_mean_arguments_of_it():
    targets = yaml.safe_load(Path(inspect.getfile(Words)).with_name("targets.words.yaml").read_text(encoding="utf-8"))
    wrong = [
        f"{target}: {key}"
        for target, sections in targets.items()
        if "." in target and callable(built := Builder().locate(target, "_target_"))
        for key in sections.get("keys", {})
        if key.partition("=")[0] not in inspect.signature(built).parameters
    ]
    assert not wrong


@dataclass(frozen=True)
class Told:
    """What the screen of a wrong word says."""

    meant: str
    """The key after ``did you mean``."""
    value: str | None
    """The value in the command after ``try``; None if there is no command."""
    text: str
    is_blank: bool
    """Whether it only says that there is no such key."""

    def leads_to(self, row: Row) -> bool:
        """Return whether it is one of the right answers."""
        if row.says:
            return all(word in self.text or word.rpartition(".")[2] in self.text for word in row.says)
        meant = _dotted(self.meant)
        return any(
            (meant in (_dotted(key), f"{key}.type") and (value == row.value or self.value == value))
            or (_dotted(key) == f"{meant}._target_" and self.value == f"{{_target_: {value}}}")
            for key, value in row.answers
        )

    def misleads(self, row: Row, config: Config) -> bool:
        """Return whether it is a suggestion that rtrain would take, and none of the right answers."""
        if not self.meant or self.leads_to(row):
            return False
        if row.where != "file":
            return self.value is not None  # the command has been checked
        same_key = self.value is None and any(_dotted(key) == _dotted(self.meant) for key, _ in row.answers)
        return not same_key and not config.problem(_dotted(self.meant), self.value or row.value)


def _dotted(key: str) -> str:
    return expand_key(key).replace("/", ".")


def told(config: Config, wrong: WrongKeys, row: Row) -> Told:
    """Return what is said of a word."""
    word = f"{PREFIXES[row.where]}{row.name}={row.value}"
    place = CliWord([*wrong.request.command, word], len(wrong.request.command))
    if row.where == "file":
        place = FileLocation("config.yaml", f"{row.name}: {row.value}", 0, 0, len(row.name), row.value)
    finding = wrong.explain(row.key, place)
    meant, _, value = (finding.meant or "").partition(": ")
    tried = shlex.split(finding.attempt)[-1].partition("=")[2] if finding.attempt else value or None
    is_blank = not (finding.meant or finding.note or finding.attempt)
    return Told(meant, tried, str(finding.as_error()), is_blank)


@pytest.mark.parametrize("each", [16, pytest.param(1, marks=SLOW)])
def test_names_lead_to_what_is_meant(each, configs):
    """19 of 20 lead to the right key or sentence, no wrong suggestion passes, and none is left without a word."""
    rows, wrong, misled, blank = load_rows()[::each], [], [], []
    for command in dict.fromkeys(row.config for row in rows):
        config = configs(command)
        with config.session() as session:
            session.request.compose()  # which finds out how its words have to be spelled for Hydra
            keys = WrongKeys(session.request, schemas(), config.check_words)
            for row in (row for row in rows if row.config == command):
                found = told(config, keys, row)
                line = f"{row.config} {row.key}={row.value}: {row.expected}, not {found.meant or found.text}"
                wrong += [line] if not found.leads_to(row) else []
                misled += [line] if found.misleads(row, config) else []
                blank += [line] if found.is_blank else []
    assert not blank
    assert not misled, "\n".join(misled)
    assert len(wrong) <= 0.05 * len(rows), "\n".join(wrong)


def misspelt(name: str, kind: int) -> str:
    """Return ``name`` with one edit of its last part: two letters swapped, one dropped, and so on."""
    head, dot, last = name.rpartition(".")
    rng = random.Random(name)
    at = rng.randrange(1, len(last))
    first, *rest = last.split("_")
    edits = (
        last[: at - 1] + last[at] + last[at - 1] + last[at + 1 :],
        last[:at] + last[at + 1 :],
        last[:at] + last[at] + last[at:],
        last[:at] + rng.choice("abcdefghijklmnopqrstuvwxyz") + last[at + 1 :],
        last.upper(),
        last.replace("_", "-"),
        first + "".join(part.title() for part in rest),
    )
    return f"{head}{dot}{edits[kind % len(edits)]}"


@pytest.mark.parametrize("each", [16, pytest.param(1, marks=SLOW)])
def test_misspelt_names_lead_to_what_is_meant(each, configs):
    """19 of 20 names of at least five letters lead to the same answer with one letter wrong, or in another case."""
    names = {row.name for row in load_rows()}
    typed = [replace(row, name=misspelt(row.name, at)) for at, row in enumerate(load_rows()) if is_long(row)]
    rows = [row for row in typed[::each] if row.name not in names]
    wrong = []
    for command in dict.fromkeys(row.config for row in rows):
        config = configs(command)
        with config.session() as session:
            session.request.compose()
            keys = WrongKeys(session.request, schemas(), config.check_words)
            for row in (row for row in rows if row.config == command and config.problem(row.key, row.value)):
                found = told(config, keys, row)
                if not found.leads_to(row):
                    wrong.append(f"{row.config} {row.key}={row.value}: {row.expected}, not {found.meant or found.text}")
    assert len(wrong) <= 0.05 * len(rows), "\n".join(wrong)


def is_long(row: Row) -> bool:
    """Return whether a name has enough letters to be known with one of them wrong."""
    return row.where != "file" and len(row.name.rpartition(".")[2]) >= 5
