"""Names in a config lead to no folder outside of the run root."""

from __future__ import annotations

from pathlib import Path

import pytest
from small_project import SCHEMAS, each_trial, refused, write

from rtrain.config.session import Session
from rtrain.errors import ConfigError


@pytest.mark.parametrize("name", ["..", "../out", "/out", "a/b", ".hidden", "a\\nb", "", "~", "$HOME"])
def test_a_run_has_a_plain_name(project, name):
    assert "run.name" in refused("digits", f"run.name='{name}'")
    write("configs/odd.yaml", f"defaults: [digits]\nrun: {{name: '{name}'}}\n")
    assert "run.name" in refused("odd")


@pytest.mark.parametrize(
    "place", ["/tmp/elsewhere", "${run.root_dir}/../elsewhere", "elsewhere", "runs/../../x", "runs-2"]
)
def test_no_file_places_a_run_outside_of_the_root(project, place):
    write("configs/odd.yaml", f"defaults: [digits]\nhydra: {{run: {{dir: '{place}'}}}}\n")
    assert "hydra.run.dir resolves to" in refused("odd")
    write("configs/where/odd.yaml", f"# @package _global_\nhydra: {{run: {{dir: '{place}'}}}}\n")
    assert "is outside" in refused("digits", "+where=odd")
    assert not (project / "elsewhere").exists()


def tree(root: Path) -> set[Path]:
    return set(root.rglob("*"))


@pytest.mark.parametrize("root", [".", "/", "${oc.env:HOME}", "taken", "configs"])
def test_no_file_puts_a_run_where_other_files_are(root, project, tmp_path, monkeypatch):
    home = tmp_path / "home"
    write(str(home / ".config/x/config.yaml"), "a: 1\n")
    write("taken/config.yaml", "a: 1\n")
    monkeypatch.setenv("HOME", str(home))
    write("configs/odd.yaml", f"defaults: [digits]\nrun: {{root_dir: '{root}'}}\nhydra: {{run: {{dir: '{root}'}}}}\n")
    before = tree(tmp_path)
    assert "hydra.run.dir resolves to" in refused("odd")
    write("configs/odd.yaml", f"defaults: [digits]\nrun: {{root_dir: '{root}'}}\nhydra: {{sweep: {{dir: '{root}'}}}}\n")
    with (
        Session("odd", ["seed=1,2"], SCHEMAS) as session,
        pytest.raises(ConfigError, match=r"hydra\.sweep\.dir resolves"),
    ):
        each_trial(session, lambda composed, folder: folder)
    assert tree(tmp_path) == before | {project / "configs/odd.yaml"}


def test_the_name_of_a_sweep_is_none_of_another_folder(project):
    words, said = ["seed=1,2", "run.root_dir=.", "+sweep.name=configs"], r"sweep\.name resolves to"
    with Session("digits", words, SCHEMAS) as session, pytest.raises(ConfigError, match=said):
        session.trials()


def test_a_run_root_may_be_anywhere_since_each_run_is_a_new_folder(project, tmp_path):
    for place in (tmp_path / "scratch/me", "~runs"):
        write("configs/far.yaml", f"defaults: [digits]\nrun: {{root_dir: '{place}'}}\n")
        with Session("far", [], SCHEMAS) as session:
            folder = session.run(lambda composed, folder: folder)
        assert Path(place).absolute() in folder.parents
    write("configs/far.yaml", f"defaults: [digits]\nhydra: {{run: {{dir: '{folder}'}}}}\nrun: {{root_dir: '~runs'}}\n")
    assert "contains other files" in refused("far")
    (folder / "manifest.json").touch()  # what to do with a run is decided elsewhere
    with Session("far", [], SCHEMAS) as session:
        assert session.check().run_dir == folder


def test_what_hydra_writes_stays_in_the_run(project):
    for place in ("../x", "/x", "${vars.up}/x", "."):
        assert "hydra.output_subdir" in refused("digits", f"hydra.output_subdir='{place}'", "+vars.up=.hydra/../..")


def test_a_name_of_the_job_places_none_either(project):
    assert "run.name" in refused("digits", "hydra.job.name=../../x")


def test_a_folder_that_the_user_types_may_be_anywhere(project, tmp_path):
    with Session("digits", [f"hydra.run.dir={tmp_path}/mine"], SCHEMAS) as session:
        assert session.run(lambda composed, folder: folder) == tmp_path / "mine"
    with Session("digits", ["run.root_dir=../other"], SCHEMAS) as session:
        assert (project / "../other").resolve() in session.run(lambda composed, folder: folder).parents


def test_trials_are_named_by_rtrain(project):
    words, said = ["lr=0.1,0.2", "hydra.sweep.subdir=../x"], r"hydra\.sweep\.subdir"
    with Session("digits", words, SCHEMAS) as session, pytest.raises(ConfigError, match=said):
        each_trial(session, lambda composed, folder: folder)
    assert not list(Path().glob("runs/**/x"))


def test_a_sweep_stays_in_the_root_unless_its_folder_is_typed(project, tmp_path):
    write("configs/odd.yaml", "defaults: [digits]\nhydra: {sweep: {dir: ../sweeps}}\n")
    said = r"hydra\.sweep\.dir resolves to"
    with Session("odd", ["lr=0.1,0.2"], SCHEMAS) as session, pytest.raises(ConfigError, match=said):
        each_trial(session, lambda composed, folder: folder)
    with Session("digits", ["lr=0.1,0.2", f"hydra.sweep.dir={tmp_path}/mine"], SCHEMAS) as session:
        assert each_trial(session, lambda composed, folder: folder.parent) == [tmp_path / "mine"] * 2
