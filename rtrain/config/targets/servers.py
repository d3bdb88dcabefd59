"""The object stores, and which servers a config may name: credentials of this account go to no other."""

from __future__ import annotations

import re

_AZURE = "AZURE_STORAGE_KEY, AZURE_STORAGE_SAS_TOKEN, or what az login left"
CREDENTIALS = {
    "s3": "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE",
    "gs": "GOOGLE_APPLICATION_CREDENTIALS",
    "gcs": "GOOGLE_APPLICATION_CREDENTIALS",
    "az": _AZURE,
    "abfs": _AZURE,
    "abfss": _AZURE,
}
"""The variables that hold credentials for each scheme of an object store; ``is_well_known`` knows their servers."""
_NOTHING_SENT = ("http", "https", "file", "local", "memory", "data", "hf", "hdfs", "zip", "tar")
"""Schemes by which no credentials go to a server that the URL names. (Of hf they go to the hub.)"""
_AZURE_HOSTS = ("dfs.core.windows.net", "blob.core.windows.net")
_BUCKET = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_OPTIONS = re.compile(r"\?(\w+=[^?&]*(?:&\w+=[^?&]*)*)$")
_CHAIN = re.compile(r"::[\w.+-]+://")
"""``file://a::sftp://host/b``: fsspec opens the last link, whatever the first one is."""
_PLAIN_OPTION = re.compile(r"region=[a-z0-9-]+|anonymous=\w+|retry_limit_seconds=[\d.]+")
_THIS_MACHINE = re.compile(r"auto|local|((ray://)?(localhost|127\.0\.0\.1|\[::1\])(:\d+)?)?")


def url_parts(url: str) -> tuple[str, str]:
    """Return a URL without its options, and these."""
    found = None if url.lower().startswith("http") else _OPTIONS.search(url)
    return (url[: found.start()], found[1]) if found else (url, "")


def is_well_known(url: str) -> bool:
    """Return whether a URL names a place whose server credentials of this account may go to, whoever wrote the URL.

    That is Amazon's, Google's or Azure's own, without options. By http(s), ``file`` and ``hf`` none go anywhere but to
    the hub.
    """
    scheme = url.partition("://")[0].lower()
    bare, options = url_parts(url)
    if _CHAIN.search(url):
        return False
    if scheme in ("http", "https", "file", "hf"):
        return True
    if options or "?" in bare or "#" in bare or "\\" in bare or "::" in bare:
        return False
    host = bare.partition("://")[2].partition("/")[0]
    if scheme in ("abfs", "abfss"):
        account, _, rest = host.rpartition("@")[2].lower().partition(".")
        return account.isalnum() and rest in _AZURE_HOSTS
    return scheme in ("s3", "gs", "gcs", "az") and _BUCKET.fullmatch(host) is not None


def is_foreign_store(url: str) -> bool:
    """Return whether a URL leads a store's client to another server than the provider's own.

    Every scheme that fsspec knows is a store, as is each link of a chain such as ``zip://rows.csv::s3://bucket/a.zip``.
    """
    schemes = {link.partition("://")[0].lower() for link in url.split("::") if "://" in link}
    bare, options = url_parts(url)
    plain = all(_PLAIN_OPTION.fullmatch(one) for one in options.split("&")) if options else True
    if plain and is_well_known(bare):
        return False
    return any(one in CREDENTIALS or _opened_by_fsspec(one) for one in schemes.difference(_NOTHING_SENT))


def _opened_by_fsspec(scheme: str) -> bool:
    from fsspec import available_protocols

    return scheme in available_protocols()


def is_own_cluster(address: str) -> bool:
    """Return whether an address of a Ray cluster leads to no other machine."""
    return _THIS_MACHINE.fullmatch(address) is not None
