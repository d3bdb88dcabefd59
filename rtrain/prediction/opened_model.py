"""From a checkpoint's own files and the user's changes to a model, which is checked before anything is loaded."""

from __future__ import annotations

import logging
import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from rtrain.config.calls.overrides import value_of
from rtrain.config.compose.aliases import expand
from rtrain.config.compose.search_space import as_text
from rtrain.config.composed import Composed
from rtrain.config.files.data_files import kind_of
from rtrain.config.files.home import expanded
from rtrain.config.files.locations import builtin_config_dir, project_of
from rtrain.config.files.written_yaml import to_yaml
from rtrain.config.session import Session
from rtrain.config.targets.builder import Builder
from rtrain.datasets.registry import confs
from rtrain.errors import CheckpointError, ConfigError, RtrainError
from rtrain.prediction.raw_columns import UNKNOWN, check_source, without_label
from rtrain.prediction.scoring import Model
from rtrain.prediction.untrusted import check_untrusted
from rtrain.runs.manifest import read_manifest
from rtrain.runs.verify import check_whole
from rtrain.schemas import schemas
from rtrain.text.enumeration import few
from rtrain.trainers.base import BASE
from rtrain.trainers.named_code import changed_code, named_code
from rtrain.trainers.registry import has_own_loop, trainer_of
from rtrain.trainers.trained import (
    CheckpointMetadata,
    LoadedCheckpoint,
    find_checkpoint,
    read_about,
    refuse_pickles,
    wrote_files,
)

log = logging.getLogger(__name__)
MOST_FILES = 3
PARTS = ("dataset", "scaling", "cluster")
"""Sections of the config that a prediction follows."""
OF_MODEL = ("trainer.predictor", "trainer.datamodule")
"""Keys of the trainer that it follows too: what predicts, and what has the rows."""
OF_TRAINING = ("optimizer", "scheduler", "callbacks", "metrics", "train_transform")
"""Keys of the trainer that a prediction does not follow."""
PLACES = ("path", "query")
"""Keys of a dataset that say where its rows are, each of one split perhaps."""
OWN_COLUMNS = ("label", "ids", "dtypes", "weight", "max_unseen", "na_values")
"""Keys of a table that new rows may have another way than those of training."""


@dataclass(frozen=True, kw_only=True)
class OpenedModel:
    """A checkpoint that was found and checked."""

    model: Model
    about: CheckpointMetadata
    composed: Composed
    """Its config, with the user's changes."""
    words: Mapping[str, str]
    """The user's words by the key that each of them sets."""
    split_named: str | None
    """The split whose rows are all that the user's words name: ``dataset.path.test=new.csv``; None: they name none."""
    root: Path | None
    """Folder of the user's modules, if its code may run and the folder exists."""
    own: bool
    """This account named its code, or the user trusts who did."""


def open_model(
    place: str | Path, overrides: Sequence[str], checkpoint: str, *, verb: str, trust: bool, needs_rows: bool = False
) -> OpenedModel:
    """Find a checkpoint and compose its config with the user's changes; see ``open_checkpoint``.

    Args:
        place: A run directory, or the folder of a checkpoint.
        overrides: Changes of what a prediction follows.
        checkpoint: Of a run: ``best``, ``latest`` or the name of one.
        verb: The user's command, for messages.
        trust: Run the code that the checkpoint names, even if another account wrote it.
        needs_rows: It has to be known where rows come from.
    """
    words = _words_by_key(overrides)
    folder = find_checkpoint(Path(place), checkpoint)
    check_whole(folder)
    about = read_about(folder)
    if BASE in words and not trainer_of(about.trainer).lacks_base(folder):
        raise ConfigError(f"{words[BASE]} has no effect: {folder} holds the whole model.", "Leave it out.")
    overrides = [word for one in overrides for word in _rows_of(one, about)]
    alone = _rows_of_a_split(overrides)
    info = UNKNOWN if about.info is None or about.info.parts else about.info
    if info is UNKNOWN and needs_rows:
        _check_rows(about, folder, words, overrides)
    own = trust or bool(about.seal)
    root = project_of(folder, about.project_root, _config_file(folder))[0] if own else None
    sections, typed = sections_of(about, overrides)
    if alone is not None and sections["dataset"] is not None:
        sections["dataset"][alone.key] = {"train": alone.place}  # nothing is trained, and a config needs it
    if own:
        sections["allow"] = list(about.allow)
    else:
        check_untrusted(folder, sections, set(words) - {"dataset"})
    composed = composed_of(sections, root, typed, ("rtrain", verb, str(place)))
    composed = composed if alone is None else alone.only(composed)
    if root is not None:
        _tell_of_other_code(about, root)
    if not trust:
        refuse_pickles(folder, trainer_of(composed.resolved["trainer"]).pickles)
    trained = LoadedCheckpoint(
        folder=folder.resolve(),
        conf=composed.conf.trainer,
        info=info,
        builder=composed.builder if own else Builder(trusted=False),
        own_files=trust or wrote_files(folder),
    )
    model = Model(
        trainer_name=composed.resolved["trainer"]["type"],
        trained=trained,
        device="cuda" if composed.conf.scaling.use_gpu else "cpu",
        project_root=str(root or ""),
        keeps_missing=about.encoding.get("on_missing") == "keep" or bool(info.missing),
    )
    return OpenedModel(
        model=model,
        about=about,
        composed=composed,
        words=words,
        split_named=None if alone is None else alone.split,
        root=root,
        own=own,
    )


