from __future__ import annotations

import pytest

from rtrain.datasets.files import existing_path, files_at, files_by_split, files_fingerprint
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
    with pytest.raises(DatasetError, match=r"there are: empty\.csv, semi\.csv, t\.csv"):
        existing_path(str(tmp_path / "missing.csv"))
    with pytest.raises(DatasetError, match=r"did you mean: \S*semi\.csv"):
        existing_path(str(tmp_path / "Semi.parquet"))


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
    with pytest.raises(DatasetError, match=r"holds no \.csv"):
        files_at(str(tmp_path), [".csv"])
    with pytest.raises(DatasetError, match="no file matches"):
        files_at(str(tmp_path / "*.csv"), [".csv"])


def test_the_fingerprint_sees_a_changed_file(tmp_path):
    write(tmp_path, "x.csv")
    before = files_fingerprint([tmp_path / "x.csv"])
    assert files_fingerprint([tmp_path / "x.csv"]) == before
    (tmp_path / "x.csv").write_text("a\n1\n2\n")
    assert files_fingerprint([tmp_path / "x.csv"]) != before
