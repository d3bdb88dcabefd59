"""Every key of every shipped config, with one letter wrong, is refused, and the right key is suggested."""

from __future__ import annotations

import importlib.util
import random
import re
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml
from small_project import SCHEMAS

from rtrain.config.did_you_mean import closest
from rtrain.config.files import locations
from rtrain.config.files.locations import builtin_config_dir
from rtrain.config.session import Session
from rtrain.datasets.registry import confs, load_source
from rtrain.errors import ConfigError
from rtrain.testing.workers import make_job
from rtrain.trainers.lightgbm.names import all_names
from rtrain.trainers.loops.boosting.params import check_names
from rtrain.trainers.registry import load_trainer
from rtrain.trainers.xgboost.names import known_names

SHIPPED = builtin_config_dir()
PROVIDED = {"params", "optimizer"}
"""Arguments that a trainer adds to a target by itself."""


@pytest.fixture(scope="module")
def schemas():
    if importlib.util.find_spec("rtrain.schemas") is None:
        return SCHEMAS
    from rtrain.schemas import schemas

    return schemas()


def key_lines(path: Path) -> Iterator[tuple[int, int, list[str], str]]:
    """Yield line and column of each key of a YAML, the keys that lead to it with it, and what its section builds.

    The lines of a defaults list are no keys.
    """
    root = yaml.compose(path.read_text())

    def walk(node, sections):
        if isinstance(node, yaml.MappingNode):
            target = next((value.value for key, value in node.value if key.value == "_target_"), "")
            for key, value in node.value:
                yield key.start_mark.line, key.start_mark.column, [*sections, key.value], target
                if key.value != "defaults":
                    yield from walk(value, [*sections, key.value])
        elif isinstance(node, yaml.SequenceNode):
            for one in node.value:
                yield from walk(one, sections)

    return walk(root, [])


def recased(key: str, seed: str) -> str:
    """Return ``key`` in another case: ``EPOCHS``, ``Max_Epochs``, ``maxEpochs``, ``max_epocHs``."""
    rng = random.Random(f"{seed}/{key}")
    first, *rest = key.split("_")
    at = rng.randrange(len(key))
    kinds = [key.upper(), key.title(), key[:at] + key[at].swapcase() + key[at + 1 :]]
    kinds += [first + "".join(part.title() for part in rest)] if first else []  # not of _target_
    return rng.choice([kind for kind in kinds if kind != key])


def misspelt(key: str, seed: str) -> str:
    """Return ``key`` with one letter dropped, doubled, changed, or two swapped."""
    rng = random.Random(f"{seed}/{key}")
    while True:
        at = rng.randrange(1, len(key)) if len(key) > 1 else 0
        new = rng.choice(
            [
                key[:at] + key[at + 1 :],
                key[:at] + key[at] + key[at:],
                key[:at] + rng.choice("abcdefghijklmnopqrstuvwxyz") + key[at + 1 :],
                key[: at - 1] + key[at] + key[at - 1] + key[at + 1 :] if at else key + "x",
            ]
        )
        if new and new != key and new.isidentifier():
            return new


BUILT = ("model", "module", "optimizer", "scheduler", "loss", "estimator")
"""Parts of a trainer whose targets its own check binds."""
PARAMETERS = {"xgboost": lambda: sorted(known_names()), "lightgbm": all_names}
"""The names below ``trainer.params``, which the plugins check themselves."""


def composed_with(config: str, words: list[str], schemas):
    """Compose and check a config; one that chooses a search is swept."""
    is_swept = any(word.startswith("sweep") for word in words)
    with Session(config, [*words, "seed=1,2"] if is_swept else words, schemas) as session:
        return session.trials().probe if is_swept else session.check()


def refuse(config: str, words: list[str], schemas) -> str:
    """Return the message that refuses a config, also one of the trainer's check of its targets."""
    try:
        composed = composed_with(config, words, schemas)
        trainer = composed.resolved["trainer"]
        for name, node in trainer.items():
            if isinstance(node, dict) and "_target_" in node and name in BUILT:
                composed.builder.check_node(node, f"trainer.{name}", provided=PROVIDED, num_args=0)
                if name == "optimizer" and node["_target_"].startswith("keras."):
                    # It takes any keyword; the trainer's check builds it.
                    composed.builder.build(node, "trainer.optimizer")
        if trainer["type"] == "transformers":
            digits = load_source("digits").load(composed.conf.dataset)
            load_trainer("transformers").check(make_job(composed.conf, digits, "transformers"))
        if trainer["type"] in PARAMETERS:
            check_names(trainer["params"], PARAMETERS[trainer["type"]](), {}, schemas.trainer[trainer["type"]])
    except ConfigError as error:
        return str(error)
    return ""