def _tell_of_other_code(about: CheckpointMetadata, root: Path) -> None:
    used = {key: value for key, value in about.trainer.items() if key not in OF_TRAINING}
    changed = changed_code(about.code, named_code(used, root))
    if changed:
        log.warning(
            "%s changed since the checkpoint was written: what the model computes may be something else",
            few(changed, MOST_FILES),
        )


def _config_file(folder: Path) -> str | None:
    """Return the config that the run of a checkpoint was trained by; None if the folder is not in a run's."""
    try:
        return read_manifest(folder.resolve().parents[1]).config_file
    except RtrainError:
        return None


def _words_by_key(overrides: Sequence[str]) -> dict[str, str]:
    """Return the user's words by the key that each of them sets.

    Raises:
        ConfigError: A prediction doesn't follow one.
    """
    _refuse_two_places(overrides)
    found = {}
    for one in expand(overrides):
        word, key = overrides[one.origin], one.key.replace("/", ".")
        if _is_data(word):
            key = "dataset.path"
        file = word.partition("=")[2]
        if key == "dataset" and kind_of(file) is not None:
            raise ConfigError(
                f"{word}: dataset chooses a source, and {file} is a file.", f"Name the file alone: {file}"
            )
        if key.partition(".")[0] not in PARTS and not key.startswith(OF_MODEL) and key != BASE:
            message = f"{word}: predictions use only dataset.*, scaling.* and cluster.*."
            raise ConfigError(
                message, "The model can't be changed; for a train loop, trainer.predictor sets the predictor."
            )
        found[key] = word
    return found


def _refuse_two_places(overrides: Sequence[str]) -> None:
    """Refuse several names of data, of which only the last would be read.

    Raises:
        ConfigError: Names them, and the pattern that matches them all, if there is one.
    """
    words = [one for one in overrides if _is_data(one) or one.startswith("dataset.path=")]
    if len(words) < 2 or not any(map(_is_data, words)):
        return
    folder, ending = Path(words[0]).parent, Path(words[0]).suffix
    is_pattern = {Path(one) for one in words} == set(folder.glob(f"*{ending}"))
    raise ConfigError(
        f"several places are named for the rows: {', '.join(words[:3])}{', ...' if len(words) > 3 else ''}.",
        f"Quote the pattern, so that the shell leaves it as it is: '{folder / '*'}{ending}'"
        if is_pattern
        else "Name one of them, a folder, or a pattern in quotes: 'part-*.csv'",
    )


def _is_data(word: str) -> bool:
    """Tell whether a word names data: by its ending, or since there is such a file or folder, ``day=1.csv`` say."""
    key, is_pair, _ = word.partition("=")
    if is_pair and "/" not in key and key.partition(".")[0] in PARTS:
        return False
    return (not is_pair and kind_of(word) is not None) or os.path.lexists(expanded(word))


def _rows_of(word: str, about: CheckpointMetadata) -> list[str]:
    """Return the overrides that data stands for: ``new.csv`` is ``dataset.path=new.csv``; other words as they are.

    The source is that of training, unless the ending of a file says otherwise.
    """
    if not _is_data(word):
        return [word]
    kind, trained_on = kind_of(word), None if about.dataset is None else about.dataset["type"]
    stays = kind is None or trained_on in (kind, "text")  # texts may be a column of a table
    return [*([] if stays else [f"dataset={kind}"]), f"dataset.path={as_text(word)}"]


