"""The gate: whatever a config may have called, opened or set, in every place and however it is named."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from omegaconf import OmegaConf
from tests_config import SCHEMAS, check, each_trial, refused, write

from rtrain.config.session import Session
from rtrain.errors import ConfigError

CANARY = """
from pathlib import Path


def sing(*args, **kwargs):
    Path({mark!r}).touch()
    raise RuntimeError("it sang")
"""
SINGS = "canary.sing"
ANY = "job_logging.handlers.()"
PLACES: dict[str, tuple[str, dict[str, Any]]] = {
    "callback": ("hydra.callbacks.x", {"_target_": SINGS}),
    "argument": ("hydra.callbacks.x", {"_target_": "models.Net", "width": {"_target_": SINGS}}),
    "element": ("hydra.callbacks.x", {"_target_": "models.Net", "width": [1, [{"_target_": SINGS}]]}),
    "positional": ("hydra.callbacks.x", {"_target_": "models.Net", "_args_": [{"_target_": SINGS}]}),
    "partial": ("hydra.callbacks.x", {"_target_": SINGS, "_partial_": True}),
    "walk": ("hydra.callbacks.x", {"_target_": "models.canary.sing"}),
    "launcher": ("hydra.launcher.x", {"_target_": SINGS}),
    "sweeper": ("hydra.sweeper.x", {"_target_": SINGS}),
    "optimizer": ("trainer.optimizer", {"_target_": SINGS}),
    "dataset": ("dataset.columns", {"_target_": SINGS}),
    **{
        f"{section}.{kind}.{key}": (f"hydra.{section}.{kind}.x", {key: SINGS, **more})
        for section in ("job_logging", "hydra_logging")
        for kind, key, more in [
            ("handlers", "()", {}),
            ("handlers", "class", {}),
            ("handlers", "stream", {"class": "logging.StreamHandler", "stream": f"ext://{SINGS}"}),
            ("handlers", "queue", {"class": "logging.handlers.QueueHandler", "queue": {"()": SINGS}}),
            ("handlers", "()", {"()": "ext://canary.sing"}),
            ("handlers", "walk", {"class": "models.canary.sing"}),
            ("formatters", "()", {}),
            ("formatters", "class", {}),
            ("filters", "()", {}),
            ("filters", "cfg", {"()": "cfg://filters.x.name", "name": SINGS}),
        ]
    },
}
BASE = {
    "defaults": ["digits"],
    "hydra": {
        section: {"root": {"handlers": ["x"]}, "handlers": {"x": {"class": "logging.NullHandler"}}}
        for section in ("job_logging", "hydra_logging")
    },
}


def _nested(path: str, value: Any) -> dict[str, Any]:
    for key in reversed(path.split(".")):
        value = {key: value}
    return value


def _with_names(node: Any, name: str) -> Any:
    """Return ``node`` with each name of the canary said in another way."""
    if isinstance(node, dict):
        return {key: _with_names(value, name) for key, value in node.items()}
    if isinstance(node, list):
        return [_with_names(value, name) for value in node]
    return node.replace(SINGS, name) if isinstance(node, str) else node


def _named(said: str, /, **variables: Any) -> Any:
    return lambda path, node: ({**_nested(path, _with_names(node, said)), "vars": variables}, [], {})


def _referred(said: str, /, **variables: Any) -> Any:
    return lambda path, node: ({**_nested(path, said), "vars": {"node": node, "text": str(node), **variables}}, [], {})


def _typed(path: str, node: Any) -> Any:
    return {}, [f"++{path}={node}"], {}


def _typed_reference(path: str, node: Any) -> Any:
    return {"vars": {"node": node}}, [f"++{path}=${{vars.node}}"], {}


def _packaged(path: str, node: Any) -> Any:
    text = f"# @package {path}\n{yaml.safe_dump(node)}"
    return {}, ["+extra=evil"], {"configs/extra/evil.yaml": text}


def _from_defaults(path: str, node: Any) -> Any:
    text = yaml.safe_dump(_nested(path, node))
    return {"defaults": ["digits", {"extra@_global_": "evil"}, "_self_"]}, [], {"configs/extra/evil.yaml": text}


WAYS = {
    "literal": _named(SINGS),
    "reference": _named("${vars.name}", name=SINGS),
    "reference in a reference": _named("${vars.${vars.which}}", which="name", name=SINGS),
    "relative": _named("${vars.relative}", relative="${.name}", name=SINGS),
    "in parts": _named("${vars.a}.${vars.b}", a="canary", b="sing"),
    "variable": _named("${oc.env:CANARY}"),
    "default": _named("${oc.select:vars.nothing,${vars.name}}", name=SINGS),
    "selected": _named("${oc.select:vars.name}", name=SINGS),
    "decoded": _named("${oc.decode:${vars.name}}", name=f"'{SINGS}'"),
    "node": _referred("${vars.node}"),
    "node of a node": _referred("${vars.second}", second="${.node}"),
    "created": _referred("${oc.create:${vars.node}}"),
    "decoded node": _referred("${oc.create:${oc.decode:${vars.text}}}"),
    "typed": _typed,
    "typed reference": _typed_reference,
    "package": _packaged,
    "defaults": _from_defaults,
}
UNTYPABLE = {"typed": "()"}
"""Hydra's grammar of overrides has no such key."""


@pytest.fixture
def mark(project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What the canary leaves behind: an importable module outside of the project, which a module of it imports."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "canary.py").write_text(CANARY.format(mark=str(tmp_path / "it-sang")))
    monkeypatch.syspath_prepend(str(outside))
    monkeypatch.setenv("CANARY", SINGS)
    monkeypatch.delitem(sys.modules, "models", raising=False)
    write("models.py", "import canary\n\n\nclass Net:\n    def __init__(self, width=8, depth=2):\n        pass\n")
    return tmp_path / "it-sang"


CASES = [(place, way) for place in PLACES for way in WAYS if way in ("literal", "node") or place in ("callback", ANY)]


def written(place: str, way: str) -> list[str]:
    """Write the config ``evil``; return its overrides."""
    path, node = PLACES[place]
    if UNTYPABLE.get(way, "none") in str(node):
        way = "typed reference"
    data, words, files = WAYS[way](path, node)
    write("configs/evil.yaml", yaml.safe_dump(OmegaConf.to_container(OmegaConf.unsafe_merge(BASE, data))))
    for name, text in files.items():
        write(name, text)
    return words


@pytest.mark.parametrize(("place", "way"), CASES)
def test_no_name_of_a_callable_passes(place, way, mark):
    with Session("evil", written(place, way), SCHEMAS) as session, pytest.raises(ConfigError):
        session.run(lambda *_: None)
    assert not mark.exists()


@pytest.mark.parametrize("way", ["node", "variable"])
@pytest.mark.parametrize("place", ["callback", ANY])
def test_none_passes_in_a_sweep_and_to_look_runs_nothing(place, way, mark):
    words = written(place, way)
    with Session("evil", words, SCHEMAS) as session:
        assert session.show_cfg("all")
        assert session.show_info("config")
    with Session("evil", [*words, "seed=1,2"], SCHEMAS) as session, pytest.raises(ConfigError):
        each_trial(session, lambda *_: None)
    assert not mark.exists()
