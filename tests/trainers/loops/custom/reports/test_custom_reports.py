"""Reports of one worker and of several, which are threads here: what is recorded, and which folders are left."""

import random
import shutil
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from processes import until
from ray.train import Checkpoint, CheckpointUploadMode

from rtrain.errors import CheckpointError, TrainingError
from rtrain.runs.checkpoints import RECORD_NAME, all_checkpoints, checkpoints_dir, latest_checkpoint, read_record
from rtrain.runs.events import read_events
from rtrain.runs.filesystem.files import sha256_of
from rtrain.testing.workers import RecordingChannel, make_worker
from rtrain.trainers.loops.custom.reports import folders
from rtrain.trainers.loops.custom.reports.context import WorkerContext
from rtrain.trainers.loops.custom.reports.copies import Copies
from rtrain.trainers.loops.custom.reports.train_fn_utils import LocalReports, StopTraining, _Reports
from rtrain.trainers.loops.finished import LENGTHS
from rtrain.trainers.registry import load_trainer, packages
from rtrain.trainers.torch.config import Conf
from rtrain.trainers.trained import FILE_NAME

ASYNC, NO_UPLOAD = CheckpointUploadMode.ASYNC, CheckpointUploadMode.NO_UPLOAD


def make_reports(folder, *, channel=None, conf=None, **run):
    conf = Conf(train_loop="a:b", **(conf or {}))
    return LocalReports(make_worker(folder, conf, None, channel=channel or RecordingChannel(), **run))


