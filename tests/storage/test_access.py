"""What a store refuses is known before a run begins."""

from __future__ import annotations

import pytest
from s3_faults import Fault

from rtrain.errors import ConfigError
from rtrain.storage.access import check_access


def test_a_small_file_is_written_read_and_deleted(broken, s3):
    check_access("s3://box/all", "small", key="run.storage")
    asked = [one for one in broken.asked if "rtrain-probe" in one]
    assert [one.split()[0] for one in asked if not one.startswith("HEAD")] == ["PUT", "GET", "DELETE"]
    assert not [name for name in s3.names("box") if not name.endswith("/")]


@pytest.mark.parametrize(
    ("url", "faults", "message"),
    [
        ("s3://nobox/all", [], r"run\.storage: s3://nobox/all does not exist"),
        ("s3://box/all", [Fault(status=403, what="PUT")], r"run\.storage: s3://box/all: access denied .*ACCESS_DENIED"),
        ("s3://box/all", [Fault(status=403, what="GET|HEAD")], r"access denied"),
        ("s3://box/all", [Fault(status=403, what="DELETE")], r"access denied .*DeleteObject"),
        ("s3://box/all", [Fault(status=503)], r"fails at http://127.* SLOW_DOWN"),
        ("s3://box/all?nonsense=1", [], r"an s3 URL has no option nonsense"),
        ("nonsense://box/all", [], r"run\.storage: nonsense://box/all can't be used"),
        ("gcs2://box", [], r"can't be used"),
        ("az://box/all", [], r"AZURE_STORAGE_ACCOUNT is not set"),
        ("file:///proc/nothing", [], r"run\.storage: file:///proc/nothing does not exist"),
    ],
)
def test_a_store_that_does_not_do_is_a_config_error(broken, monkeypatch, url, faults, message):
    monkeypatch.delenv("AZURE_STORAGE_ACCOUNT", raising=False)
    broken.faults.extend(faults)
    with pytest.raises(ConfigError, match=message):
        check_access(url, "small", key="run.storage")


def test_a_wrong_key_is_refused_and_none_is_shown(broken, monkeypatch):
    with pytest.raises(ConfigError, match=r"s3://box/all: access denied .*INVALID_ACCESS_KEY_ID") as found:
        check_access("s3://AKIAME:hush@box/all", key="run.storage")
    assert "hush" not in str(found.value)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wr0ng")
    with pytest.raises(ConfigError, match=r"s3://box/all: access denied .*SIGNATURE_DOES_NOT_MATCH"):
        check_access("s3://box/all", key="run.storage")


def test_a_store_that_is_busy_for_a_moment_is_asked_again(broken):
    broken.faults.append(Fault(status=503, times=3))
    check_access("s3://box/all", key="run.storage")


def test_a_store_that_is_down_is_told_after_a_while(broken):
    broken.stop()
    try:
        with pytest.raises(ConfigError, match=r"s3://box/all can't be reached at http://127\.0\.0\.1"):
            check_access("s3://box/all", key="run.storage")
    finally:
        broken.start()
