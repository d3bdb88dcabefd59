"""Data behind s3:// URLs, from a real server: the rows of local files, few requests, and errors that say what to do."""

from __future__ import annotations

import gzip
import io
import json
import signal
import socket
import tarfile
from urllib.parse import quote

import numpy as np
import pyarrow as pa
import pytest
from PIL import Image
from pyarrow import csv, parquet
from s3_server import serve_s3
from test_tfrecord import NUMBERS, framed

from rtrain.datasets.files import files_fingerprint
from rtrain.datasets.remote import fetch
from rtrain.errors import DatasetError

NUM_ROWS = 60
RNG = np.random.default_rng(0)
X = RNG.normal(size=(NUM_ROWS, 3))
TABLE = pa.table({"a": X[:, 0], "b": X[:, 1], "c": X[:, 2], "y": (X.sum(axis=1) > 0).astype(int)})
LIBSVM = "".join(f"{int(x[0] > 0)} 1:{x[0]} 2:{x[1]}\n" for x in X).encode()
WEIGHTS = "".join(f"{row + 1}\n" for row in range(NUM_ROWS)).encode()


def in_memory(write, *content):
    stream = io.BytesIO()
    write(*content, stream)
    return stream.getvalue()


def image(row):
    pixels = np.full((8, 8), row, np.uint8)
    return in_memory(lambda stream: Image.fromarray(pixels).save(stream, "PNG"))


def shard(stream):
    with tarfile.open(fileobj=stream, mode="w") as tar:
        for row in range(20):
            for name, content in ((f"{row:03}.png", image(row)), (f"{row:03}.cls", b"%d" % (row % 2))):
                info = tarfile.TarInfo(name)
                info.size = len(content)
                tar.addfile(info, io.BytesIO(content))


CSV = in_memory(csv.write_csv, TABLE)
FILES = {
    "rows.csv": CSV,
    "rows.csv.gz": gzip.compress(CSV),
    "rows.jsonl": "".join(f"{json.dumps(row)}\n" for row in TABLE.to_pylist()).encode(),
    "rows.npz": in_memory(lambda stream: np.savez(stream, x=X, y=TABLE["y"].to_numpy())),
    "arrays/x.npy": in_memory(lambda stream: np.save(stream, X)),
    "arrays/y.npy": in_memory(lambda stream: np.save(stream, TABLE["y"].to_numpy())),
    "a folder/train-[1] #50%.csv": CSV,
    "records.tfrecord": b"".join(map(framed, NUMBERS)),
    "shards/train-000.tar": in_memory(shard),
    "svm/train.svm": LIBSVM,
    "svm/train.svm.weight": WEIGHTS,
    "reviews/": b"",  # as consoles mark a folder
    "play.txt": b"to be or not to be\n" * 50,
    **{f"parts/part-{part}.parquet": in_memory(parquet.write_table, TABLE[part::3]) for part in range(3)},
    **{f"images/{('cat', 'dog')[row % 2]}/{row:02}.png": image(row) for row in range(20)},
    **{f"reviews/{('bad', 'good')[row % 2]}/{row}.txt": f"text {row}".encode() for row in range(10)},
}


@pytest.fixture(scope="module")
def files_on_s3(s3_server):
    return s3_server.put("bucket", FILES)


@pytest.fixture
def bucket(s3, files_on_s3):
    return files_on_s3


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("same")
    for name, content in FILES.items():
        place = folder / name
        place.parent.mkdir(parents=True, exist_ok=True)
        if not name.endswith("/"):
            place.write_bytes(content)
    return folder


