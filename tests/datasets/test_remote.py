from __future__ import annotations

import http.server
import sys
import threading

import fsspec
import pytest
from fsspec.implementations.memory import MemoryFile

from rtrain.datasets.files import files_by_split, files_fingerprint
from rtrain.datasets.remote import cache_dir, fetch
from rtrain.errors import DatasetError
from rtrain.storage.stores import open_store, shown_url

CSV = "a,y\n" + "".join(f"{i},{'no' if i % 2 else 'yes'}\n" for i in range(20))


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def served(tmp_path):
    """A folder, its URL, and the paths that were asked for."""
    folder = tmp_path / "www"
    folder.mkdir()
    asked = []

    class Handler(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *args):
            super().__init__(*args, directory=str(folder))

        def do_GET(self):
            asked.append(self.path)
            if "secret" in self.path and self.headers["Authorization"] != "Basic bWU6cGFzcw==":
                self.send_error(403)
            elif "short" in self.path:
                self.send_response(200)
                self.send_header("Content-Length", "100")
                self.end_headers()
                self.wfile.write(b"a,y\n")
            else:
                super().do_GET()

        def log_message(self, *args):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield folder, f"http://127.0.0.1:{server.server_port}", asked
        server.shutdown()
        thread.join()


@pytest.fixture
def store():
    """The files of fsspec's memory file system, empty before and after."""
    memory = fsspec.filesystem("memory")
    memory.store.clear()
    memory.pseudo_dirs[:] = [""]
    yield memory
    memory.store.clear()
    memory.pseudo_dirs[:] = [""]


def test_a_table_over_http(load, served):
    folder, url, _ = served
    (folder / "x.csv").write_text(CSV)
    for memory in ("resident", "stream"):
        info = load("csv", path=f"{url}/x.csv?version=1", label="y", memory=memory).info
        assert info.class_names == ("no", "yes")
    assert load("csv", path={"train": f"{url}/x.csv", "test": f"{url}/x.csv"}, label="y").info.num_rows == {
        "train": 20,
        "test": 20,
    }


def test_a_changed_file_is_copied_again_and_an_unchanged_one_is_not(served):
    folder, url, _ = served
    (folder / "x.csv").write_text(CSV)
    first, again = (fetch(f"{url}/x.csv", "dataset.path") for _ in range(2))
    assert first == again
    before = files_fingerprint([first])
    first.unlink()
    assert files_fingerprint([fetch(f"{url}/x.csv", "dataset.path")]) == before
    (folder / "x.csv").write_text(CSV * 2)
    assert fetch(f"{url}/x.csv", "dataset.path").read_text() == CSV * 2


def test_what_a_server_refuses_is_one_clear_error(load, served):
    folder, url, _ = served
    with pytest.raises(DatasetError, match=r"dataset\.path: http://.*/no\.csv: the server returned 404"):
        load("csv", path=f"{url}/no.csv", label="y")
    (folder / "secret.csv").write_text(CSV)
    assert fetch(f"{url}/secret.csv".replace("//", "//me:pass@"), "dataset.path").read_text() == CSV
    with pytest.raises(DatasetError, match=r"returned 403[\s\S]*credentials"):
        load("csv", path=f"{url}/secret.csv", label="y")
    with pytest.raises(DatasetError, match=r"dataset\.path\.test: .*can't be reached"):
        load("csv", path={"test": "http://127.0.0.1:9/x.csv", "train": __file__}, label="y")


def test_an_unfinished_copy_leaves_nothing_behind(served):
    _, url, _ = served
    with pytest.raises(DatasetError, match=r"can't be used|IncompleteRead"):
        fetch(f"{url}/short.csv", "dataset.path")
    assert not [file for file in cache_dir().rglob("*") if file.is_file()]


def test_files_folders_and_globs_of_a_store(load, store):
    for name in ("train/1.csv", "train/2.csv", "test/1.csv", "notes.txt"):
        store.pipe(f"/bucket/{name}", CSV.encode())
    found = files_by_split("memory://bucket", [".csv"])
    assert {split: [file.name for file in part] for split, part in found.items()} == {
        "train": ["1.csv", "2.csv"],
        "test": ["1.csv"],
    }
    assert load("csv", path="memory://bucket", label="y").info.num_rows == {"train": 40, "test": 20}
    assert load("csv", path="memory://bucket/train/*.csv", label="y", split={"test": 0}).info.num_rows == {"train": 40}
    assert load("csv", path="memory://bucket/test/1.csv", label="y", split={"test": 0}).info.num_rows == {"train": 20}


def test_no_key_of_a_store_leads_its_copy_elsewhere(store, tmp_path):
    store.pipe("/bucket/1.csv", CSV.encode())
    for key in ("/bucket/../x.csv", "/bucket/a/../../../x.csv", "/bucket/a/../x.csv"):
        store.store[key] = MemoryFile(store, key, CSV.encode())  # which a store takes as a name like others
    assert len(store.find("/bucket")) == 4
    for url in ("memory://bucket", "memory://bucket/**/*.csv"):
        files_by_split(url, [".csv"])
    assert {path.name for path in tmp_path.rglob("*.csv")} == {"1.csv"}


