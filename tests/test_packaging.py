"""The wheel: it holds every config and recipe of the checkout, and answers without any extra."""

import os
import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest
import yaml

import rtrain

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="session")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (path,) = folder.glob("*.whl")
    return path


@pytest.mark.parametrize("folder", ["configs", "recipes"])
def test_the_wheel_holds_every_file_of(wheel, folder):
    with zipfile.ZipFile(wheel) as archive:
        inside = {name.removeprefix("rtrain/") for name in archive.namelist() if name.startswith(f"rtrain/{folder}/")}
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", folder]
    there = set(subprocess.check_output(command, cwd=ROOT, text=True).split())
    assert there
    assert inside == {name for name in there if (ROOT / name).exists()}


def test_the_wheel_is_typed_and_has_no_tests(wheel):
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    assert "rtrain/py.typed" in names
    assert not [name for name in names if name.startswith("tests/") or "__pycache__" in name]


def test_an_unpacked_wheel_composes_its_own_configs(wheel, tmp_path):
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "site")
    site = str(tmp_path / "site")
    code = f"import sys; sys.path.insert(0, {site!r}); from rtrain.cli.app import run; sys.exit(run(sys.argv[1:]))"
    command = [sys.executable, "-c", code, "fit", "resnet", "--cfg", "job", "--package", "dataset"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert "type: digits" in done.stdout
    code = code.replace("from rtrain.cli.app", "import rtrain; print(rtrain.__file__); from rtrain.cli.app")
    # The module rtrain/recipes.py and the folder of recipes share a name: the module has to win.
    done = subprocess.run(
        [sys.executable, "-c", code, "recipes", "ls"], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert {line.split()[0] for line in done.stdout.splitlines()[1:]} == {
        path.parent.name for path in (ROOT / "recipes").glob("*/config.yaml")
    }
    done = subprocess.run(
        [sys.executable, "-c", code, "--help"], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert str(tmp_path) in done.stdout.splitlines()[0]


def test_constraints_hold_names_and_versions_only():
    for line in (ROOT / "constraints.txt").read_text().splitlines():
        name, separator, version = line.partition("==")
        assert separator, line
        assert name, line
        assert version[0].isdigit(), line
        assert "/" not in line, line


def test_what_make_starts_keeps_what_python_compiles(tmp_path):
    (tmp_path / "asking.mk").write_text("asked:\n\t@echo kept: $${PYTHONDONTWRITEBYTECODE-yes}\n")
    command = ["make", "--no-print-directory", "-f", "Makefile", "-f", str(tmp_path / "asking.mk"), "asked"]
    variables = os.environ | {"PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(command, cwd=ROOT, env=variables, capture_output=True, text=True, check=True)
    assert done.stdout == "kept: yes\n"


def test_each_step_of_a_workflow_is_a_command_of_the_project():
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    workflows = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
    assert workflows
    for file in workflows:
        jobs = yaml.safe_load(file.read_text())["jobs"].values()
        commands = [step["run"].split() for job in jobs for step in job["steps"] if "run" in step]
        assert commands
        for command in commands:
            assert command == [".ci/run"] or (command[0] == "make" and set(command[1:]) <= targets), command


def test_ci_runs_on_each_python_that_the_project_supports():
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text())
    tested = workflow["jobs"]["test"]["strategy"]["matrix"]["python"]
    listed = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["classifiers"]
    assert tested == [one.rpartition(" ")[2] for one in listed if re.search(r":: 3\.\d+$", one)]


def test_the_citation_names_the_version():
    assert yaml.safe_load((ROOT / "CITATION.cff").read_text())["version"] == rtrain.__version__
