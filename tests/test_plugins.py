"""What trainer plugins and dataset sources share."""

import json
import os
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest

from rtrain.config.diagnostics.meant.keys.words import _read
from rtrain.config.schema import Schemas
from rtrain.config.targets.allow_list import use_project_root
from rtrain.config.targets.forgetting import project_forgotten
from rtrain.datasets import registry as datasets
from rtrain.datasets.registry import load_source
from rtrain.errors import ConfigError, DatasetError
from rtrain.plugins import Confs, PluginInfo, check_installed, class_of, import_plugin, missing_modules, named_plugin
from rtrain.schemas import schemas
from rtrain.trainers import registry as trainers
from rtrain.trainers.registry import packages, plugins


def test_modules_that_are_not_installed_are_named_with_what_brings_them():
    assert missing_modules(["json", "no_such_package", "no_such_package.inner", "json.no_such_module"]) == (
        "no_such_package",
        "no_such_package.inner",
        "json.no_such_module",
    )
    with pytest.raises(ConfigError, match=r"trainer 'x' needs no_such_package.\ntry: pip install 'rtrain\[x\]'"):
        check_installed("trainer 'x'", ["no_such_package"], "x")
    with pytest.raises(ConfigError, match="pip install no_such_package"):
        check_installed("dataset 'x'", ["no_such_package"], None)


def test_a_broken_plugin_is_told_from_rtrain(tmp_path, monkeypatch):
    (tmp_path / "broken_plugin.py").write_text("import no_such_package\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ConfigError, match="the plugin 'broken' can't be imported: broken_plugin: ModuleNotFoundError"):
        import_plugin("broken", "broken_plugin")


def test_a_plugin_is_imported_when_it_is_asked_for():
    imported = []
    confs = Confs(("a", "b"), lambda name: imported.append(name) or PluginInfo)
    assert list(confs) == ["a", "b"]
    assert len(confs) == 2
    assert not imported
    assert confs["b"] is PluginInfo
    assert imported == ["b"]
    assert "c" not in confs


@pytest.mark.parametrize("name", ["xgboost.py", "xgboost/__init__.py"])
def test_a_file_of_the_project_with_the_name_of_a_package_is_told(name, tmp_path):
    file = tmp_path / name
    file.parent.mkdir(exist_ok=True)
    file.write_text("raise SystemExit")
    with project_forgotten():
        use_project_root(tmp_path)
        with pytest.raises(ConfigError, match=f"trainer 'x' needs xgboost.core, but {file} has the same name"):
            check_installed("trainer 'x'", ["xgboost.core"], None)
        check_installed("trainer 'x'", ["lightgbm"], None)
    check_installed("trainer 'x'", ["xgboost"], None)


def test_a_project_that_is_the_package_itself_stands_before_none(tmp_path, monkeypatch):
    (tmp_path / "my_package").mkdir()
    (tmp_path / "my_package" / "__init__.py").touch()
    with project_forgotten():
        use_project_root(tmp_path)
        check_installed("trainer 'x'", ["my_package"], None)
        monkeypatch.setattr("sys.path", [*sys.path, str(tmp_path)])  # as an editable install has it
        check_installed("trainer 'x'", ["my_package"], None)


def test_pyproject_has_an_extra_for_each_trainer_and_knows_which_of_its_modules_are_untyped():
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())
    untyped = {one for override in project["tool"]["mypy"]["overrides"] for one in override["module"]}
    own = {name for name, package in packages().items() if package.startswith("rtrain.")}
    assert own <= project["project"]["optional-dependencies"].keys()
    for name, plugin in plugins():
        assert name not in own or {f"{one}.*" for one in plugin.requires} <= untyped | {"torch.*"}, name


def test_a_trainer_allows_its_package_and_the_homes_of_its_parts_and_nothing_of_python():
    homes = {"optimizer": ("optimizers.of", "os.path"), "loss": ("torch.nn",)}
    conf = type("Conf", (), {"__module__": "own_trainer.config", "homes": homes})
    assert Schemas(trainer={"own": conf}, dataset={}).modules({"type": "own"}) == ["own_trainer", "optimizers.of"]
    assert not any(schemas().modules({"type": name}) for name, path in packages().items() if path.startswith("rtrain."))


@pytest.mark.parametrize("conf", ["class Conf:\n    alpha: float = 1.0\n", "def Conf():\n    pass\n"])
def test_a_conf_that_is_no_dataclass_is_told(conf, tmp_path, monkeypatch):
    (tmp_path / "odd_conf.py").write_text(conf)
    monkeypatch.syspath_prepend(tmp_path)
    known = Confs(["odd"], lambda name: import_plugin(name, "odd_conf").Conf)
    with pytest.raises(ConfigError, match="the plugin 'odd': its Conf is not a dataclass") as caught:
        known["odd"]
    assert "odd_conf" in caught.value.hint
    sys.modules.pop("odd_conf")


