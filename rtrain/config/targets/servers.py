"""Which servers a config may name, whoever wrote it: credentials of this account go to no other."""

from __future__ import annotations

import re

_STORES = ("s3", "gs", "gcs", "az", "abfs", "abfss")
_AZURE_HOSTS = ("dfs.core.windows.net", "blob.core.windows.net")
_BUCKET = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_OPTIONS = re.compile(r"\?(\w+=[^?&]*(?:&\w+=[^?&]*)*)$")
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
    """Return whether a URL leads an object store's client to another server than the provider's own."""
    bare, options = url_parts(url)
    plain = all(_PLAIN_OPTION.fullmatch(one) for one in options.split("&")) if options else True
    is_store = url.partition("://")[0].rpartition("::")[2].lower() in _STORES
    return is_store and not (plain and is_well_known(bare))


def is_own_cluster(address: str) -> bool:
    """Return whether an address of a Ray cluster leads to no other machine."""
    return _THIS_MACHINE.fullmatch(address) is not None
