"""``run.init_from``: weights meet the columns and classes that they were learned for, or are refused."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest

import rtrain
from rtrain.errors import ConfigError
from rtrain.testing.small_data import small_dataset
from rtrain.trainers.loops.epochs.same_places import check_same_places
from rtrain.trainers.registry import load_trainer

INFO = replace(
    small_dataset().info, feature_names=("a", "b", "c"), class_names=("no", "yes"), categories={"c": ("red", "tan")}
)


def check(now, check=check_same_places):
    job = SimpleNamespace(dataset=SimpleNamespace(info=now))
    check(job, SimpleNamespace(info=INFO))


@pytest.mark.parametrize(
    "changed",
    [
        {},
        {"feature_names": ("a", "b", "z")},
        {"feature_names": ("x", "y", "z")},
        {"feature_names": ("a", "b", "c", "d")},
        {"feature_names": ()},
        {"class_names": ("a_yes", "z_no")},
        {"class_names": ("no", "yes", "zero")},
        {"categories": {"c": ("red", "tan", "violet")}},
        {"categories": {"d": ("tan", "red")}},
    ],
    ids=str,
)
def test_what_is_new_is_taken(changed):
    check(replace(INFO, **changed))


@pytest.mark.parametrize(
    ("changed", "message", "hint"),
    [
        ({"feature_names": ("c", "b", "a")}, "column 'c'", r"'dataset\.features=\[a,b,c\]'"),
        ({"feature_names": ("b", "c")}, "column 'b'", r"dataset\.features"),
        ({"feature_names": ("a", "new", "b", "c")}, "column 'b'", r"dataset\.features"),
        ({"class_names": ("maybe", "no")}, "takes 'no' for 'yes'", "same ones"),
        ({"class_names": ("a", "b", "no")}, "has 'no' at another place", "same ones"),
        ({"categories": {"c": ("blue", "red", "tan")}}, "values of 'c', and takes 'red' for 'tan'", "same ones"),
    ],
    ids=str,
)
def test_what_has_moved_is_refused(changed, message, hint):
    with pytest.raises(ConfigError, match=message) as refused:
        check(replace(INFO, **changed))
    assert refused.match(hint)


@pytest.mark.parametrize("trainer", ["torch", "transformers", "tensorflow", "jax", "lightning"])
def test_each_trainer_of_networks_compares_them(trainer, monkeypatch):
    weights = "rtrain.trainers.transformers.checkpoint.initial_weights.check_weights"
    monkeypatch.setattr(weights, lambda job, wrote: None)  # which need a config and a checkpoint
    plugin = load_trainer(trainer, None)
    check(INFO, plugin.check_init)
    for moved in ({"feature_names": ("c", "b", "a")}, {"class_names": ("maybe", "no")}):
        with pytest.raises(ConfigError, match=r"run\.init_from"):
            check(replace(INFO, **moved), plugin.check_init)


@pytest.mark.parametrize("trainer", ["torch", "transformers", "tensorflow", "jax"])
def test_another_number_of_classes_is_refused(trainer):
    plugin = load_trainer(trainer, None)
    with pytest.raises(ConfigError, match=f"its model has {INFO.num_classes} classes, and this data has 7"):
        check(replace(INFO, num_classes=7), plugin.check_init)


def test_the_proposed_order_goes_on_where_the_other_run_ended(tmp_path):
    names, rows = ("a", "b", "c"), [(n % 7, n % 5, n % 3, "yes" if n % 7 > 3 else "no") for n in range(120)]
    for name, order in (("one", (0, 1, 2)), ("other", (2, 0, 1))):
        lines = [",".join((*(names[at] for at in order), "y"))]
        lines += [",".join((*(str(row[at]) for at in order), row[3])) for row in rows]
        (tmp_path / f"{name}.csv").write_text("\n".join(lines) + "\n")
    words = ["num_workers=0", "dataset=csv", "dataset.label=y", f"run.root_dir={tmp_path}/runs", "max_epochs=1"]
    first = rtrain.fit("mlp", [*words, "lr=0.01", f"dataset.path={tmp_path}/one.csv"])
    onward = [*words, "lr=1e-12", f"dataset.path={tmp_path}/other.csv", f"run.init_from={first.path}"]
    with pytest.raises(ConfigError) as refused:
        rtrain.fit("mlp", onward)
    word = refused.value.hint.split("'")[1]
    second = rtrain.fit("mlp", [*onward, word])
    assert second.metrics["test/loss"] == pytest.approx(first.metrics["test/loss"], rel=1e-5)