def made(folder, **files):
    """A checkpoint of the user's, with files by name."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in (files or {"state": "1"}).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return Checkpoint(str(folder))


def names(run_dir):
    return sorted(path.name for path in checkpoints_dir(run_dir).iterdir())


def test_a_report_is_an_event_and_a_checkpoint_that_lists_its_files(tmp_path):
    channel = RecordingChannel()
    one = make_reports(tmp_path, channel=channel)
    one.report({"loss": 0.5, "note": "good", "val": {"acc": 1}}, made(tmp_path / "own", **{"a/b": "x"}))
    (event,), (record,) = channel.events, channel.checkpoints
    assert (event.step, event.metrics, event.values) == (1, {"loss": 0.5, "val/acc": 1}, {"note": "good"})
    assert record["name"] == "report-000001"
    assert set(record["files"]) - {FILE_NAME} == {"a/b"}
    assert (latest_checkpoint(tmp_path) / "a" / "b").read_text() == "x"
    assert one.get_checkpoint().path == str(latest_checkpoint(tmp_path))
    (reported,) = one.get_all_reported_checkpoints()
    assert reported.metrics == {"loss": 0.5, "val": {"acc": 1}, "note": "good"}


@pytest.mark.parametrize(
    ("value", "back"),
    [
        *((one, one) for one in (2, 2.0, True, None, "text", [1, 2.5], {"a": {"b": 2}}, {}, 10**20)),
        *((np.timedelta64(3, "s"), "0:00:03"), (np.timedelta64("NaT"), None)),
        *((np.int64(3), 3), (np.bool_(True), True), (np.float32(0.5), 0.5), ((1, 2), [1, 2]), (np.ones(2), [1.0, 1.0])),
    ],
    ids=repr,
)
def test_metrics_are_given_back_as_they_were_reported(tmp_path, value, back):
    one = make_reports(tmp_path)
    one.report({"loss": 0.5, "value": value}, made(tmp_path / "own"))
    found = one.get_all_reported_checkpoints()[0].metrics
    assert repr(found) == repr({"loss": 0.5, "value": back})
    assert repr(make_reports(tmp_path).get_all_reported_checkpoints()[0].metrics) == repr(found)  # of a resumed run


def test_numbers_that_are_not_finite_are_given_back_as_nan(tmp_path):
    one = make_reports(tmp_path)
    one.report({"loss": np.nan, "deep": {"none": None, "inf": np.inf}}, made(tmp_path / "own"))
    found = one.get_all_reported_checkpoints()[0].metrics
    assert np.isnan([found["loss"], found["deep"]["inf"]]).all()
    assert found["deep"]["none"] is None


@pytest.mark.parametrize("trainer", [name for name in packages() if name != "sklearn"])
def test_lengths_of_declared_models_end_no_loop(tmp_path, trainer):
    conf = load_trainer(trainer).Conf(train_loop="a:b")
    lengths = [name for name in LENGTHS if hasattr(conf, name) and name != "max_steps"]
    for name in lengths:
        setattr(conf, name, 2)
    reports = LocalReports(make_worker(tmp_path, conf, None))
    for number in range(3):
        reports.report({"epoch": number, "step": 100 * number})
    assert lengths
    assert reports.number == 3


def test_the_name_of_an_experiment_is_that_of_the_run_and_of_no_other(tmp_path):
    contexts = [make_reports(tmp_path / "name" / run).get_context() for run in ("a", "b")]
    assert [one.get_experiment_name() for one in contexts] == ["name-a", "name-b"]
    assert WorkerContext(tmp_path / "name" / "a").get_experiment_name() == "name-a"


@pytest.mark.parametrize("seed", range(5))
def test_a_copy_that_is_killed_costs_nothing(tmp_path, monkeypatch, seed):
    source = made(tmp_path / "own", a="1", b="2", c="3")
    one = make_reports(tmp_path)
    one.report({}, source)

    class Killed(BaseException):
        pass

    left = [random.Random(seed).randint(0, 5)]

    def copy(*paths):
        left[0] -= 1
        if left[0] < 0:
            raise Killed
        shutil.copy2(*paths)

    monkeypatch.setattr(folders.shutil, "copy", copy)
    with pytest.raises(Killed):
        report_thrice(one, source)
    done = [path.name for path in all_checkpoints(tmp_path)]
    monkeypatch.undo()
    again = make_reports(tmp_path)
    assert names(tmp_path) == done
    again.report({}, source)
    assert set(read_record(latest_checkpoint(tmp_path))["files"]) - {FILE_NAME} == {"a", "b", "c"}
    assert again.number == len(done) + 1


def report_thrice(one, source):
    for _ in range(3):
        one.report({}, source)


def test_half_a_copy_that_an_older_version_left_is_removed_first(tmp_path):
    made(checkpoints_dir(tmp_path) / "report-000001", half="x")
    made(checkpoints_dir(tmp_path) / ".report-000002-abc.tmp", half="x")
    made(checkpoints_dir(tmp_path) / "of-the-user", own="x")
    one = make_reports(tmp_path)
    assert names(tmp_path) == ["of-the-user"]
    one.report({}, made(tmp_path / "own"))
    assert set(read_record(latest_checkpoint(tmp_path))["files"]) - {FILE_NAME} == {"state"}


def test_leftovers_under_the_name_of_a_report_are_not_merged_into_it(tmp_path):
    made(checkpoints_dir(tmp_path) / "mine", old="x")
    make_reports(tmp_path).report({}, made(tmp_path / "own"), checkpoint_dir_name="mine")
    assert set(read_record(checkpoints_dir(tmp_path) / "mine")["files"]) - {FILE_NAME} == {"state"}


def test_a_constant_name_works(tmp_path):
    one = make_reports(tmp_path)
    for number in range(3):
        one.report({}, made(tmp_path / "own", state=str(number)), checkpoint_dir_name="latest")
    assert names(tmp_path) == ["latest", "latest-000002", "latest-000003"]
    assert [(path / "state").read_text() for path in all_checkpoints(tmp_path)] == ["0", "1", "2"]


@pytest.mark.parametrize(
    "name", ["../elsewhere", ".hidden", "a/b", "a\\b", "a\0b", "a\nb", "\udc80", 5, b"a", "x" * 201, "ü" * 101]
)
def test_a_name_that_no_folder_should_have_is_refused(tmp_path, name):
    with pytest.raises(TrainingError, match="checkpoint_dir_name"):
        make_reports(tmp_path).report({}, made(tmp_path / "own"), checkpoint_dir_name=name)


@pytest.mark.parametrize(
    ("asked", "named"),
    [
        ({"validation": True}, "no validation function"),
        ({"checkpoint_upload_mode": NO_UPLOAD}, "NO_UPLOAD.*is not in"),
        ({"checkpoint_upload_mode": NO_UPLOAD, "checkpoint_upload_fn": print}, "checkpoint_upload_fn has no effect"),
        ({"checkpoint_upload_mode": "async"}, "'async'"),
        ({"checkpoint": "/tmp"}, r"checkpoint='/tmp'"),
    ],
)
def test_what_is_not_done_is_refused_by_name(tmp_path, asked, named):
    channel = RecordingChannel()
    with pytest.raises(TrainingError, match=named):
        make_reports(tmp_path, channel=channel).report({}, **{"checkpoint": made(tmp_path / "own"), **asked})
    assert channel.records == []


def test_what_the_loop_has_written_among_the_checkpoints_becomes_one_without_a_copy(tmp_path):
    one = make_reports(tmp_path)
    place = one.get_context().get_storage().build_checkpoint_path_from_name("own")
    written = made(Path(place), **{"a/b": "x"})
    before = (Path(place) / "a" / "b").stat().st_ino
    one.report({"loss": 1}, written, checkpoint_upload_mode=NO_UPLOAD, delete_local_checkpoint_after_upload=True)
    assert one.get_checkpoint().path == place
    assert set(read_record(latest_checkpoint(tmp_path))["files"]) == {"a/b", FILE_NAME}
    assert (Path(place) / "a" / "b").stat().st_ino == before
    assert names(tmp_path) == ["own"]
    with pytest.raises(TrainingError, match="own is a checkpoint already"):
        one.report({}, one.get_checkpoint(), checkpoint_upload_mode=NO_UPLOAD)
    with pytest.raises(CheckpointError):
        one.report({}, Checkpoint(str(checkpoints_dir(tmp_path) / "absent")), checkpoint_upload_mode=NO_UPLOAD)
    one.report({"loss": 0}, checkpoint_upload_mode=NO_UPLOAD)
    assert names(tmp_path) == ["own"]


@pytest.mark.parametrize("givers", [(0,), (0, 1, 2)])
def test_what_all_ranks_have_written_into_one_folder_becomes_one_checkpoint(tmp_path, givers):
    def loop(one, rank):
        for number in range(2):
            own = made(checkpoints_dir(tmp_path / "run") / f"own-{number}", **{f"part-{rank}": str(number)})
            one.report({}, own if rank in givers else None, checkpoint_upload_mode=NO_UPLOAD)

    records = on_ranks(tmp_path / "run", 3, loop)[0].checkpoints
    assert [record["name"] for record in records] == ["own-0", "own-1"]
    assert set(records[1]["files"]) - {"events.jsonl", FILE_NAME} == {"part-0", "part-1", "part-2"}
    assert names(tmp_path / "run") == ["own-0", "own-1"]


def test_a_checkpoint_that_is_still_copied_is_waited_for(tmp_path):
    one = make_reports(tmp_path)
    one.report({}, made(tmp_path / "own"), checkpoint_upload_mode=ASYNC)
    assert len(one.get_all_reported_checkpoints()) == 1


def test_the_context_knows_where_checkpoints_are(tmp_path):
    storage = make_reports(tmp_path).get_context().get_storage()
    assert Path(storage.experiment_fs_path) == checkpoints_dir(tmp_path)
    assert names(tmp_path) == []


@pytest.mark.parametrize("mode", [CheckpointUploadMode.SYNC, ASYNC, NO_UPLOAD])
@pytest.mark.parametrize("name", ["layer\\0.bin", "a/b\\c"])
def test_a_name_that_no_record_can_hold_is_refused_before_it_is_written(tmp_path, mode, name):
    one = make_reports(tmp_path)
    one.report({}, made(tmp_path / "first"))
    folder = checkpoints_dir(tmp_path) / "own" if mode is NO_UPLOAD else tmp_path / "own"
    with pytest.raises(CheckpointError, match="which is a path on other systems"):
        one.report({}, made(folder, **{name: "x"}), checkpoint_upload_mode=mode) or one.finish()
    assert [path.name for path in all_checkpoints(tmp_path)] == ["report-000001"]


@pytest.mark.parametrize("name", [RECORD_NAME, FILE_NAME, "events.jsonl"])
def test_a_file_of_the_users_is_never_overwritten(tmp_path, name):
    with pytest.raises(TrainingError, match=name):
        make_reports(tmp_path).report({}, made(tmp_path / "own", **{name: "of the user"}))


def test_a_checkpoint_of_the_run_can_be_reported_again(tmp_path):
    one = make_reports(tmp_path)
    one.report({}, made(tmp_path / "own"))
    one.report({}, one.get_checkpoint())
    assert set(read_record(latest_checkpoint(tmp_path))["files"]) - {FILE_NAME} == {"state"}


def test_the_last_asynchronous_report_is_listed(tmp_path):
    channel = RecordingChannel()
    one = make_reports(tmp_path, channel=channel)
    for number in range(3):
        one.report({}, made(tmp_path / str(number)), checkpoint_upload_mode=ASYNC)
    one.finish()
    assert [record["name"] for record in channel.checkpoints] == [f"report-00000{n}" for n in (1, 2, 3)]
    assert not (tmp_path / "0").exists(), "Ray deletes what it has copied"


def test_an_asynchronous_copy_that_fails_fails_the_loop(tmp_path):
    one = make_reports(tmp_path)
    one.report({}, Checkpoint(str(tmp_path / "missing")), checkpoint_upload_mode=ASYNC)
    with pytest.raises(CheckpointError):
        one.finish()


def test_a_function_of_the_users_copies(tmp_path):
    run_dir = tmp_path / "run"
    one = make_reports(run_dir)

    def upload(checkpoint, name):
        return Checkpoint(shutil.copytree(checkpoint.path, checkpoints_dir(run_dir) / name))

    one.report({}, made(tmp_path / "own"), checkpoint_upload_fn=upload)
    assert set(read_record(latest_checkpoint(run_dir))["files"]) - {FILE_NAME} == {"state"}
    with pytest.raises(TrainingError, match="checkpoint_upload_fn"):
        one.report({}, made(tmp_path / "own"), checkpoint_upload_fn=lambda checkpoint, _: checkpoint)


def test_steps_go_up_whatever_a_loop_reports(tmp_path):
    reported = [0, 10, 10, 5, None, 30, np.int64(31), 2.5, float("nan")]
    channel = RecordingChannel()
    one = make_reports(tmp_path, channel=channel)
    for step in reported:
        one.report({} if step is None else {"step": step}, made(tmp_path / "own"))
    steps = [0, 10, 11, 12, 13, 30, 31, 32, 33]
    assert [record.step for record in channel.events] == steps
    assert [read_record(path)["step"] for path in all_checkpoints(tmp_path)] == steps
    again = make_reports(tmp_path, channel=(channel := RecordingChannel()))
    assert again.number == len(reported)
    again.report({"step": 34})
    again.report({})
    assert [record.step for record in channel.events] == [34, 35]


def test_a_loop_without_steps_counts_its_reports(tmp_path):
    channel = RecordingChannel()
    one = make_reports(tmp_path, channel=channel)
    for _ in range(3):
        one.report({})
    assert [(record.step, record.epoch) for record in channel.events] == [(1, 1), (2, 2), (3, 3)]


LIMITS = [
    ({"conf": {"max_seconds": 1e-9}}, "time limit"),
    ({"stop": {"max_seconds": 1e-9}}, "time limit"),
    ({"conf": {"max_steps": 20}}, "max_steps"),
    ({"stop": {"target": {"acc": 0.5}}}, "acc"),
    ({"stop": {"bounds": {"acc": {"max": 0.5}}}}, "acc"),
]


@pytest.mark.parametrize(("limits", "reason"), LIMITS, ids=str)
def test_every_limit_ends_the_loop_at_a_report_with_its_checkpoint(tmp_path, limits, reason):
    from rtrain.config.run_conf import BoundsConf, StopConf

    stop = limits.get("stop", {})
    bounds = {name: BoundsConf(**one) for name, one in stop.get("bounds", {}).items()}
    channel = RecordingChannel()
    one = make_reports(
        tmp_path, channel=channel, conf=limits.get("conf"), stop=StopConf(**{**stop, **({"bounds": bounds})})
    )
    with pytest.raises(StopTraining):
        one.report({"acc": 0.9, "step": 20}, made(tmp_path / "own"))
    assert reason in channel.end_reasons[0]
    assert len(channel.checkpoints) == 1


def test_seconds_before_a_resume_count(tmp_path):
    one = make_reports(tmp_path)
    one.worker.started -= 1000
    one.report({}, made(tmp_path / "own"))
    again = make_reports(tmp_path, conf={"max_seconds": 900})
    with pytest.raises(StopTraining):
        again.report({})


def test_an_order_to_stop_is_followed_and_not_described(tmp_path):
    channel = RecordingChannel(stop_after=0)
    with pytest.raises(StopTraining):
        make_reports(tmp_path, channel=channel).report({})
    assert channel.end_reasons == []


class Together:
    """Where threads meet."""

    def __init__(self, size):
        self.barrier, self.value, self.pinned_up = threading.Barrier(size, timeout=30), None, {}

    def pin(self, key, value):
        self.pinned_up[key] = value

    def pinned(self, key):
        return self.pinned_up.get(key)

    def share(self, rank, value):
        if rank == 0:
            self.value = value
        self.barrier.wait()
        found = self.value
        self.barrier.wait()
        return found


class ThreadReports(_Reports):
    """One of several ranks."""

    def __init__(self, worker, together):
        super().__init__(worker)
        self.together = together
        self._copies = Copies(worker.rank, worker.world_size, together)

    def barrier(self):
        self.together.share(self.worker.rank, None)

    def broadcast_from_rank_zero(self, data):
        return self.together.share(self.worker.rank, data)


ThreadReports.__abstractmethods__ = frozenset()


def on_ranks(folder, size, loop):
    """Run ``loop(reports, rank)`` on each rank; return the channels."""
    together, channels = Together(size), [RecordingChannel() for _ in range(size)]
    conf = Conf(train_loop="a:b")

    def run(rank):
        worker = make_worker(folder, conf, None, channel=channels[rank], rank=rank, world_size=size)
        one = ThreadReports(worker, together)
        loop(one, rank)
        one.finish()

    with ThreadPoolExecutor(size) as pool:
        for future in [pool.submit(run, rank) for rank in range(size)]:
            future.result()
    return channels


@pytest.mark.parametrize("mode", [CheckpointUploadMode.SYNC, ASYNC])
@pytest.mark.parametrize("givers", [(0,), (1,), (0, 1, 2)])
def test_every_rank_finds_the_checkpoint_that_was_just_reported(tmp_path, monkeypatch, givers, mode):
    complete = folders.Upload.complete
    monkeypatch.setattr(folders.Upload, "complete", lambda *of: (time.sleep(0.2), complete(*of))[1])

    def loop(one, rank):
        for number in range(1, 4):
            own = made(tmp_path / f"own-{rank}-{number}")
            one.report({}, own if rank in givers else None, checkpoint_upload_mode=mode)
            assert Path(one.get_checkpoint().path).name == f"report-{number:06d}"
            assert len(one.get_all_reported_checkpoints()) == number

    on_ranks(tmp_path / "run", 3, loop)


@pytest.mark.parametrize("size", [1, 3])
@pytest.mark.parametrize("slow", [0, 2])
def test_an_asynchronous_checkpoint_is_complete_without_another_report(tmp_path, monkeypatch, size, slow):
    """A process that is killed an epoch later goes on from it."""
    copy, seen = folders.Upload.copy, []
    monkeypatch.setattr(
        folders.Upload, "copy", lambda one, *of: (time.sleep(0.3 * (one.rank == slow)), copy(one, *of))[1]
    )

    def loop(one, rank):
        one.report({}, made(tmp_path / f"own-{rank}", **{f"part-{rank}": "x"}), checkpoint_upload_mode=ASYNC)
        assert until(lambda: latest_checkpoint(tmp_path / "run") is not None, seconds=20)
        seen.append(set(read_record(latest_checkpoint(tmp_path / "run"))["files"]) - {FILE_NAME, "events.jsonl"})
        one.together.share(rank, None)

    on_ranks(tmp_path / "run", size, loop)
    assert seen == [{f"part-{rank}" for rank in range(size)}] * size


@pytest.mark.parametrize("failing", [0, 1])
def test_an_asynchronous_copy_that_fails_on_a_rank_completes_nothing_and_no_other_waits(tmp_path, failing):
    def loop(one, rank):
        own = Checkpoint(str(tmp_path / "missing")) if rank == failing else made(tmp_path / f"own-{rank}")
        one.report({}, own, checkpoint_upload_mode=ASYNC)
        if rank != failing:
            assert one.get_all_reported_checkpoints() == []

    with pytest.raises(CheckpointError):
        on_ranks(tmp_path / "run", 3, loop)
    assert latest_checkpoint(tmp_path / "run") is None


def test_a_report_that_is_refused_and_caught_counts_for_nothing(tmp_path):
    channel = RecordingChannel()
    one = make_reports(tmp_path, channel=channel)
    one.report({"loss": 1.0})
    with pytest.raises(TrainingError, match="a dict of metrics"):
        one.report([1])
    one.report({"loss": 0.5})
    assert [(event.step, event.epoch) for event in channel.events] == [(1, 1), (2, 2)]


@pytest.mark.parametrize("mode", [CheckpointUploadMode.SYNC, ASYNC])
@pytest.mark.parametrize("givers", [(), (0,), (1,), (0, 1, 2)])
def test_files_of_all_ranks_make_one_checkpoint(tmp_path, mode, givers):
    def loop(one, rank):
        for number in range(3):
            own = made(tmp_path / f"own-{rank}-{number}", **{f"part-{rank}": str(number), "same": "x"})
            one.report({"rank": rank}, own if rank in givers else None, checkpoint_upload_mode=mode)

    channels = on_ranks(tmp_path / "run", 3, loop)
    records = channels[0].checkpoints
    assert [record.metrics for record in channels[0].events] == [{"rank": 0}] * 3
    assert len(records) == (3 if givers else 0)
    for record in records:
        assert set(record["files"]) - {FILE_NAME, "events.jsonl"} == {f"part-{rank}" for rank in givers} | {"same"}
        folder = checkpoints_dir(tmp_path / "run") / record["name"]
        assert all(sha256_of(folder / name) == file["sha256"] for name, file in record["files"].items())
    assert not [name for name in names(tmp_path / "run") if name.startswith(".")]


def test_a_checkpoint_on_ray_holds_the_events_since_the_one_before(tmp_path):
    def loop(one, rank):
        for number in range(4):
            one.report({"number": number}, made(tmp_path / f"own-{rank}") if number % 2 else None)

    on_ranks(tmp_path / "run", 2, loop)
    found = [
        [event.metrics["number"] for event in read_events(path / "events.jsonl")]
        for path in all_checkpoints(tmp_path / "run")
    ]
    assert found == [[0, 1], [2, 3]]


def test_a_checkpoint_is_whole_when_ranks_have_files_of_the_same_name(tmp_path):
    def loop(one, rank):
        one.report({}, made(tmp_path / f"own-{rank}", state=str(rank) * 100_000))

    on_ranks(tmp_path / "run", 3, loop)
    text = Path(latest_checkpoint(tmp_path / "run") / "state").read_text()
    assert len(set(text)) == 1
    assert len(text) == 100_000
