"""A sweep whose files hold anything is shown, or is a clear error that names the file."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from rtrain.cli.app import run as command
from rtrain.runs.signature import is_own
from rtrain.sweeps.record.trial import Trial
from rtrain.testing.workers import make_manifest

VALUES = [None, -1, 10**400, "\ud800", [], {}, [[1]]]


@pytest.fixture
def sweep(tmp_path: Path) -> Path:
    """The folder of a sweep of two trials."""
    names, error = ("t0", "t1"), {"type": "ValueError", "message": "no"}
    trials = [
        Trial(
            number=number,
            point=(f"0.{number}",),
            overrides=[f"trainer.x=0.{number}"],
            name=name,
            config_hash="x",
            status="succeeded",
            values=[0.5 + number],
            error=error,
        )
        for number, name in enumerate(names)
    ]
    facts = {"schema_version": 1, "status": "failed", "started_at": "", "resumes": [], "axes": [{"key": "trainer.x"}]}
    facts |= {"goals": [{"metric": "loss", "mode": "min"}], "trials": [asdict(one) for one in trials]}
    (tmp_path / "sweep.json").write_text(json.dumps(facts))
    for name in names:
        (tmp_path / name).mkdir()
        make_manifest(run_id=name).write(tmp_path / name)
    return tmp_path


def places(node: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if path:
        yield path
    inner = node.items() if isinstance(node, dict) else enumerate(node[:1]) if isinstance(node, list) else ()
    for key, value in inner:
        yield from places(value, (*path, key))


def with_value(data: Any, path: tuple[Any, ...], value: object) -> str:
    changed = copy.deepcopy(data)
    node = changed
    for key in path[:-1]:
        node = node[key]
    node[path[-1]] = value
    return json.dumps(changed)


@pytest.mark.parametrize("value", VALUES, ids=lambda value: repr(value)[:10])
@pytest.mark.parametrize("file", ["sweep.json", "t0/manifest.json"])
def test_any_type_in_any_place(sweep, file, value, capsys):
    path = sweep / file
    data = json.loads(path.read_text())
    for place in places(data):
        path.write_text(with_value(data, place, value))
        code = command(["sweep", "show", str(sweep)])
        told = capsys.readouterr()
        assert code in (0, 2)
        assert (code == 0) != (str(path) in told.err), place
        assert (told.out + told.err).replace("\n", "").isprintable()


@pytest.mark.parametrize("key", ["values", "overrides", "error", "seconds", "point", "lineage"])
def test_a_trial_with_a_wrong_type_is_damage(sweep, key, capsys):
    data = json.loads((sweep / "sweep.json").read_text())
    (sweep / "sweep.json").write_text(with_value(data, ("trials", 1, key), 3 if key != "seconds" else []))
    assert command(["sweep", "show", str(sweep)]) == 2
    assert str(sweep / "sweep.json") in capsys.readouterr().err


def test_a_mark_may_hold_anything():
    assert not is_own("text\ud800", "\udcff")