@dataclass(frozen=True)
class _RowsOfSplit:
    """The rows of a split, val or test, which are all that the user names: ``dataset.path.test=new.csv``."""

    key: str
    """Of the dataset, ``path`` say."""
    split: str
    place: str

    def only(self, composed: Composed) -> Composed:
        """Return a config whose rows are these alone, of whatever split."""
        before, shown = composed.conf.dataset, composed.resolved["dataset"]
        dataset = replace(before, **{self.key: getattr(before, self.key)[self.split]})
        resolved = {**composed.resolved, "dataset": {**shown, self.key: shown[self.key][self.split]}}
        return replace(composed, conf=replace(composed.conf, dataset=dataset), resolved=resolved)


def _rows_of_a_split(overrides: Sequence[str]) -> _RowsOfSplit | None:
    """Return the only rows that overrides name, if they are those of val or test."""
    places: dict[tuple[str, str], Any] = {}
    for one in expand(overrides):
        section, key, split = [*one.key.split("."), "", ""][:3]
        if section == "dataset" and key in PLACES:
            value = value_of(one.text)
            named = {split: value} if split else value if isinstance(value, Mapping) else {"": value}
            places |= {(key, str(name)): place for name, place in named.items()}
    (key, split), place = next(iter(places.items()), (("", ""), None))
    if len(places) != 1 or split not in ("val", "test") or not isinstance(place, str):
        return None
    return _RowsOfSplit(key, split, place)


def _check_rows(about: CheckpointMetadata, folder: Path, words: Mapping[str, str], overrides: Sequence[str]) -> None:
    """Find out where the rows come from if training had no dataset, or several.

    Raises:
        ConfigError: The user has to say it, or can't.
        CheckpointError: Nothing can.
    """
    if has_own_loop(about.trainer):
        check_source(
            overrides, folder, "by a loop that read its data itself" if about.info is None else "on several data sets"
        )
    elif not trainer_of(about.trainer).brings_rows(about.trainer):
        raise CheckpointError(f"{folder} was trained without an rtrain dataset: there are no rows to predict.")
    else:
        for key, word in words.items():
            if not key.startswith("trainer.") and key != "scaling.use_gpu":
                message = f"{word} has no effect: trainer.datamodule provides the rows, and this process reads them."
                raise ConfigError(message, "Set its arguments as keys: trainer.datamodule.batch_size=256")


def sections_of(about: CheckpointMetadata, overrides: Sequence[str]) -> tuple[dict[str, Any], list[str]]:
    """Return the config of a prediction, and its overrides; another source gets the columns of training at most.

    Where the user names rows, none of training's stay: ``dataset.path={train: new.csv}`` brings no test file of it.
    """
    # Unless more are asked for, this process predicts: for most data it is done before Ray would have started.
    dataset, words = None if about.dataset is None else dict(about.dataset), list(overrides)
    for one in expand(words):
        section, key = [*one.key.split("."), ""][:2]
        if dataset is not None and section == "dataset" and key in PLACES:
            dataset.pop(key, None)
    sections: dict[str, Any] = {"trainer": dict(about.trainer), "dataset": dataset, "scaling": {"num_workers": 0}}
    for name, wanted in confs().items():
        if (word := f"dataset={name}") in words:
            words.remove(word)
            columns = without_label(wanted) if dataset is None else _columns(dataset, wanted)
            sections |= {"defaults": [{"dataset": name}], "dataset": columns}
    return sections, words


def composed_of(
    sections: Mapping[str, Any], root: Path | None, words: Sequence[str], typed: tuple[str, ...]
) -> Composed:
    chosen = [f"dataset={one['dataset']}" for one in sections.get("defaults", ())]
    with tempfile.TemporaryDirectory() as scratch:
        config = Path(scratch) / "checkpoint.yaml"
        config.write_text(to_yaml(sections), encoding="utf-8")
        # No project: an empty folder that only this account can write to.
        project = root or builtin_config_dir()
        with Session(str(config), words, schemas(), None, project, (*typed, *chosen)) as session:
            session.needs_secrets = False
            session.trust = True  # check_untrusted has looked at it, where another account wrote it
            return session.check()


def _columns(dataset: Mapping[str, Any], wanted: type) -> dict[str, Any]:
    """Return what training's columns are called, as far as the conf of the source ``wanted`` has keys for it."""
    names = {one.name for one in fields(wanted)}
    return {
        key: dataset[key]
        for key in ("text", "names", "decimal", "keep_default_na", "skipinitialspace", *OWN_COLUMNS)
        if key in names and key in dataset
    }
