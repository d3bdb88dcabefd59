"""Files in folders of stores: whole, or not there."""

from __future__ import annotations

import pytest

from rtrain.storage.folders import CHUNK_BYTES, open_folder, read


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
