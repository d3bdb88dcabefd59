"""A real S3 server in a process of its own: moto's, which checks keys and signatures as AWS does.

The fixtures ``s3_server`` and ``s3`` of conftest.py give it to tests.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

POLICY = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": ["s3:*"], "Resource": "*"}]}
REGION = "eu-central-1"


@dataclass(frozen=True, kw_only=True)
class S3Server:
    """A server with one account, which may do everything; nobody else may do anything."""

    url: str
    key_id: str
    secret: str
    process: subprocess.Popen[bytes]
    """To stop or to kill it; no other process serves."""
    log: Path

    @property
    def variables(self) -> dict[str, str]:
        """What a user exports to reach it."""
        return {
            "AWS_ENDPOINT_URL": self.url,
            "AWS_ACCESS_KEY_ID": self.key_id,
            "AWS_SECRET_ACCESS_KEY": self.secret,
            "AWS_DEFAULT_REGION": REGION,
            "AWS_EC2_METADATA_DISABLED": "true",
        }

    @cached_property
    def client(self) -> Any:
        """boto3's client: not the one under test."""
        return _client("s3", self.url, self.key_id, self.secret)

    def put(self, bucket: str, files: dict[str, bytes]) -> str:
        """Write objects by their names into a bucket, which is made if it is not there; return its URL."""
        client = self.client
        if bucket not in [one["Name"] for one in client.list_buckets()["Buckets"]]:
            client.create_bucket(Bucket=bucket, CreateBucketConfiguration={"LocationConstraint": REGION})
        for name, content in files.items():
            client.put_object(Bucket=bucket, Key=name, Body=content)
        return f"s3://{bucket}"

    def put_folder(self, bucket: str, folder: Path) -> str:
        """Write all files below a folder by their paths in it."""
        files = (file for file in folder.rglob("*") if file.is_file())
        return self.put(bucket, {str(file.relative_to(folder)): file.read_bytes() for file in files})

    def names(self, bucket: str) -> list[str]:
        """Return the names of the objects."""
        return [found["Key"] for found in self.client.list_objects_v2(Bucket=bucket).get("Contents", ())]

    def requests(self) -> list[str]:
        """Return what was asked so far, such as ``GET /bucket/name``."""
        return re.findall(r"([A-Z]+ /\S*) HTTP/1", self.log.read_text())


@contextmanager
def serve_s3(folder: Path) -> Iterator[S3Server]:
    """Start a server on a free port of this machine, and kill it at the end."""
    log = folder / "s3_server.log"
    with log.open("wb") as out, log.open("rb") as lines:
        command = [sys.executable, "-u", "-m", "moto.server", "-H", "127.0.0.1", "-p", "0"]
        process = subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT)
        try:
            url = _address(process, lines)
            yield S3Server(url=url, process=process, log=log, **_account(url))
        finally:
            process.kill()
            process.wait()


def _address(process: subprocess.Popen[bytes], lines: Any) -> str:
    said = ""
    while process.poll() is None:
        said += lines.readline().decode()
        if found := re.search(r"Running on (http://\S+)\s", said):
            return found[1]
    raise RuntimeError(f"the S3 server ended: {said}{lines.read().decode()}")


def _account(url: str) -> dict[str, str]:
    """Make the account, then let the server refuse all others."""
    iam = _client("iam", url, "anyone", "anything")
    iam.create_user(UserName="trainer")
    iam.put_user_policy(UserName="trainer", PolicyName="all", PolicyDocument=json.dumps(POLICY))
    key = iam.create_access_key(UserName="trainer")["AccessKey"]
    urlopen(Request(f"{url}/moto-api/reset-auth", data=b"0", headers={"Content-Type": "text/plain"})).close()
    return {"key_id": key["AccessKeyId"], "secret": key["SecretAccessKey"]}


def _client(service: str, url: str, key_id: str, secret: str) -> Any:
    import boto3

    return boto3.client(
        service, endpoint_url=url, region_name=REGION, aws_access_key_id=key_id, aws_secret_access_key=secret
    )