@pytest.mark.parametrize("text", ["{", "- a", "Conf: {nonsense: 1}", "Conf: 3"])
def test_words_of_a_plugin_that_can_not_be_read_name_their_file(text, tmp_path):
    (tmp_path / "config.words.yaml").write_text(text)
    with pytest.raises(ConfigError, match=r"config\.words\.yaml can't be read"):
        _read(tmp_path / "config.words.yaml")


def test_what_a_module_of_a_plugin_lacks_is_named(tmp_path, monkeypatch):
    (tmp_path / "bare_plugin.py").write_text("")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ConfigError, match="the plugin 'bare' is incomplete: bare_plugin defines no Plugin"):
        class_of("bare", "bare_plugin", "Plugin")
    sys.modules.pop("bare_plugin")


class OfAnotherPackage:
    def load(self, error):
        raise error


def test_what_the_code_of_a_plugin_raises_names_it_and_its_line():
    plugin = OfAnotherPackage()
    said = "the plugin 'waves' failed: KeyError: 'b'"
    with pytest.raises(ConfigError, match=said) as caught, named_plugin("waves", plugin):
        plugin.load(KeyError("b"))
    assert "test_plugins.py" in caught.value.hint
    with pytest.raises(DatasetError, match="known"), named_plugin("waves", plugin):
        plugin.load(DatasetError("known"))
    with pytest.raises(KeyboardInterrupt), named_plugin("waves", plugin):
        plugin.load(KeyboardInterrupt())


def test_what_rtrains_own_plugins_raise_stays_what_it_is():
    with pytest.raises(KeyError), named_plugin("csv", load_source("csv")):
        raise KeyError("a bug of ours")


BROKEN = {
    "import": "import no_such_package\n",
    "part": "other = 1\n",
    "syntax": "def\n",
    "raises": "raise ValueError('x')\n",
}


GROUPS = ("trainers", "datasets", "searches", "schedulers", "loggers")
WRONG = {
    "lrr=0.1": "there is no key 'lrr'",
    "run.nam=x": "there is no key 'run.nam'",
    "trainer.num_boost_round=-1": "must be at least 1",
    "dataset.limit=x": "must be a whole number",
    "dataset=foo": "there is no 'foo'",
    "sweep.num=3": "there is no key 'sweep.num'",
    "run.loggers=foo": "there is no logger 'foo'",
}


@pytest.fixture
def broken_site(tmp_path, monkeypatch):
    """Return a folder for ``PYTHONPATH`` with a package whose plugins of each group can't be imported."""
    folder = tmp_path / "site" / "broken-0.1.dist-info"
    folder.mkdir(parents=True)
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: broken\nVersion: 0.1\n")
    points = "".join(f"[rtrain.{group}]\nbroken_{group} = no_such_module.x\n" for group in GROUPS)
    (folder / "entry_points.txt").write_text(points)
    return str(folder.parent)


def test_broken_plugins_of_all_groups_hide_no_mistake_and_stop_no_command(broken_site):
    code = f"""
import json
from rtrain.cli.app import run
from rtrain.config.session import Session
from rtrain.errors import ConfigError
from rtrain.schemas import schemas

found = {{}}
for word in {[*WRONG, "trainer=broken_trainers", "dataset.limit=9"]!r}:
    try:
        with Session("xgboost", ["num_workers=0", word], schemas()) as session:
            session.check()
    except ConfigError as error:
        found[word] = str(error)
print(json.dumps(found))
raise SystemExit(run(["schema"]))
"""
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([broken_site, str(Path(__file__).parents[1])])}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.partition("\n")[0])
    assert "the plugin 'broken_trainers' can't be imported" in found.pop("trainer=broken_trainers")
    assert found.keys() == WRONG.keys()
    for word, said in WRONG.items():
        assert said in found[word]
        assert "no_such_module" not in found[word]
    schema = done.stdout.partition("\n")[2]
    assert '"xgboost"' in schema
    assert "broken" not in schema


@pytest.mark.parametrize("code", BROKEN.values(), ids=BROKEN)
@pytest.mark.parametrize("kind", [trainers, datasets], ids=["trainers", "datasets"])
def test_a_broken_plugin_hides_no_other_one_from_the_list(kind, code, tmp_path, monkeypatch):
    (tmp_path / "broken_plugin.py").write_text(code)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "broken_plugin", raising=False)
    whole = kind.describe()
    point = metadata.EntryPoint("broken", "broken_plugin", f"rtrain.{kind.__name__.split('.')[1]}")
    monkeypatch.setattr("rtrain.plugins._entry_points", lambda: metadata.EntryPoints([point]))
    names = kind.packages if kind is trainers else kind.modules
    names.cache_clear()
    try:
        found = {info.name: info for info in kind.describe()}
    finally:
        names.cache_clear()
    assert found.pop("broken").broken
    assert set(found.values()) >= {info for info in whole if info.name in found}
    assert len(found) >= 8
