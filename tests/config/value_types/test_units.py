"""Keys in seconds take durations, and keys in bytes sizes: the config holds the number."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass

import pytest
from omegaconf import DictConfig, FloatNode, IntegerNode, OmegaConf
from omegaconf.errors import ValidationError
from small_project import check, refused

from rtrain.config.compose.aliases import CHOOSABLE
from rtrain.config.compose.sources.store import PLUGIN_GROUPS, typed_conf
from rtrain.config.diagnostics.meant.keys.schema_keys import all_confs
from rtrain.config.diagnostics.omegaconf_messages import plain_words
from rtrain.config.reference.definitions import schema_of
from rtrain.config.schema import ClusterConf, RtrainConf
from rtrain.config.value_types.units import num_bytes, seconds, unit_of, with_units
from rtrain.schemas import schemas

DURATIONS = {
    **{"90s": 90.0, "5m": 300.0, "1h": 3600.0, "1h30m": 5400.0, "500ms": 0.5, "2 days": 172800.0, "1.5h": 5400.0},
    "0:12:00": 720.0,
    "00:12:00:00": 43200.0,
    "1-12:00:00": 129600.0,
}
DURATIONS |= {"1h30": 5400.0, "1:30:00": 5400.0, "PT1H30M": 5400.0, "P1D": 86400.0, "10 min": 600.0, "1d12h": 129600.0}
SIZES = {"2GiB": 2 * 2**30, "1.5GB": 1_500_000_000, "500MB": 500_000_000, "100 MiB": 100 * 2**20}
WRONG = ["fast", "5q", "h", "-5m", "1y", "NaT", "1:30", ""]


def leaves(node):
    """Yield each section below ``node`` that holds a value, the name of the value, and its node."""
    for key in node:
        child = node._get_node(key)
        if isinstance(child, DictConfig) and not child._is_none():
            yield from leaves(child)
        else:
            yield node, key, child


def confs():
    every = schemas()
    found = {"root": RtrainConf}
    for group in (*PLUGIN_GROUPS, "sweep/scheduler"):
        found |= {f"{group}/{name}": typed_conf(name, conf) for name, conf in every.group(group).items()}
        inner = [one for name in every.group(group) if group in CHOOSABLE for one in all_confs(every, {group: name})]
        found |= {conf.__qualname__ + where: conf for where, conf in inner if where}  # sections that may be null, too
    return found


@pytest.mark.parametrize(("text", "number"), DURATIONS.items())
def test_a_duration_is_a_number_of_seconds(text, number):
    assert seconds(text) == number


@pytest.mark.parametrize(("text", "number"), SIZES.items())
def test_a_size_is_a_number_of_bytes(text, number):
    assert num_bytes(text) == number


@pytest.mark.parametrize("text", WRONG)
@pytest.mark.parametrize("read", [seconds, num_bytes])
def test_what_is_neither_is_refused(read, text):
    if read is num_bytes and text == "-5m":
        text = "-5MB"
    with pytest.raises(ValueError, match=r".*"):
        read(text)


@pytest.mark.parametrize("name", confs())
def test_each_key_with_a_unit_takes_it_and_tells_what_it_takes(name):
    for section, key, _ in leaves(with_units(OmegaConf.structured(confs()[name]))):
        unit = unit_of(key)
        for text, number in {"seconds": DURATIONS, "bytes": SIZES}.get(unit, {}).items():
            copied = deepcopy(section)
            copied[key] = text
            assert copied[key] == number, key
        if unit is not None:
            for wrong in ("fast", "5 parsecs"):
                with pytest.raises(ValidationError) as caught:
                    section[key] = wrong
                assert "such as" in plain_words(str(caught.value)), key


@pytest.mark.parametrize("name", confs())
def test_a_text_for_a_number_is_told_in_plain_words(name):
    for section, key, node in leaves(with_units(OmegaConf.structured(confs()[name]))):
        if isinstance(node, IntegerNode | FloatNode):
            with pytest.raises(ValidationError) as caught:
                section[key] = "fast"
            assert plain_words(str(caught.value)).startswith("must be a "), key


def test_the_record_has_the_number(project):
    composed = check(
        "digits",
        "num_workers=[1,2]",
        "scaling.resize_seconds=1h30m",
        "cluster.object_store_bytes=2GiB",
        "+vars.wait_seconds=5m",
    )
    assert composed.conf.scaling.resize_seconds == 5400.0
    assert composed.resolved["scaling"]["resize_seconds"] == 5400.0
    assert composed.resolved["cluster"]["object_store_bytes"] == 2 * 2**30
    assert composed.resolved["vars"]["wait_seconds"] == "5m"


def test_a_variable_may_hold_a_duration(project, monkeypatch):
    monkeypatch.setenv("LIMIT", "5m")
    conf = check("digits", "num_workers=[1,2]", "scaling.resize_seconds=${oc.env:LIMIT}").conf
    assert conf.scaling.resize_seconds == 300.0


def test_a_wrong_duration_is_named_with_what_works(project):
    assert "a duration such as 90s, 5m or 1h30m, not '5q'" in refused("digits", "run.stop.max_seconds=5q")


def test_the_json_schema_takes_units():
    assert {"type": "string"}.items() <= schema_of(ClusterConf)["properties"]["start_timeout_seconds"]["anyOf"][
        -1
    ].items()


def test_a_name_that_ends_otherwise_has_no_unit():
    @dataclass
    class Conf:
        secondshand: int = 1
        wait_seconds: float = 1.0

    assert [unit_of(name) for name in ("secondshand", "wait_seconds", "a.max_bytes", "bytes")] == [
        None,
        "seconds",
        "bytes",
        "bytes",
    ]
    with pytest.raises(ValidationError):
        with_units(OmegaConf.structured(Conf)).secondshand = "5m"
