"""Threads that outlive the train loop that has started them: what they report belongs to no run."""

import os
import threading

import pytest
import ray.train

from rtrain.errors import TrainingError
from rtrain.testing.workers import RecordingChannel, make_worker
from rtrain.trainers.loops.custom.loop import reached_by_ray_train
from rtrain.trainers.loops.custom.reports.train_fn_utils import LocalReports
from rtrain.trainers.torch.config import Conf


def make_reports(folder, channel=None):
    return LocalReports(make_worker(folder, Conf(train_loop="a:b"), None, channel=channel or RecordingChannel()))


def in_thread(function, *args):
    thread = threading.Thread(target=function, args=args)
    thread.start()
    return thread


def test_a_thread_that_outlives_its_loop_reports_to_no_other(tmp_path):
    over, channels = threading.Event(), [RecordingChannel(), RecordingChannel()]
    ignored = []

    def report_late():
        ray.train.report({"loss": 0.5})
        in_time.set()
        over.wait()
        try:
            ray.train.report({"loss": -1000.0})
        except SystemExit:
            ignored.append(True)

    with reached_by_ray_train(make_reports(tmp_path / "1", channel=channels[0])):
        in_time = threading.Event()
        late = [in_thread(report_late), in_thread(report_late)]
        in_time.wait()
        while len(channels[0].events) < 2:
            in_time.wait(0.01)
    with reached_by_ray_train(make_reports(tmp_path / "2", channel=channels[1])):
        over.set()
        for thread in late:
            thread.join()
        in_thread(ray.train.report, {"loss": 2.0}).join()
        ray.train.report({"loss": 3.0})
    assert len(ignored) == 2
    assert [[record.metrics["loss"] for record in one.events] for one in channels] == [[0.5, 0.5], [2.0, 3.0]]
    (notice,) = channels[1].notices
    assert "after its train loop had ended: ignored" in notice


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")  # SystemExit, which Python ignores
def test_a_report_to_a_loop_that_is_over_is_ignored(tmp_path, caplog):
    channel = RecordingChannel()
    one = make_reports(tmp_path, channel=channel)
    with reached_by_ray_train(one):
        pass
    in_thread(one.report, {"loss": 1.0}).join()
    with pytest.raises(RuntimeError, match="none is running"):
        one.report({"loss": 1.0})
    assert channel.events == []
    assert "after its train loop had ended: ignored" in caplog.text


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")  # SystemExit, which Python ignores
def test_a_thread_that_reports_between_two_loops_raises_no_error_of_rays(tmp_path):
    over, seen = threading.Event(), []

    def report_late():
        over.wait()
        seen.append(ray.train.get_context().get_world_rank())
        try:
            ray.train.report({"loss": 1.0})
        except BaseException as error:
            seen.append(type(error))

    with reached_by_ray_train(make_reports(tmp_path)):
        late = in_thread(report_late)
    over.set()
    late.join()
    assert seen == [0, SystemExit]
    with reached_by_ray_train(make_reports(tmp_path)):
        pass
    with pytest.raises(RuntimeError, match="outside"):
        ray.train.report({})


def test_a_fork_can_not_report(tmp_path, monkeypatch):
    one = make_reports(tmp_path, channel=(channel := RecordingChannel()))
    pid = os.getpid()
    with monkeypatch.context() as patch:
        patch.setattr(os, "getpid", lambda: pid + 1)
        with pytest.raises(TrainingError, match="in a fork"):
            one.report({"loss": 1.0})
    one.report({"loss": 2.0})
    assert [record.metrics for record in channel.events] == [{"loss": 2.0}]
