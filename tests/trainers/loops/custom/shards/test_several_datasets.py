"""A train loop finds each of several data sets by its own name, as Ray's trainers give them."""

import json

import pytest

import rtrain
from rtrain.config.session import Session
from rtrain.errors import ConfigError, TrainingError
from rtrain.runs.observer import SilentObserver
from rtrain.schemas import schemas
from rtrain.trainers.registry import load_trainer
from rtrain.training.preparation import check_job, load_dataset

LOOPS = """
import ray.train


def both(config):
    train, held_out = ray.train.get_dataset_shard("train"), ray.train.get_dataset_shard("held_out")
    sizes = [row["size"] for row in train.iter_rows()]
    names = [name for batch in held_out.iter_batches(batch_size=1) for name in batch["name"]]
    ray.train.report({"rows": len(sizes), "sum": sum(sizes), "names": "".join(names)})


def wrong_name():
    ray.train.get_dataset_shard("heldout")


def first_validates():
    train = ray.train.get_dataset_shard("train")
    for epoch in range(2):
        rows = sum(len(batch["size"]) for batch in train.iter_batches())
        found = -1
        if ray.train.get_context().get_world_rank() == 0:
            found = sum(len(batch["name"]) for batch in ray.train.get_dataset_shard("held_out").iter_batches())
        ray.train.report({"rows": rows, "validated": found})


def extended():
    first = ray.train.get_checkpoint() is None
    rows = sum(1 for _ in ray.train.get_dataset_shard("train").iter_rows())
    if first:
        import tempfile
        ray.train.report({"rows": rows}, checkpoint=ray.train.Checkpoint.from_directory(tempfile.mkdtemp()))
        raise RuntimeError("interrupted")
    ray.train.report({"rows": rows})
"""
FRAMEWORKS = ("torch", "lightning", "transformers", "tensorflow", "jax", "xgboost", "lightgbm")
SETS = "datasets: {train: {type: csv, path: train.csv}, held_out: {type: json, path: held_out.jsonl}}"


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A user's project with loops, two data sets, and ``write`` for its config."""
    (tmp_path / "pyproject.toml").write_text("")
    (tmp_path / "set_loops.py").write_text(LOOPS)
    (tmp_path / "train.csv").write_text("size,name\n1,a\n2,b\n3,c\n4,d\n")
    (tmp_path / "held_out.jsonl").write_text('{"name": "x", "size": 7}\n{"name": "y", "size": 8}\n')
    monkeypatch.chdir(tmp_path)

    def write(loop="both", sets=SETS, more=""):
        text = f"trainer: {{type: torch, train_loop: 'set_loops:{loop}'{more}}}\n{sets}\n"
        (tmp_path / "loop.yaml").write_text(text)
        return tmp_path / "loop.yaml"

    return write


def checked(config, *words):
    with Session(str(config), words, schemas()) as session:
        composed = session.check()
        return check_job(composed, load_dataset(composed, SilentObserver(), None), SilentObserver())[0]


def test_each_is_found_by_its_name_with_its_own_columns(project):
    run = rtrain.fit(project(), ["num_workers=0"])
    assert run.metrics == {"rows": 4, "sum": 10}
    assert json.loads((run.path / "events.jsonl").read_text().splitlines()[-1])["values"] == {"names": "xy"}
    data = run.manifest.dataset
    assert data["num_rows"] == {"train": 4, "held_out": 2}
    assert {name: part["source"] for name, part in data["parts"].items()} == {"train": "csv", "held_out": "json"}
    assert "datasets:\n  train:\n    type: csv" in (run.path / "config.yaml").read_text()


def test_a_name_that_is_none_of_them_leads_to_the_one_that_is_meant(project):
    with pytest.raises(TrainingError, match="heldout") as caught:
        rtrain.fit(project("wrong_name"), ["num_workers=0"])
    assert "held_out" in caught.value.hint


def test_data_without_columns_of_its_own_may_be_one_of_them(project):
    job = checked(project(sets="datasets: {train: {type: csv, path: train.csv}, held_out: {type: digits}}"))
    assert job.dataset.info.num_rows == {"train": 4, "held_out": 1797}


def test_a_key_may_be_changed_where_the_config_is_used(project):
    job = checked(project(), "datasets.train.path=held_out.jsonl", "datasets.train.type=json")
    assert job.dataset.info.num_rows == {"train": 2, "held_out": 2}
    assert list(checked(project(), "datasets.train.columns=[name]").dataset.info.parts["train"]["columns"]) == ["name"]