@pytest.mark.parametrize(
    ("source", "path", "keys"),
    [
        ("csv", "rows.csv", {"label": "y"}),
        ("csv", "rows.csv.gz", {"label": "y", "memory": "stream"}),
        ("csv", "a folder/*.csv", {"label": "y"}),
        ("csv", "a folder", {"label": "y"}),
        ("parquet", "parts/part-[02].parquet", {"label": "y"}),
        ("parquet", "**/*.parquet", {"label": "y", "memory": "stream"}),
        ("parquet", "parts/", {"label": "y"}),
        ("parquet", {"train": "parts/part-?.parquet", "test": "parts/part-2.parquet"}, {"label": "y"}),
        ("json", "rows.jsonl", {"label": "y"}),
        ("numpy", "rows.npz", {}),
        ("numpy", "arrays", {"memory": "stream"}),
        ("images", "images", {"image_size": [8, 8]}),
        ("text", "reviews", {}),
        ("text", "play.txt", {"tokenizer": "characters", "block_size": 8}),
        ("tfrecord", "*.tfrecord", {"features": ["a", "b"]}),
        ("webdataset", "shards/train-*.tar", {"label": "cls"}),
        ("libsvm", "svm/train.svm", {}),
        ("libsvm", "svm/*.svm", {}),
        ("libsvm", "svm", {}),
    ],
)
def test_rows_are_those_of_the_same_local_files(load, bucket, folder, source, path, keys):
    def load_from(root):
        named = {split: f"{root}/{one}" for split, one in path.items()} if isinstance(path, dict) else f"{root}/{path}"
        dataset = load(source, path=named, **keys)
        return dataset.info, {name: list(split.own_rows(0, 1)) for name, split in dataset.splits.items()}

    (info, rows), (local_info, local_rows) = load_from(bucket), load_from(folder)
    assert (info.num_rows, info.class_names, info.columns) == (
        local_info.num_rows,
        local_info.class_names,
        local_info.columns,
    )
    assert ("weight" in info.columns) == (source == "libsvm")
    for split, chunks in local_rows.items():
        for name in chunks[0]:
            found, wanted = (np.concatenate([one[name] for one in part]) for part in (rows[split], chunks))
            np.testing.assert_array_equal(found, wanted)


def test_a_delta_table(load, s3, tmp_path):
    from deltalake import write_deltalake

    write_deltalake(tmp_path / "table", TABLE)
    write_deltalake(tmp_path / "table", TABLE, mode="append")
    url = s3.put_folder("delta", tmp_path / "table")
    assert load("delta", path=url, label="y", split={"test": 0}).info.num_rows == {"train": 2 * NUM_ROWS}
    assert load("delta", path=url, label="y", version=0, split={"test": 0}).info.num_rows == {"train": NUM_ROWS}
    with pytest.raises(DatasetError, match=r"s3://delta/no is not a Delta table"):
        load("delta", path=f"{url}/no", label="y")


def test_what_save_to_disk_wrote(load, s3, tmp_path):
    import datasets

    datasets.disable_progress_bars()
    datasets.Dataset(TABLE).save_to_disk(tmp_path / "saved")
    url = s3.put_folder("saved", tmp_path / "saved")
    assert load("huggingface", path=url, label="y", split={"test": 0}).info.num_rows == {"train": NUM_ROWS}


def test_a_large_file_takes_few_requests_and_none_once_it_is_here(s3):
    url = s3.put("large", {"x.bin": bytes(20 << 20)})
    before = len(s3.requests())
    copy = fetch(f"{url}/x.bin", "dataset.path")
    assert copy.stat().st_size == 20 << 20
    assert len(s3.requests()) - before <= 5
    assert fetch(f"{url}/x.bin", "dataset.path") == copy
    assert s3.requests()[-1] == "HEAD /large/x.bin"


def test_a_folder_of_files_is_listed_by_one_request_and_copied_once_each(bucket, s3):
    before = len(s3.requests())
    fetch(f"{bucket}/images", "dataset.path")
    asked = s3.requests()[before:]
    assert len([one for one in asked if "list-type" in one]) <= 2
    assert len([one for one in asked if one.startswith("GET") and ".png" in one]) == 20


