"""Servers, clusters and launchers: a file sends the credentials and the work of this account to none of its choice."""

from __future__ import annotations

import re
from typing import Any

import pytest
import yaml
from small_project import SCHEMAS, check, each_trial, gate, nested, refused, write

from rtrain.config.session import Session
from rtrain.errors import ConfigError, TargetError

STORES = [
    "s3://b/x?endpoint_override=evil:9000",
    "s3://b/x?scheme=http",
    "gs://evil.org:80/x",
    "s3://u@b/x",
    "s3://b/x#y",
]
CHAINS = ["simplecache::s3://b/x", "zip://a.csv::s3://b/x?endpoint_override=evil", "file://a::sftp://evil/x"]
UNLISTED = [f"{one}://evil/x" for one in ("oss", "OSS", "sftp", "s3a", "webhdfs", "gdrive", "reference", "adl")]
KEYS = ["run.storage", "dataset.columns", "run.init_from"]


@pytest.mark.parametrize("word", ["hydra.run.dir=/tmp/outside", "cluster.address=evil:1", f"run.storage='{STORES[0]}'"])
def test_what_a_smoke_block_says_is_not_typed(word, project):
    assert check("digits", word)
    with Session("digits", [word], SCHEMAS) as session:
        session.request.of_file = True
        with pytest.raises(ConfigError, match=word.partition("=")[0]):
            session.check()


def test_a_file_chooses_no_launcher_that_asks_other_machines(tmp_path):
    node = {"_target_": "hydra_plugins.hydra_ray_launcher.ray_launcher.RayLauncher", "ray": {"address": "evil:6379"}}
    with pytest.raises(TargetError, match="other machines"):
        gate().check_plugin(node, "hydra.launcher", tmp_path)
    for key in ("hydra.launcher", "hydra.launcher._target_"):
        gate(typed=frozenset({key})).check_plugin(node, "hydra.launcher", tmp_path)


def job(key: str = "cluster.runtime_env", value: Any = None) -> dict[str, Any]:
    """Return what the gate looks at of a resolved config in which one key is set."""
    section, _, name = key.partition(".")
    data: dict[str, Any] = {"trainer": {}, "dataset": {}, "run": {}, "cluster": {"runtime_env": {}}}
    return {**data, section: {**data[section], name: value or {}}}


def assert_only_permitted(key: str, value: Any) -> None:
    with pytest.raises(TargetError, match=re.escape(key)):
        gate().check_job(job(key, value))
    gate(allow=(key,)).check_job(job(key, value))
    gate(typed=frozenset({key})).check_job(job(key, value))


@pytest.mark.parametrize(
    "address", ["evil:6379", "ray://evil:10001", "evil.module://x", "localhost.evil.org:1", "auto:x"]
)
def test_no_cluster_elsewhere_is_joined_unless_it_is_permitted(address, project):
    assert_only_permitted("cluster.address", address)


@pytest.mark.parametrize(
    "address", [None, "auto", "local", "localhost:6379", "127.0.0.1:6379", "ray://localhost:10001"]
)
def test_a_cluster_of_this_machine_may_be_joined(address, project):
    data = job()
    data["cluster"]["address"] = address
    gate().check_job(data)


def test_a_file_names_no_cluster_elsewhere(project):
    write("configs/evil.yaml", yaml.safe_dump({"defaults": ["digits"], "cluster": {"address": "evil:6379"}}))
    assert "cluster.address" in refused("evil")
    assert check("evil", "allow=[cluster.address]")
    assert check("digits", "cluster.address='evil:6379'")
    write("configs/good.yaml", yaml.safe_dump({"defaults": ["digits"], "cluster": {"address": "localhost:6379"}}))
    assert check("good")


@pytest.mark.parametrize("url", [*STORES, "abfs://c@evil.org/x", "s3://b/x?region=evil.org", *CHAINS, *UNLISTED])
@pytest.mark.parametrize("key", KEYS)
def test_no_server_gets_credentials_unless_it_is_permitted(key, url, project):
    assert_only_permitted(key, [url] if key == "dataset.columns" else url)
    gate().check_job(job(key, "s3://b/x?region=eu-west-1"))


@pytest.mark.parametrize("key", KEYS)
def test_a_file_sends_credentials_to_no_server_of_its_choice(key, project):
    value = STORES[:1] if key == "dataset.columns" else STORES[0]
    write("configs/evil.yaml", yaml.safe_dump({"defaults": ["digits", "_self_"], **nested(key, value)}))
    assert key in refused("evil")
    assert check("evil", f"allow=[{key}]")
    write("configs/good.yaml", yaml.safe_dump({"defaults": ["digits"], **nested(key, "s3://b/x?region=eu-west-1")}))
    assert key == "dataset.columns" or check("good")


def test_a_sweep_of_a_file_names_no_server_either(project):
    params = {"run.storage": [STORES[0], None]}
    write("configs/evil.yaml", yaml.safe_dump({"defaults": ["digits"], "hydra": {"sweeper": {"params": params}}}))
    with Session("evil", [], SCHEMAS) as session, pytest.raises(ConfigError, match=r"run\.storage"):
        each_trial(session, lambda *_: None)


@pytest.mark.parametrize(
    "text",
    ["memory://a", "http://h/x", "file:///a.csv", "hf://datasets/a", "zip://a.csv::/b.zip", "a::b", "postgresql://h/d"],
)
def test_what_sends_no_credentials_needs_no_permission(text, project):
    gate().check_job(job("dataset.columns", [text]))
