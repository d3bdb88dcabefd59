from __future__ import annotations

import pytest
import yaml
from PIL import Image

from rtrain.config.files.data_files import ENDINGS, TABLES
from rtrain.datasets.files import existing_path, files_at, files_by_split, files_fingerprint
from rtrain.datasets.missing.near_files import hint_for
from rtrain.datasets.tables.formats.csv import CsvFormat
from rtrain.errors import DatasetError


def write(folder, *names):
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("a\n1\n")


def names(files):
    return {split: [file.name for file in found] for split, found in files.items()}


def test_a_missing_path_is_an_error_with_near_names(tmp_path):
    write(tmp_path, "housing.csv", "notes.txt")
    with pytest.raises(DatasetError, match=r"does not exist[\s\S]*did you mean: .*housing.csv"):
        existing_path(str(tmp_path / "houses.csv"))
    with pytest.raises(DatasetError, match="there is no 'dta'"):
        existing_path(str(tmp_path / "dta" / "deep" / "x.csv"))


def test_names_that_only_end_alike_are_not_near(tmp_path):
    write(tmp_path, "semi.csv", "t.csv", "empty.csv")
    with pytest.raises(DatasetError, match=r"\nThat folder has 3 data files: 3 for dataset=csv\.$"):
        existing_path(str(tmp_path / "missing.csv"))
    with pytest.raises(DatasetError, match=r"did you mean: \S*semi\.csv"):
        existing_path(str(tmp_path / "Semi.parquet"))


@pytest.mark.parametrize(
    ("there", "said"),
    [
        (
            ["b.parquet", "c.csv.gz", "d.tsv", "notes.md", "sub"],
            "3 data files: 2 for dataset=csv, 1 for dataset=parquet",
        ),
        (["b.npz"], "1 data file: 1 for dataset=numpy"),
        (["notes.md", "sub"], "That folder has no data files."),
        ([".hidden.csv"], "That folder is empty."),
        (["missing2.csv", "b.csv"], "did you mean: data/missing2.csv"),
        (["missing"], "did you mean: data/missing"),
        (["missin.pq", "missing_.csv"], "did you mean: data/missing_.csv or data/missin.pq"),
    ],
)
def test_what_is_there_in_place_of_a_file(there, said):
    assert said in hint_for("missing.csv", there, "data")


def test_folder_names_and_file_names_make_splits(tmp_path):
    write(tmp_path, "a/train/1.csv", "a/train/2.csv", "a/valid/1.csv", "b/train.csv", "b/test.csv.gz", "b/readme.md")
    assert names(files_by_split(str(tmp_path / "a"), [".csv"])) == {"train": ["1.csv", "2.csv"], "val": ["1.csv"]}
    found = names(files_by_split(str(tmp_path / "b"), [".csv", ".csv.gz"]))
    assert found == {"train": ["train.csv"], "test": ["test.csv.gz"]}


def test_other_folders_are_train_as_a_whole(tmp_path):
    write(tmp_path, "2023.csv", "2024.csv", "train/x.csv", "_temporary/y.csv", ".hidden.csv")
    assert names(files_by_split(str(tmp_path), [".csv"])) == {"train": ["2023.csv", "2024.csv", "x.csv"]}


def test_a_mapping_names_files_globs_and_folders(tmp_path):
    write(tmp_path, "x-1.csv", "x-2.csv", "held/y.csv")
    found = files_by_split({"train": str(tmp_path / "x-*.csv"), "test": str(tmp_path / "held")}, [".csv"])
    assert names(found) == {"train": ["x-1.csv", "x-2.csv"], "test": ["y.csv"]}


def test_nothing_found_is_an_error(tmp_path):
    write(tmp_path, "x.txt")
    with pytest.raises(DatasetError, match=r"contains no \.csv"):
        files_at(str(tmp_path), [".csv"])
    with pytest.raises(DatasetError, match="no file matches"):
        files_at(str(tmp_path / "*.csv"), [".csv"])


def test_files_of_the_format_that_have_another_ending_are_named_by_a_glob(tmp_path):
    write(tmp_path, "x.tsv")
    with pytest.raises(DatasetError) as caught:
        files_at(str(tmp_path), [".csv"])
    assert caught.value.hint == f"try: 'dataset.path={tmp_path}/*.tsv'"
    assert [file.name for file in files_at(f"{tmp_path}/*.tsv", [".csv"])] == ["x.tsv"]


@pytest.mark.parametrize(("name", "is_larger"), [("x.csv", False), ("x.tsv", False), ("x.csv.gz", True)])
def test_only_a_compressed_table_is_guessed_to_be_larger_once_unpacked(name, is_larger, tmp_path):
    write(tmp_path, name)
    file = tmp_path / name
    assert (CsvFormat(",").decoded_bytes(file, 1) > file.stat().st_size) == is_larger


