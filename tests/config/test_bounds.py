"""A config that would expand without bounds is refused quickly, wherever it is resolved."""

from __future__ import annotations

import pytest
import yaml
from omegaconf import OmegaConf
from tests_config import SCHEMAS, refused, write

from rtrain.cli.app import run as command
from rtrain.config.bounds import MAX_REFERENCES, ExpansionError, bounded_references
from rtrain.config.resolve import resolve
from rtrain.config.session import Session
from rtrain.errors import ConfigError

LEVELS = 8


def bomb(first, refer):
    """Return variables each of which refers to the one before it, ten times."""
    return {"a0": first, **{f"a{level}": refer(level - 1) for level in range(1, LEVELS + 1)}}


TEN = range(10)
BOMBS = {
    "text": bomb("boom", lambda level: f"${{vars.a{level}}}" * 10),
    "list": bomb(["boom"], lambda level: [f"${{vars.a{level}}}"] * 10),
    "mapping": bomb({"x": 1}, lambda level: {f"k{one}": f"${{vars.a{level}}}" for one in TEN}),
    "selected": bomb("boom", lambda level: f"${{oc.select:vars.a{level}}}" * 10),
    "created": bomb("boom", lambda level: [f"${{oc.create:${{vars.a{level}}}}}"] * 10),
    "long": bomb("x" * 100_000, lambda level: f"${{vars.a{level}}}" * 10),
    "wide": bomb([1] * 20_000, lambda level: [f"${{vars.a{level}}}"] * 10),
    "nested": bomb("boom", lambda level: f"${{vars.${{oc.decode:a{level}}}}}" * 10),
}


@pytest.fixture(params=BOMBS)
def armed(request, project):
    """The config ``evil``, which is as large as a world once it is resolved."""
    write("configs/evil.yaml", yaml.safe_dump({"defaults": ["digits"], "vars": BOMBS[request.param]}))
    return request.param


def test_a_check_refuses_it(armed):
    with Session("evil", [], SCHEMAS) as session, pytest.raises(ExpansionError, match=r"^vars\.a"):
        session.check()


@pytest.mark.parametrize("armed", ["text", "list"], indirect=True)
@pytest.mark.parametrize("look", ["job", "sweep"])
def test_every_look_refuses_it(look, armed):
    words = ["seed=1,2"] if look == "sweep" else []
    with Session("evil", words, SCHEMAS) as session, pytest.raises(ExpansionError):
        session.trials() if look == "sweep" else session.show_cfg(look, None, True)


@pytest.mark.parametrize("key", ["run.name", "hydra.callbacks.x", "hydra.job.name"])
def test_every_place_refuses_it(key, project):
    write("configs/evil.yaml", yaml.safe_dump({"defaults": ["digits"], "vars": BOMBS["text"]}))
    with Session("evil", [f"++{key}=${{vars.a8}}"], SCHEMAS) as session, pytest.raises(ExpansionError):
        session.check()


def test_what_people_write_has_room():
    cfg = OmegaConf.create({"hydra": {}, "a": 1, "b": [f"${{a}}-{one}" for one in range(MAX_REFERENCES // 2)]})
    with bounded_references():
        assert resolve(cfg)["b"][7] == "1-7"


def test_references_are_counted_for_each_config_alone():
    cfg = OmegaConf.create({"hydra": {}, "a": 1, "b": "${a}"})
    for _ in range(3):
        with bounded_references():
            assert resolve(cfg)["b"] == 1


@pytest.mark.parametrize(
    "text",
    [
        "a: " + "[" * 400 + "]" * 400,
        "a: " + "{a: " * 400 + "1" + "}" * 400,
        "".join(f"{'  ' * level}a:\n" for level in range(400)),
        "a: " + "[" * 100_000,
        "a: '" + "${vars.b}" * 1000 + "'",
        "a: '" + "${" * 1000 + "'",
        "a: \0",
        "a: '\x07'",
    ],
    ids=["lists", "mappings", "lines", "open", "references", "braces", "nul", "bell"],
)
def test_what_no_config_needs_is_told_with_its_place(text, project):
    write("configs/evil.yaml", f"defaults: [digits]\n{text}\n")
    assert "evil.yaml:" in refused("evil")


def test_a_folder_that_is_gone_is_told(project, monkeypatch, capsys):
    write("gone/x.yaml", "defaults: [digits]\n")
    monkeypatch.chdir("gone")
    (project / "gone/x.yaml").unlink()
    (project / "gone").rmdir()
    for words in (["fit", "x.yaml"], ["fit", "mlp", "--cfg", "job"], ["smoke", "x"], ["resume", "runs/x"]):
        assert command(words) == ConfigError("").exit_code
        assert "Traceback" not in capsys.readouterr().err
