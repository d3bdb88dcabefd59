"""A call as errors show it: it can be pasted, and the carets stand under the argument that is wrong."""

from __future__ import annotations

import ast

import pytest

from rtrain.config.calls.call import MAX_WIDTH, Call, in_python
from rtrain.config.calls.overrides import given_overrides

FORMS = [
    ("lr=0.1", {}),
    (["lr=0.1", "model.hidden=[8]"], {}),
    (["lr=0.1", "~sweep"], {"epochs": 3}),
    ({"optimizer.lr": 0.1, "run.notes": "it's \\d"}, {"epochs": 3}),
    ({"vars": {"a": 1}}, {"hydra": {"job": {"env_set": {"A": "b"}}}}),
    ({}, {"epochs": 3, "model": {"hidden": [8]}, "lr": None}),
    ((), {}),
]


def made(overrides, short, function="fit"):
    return Call(function, "mlp", tuple(given_overrides(overrides, short)))


def arguments(text):
    """Return what a call passes on: the words of its overrides, whatever their form."""
    call = ast.parse(text.strip()).body[0].value
    assert ast.unparse(call.func) == "rtrain.fit"
    config, *others = map(ast.literal_eval, call.args)
    short = {one.arg: ast.literal_eval(one.value) for one in call.keywords}
    return config, [one.word for one in given_overrides(others[0] if others else (), short)]


@pytest.mark.parametrize(("overrides", "short"), FORMS, ids=str)
def test_a_call_is_python_and_means_the_same(overrides, short):
    call = made(overrides, short)
    config, words = arguments(call.text(call.words))
    assert config == "mlp"
    assert sorted(words) == sorted(call.words)


@pytest.mark.parametrize(("overrides", "short"), FORMS, ids=str)
def test_carets_stand_under_the_argument(overrides, short):
    call = made(overrides, short)
    for number, word in enumerate(call.words):
        line, carets = call.render(call.words, number)
        marked = line[carets.index("^") : carets.rindex("^") + 1]
        assert word.partition("=")[0].lstrip("+") in marked
        assert not marked.startswith(("[", "{", " "))
        assert not marked.endswith((")", " ", "}"))


def test_the_config_can_be_marked():
    line, carets = made("lr=0.1", {}).render(["lr=0.1"], -1)
    assert line[carets.index("^") : carets.rindex("^") + 1] == '"mlp"'


def test_other_arguments_give_way_where_a_call_is_long():
    call = made([f"run.tags=[{'x' * 30}{number}]" for number in range(9)], {})
    for number, word in enumerate(call.words):
        line, carets = call.render(call.words, number)
        assert len(line) < MAX_WIDTH
        assert word in line[carets.index("^") : carets.rindex("^") + 1]


@pytest.mark.parametrize(
    ("overrides", "short", "words", "expected"),
    [
        ("lrr=0.1", {}, "lr=0.1", 'rtrain.fit("mlp", "lr=0.1")'),
        ({"lrr": 0.1}, {}, "lr=0.1", 'rtrain.fit("mlp", lr=0.1)'),
        ({"optimizer.lrr": 0.1}, {}, "optimizer.lr=0.1", 'rtrain.fit("mlp", {"optimizer.lr": 0.1})'),
        ({}, {"epoch": 3}, "epochs=3", 'rtrain.fit("mlp", epochs=3)'),
        (["seed=1"], {"epoch": 3}, "seed=1 epochs=3", 'rtrain.fit("mlp", "seed=1", epochs=3)'),
        ({"seed": 1}, {}, "seed=1 ~sweep", 'rtrain.fit("mlp", ["seed=1", "~sweep"])'),
        ((), {}, "trainer=...", 'rtrain.fit("mlp", trainer=...)'),
        ("lr=0.1,0.2", {}, "lr=0.1,0.2 --multirun", 'rtrain.sweep("mlp", "lr=0.1,0.2")'),
        ((), {"lr": 1}, "lr=0.1,0.2 --multirun", 'rtrain.sweep("mlp", lr=rtrain.choice(0.1, 0.2))'),
    ],
    ids=str,
)
def test_commands_in_hints_become_calls(overrides, short, words, expected):
    call = made(overrides, short)
    assert (
        in_python(f"  did you mean: x\n  try: rtrain fit mlp {words}", call) == f"  did you mean: x\n  try: {expected}"
    )


@pytest.mark.parametrize(
    "text",
    [
        None,
        "Remove it; rtrain evaluate compares predictions with that column.",
        "  try: rtrain runs fetch s3://a/b",
        "To resume it: rtrain resume runs/x. Or remove hydra.run.dir: each run then gets a new folder.",
        "  try: curl -O x && rtrain fit x",
        "  try: rtrain fit 'x",
        "  try: rtrain fit --help",
    ],
)
def test_other_hints_stay_as_they_are(text):
    assert in_python(text, made((), {})) == text


def test_a_run_is_named_by_its_path():
    hint = in_python("To continue training: rtrain resume runs/x trainer.max_epochs=4", made((), {}, "resume"))
    assert hint == 'To continue training: rtrain.resume("runs/x", {"trainer.max_epochs": 4})'
