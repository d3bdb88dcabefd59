"""Words of other tools: what is declared beside the dataclasses of keys, and what a name comes to."""

from __future__ import annotations

import inspect
import re
from dataclasses import fields, is_dataclass
from importlib import import_module
from pathlib import Path

import pytest
import yaml

import rtrain
from rtrain.config.diagnostics.meant.keys.words import ENDING, Meaning, Words, words_of
from rtrain.config.did_you_mean import plain
from rtrain.config.files.locations import builtin_config_dir
from rtrain.config.schema import RtrainConf
from rtrain.schemas import schemas

ROOT = Path(rtrain.__file__).parent
FILES = sorted(ROOT.rglob(f"*{ENDING}"))


def declared():
    """Return each class that has words, and them as they are written."""
    found = []
    for path in FILES:
        if path.name.startswith("targets."):  # by what is built, not by dataclasses of keys
            continue
        module = import_module(".".join(path.relative_to(ROOT.parent).parts).removesuffix(ENDING))
        for name, sections in yaml.load(path.read_text(), yaml.BaseLoader).items():
            found.append(pytest.param(getattr(module, name), sections, id=f"{module.__name__}.{name}"))
    return found


DECLARED = declared()


@pytest.mark.parametrize(("conf", "sections"), DECLARED)
def test_words_are_for_keys_that_are_there(conf, sections):
    assert is_dataclass(conf)
    assert set(sections) <= {"keys", "values", "says"}
    own = {*(one.name for one in fields(conf)), "type"}
    meant = [key.partition("=")[0] for key in sections.get("keys", {})]
    for key in (*meant, *sections.get("values", {})):
        assert key.partition(".")[0] in own, key


@pytest.mark.parametrize(("conf", "sections"), DECLARED)
def test_each_name_means_one_thing(conf, sections):
    meant = [*sections.get("keys", {}).values(), *(one["names"] for one in sections.get("says", []))]
    names = [spelled for all_names in meant for spelled in {_spelled(name) for name in all_names.split()}]
    assert sorted(names) == sorted(set(names))


@pytest.mark.parametrize("group", ["trainer", "dataset"])
def test_no_sentence_hides_a_key_of_a_plugin(group):
    sections = next(one.values[1] for one in DECLARED if one.values[0] is RtrainConf)
    said = [name for one in sections["says"] for name in one["names"].split()]
    own = [name.removeprefix(f"{group}.") for name in said if name.startswith(f"{group}.")]
    for plugin, conf in schemas().group(group).items():
        keys = [name for name in own for words in words_of(conf) if (one := words.meaning(name, None, "")) and one.key]
        assert not keys, plugin


def _spelled(name):
    if name.startswith("*"):  # a topic
        return name
    key, sign, value = name.partition("=")
    return plain(key) + "*" * key.endswith("*") + sign + value.casefold()


@pytest.mark.parametrize(
    ("name", "value", "meaning"),
    [
        ("learning_rate", "0.1", Meaning("trainer.lr")),
        ("learningRate", "0.1", Meaning("trainer.lr")),
        ("LEARNING-RATE", "0.1", Meaning("trainer.lr")),
        ("fp16", "true", Meaning("trainer.precision", "half")),
        ("fp16", "false", Meaning(sentence="remove it: trainer.precision decides, and half is off by default")),
        ("mixed_precision", "FP16", Meaning("trainer.precision", "half")),
        ("mixed_precision", "other", Meaning("trainer.precision")),
        ("save_freq", "epoch", Meaning("trainer.every_epochs", "1")),
        ("save_freq", "10", Meaning("trainer.every_steps")),
        ("devices", "2", Meaning(sentence="there are none")),
        ("devices", "auto", Meaning("trainer.auto")),
        ("unknown", "1", None),
    ],
)
def test_a_name_comes_to_a_key_a_value_or_a_sentence(name, value, meaning):
    words = Words(
        {
            "lr": "learning_rate",
            "precision=half": "fp16",
            "precision": "mixed_precision",
            "every_epochs=1": "save_freq=epoch",
            "every_steps": "save_freq",
            "auto": "devices=auto",
        },
        {"precision": {"half": "fp16 float16"}},
        [{"names": "devices gpus", "say": "there are none"}],
    )
    assert words.meaning(name, value, "trainer") == meaning


def test_words_stand_beside_the_module_of_any_plugin(tmp_path, monkeypatch):
    (tmp_path / "ridge_plugin.py").write_text(
        "from dataclasses import dataclass\n\n\n@dataclass\nclass Conf:\n    alpha: float = 1.0\n"
    )
    (tmp_path / f"ridge_plugin{ENDING}").write_text("Conf:\n  keys:\n    alpha: l2_penalty\n")
    monkeypatch.syspath_prepend(tmp_path)
    conf = import_module("ridge_plugin").Conf
    assert inspect.getfile(conf) == str(tmp_path / "ridge_plugin.py")
    (words,) = words_of(conf)
    assert words.meaning("l2_penalty", "0.5", "trainer") == Meaning("trainer.alpha")


def test_a_class_has_the_words_of_its_bases_after_its_own():
    from rtrain.trainers.torch.config import Conf

    found = [words.meaning("num_train_epochs", "3", "trainer") for words in words_of(Conf)]
    assert [one for one in found if one] == [Meaning("trainer.max_epochs")]


def test_a_sentence_adds_with_a_plus_what_an_option_lacks():
    """``optimizer=adamw`` has betas, and takes ``+trainer.optimizer.eps``: without the plus it would be refused."""
    named = 0
    for say in [one["say"] for file in FILES for words in read(file).values() for one in words.get("says", [])]:
        for option in re.finditer(r"\b(loss|optimizer|scheduler)=(\w+)\b([^;]*)", say):
            file = builtin_config_dir() / "trainer" / option[1] / f"{option[2]}.yaml"
            own = read(file) if file.exists() else {}
            keys = re.findall(rf"(?<![+\w])trainer\.{option[1]}\.([a-z]\w*)", option[3]) if own else []
            assert set(keys) <= set(own), say
            named += len(keys)
    assert named > 5


def read(file):
    return yaml.load(file.read_text(encoding="utf-8"), yaml.BaseLoader)


@pytest.mark.parametrize(("conf", "sections"), [one for one in DECLARED if one.values[0] in schemas().trainer.values()])
def test_a_sentence_of_a_trainer_names_its_own_keys_or_the_trainer_that_has_them(conf, sections):
    confs = schemas().trainer
    for say in [one["say"] for one in sections.get("says", [])]:
        meant = [conf, *(confs[name] for name in re.findall(r"\btrainer=(\w+)", say) if name in confs)]
        known = {one.name for each in meant for one in fields(each)} | {"type"}
        assert set(re.findall(r"\btrainer\.([a-z]\w*)", say)) <= known, say
