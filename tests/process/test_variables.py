import os

from rtrain.process.variables import variables_set


def test_what_was_set_before_is_set_again(monkeypatch):
    monkeypatch.setenv("RTRAIN_TEST_BEFORE", "before")
    with variables_set({"RTRAIN_TEST_BEFORE": "now", "RTRAIN_TEST_NEW": "new"}):
        assert (os.environ["RTRAIN_TEST_BEFORE"], os.environ["RTRAIN_TEST_NEW"]) == ("now", "new")
    assert os.environ["RTRAIN_TEST_BEFORE"] == "before"
    assert "RTRAIN_TEST_NEW" not in os.environ


def test_what_another_thread_does_meanwhile_stays(monkeypatch):
    monkeypatch.setenv("RTRAIN_TEST_OTHER", "before")
    with variables_set({"RTRAIN_TEST_NEW": "new"}):
        monkeypatch.setenv("RTRAIN_TEST_OTHER", "after")
        monkeypatch.setenv("RTRAIN_TEST_THIRD", "third")
        del os.environ["RTRAIN_TEST_NEW"]
    assert os.environ["RTRAIN_TEST_OTHER"] == "after"
    assert os.environ["RTRAIN_TEST_THIRD"] == "third"
