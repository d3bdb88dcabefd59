"""Whole runs on data behind s3:// URLs, from a real server; nothing that was written tells a secret."""

import io
import os
import subprocess
import sys
from pathlib import Path
from urllib.parse import quote

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv, parquet

import rtrain
from rtrain.cli.app import run as command
from rtrain.errors import ConfigError, DatasetError

MAIN = "import sys; from rtrain.cli.app import run; sys.exit(run(sys.argv[1:]))"


def parts(num_rows=200):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(num_rows, 2))
    table = pa.table(
        {"id": np.arange(num_rows), "a": x[:, 0], "b": x[:, 1], "kind": np.where(x[:, 0] > 0, "up", "down")}
    )
    found = {}
    for name, write, part in (
        ("all.csv", csv.write_csv, table),
        *((f"new/{at}.parquet", parquet.write_table, table[at::2]) for at in (0, 1)),
    ):
        stream = io.BytesIO()
        write(part, stream)
        found[name] = stream.getvalue()
    return found


@pytest.fixture
def words(s3, tmp_path):
    url = s3.put("runs", parts())
    more = ["dataset.label=kind", "dataset.ids=[id]", "trainer.num_boost_round=5", "num_workers=0"]
    return ["dataset=csv", f"dataset.path={url}/all.csv", *more, f"run.root_dir={tmp_path}/runs"]


def everything_below(folder):
    return b"".join(file.read_bytes() for file in Path(folder).rglob("*") if file.is_file())


def test_a_run_its_evaluation_and_a_prediction(words, s3, tmp_path):
    run = rtrain.fit("xgboost", words)
    assert run.manifest.dataset["num_rows"] == {"train": 160, "test": 40}
    found = rtrain.evaluate(run.path)
    assert found["accuracy"] == pytest.approx(run.metrics["test/accuracy"])
    new = ["dataset=parquet", "dataset.path=s3://runs/new/*.parquet"]
    assert rtrain.predict(run.path, tmp_path / "out.parquet", new) == 200
    assert parquet.read_table(tmp_path / "out.parquet")["id"].to_pylist() == [*range(0, 200, 2), *range(1, 200, 2)]
    written = everything_below(tmp_path / "runs")
    assert b"s3://runs/all.csv" in written
    assert s3.secret.encode() not in written


def test_a_key_in_the_url_is_written_nowhere(words, s3, tmp_path, monkeypatch):
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    url = f"dataset.path='s3://{s3.key_id}:{quote(s3.secret, safe='')}@runs/all.csv'"
    run = rtrain.fit("xgboost", [*words, url])
    assert run.manifest.config["dataset"]["path"] == "s3://runs/all.csv"
    written = everything_below(tmp_path / "runs")
    for secret in (s3.key_id, s3.secret, quote(s3.secret, safe="")):
        assert secret.encode() not in written


@pytest.mark.parametrize(("path", "message"), [("no.csv", "does not exist"), ("all.csv", "access denied")])
def test_nothing_is_trained_without_the_data(words, s3, tmp_path, monkeypatch, path, message):
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wr0ng")
    if message == "does not exist":
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", s3.secret)
    with pytest.raises(DatasetError, match=rf"dataset\.path: s3://runs/{path}:? {message}"):
        rtrain.fit("xgboost", [*words, f"dataset.path=s3://runs/{path}"])
    assert not list((tmp_path / "runs").rglob("*.json"))


def test_results_go_to_this_machine(words, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    run = rtrain.fit("xgboost", words)
    for name in ("s3://runs/out.parquet", "s3://runs/out/"):
        with pytest.raises(ConfigError, match=rf"{name}: results are written to this machine[\s\S]*aws s3 cp"):
            rtrain.predict(run.path, name)
    assert command(["evaluate", str(run.path), "-o", "s3://runs/scores.json"]) == 2
    assert "results are written to this machine" in capsys.readouterr().err
    with pytest.raises(ConfigError, match=r"run\.root_dir[\s\S]*not a URL"):
        rtrain.fit("xgboost", [*words, "run.root_dir=s3://runs"])
    assert not Path("s3:").exists()


@pytest.mark.slow
def test_two_workers_on_ray_train_and_predict(words, s3, tmp_path):
    def rtrain_command(*more):
        done = subprocess.run(
            [sys.executable, "-c", MAIN, *more],
            cwd=tmp_path,
            env=os.environ,
            check=False,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout + done.stderr

    told = rtrain_command("fit", "xgboost", *words, "num_workers=2", "dataset.memory=stream")
    run = next((tmp_path / "runs").glob("*/*"))
    told += rtrain_command(
        "predict", str(run), "dataset=parquet", "dataset.path=s3://runs/new", "-o", "out.csv", "num_workers=2"
    )
    assert csv.read_csv(tmp_path / "out.csv")["id"].to_pylist() == [*range(0, 200, 2), *range(1, 200, 2)]
    assert s3.secret.encode() not in everything_below(tmp_path / "runs") + told.encode()