def test_what_lies_beside_a_libsvm_file_comes_with_it(load, served):
    folder, url, _ = served
    (folder / "x.svm").write_text("1 1:2\n0 1:3\n" * 10)
    (folder / "x.svm.weight").write_text("1\n2\n" * 10)
    assert "weight" in load("libsvm", path=f"{url}/x.svm", split={"test": 0}).info.columns


def test_texts_of_a_store(load, store):
    store.pipe({"/t/neg/1.txt": b"bad", "/t/neg/2.txt": b"worse", "/t/pos/1.txt": b"good", "/t/pos/2.txt": b"best"})
    assert load("text", path="memory://t").info.class_names == ("neg", "pos")


def test_what_a_store_does_not_have_is_named(load, store, monkeypatch):
    monkeypatch.setitem(sys.modules, "paramiko", None)
    store.pipe("/bucket/notes.txt", b"")
    with pytest.raises(DatasetError, match=r"no \.csv .* at memory://bucket"):
        load("csv", path="memory://bucket", label="y")
    with pytest.raises(DatasetError, match=r"memory://bucket/x\.csv does not exist"):
        load("csv", path="memory://bucket/x.csv", label="y")
    with pytest.raises(DatasetError, match=r"nosuchstore://x"):
        load("csv", path="nosuchstore://x", label="y")
    with pytest.raises(DatasetError, match=r"needs a package that is not installed: .*paramiko"):
        load("csv", path="sftp://host/x.csv", label="y")


def test_what_a_store_has_instead_is_named(load, store):
    store.pipe({"/bucket/houses.csv": b"", "/bucket/b.parquet": b"", "/bucket/deep/x.csv": b""})
    with pytest.raises(DatasetError, match=r"does not exist\.\ndid you mean: memory://bucket/houses\.csv$"):
        load("csv", path="memory://bucket/house.csv", label="y")
    with pytest.raises(DatasetError, match="That folder has 2 data files: 1 for dataset=parquet, 1 for dataset=csv"):
        load("csv", path="memory://bucket/missing.csv", label="y")
    with pytest.raises(DatasetError, match="Check bucket, folder and name"):
        load("csv", path="memory://other/missing.csv", label="y")


@pytest.mark.parametrize(
    ("variable", "value"), [("AZURE_STORAGE_KEY", "a2V5"), ("AZURE_STORAGE_SAS_TOKEN", "sv=1&sig=x")]
)
def test_azure_takes_the_key_of_the_environment(monkeypatch, variable, value):
    monkeypatch.setenv(variable, value)
    store, path = open_store("abfs://box@account.dfs.core.windows.net/a%20b/[1].csv")
    assert path == "box/a b/[1].csv"
    settings = store.fs.__reduce__()[1][0]
    assert settings["account_name"] == "account"
    assert settings["account_key" if variable == "AZURE_STORAGE_KEY" else "sas_token"] == value


def test_the_short_url_of_azure_takes_the_account_of_the_environment(load, monkeypatch):
    monkeypatch.delenv("AZURE_STORAGE_ACCOUNT", raising=False)
    with pytest.raises(DatasetError, match=r"az://box/x\.csv can't be used: AZURE_STORAGE_ACCOUNT is not set"):
        load("csv", path="az://box/x.csv", label="y")
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT", "account")
    monkeypatch.setenv("AZURE_STORAGE_KEY", "a2V5")
    store, path = open_store("az://box/a%20b/x.csv")
    assert path == "box/a b/x.csv"
    assert store.fs.__reduce__()[1][0]["account_name"] == "account"


def test_what_azure_refuses_is_one_clear_error(load):
    """pyarrow raises an exception that is neither an OSError nor a ValueError."""
    with pytest.raises(DatasetError, match=r"abfs://a@127\.0\.0\.1:9/box/x\.csv: .*TLS"):
        load("csv", path="abfs://a@127.0.0.1:9/box/x.csv?enable_tls=false", label="y")


@pytest.mark.parametrize(
    ("url", "shown_as"),
    [
        ("https://me:pass@host/x.csv?signature=abc", "https://host/x.csv"),
        ("s3://AKIA:pa/ss@bucket/x.csv?region=here", "s3://bucket/x.csv"),
        ("s3://bucket/a@b/x?.csv", "s3://bucket/a@b/x?.csv"),
        ("abfs://container@account.dfs.core.windows.net/x", "abfs://container@account.dfs.core.windows.net/x"),
        ("abfs://account:key@host:10000/x", "abfs://host:10000/x"),
        ("http://host:8000/a@b.csv", "http://host:8000/a@b.csv"),
    ],
)
def test_messages_show_no_secrets(url, shown_as):
    assert shown_url(url) == shown_as


def test_file_urls_are_local_paths(load, tmp_path):
    (tmp_path / "x y.csv").write_text(CSV)
    for url in ((tmp_path / "x y.csv").as_uri(), f"file://{tmp_path}/*.csv"):
        assert load("csv", path=url, label="y").info.num_rows == {"train": 16, "test": 4}
    with pytest.raises(DatasetError, match=r"file:///.*/no does not exist"):
        load("images", path=f"file://{tmp_path}/no")