def test_a_glob_of_tables_of_another_format_is_refused_like_one_of_them(tmp_path):
    write(tmp_path, "a.parquet")
    with pytest.raises(DatasetError, match="can't read it") as caught:
        files_at(f"{tmp_path}/*.parquet", [".csv"])
    assert caught.value.hint == f"try: dataset=parquet 'dataset.path={tmp_path}/*.parquet'"


@pytest.mark.parametrize("name", ["x.csv.xz", "x.csv.zip", "x.CSV.XZ"])
def test_a_table_that_can_not_be_unpacked_is_refused_by_its_name(name, tmp_path):
    write(tmp_path, name)
    with pytest.raises(DatasetError) as caught:
        files_at(str(tmp_path / name), [".csv"])
    assert ".gz" in caught.value.hint


def test_the_fingerprint_sees_a_changed_file(tmp_path):
    write(tmp_path, "x.csv")
    before = files_fingerprint([tmp_path / "x.csv"])
    assert files_fingerprint([tmp_path / "x.csv"]) == before
    (tmp_path / "x.csv").write_text("a\n1\n2\n")
    assert files_fingerprint([tmp_path / "x.csv"]) != before


@pytest.mark.parametrize("packed", ["", ".gz", ".zst"])
@pytest.mark.parametrize("kind", TABLES)
@pytest.mark.parametrize("read", TABLES)
def test_a_table_of_another_format_leads_to_its_dataset(kind, read, packed, tmp_path):
    for ending in ENDINGS[kind]:
        write(tmp_path, f"rows{ending}{packed}")
        text = str(tmp_path / f"rows{ending}{packed}")
        if kind == read:
            assert [file.name for file in files_at(text, ENDINGS[read])] == [f"rows{ending}{packed}"]
        else:
            with pytest.raises(
                DatasetError,
                match=f"is a {ending}{packed} file, and dataset={read} can't read it.\ntry: dataset={kind}",
            ):
                files_at(text, ENDINGS[read])


def write_rows(folder):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "rows.csv").write_text("a,y\n" + "".join(f"{row},{row % 2}\n" for row in range(20)))


def test_links_to_folders_are_followed_and_those_that_lead_upwards_are_not(load, tmp_path):
    for name in ("train", "elsewhere/test", "elsewhere/deep/part"):
        write_rows(tmp_path / name)
    data = tmp_path / "data"
    data.mkdir()
    (data / "train").symlink_to(tmp_path / "train")
    (data / "test").symlink_to("../elsewhere/test")
    (data / "test" / "up").symlink_to(data)
    (tmp_path / "train" / "more").symlink_to(tmp_path / "elsewhere" / "deep")
    (tmp_path / "elsewhere" / "deep" / "round").symlink_to(tmp_path / "train")
    assert load("csv", path=str(data), label="y").info.num_rows == {"train": 40, "test": 20}


@pytest.mark.parametrize("name", ["train", "test", "val"])
def test_the_folder_of_a_split_that_was_not_fetched_is_named(load, tmp_path, name):
    for split in ("train", "test", "val"):
        write_rows(tmp_path / split)
    (tmp_path / name).rename(tmp_path.parent / f"{tmp_path.name}-gone")
    (tmp_path / name).symlink_to("/nowhere/at/all")
    with pytest.raises(DatasetError, match=rf"/{name} is a link to /nowhere/at/all, which does not exist"):
        load("csv", path=str(tmp_path), label="y")


@pytest.mark.parametrize("path", ["{}", "{}/x", "{{train: {}}}"])
def test_a_path_that_is_a_link_to_nowhere_is_called_one(load, tmp_path, path):
    link = tmp_path / "rows"
    link.symlink_to("loop" if path == "{}" else "gone")
    (tmp_path / "loop").symlink_to("rows")
    named = yaml.safe_load(path.format(link))
    with pytest.raises(DatasetError) as caught:
        load("csv", path=named, label="y")
    assert "is a link to" in caught.value.message
    assert "did you mean" not in (caught.value.hint or "")


@pytest.mark.parametrize("source", ["images", "text"])
@pytest.mark.parametrize("below", ["", "train/"])
def test_the_folder_of_a_class_that_was_not_fetched_is_named(load, tmp_path, source, below):
    for name in ("cat", "dog", "owl"):
        (tmp_path / below / name).mkdir(parents=True)
        for row in range(4):
            if source == "text":
                (tmp_path / below / name / f"{row}.txt").write_text(f"{name} {row}")
            else:
                Image.new("RGB", (4, 4)).save(tmp_path / below / name / f"{row}.png")
    keys = {"path": str(tmp_path), **({"task": "classification"} if source == "text" else {})}
    assert load(source, **keys).info.num_classes == 3
    (tmp_path / below / "owl").rename(tmp_path.parent / f"{tmp_path.name}-owl")
    (tmp_path / below / "owl").symlink_to("nowhere")
    with pytest.raises(DatasetError, match="owl is a link to nowhere, which does not exist"):
        load(source, **keys)
    (tmp_path / below / "owl").unlink()
    (tmp_path / below / "owl").symlink_to(tmp_path.parent / f"{tmp_path.name}-owl")
    assert load(source, **keys).info.num_classes == 3