@pytest.mark.parametrize(
    ("sets", "problem"),
    [
        ("datasets: {train: {type: csb, path: a}}", "csb"),
        ("datasets: {train: {type: csv, path: a, label: b}}", "label"),
        ("datasets: {train: {type: csv}}", r"datasets\.train\.path"),
        ("datasets: {train: {path: a}}", "has no type"),
        ("datasets: {train: null}", r"datasets\.train"),
        ("datasets: [train]", "datasets must be a mapping"),
        ("datasets: {train: {type: csv, path: nowhere.csv}}", r"datasets\.train\.path: nowhere\.csv does not exist"),
        (SETS + "\ndataset: {type: digits}", "it replaces dataset"),
    ],
)
def test_a_mistake_is_named_before_anything_starts(project, sets, problem):
    with pytest.raises(ConfigError, match=problem):
        checked(project(sets=sets))


def test_a_declared_trainer_takes_none(project):
    config = project()
    config.write_text(f"defaults: [{{trainer: torch}}, {{model: mlp}}, {{optimizer: adam}}]\n{SETS}\n")
    with pytest.raises(ConfigError, match="no custom train loop"):
        checked(config)


def test_passwords_in_their_urls_are_not_written(project):
    config = project(sets="datasets: {train: {type: sql, url: 'sqlite://me:hidden@/rows.db', query: things}}")
    with Session(str(config), (), schemas()) as session:
        composed = session.check()
    assert "hidden" not in composed.yaml
    assert composed.redact("hidden") != "hidden"


def test_a_server_of_their_own_needs_permission(project):
    config = project(sets="datasets: {train: {type: csv, path: 's3://x/y?endpoint_override=evil.org'}}")
    with pytest.raises(ConfigError, match=r"datasets\.train"), Session(str(config), (), schemas()) as session:
        session.check()


@pytest.mark.parametrize(
    ("wanted", "found"), [("all", ["train", "held_out"]), ("[held_out]", ["held_out"]), ("[]", [])]
)
def test_ray_splits_those_that_the_key_names(project, wanted, found):
    job = checked(project(more=f", datasets_to_split: {wanted}"), "num_workers=2")
    plugin = load_trainer("torch", job.conf.trainer)
    assert plugin.datasets_to_split(job.conf.trainer, job.dataset) == found


def test_the_splits_of_one_dataset_may_have_rays_names_there(project):
    more = ", datasets_to_split: [train, validation]"
    job = checked(project(sets="dataset: {type: digits, split: {val: 0.1}}", more=more), "num_workers=2")
    assert load_trainer("torch", job.conf.trainer).datasets_to_split(job.conf.trainer, job.dataset) == ["train", "val"]


def test_a_name_to_split_that_is_none_is_refused(project):
    with pytest.raises(ConfigError, match="no data set 'heldout'"):
        checked(project(more=", datasets_to_split: [heldout]"), "num_workers=2")


def test_too_few_rows_to_share_are_told_with_the_way_to_have_them_all(project):
    with pytest.raises(ConfigError, match="3 workers can't share 2 rows of the data set 'held_out'") as caught:
        checked(project(), "num_workers=3")
    assert "trainer.datasets_to_split=[train]" in caught.value.hint
    assert checked(project(more=", datasets_to_split: [train]"), "num_workers=3")


def test_data_that_has_changed_is_resumed_if_that_is_meant_and_noted(project, tmp_path):
    with pytest.raises(TrainingError) as caught:
        rtrain.fit(project("extended"), ["num_workers=0"])
    (tmp_path / "train.csv").write_text("size,name\n1,a\n")
    with pytest.raises(ConfigError, match=r"run\.resume_data=changed"):
        rtrain.resume(caught.value.run_dir)
    with pytest.warns(UserWarning, match="changed since the run started"):
        run = rtrain.resume(caught.value.run_dir, ["run.resume_data=changed"])
    assert run.metrics == {"rows": 1}


def test_rank_0_alone_validates_on_data_that_is_not_split(project):
    config = project("first_validates", more=", datasets_to_split: [train]")
    run = rtrain.fit(config, ["num_workers=2"])
    assert run.metrics == {"rows": 2, "validated": 2}


