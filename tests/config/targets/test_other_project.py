"""One process, two projects with modules of the same names: the code of one is never taken for the other's."""

import re

import pytest

from rtrain.config.targets.allow_list import use_project_root
from rtrain.config.targets.builder import Builder
from rtrain.config.targets.forgetting import project_forgotten
from rtrain.errors import ConfigError

FILES = {
    "module": (["net.py"], "net.Net"),
    "attribute": (["net.py"], "net:Net.made"),
    "package": (["nets/__init__.py"], "nets.Net"),
    "module of a package": (["nets/__init__.py", "nets/small.py"], "nets.small.Net"),
    "module of a folder": (["nets/small.py"], "nets.small.Net"),
}
NET = "class Net:\n    value = {value!r}\n    @classmethod\n    def made(cls): return cls()\n"


@pytest.fixture(params=FILES)
def projects(request, tmp_path):
    """Return a function that writes a project whose ``Net`` has a value, and the path of its target."""
    files, target = FILES[request.param]

    def project(name, value):
        for file in files:
            (tmp_path / name / file).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name / file).write_text("")
        (tmp_path / name / files[-1]).write_text(NET.format(value=value))
        return tmp_path / name

    return project, target


def built(project, target):
    use_project_root(project)
    return Builder(()).build({"_target_": target}, "trainer.model").value


def test_code_of_another_project_is_refused(projects):
    project, target = projects
    assert built(project("one", 1), target) == 1
    with pytest.raises(ConfigError) as caught:
        built(project("two", 2), target)
    message = str(caught.value)
    assert message.startswith("trainer.model._target_: this process has imported net")
    assert re.search(r"from \S*one/net\S*; the project's is \S*two/net", message)
    assert "restart Python" in message
    assert built(project("one", 1), target) == 1, "back in the first one"


def test_the_same_code_in_another_folder_is_used(projects):
    project, target = projects
    assert [built(project(name, 1), target) for name in ("one", "copy")] == [1, 1]


def test_a_project_that_was_forgotten_stands_in_the_way_of_none(projects):
    project, target = projects
    values = []
    for value in (1, 2):
        with project_forgotten():
            values.append(built(project(str(value), value), target))
    assert values == [1, 2]


@pytest.mark.parametrize(
    ("folder", "hint"),
    [
        ("vae", r"the project is \S+: its name is vae\.nets:Net, or put an empty pyproject\.toml next to nets\.py"),
        ("time-series", r"the project is \S+: put an empty pyproject\.toml next to nets\.py"),
    ],
)
def test_a_module_in_a_folder_of_the_project_is_told_by_its_name(tmp_path, monkeypatch, folder, hint):
    (tmp_path / folder).mkdir()
    (tmp_path / folder / "nets.py").write_text("")
    monkeypatch.chdir(tmp_path / folder)
    with project_forgotten(), pytest.raises(ConfigError) as caught:
        built(tmp_path, "nets:Net")
    assert re.search(hint, caught.value.hint)