def test_an_object_of_the_same_size_that_was_changed_is_copied_again(s3):
    url = f"{s3.put('changed', {'x.txt': b'one'})}/x.txt"
    first = fetch(url, "dataset.path")
    client = s3.client
    stamp = client.head_object(Bucket="changed", Key="x.txt")["LastModified"]
    while client.head_object(Bucket="changed", Key="x.txt")["LastModified"] == stamp:  # S3 counts seconds
        s3.put("changed", {"x.txt": b"two"})
    again = fetch(url, "dataset.path")
    assert (first.read_bytes(), again.read_bytes()) == (b"one", b"two")
    assert files_fingerprint([first]) != files_fingerprint([again])


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("bucket/no.csv", r"s3://bucket/no\.csv does not exist"),
        ("bucket/no*.csv", r"no \.csv .* at s3://bucket/no\*\.csv"),
        ("bucket/parts", r"no \.csv .* at s3://bucket/parts"),
        ("no-bucket/x.csv", r"s3://no-bucket/x\.csv does not exist"),
        ("no-bucket/*.csv", r"s3://no-bucket/\*\.csv does not exist"),
        ("no-bucket", r"s3://no-bucket does not exist"),
        ("bucket/x.csv?regoin=here", r"s3 URL has no option regoin, only region"),
    ],
)
def test_what_is_not_there_is_named(load, bucket, path, message):
    with pytest.raises(DatasetError, match=rf"dataset\.path: {message}|{message}"):
        load("csv", path=f"s3://{path}", label="y")


@pytest.mark.parametrize("path", ["rows.csv", "*.csv", "a folder"])
@pytest.mark.parametrize(
    ("variable", "value"), [("AWS_SECRET_ACCESS_KEY", "wr0ng"), ("AWS_ACCESS_KEY_ID", "AKIANOONE")]
)
def test_wrong_credentials_are_refused_and_not_told(load, bucket, s3, monkeypatch, path, variable, value):
    monkeypatch.setenv(variable, value)
    with pytest.raises(
        DatasetError, match=r"dataset\.path: s3://bucket/.*: access denied at http:.*[\s\S]*AWS_ACCESS_KEY_ID"
    ) as raised:
        load("csv", path=f"{bucket}/{path}", label="y")
    assert "wr0ng" not in str(raised.value)
    assert s3.secret not in str(raised.value)


def test_wrong_credentials_for_a_delta_table(load, bucket, monkeypatch):
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wr0ng")
    with pytest.raises(
        DatasetError, match=r"dataset\.path: s3://bucket/t: access denied at http:.*[\s\S]*AWS_ACCESS_KEY_ID"
    ):
        load("delta", path=f"{bucket}/t", label="y")


def test_a_key_in_the_url_counts_and_is_not_told(load, bucket, s3, monkeypatch):
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wr0ng")
    path = f"bucket/rows.csv?region=eu-central-1&endpoint_override={quote(s3.url)}"
    monkeypatch.delenv("AWS_ENDPOINT_URL")
    dataset = load("csv", path=f"s3://{s3.key_id}:{quote(s3.secret, safe='')}@{path}", label="y", split={"test": 0})
    assert dataset.info.num_rows == {"train": NUM_ROWS}
    with pytest.raises(DatasetError, match=r"s3://bucket/rows.csv: access denied") as raised:
        load("csv", path=f"s3://{s3.key_id}:5ecret%2F@{path}", label="y")
    assert "5ecret" not in str(raised.value)


def test_a_server_that_is_down_is_named_within_seconds(load, s3, monkeypatch):
    with socket.create_server(("127.0.0.1", 0)) as closed:
        address = f"http://127.0.0.1:{closed.getsockname()[1]}"
    monkeypatch.setenv("AWS_ENDPOINT_URL", address)
    for source in ("csv", "delta"):
        with pytest.raises(DatasetError, match=rf"s3://bucket/x can't be reached at {address}: "):
            load(source, path="s3://bucket/x", label="y")


@pytest.mark.slow
@pytest.mark.timeout(90)
def test_a_server_that_is_silent_is_waited_for_less_than_a_minute(load, s3, tmp_path, monkeypatch):
    with serve_s3(tmp_path) as server:
        monkeypatch.setenv("AWS_ENDPOINT_URL", server.url)
        server.process.send_signal(signal.SIGSTOP)
        with pytest.raises(DatasetError, match=rf"s3://bucket/x can't be reached at {server.url}: .*[Tt]ime"):
            load("csv", path="s3://bucket/x", label="y")