@pytest.mark.parametrize("trainer", FRAMEWORKS)
def test_none_has_to_be_called_train_whatever_the_defaults_of_a_trainer_count(project, trainer):
    config = project()
    sets = "datasets: {rows: {type: csv, path: train.csv}}"
    config.write_text(f"defaults: [{{trainer: {trainer}}}]\ntrainer: {{train_loop: 'set_loops:both'}}\n{sets}\n")
    assert checked(config, "num_workers=2").dataset.info.num_rows == {"rows": 4}


# Options of the config group `dataset`

CHOSEN = """
defaults:
  - dataset@datasets.train: csv
  - dataset@datasets.held_out: json
datasets: {train: {path: train.csv}, held_out: {path: held_out.jsonl}}
"""


def test_the_defaults_list_chooses_options_for_each_of_them(project):
    job = checked(project(sets=CHOSEN))
    assert job.dataset.info.num_rows == {"train": 4, "held_out": 2}


@pytest.mark.parametrize("sign", ["", "+", "++"])
@pytest.mark.parametrize("group", ["dataset@datasets", "datasets"])
@pytest.mark.parametrize("sets", [SETS, CHOSEN])
def test_a_word_chooses_an_option_for_one_of_them(project, sets, group, sign):
    words = (f"{sign}{group}.train=json", "datasets.train.path=held_out.jsonl")
    job = checked(project(sets=sets), *words)
    assert job.dataset.info.num_rows == {"train": 2, "held_out": 2}


@pytest.mark.parametrize("sets", [SETS, CHOSEN])
def test_a_word_adds_one(project, sets):
    job = checked(project(sets=sets), "dataset@datasets.more=csv", "datasets.more.path=train.csv")
    assert job.dataset.info.num_rows == {"train": 4, "held_out": 2, "more": 4}


def test_an_option_without_splits_is_taken_from_the_group(project):
    assert checked(project(), "datasets.held_out=digits").dataset.info.num_rows == {"train": 4, "held_out": 1797}


def test_an_option_of_the_users_own_is_taken_and_its_labels_are_refused(project, tmp_path):
    config = project(sets=CHOSEN)
    (tmp_path / "dataset").mkdir()
    (tmp_path / "dataset/mine.yaml").write_text("defaults: [csv]\ndtypes: {size: float32}\n")
    (tmp_path / "dataset/labelled.yaml").write_text("type: csv\nlabel: size\n")
    job = checked(config, "dataset@datasets.train=mine")
    assert job.dataset.info.parts["train"]["columns"]["size"] == "float"
    with pytest.raises(ConfigError, match=r"datasets\.train\.label.*\n.*labelled\.yaml:2") as caught:
        checked(config, "dataset@datasets.train=labelled")
    assert "read whole" in caught.value.hint


def test_options_for_one_of_them_are_swept(project, tmp_path):
    (tmp_path / "dataset").mkdir()
    (tmp_path / "dataset/rows.yaml").write_text("type: csv\npath: train.csv\n")
    (tmp_path / "dataset/texts.yaml").write_text("type: json\npath: held_out.jsonl\n")
    sets = "defaults: [dataset@datasets.train: rows, dataset@datasets.held_out: texts]"
    words = ["num_workers=0", "datasets.train=rows,texts", "sweep.metric=sum", "sweep.mode=max"]
    folder = rtrain.sweep(project(sets=sets), words)
    trials = json.loads((folder / "sweep.json").read_text())["trials"]
    assert [rtrain.Run.load(folder / trial["name"]).metrics["sum"] for trial in trials] == [10, 15]


@pytest.mark.parametrize(
    ("word", "problem", "hint"),
    [
        ("datasets.train=cvs", "no 'cvs' in config group 'dataset'", "csv"),
        ("datasets.train=csv,json", "has several values", "list"),
        ("datasets.train.label=size", r"no key 'datasets\.train\.label'", "read whole"),
        ("datasets.trian.path=held_out.jsonl", "no data set 'trian'", "datasets.train.path"),
        ("datasets.zzz.path=train.csv", "no such data set", "datasets.zzz=csv"),
        ("dataset@datasets.trian=csv", r"datasets\.trian\.path", "..."),
    ],
)
def test_a_choice_that_is_a_mistake_is_explained(project, word, problem, hint):
    with pytest.raises(ConfigError, match=problem) as caught:
        checked(project(sets=CHOSEN), word)
    assert hint in caught.value.hint
