"""Files in folders of stores: whole, or not there."""

from __future__ import annotations

import pytest

from rtrain.datasets.remote import fetch
from rtrain.errors import ConfigError
from rtrain.storage.folders import CHUNK_BYTES, open_folder, read
from rtrain.storage.stores import disk_path


def breaking_off(*chunks):
    yield from chunks
    raise OSError("the file can't be read")


@pytest.fixture(params=["s3", "memory", "file"])
def url(request, tmp_path):
    if request.param == "s3":
        request.getfixturevalue("s3").put("box", {})
    return {"s3": "s3://box/folder", "memory": f"memory://{tmp_path}", "file": tmp_path.as_uri()}[request.param]


@pytest.mark.parametrize("sizes", [(), (100,), (CHUNK_BYTES, 5)], ids=str)
def test_a_file_that_can_not_be_read_to_its_end_is_no_object(url, sizes):
    folder = open_folder(url, "whole")
    with pytest.raises(OSError, match="can't be read"):
        folder.put("part", breaking_off(*map(bytes, sizes)))
    assert folder.sizes() == {}


def test_an_object_stays_while_what_replaces_it_can_not_even_be_opened(url):
    folder = open_folder(url, "kept")
    folder.put("events", [b"old"])
    with pytest.raises(OSError, match="can't be read"):
        folder.put("events", breaking_off())
    assert read(folder, "events") == b"old"


@pytest.mark.parametrize(
    ("url", "meant"),
    [
        ("file://copies", "file://{here}/copies"),
        ("file://mnt/my%20runs", "file://{here}/mnt/my%20runs"),
        ("file://~/runs", "file://{home}/runs"),
        ("FILE://a/b", "file://{here}/a/b"),
    ],
)
def test_a_machine_in_the_place_of_a_folder_is_refused_with_the_folder_that_is_meant(tmp_path, monkeypatch, url, meant):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", "/home/ann")
    for ask in (open_folder, disk_path, lambda url: fetch(url, "dataset.path")):
        with pytest.raises(ConfigError, match="would be a machine") as caught:
            ask(url)
        assert caught.value.hint == f"did you mean: {meant.format(here=tmp_path, home='/home/ann')}"
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("begins", ["file://", "file://localhost", "FILE://"])
def test_a_path_begins_after_the_third_slash(tmp_path, begins):
    assert disk_path(f"{begins}{tmp_path}/my%20runs") == tmp_path / "my runs"
