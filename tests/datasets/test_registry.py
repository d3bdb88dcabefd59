from __future__ import annotations

import dataclasses
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest
import yaml
from omegaconf import OmegaConf
from pydantic import TypeAdapter

from rtrain import plugins
from rtrain.datasets.registry import ENTRY_POINTS, confs, describe, load_source, modules
from rtrain.errors import ConfigError

CONFIGS = Path(__file__).parents[2] / "configs" / "dataset"
SOURCES = tuple(modules())


def test_built_in_sources_are_found():
    assert {"csv", "digits", "images", "mnist", "parquet", "synthetic", "text"} <= set(SOURCES)
    assert all(info.installed and info.summary.endswith(".") for info in describe() if info.name in SOURCES)


def test_an_unknown_source_is_an_error_with_the_nearest_name():
    with pytest.raises(ConfigError, match="did you mean: digits"):
        load_source("digit")


def test_an_entry_point_adds_a_source(monkeypatch, tmp_path):
    code = """
from dataclasses import dataclass
from rtrain.datasets.base import Source

@dataclass
class MoonsConf:
    noise: float = 0.1

class Moons(Source):
    \"\"\"Two moons.\"\"\"
    Conf = MoonsConf
    requires = ("no_such_module",)
    extra = "moons"
    def load(self, conf): ...
"""
    (tmp_path / "moons_of_a_plugin.py").write_text(code)
    monkeypatch.syspath_prepend(tmp_path)
    point = metadata.EntryPoint("moons", "moons_of_a_plugin", ENTRY_POINTS)
    monkeypatch.setattr(plugins, "_entry_points", lambda: metadata.EntryPoints([point]))
    modules.cache_clear()
    try:
        assert confs()["moons"].__name__ == "MoonsConf"
        assert [info.missing for info in describe() if info.name == "moons"] == [("no_such_module",)]
        with pytest.raises(ConfigError, match=r"pip install 'rtrain\[moons\]'"):
            load_source("moons")
    finally:
        modules.cache_clear()


def test_confs_import_no_reader_library():
    heavy = ("numpy", "ray", "torch", "pandas", "pyarrow", "sklearn", "PIL")
    code = f"""
import sys
from rtrain import plugins
from rtrain.datasets.registry import confs, describe
confs(), describe()
print([name for name in {heavy} if name in sys.modules])
"""
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


@pytest.mark.parametrize("name", SOURCES)
def test_the_yaml_names_each_key_of_the_conf(name):
    content = yaml.safe_load((CONFIGS / f"{name}.yaml").read_text())
    assert content.pop("type") == name
    assert set(content) == {field.name for field in dataclasses.fields(confs()[name])}


@pytest.mark.parametrize("name", SOURCES)
def test_the_conf_serves_omegaconf_and_pydantic(name):
    content = yaml.safe_load((CONFIGS / f"{name}.yaml").read_text())
    del content["type"]
    merged = OmegaConf.merge(OmegaConf.structured(confs()[name]), content)
    for key in ("path", "label"):
        if OmegaConf.is_missing(merged, key):
            merged[key] = "somewhere"
    plain = OmegaConf.to_container(merged, resolve=True)
    assert TypeAdapter(confs()[name]).validate_python(plain).seed == 0


@pytest.mark.parametrize(
    ("name", "keys"),
    [
        ("digits", {"normalize": "yes"}),
        ("digits", {"normalize": {"mean": [1]}}),
        ("digits", {"normalize": {"mean": [1], "std": [0]}}),
        ("digits", {"split": {"val": 1.0}}),
        ("digits", {"limit": 0}),
        ("digits", {"dtype": "float64"}),
        ("csv", {"path": {"val": "a"}, "label": "y"}),
        ("csv", {"path": {"train": "a", "dev": "b"}, "label": "y"}),
        ("csv", {"path": 3, "label": "y"}),
        ("images", {"path": "a", "channels": 2}),
        ("images", {"path": "a", "image_size": [8]}),
    ],
)
def test_wrong_values_are_refused(name, keys):
    with pytest.raises(ValueError, match="validation error"):
        TypeAdapter(confs()[name]).validate_python(keys)