def cases() -> Iterator[tuple[Path, int, int, str]]:
    """Yield each key of each file; one that sources of data, or sections, have in common only where it comes first."""
    seen = set()
    for path in sorted(SHIPPED.rglob("*.yaml")):
        file = path.relative_to(SHIPPED)
        for line, column, (*sections, key), target in key_lines(path):
            place = (file.parent if sections else _declares(file, key), *sections, target, key)
            if place not in seen:
                seen.add(place)
                yield file, line, column, key


def _declares(file: Path, key: str) -> object:
    """Return the dataclass that declares a key of a source of data; for other files, the file."""
    source = confs().get(file.stem) if file.parent.name == "dataset" else None
    return next((one for one in getattr(source, "__mro__", ()) if key in vars(one).get("__annotations__", {})), file)


def words_for(path: Path) -> tuple[str, list[str]]:
    """Return a config and the words that make it use the option in ``path``."""
    if len(path.parts) == 1:
        return path.stem, []
    group = path.parent.as_posix()
    if group == "trainer":
        return next(one.stem for one in sorted(SHIPPED.glob("*.yaml")) if uses_trainer(one, path.stem)), []
    return "mlp", [f"{group}={path.stem}"]


def uses_trainer(primary: Path, name: str) -> bool:
    """Tell whether a primary config chooses the trainer ``name``."""
    return {"trainer": name} in yaml.safe_load(primary.read_text()).get("defaults", [])


def test_every_shipped_option_composes(schemas, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    for path in sorted(SHIPPED.rglob("*.yaml")):
        config, words = words_for(path.relative_to(SHIPPED))
        message = refuse(config, words, schemas)
        assert not message or "required value" in message, f"{path}: {message}"


@pytest.fixture
def shipped(tmp_path, monkeypatch):
    """A copy of the shipped configs, which takes their place."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    shutil.copytree(SHIPPED, tmp_path / "builtin")
    monkeypatch.setattr(locations, "builtin_config_dir", lambda: tmp_path / "builtin")
    return tmp_path / "builtin"


@pytest.mark.timeout(900)  # five hundred compositions, and a machine may be busy
@pytest.mark.parametrize("each", [24, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize(("edited", "share"), [(misspelt, 0.95), (recased, 0.97)])
def test_an_edit_of_any_key_is_refused_and_the_key_suggested(edited, share, each, schemas, shipped):
    accepted, unsuggested, total = [], [], 0
    for path, line, column, key in [*cases()][::each]:
        wrong = edited(key, str(path))
        with replaced(shipped / path, line, column, key, wrong):
            message = refuse(*words_for(path), schemas)
        total += 1
        if not message:
            accepted.append(f"{path}:{line + 1} {key} -> {wrong}")
        elif not tells(message, key):
            unsuggested.append(f"{path}:{line + 1} {key} -> {wrong}: {message}")
    assert total > 10
    assert not accepted
    assert len(unsuggested) <= max(1, (1 - share) * total), "\n".join(unsuggested)


@pytest.mark.parametrize(
    "group", sorted({path.parent for path in SHIPPED.glob("*/**/*.yaml")}), ids=lambda one: one.name
)
def test_an_option_in_another_case_is_suggested(group):
    options = [path.stem for path in group.glob("*.yaml")]
    wrong = {option: closest(recased(option, group.name), options) for option in options}
    assert [option for option, meant in wrong.items() if meant != option] == []


def tells(message: str, key: str) -> bool:
    """Return whether a message proposes ``key``; that it is in a list of all keys does not count."""
    proposed = [text for line in message.split("\n") for text in re.split(r"did you mean: |^ *try: ", line)[1:]]
    names = [name for text in proposed for name in re.findall(r"[\w./-]+", text)]
    return any(name == key or name.endswith(f".{key}") for name in names)


@contextmanager
def replaced(file: Path, line: int, column: int, old: str, new: str) -> Iterator[None]:
    """Put ``new`` where ``old`` stands in a file while the block runs."""
    before = file.read_text()
    lines = before.split("\n")
    lines[line] = lines[line][:column] + new + lines[line][column + len(old) :]
    file.write_text("\n".join(lines))
    try:
        yield
    finally:
        file.write_text(before)
